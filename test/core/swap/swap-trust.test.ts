import { expect } from 'chai';
import {
  creditGas,
  limitWithin,
  mayRisk,
  refusalCodeOf,
  riskGas,
  wayOf,
  type Dealing,
  type Risky,
  type Sent,
  type Standing,
} from '../../../core/swap/trust.js';

/** What a checked transaction burns, and more of it for each place, and with an approval. */
const [CHECKED, PLACE, PERMIT] = [62_000n, 15_000n, 17_000n];
const limits = { underWay: [] as Sent[], maxReverts: 2, newAccountGas: 94_000n };
const own: Risky = { venues: 1, pools: 0, gasLimit: 200_000n, isCode: false };
const split: Risky = { venues: 2, pools: 1, gasLimit: 350_000n, isCode: false };
const pool: Risky = { venues: 1, pools: 1, gasLimit: 340_000n, isCode: false };
const code: Risky = { venues: 1, pools: 0, gasLimit: 180_000n, isCode: true };
const fill: Dealing = { kind: 'fill' };
const swap: Dealing = { kind: 'swap' };
const revert = (gasUsed = 79_000n): Dealing => ({ kind: 'revert', gasUsed });

describe('what is risked for an owner of signed orders', () => {
  const judge = (dealings: Dealing[], one: Risky = own, change: Partial<typeof limits> = {}) =>
    mayRisk(dealings, one, { ...limits, ...change });

  it('is one transaction over one venue for a new account, and none that could burn more than its owner spent', () => {
    expect(judge([])).to.equal('send');
    expect(judge([revert()])).to.equal('refuse');
    expect(judge([revert(57_000n)])).to.equal('refuse');
    expect(judge([], split)).to.equal('refuse');
    expect(judge([], code)).to.equal('refuse');
    expect(judge([], code, { newAccountGas: 180_000n })).to.equal('send');
  });

  it('is an approval by signature, too, which is burnt with the trade', () => {
    const permit = { ...own, beforeGas: 55_000n };
    expect([riskGas(own), riskGas(permit), riskGas({ ...permit, gasLimit: 90_000n })]).to.deep.equal([
      ...[80_000n, 135_000n, 90_000n],
    ]);
    expect(judge([], permit)).to.equal('refuse');
    expect(judge([], permit, { newAccountGas: 135_000n })).to.equal('send');
    expect(judge([], own, { newAccountGas: 214_000n, underWay: [permit] })).to.equal('wait');
    expect(judge([], own, { newAccountGas: 215_000n, underWay: [permit] })).to.equal('send');
  });

  it('is counted in gas: fills and swaps of its own add to it, reverts take from it', () => {
    expect(creditGas(94_000n, [fill, revert(), swap, revert(100_000n)])).to.equal(171_000n);
    expect(judge([fill, revert()])).to.equal('send');
    expect(judge([fill, revert(), revert()])).to.equal('refuse');
    expect([judge([fill], split), judge([fill, fill], split)]).to.deep.equal(['refuse', 'send']);
    expect([judge([swap], code), judge([revert(), swap], code)]).to.deep.equal(['send', 'refuse']);
    expect(judge([revert(), swap, swap], code)).to.equal('send');
  });

  it('is bounded, whatever an owner has spent', () => {
    const many = Array.from({ length: 50 }, () => fill);
    expect(creditGas(94_000n, many)).to.equal(700_000n);
    expect(judge([...many, revert()])).to.equal('send');
    expect(judge([...many, revert(), revert()]), 'by the number of reverts').to.equal('refuse');
    expect(judge([...many, revert(), revert(), swap]), 'a swap allows one').to.equal('send');
    expect(judge([...many, revert(), revert(), swap, revert()])).to.equal('refuse');
  });

  it('is one transaction over a pool by itself for an owner of whom nothing reverted, and then what it spent', () => {
    expect([judge([], pool), judge([fill], pool)]).to.deep.equal(['send', 'send']);
    expect(judge([], pool, { newAccountGas: 79_999n })).to.equal('refuse');
    expect(judge([], { ...pool, isCode: true })).to.equal('refuse');
    expect([judge([], pool, { underWay: [own] }), judge([], own, { underWay: [pool] })]).to.deep.equal([
      'wait',
      'wait',
    ]);
    expect(judge([fill, fill, fill], pool, { underWay: [own] })).to.equal('send');
    expect(judge([fill, fill, fill], pool, { underWay: [pool] }), '680,000 of 574,000').to.equal('wait');
    expect([judge([revert(), fill], pool), judge([revert(), fill, fill, fill], pool)]).to.deep.equal([
      'refuse',
      'send',
    ]);
  });

  it('counts what is under way', () => {
    expect(judge([], own, { underWay: [own] })).to.equal('wait');
    expect(judge([fill], own, { underWay: [own] })).to.equal('send');
    expect(judge([fill], own, { underWay: [own, own] })).to.equal('wait');
    expect(judge([fill, fill, fill], code, { underWay: [code] })).to.equal('send');
    expect(judge([fill], code, { underWay: [code] })).to.equal('wait');
    expect(judge([fill, swap], own, { underWay: [split] }), '350,000 and 80,000 of 350,000').to.equal('wait');
    expect(judge([fill, fill, swap], own, { underWay: [split] }), 'of 510,000').to.equal('send');
    expect(judge([fill], code, { underWay: [own] }), 'an account that has code by now').to.equal('wait');
  });

  it('limits a transaction to what the credit covers, and lets quotes name what will be sent with all its room', () => {
    const standing = (dealings: Dealing[], isCode = false): Standing => ({ ...limits, dealings, isCode });
    const two = { venues: 2, pools: 1, gas: 250_000n };
    const one = { venues: 1, pools: 0, gas: 140_000n };
    expect(limitWithin(standing([]), one)).to.equal(212_000n);
    expect(limitWithin(standing([]), two)).to.equal(null);
    expect(limitWithin(standing([fill]), two), 'of 254,000').to.equal(null);
    expect(limitWithin(standing([fill, swap]), two), 'all of 350,000').to.equal(350_000n);
    expect(limitWithin(standing([fill, fill]), two), 'of 414,000').to.equal(355_000n);
    expect(limitWithin(standing([fill, fill, revert(), revert()]), one), 'by the count').to.equal(null);
    expect(limitWithin(standing([swap], true), one)).to.equal(170_000n);
    expect(limitWithin(standing([], true), one)).to.equal(null);

    const quotes = (dealings: Dealing[], isCode = false) => {
      const way = wayOf(standing(dealings, isCode), isCode ? 30_000n : 0n);
      return [way(['own']), way(['pool']), way(['own', 'pool']), way(['own', 'pool', 'other'])].map(
        (one) => one === 'plain',
      );
    };
    expect(quotes([])).to.deep.equal([true, true, false, false]);
    expect(quotes([fill])).to.deep.equal([true, true, false, false]);
    expect(quotes([fill, fill])).to.deep.equal([true, true, true, false]);
    expect(quotes([fill, fill, fill])).to.deep.equal([true, true, true, true]);
    expect(quotes([revert()])).to.deep.equal([false, false, false, false]);
    expect(quotes([swap], true)).to.deep.equal([false, false, false, false]);
    expect(quotes([swap, swap], true)).to.deep.equal([true, false, false, false]);
    expect(quotes([swap, swap, swap], true)).to.deep.equal([true, true, true, false]);
    expect([[fill], [swap, revert()]].map((one) => refusalCodeOf(one))).to.deep.equal([
      'UNPROVEN_ACCOUNT',
      'TOO_MANY_REVERTS',
    ]);
  });

  it('is little for what looks first, even if the account gets code, and all of what does not', () => {
    const checked = { ...own, isChecked: true, canCheck: true };
    expect(riskGas(checked)).to.equal(CHECKED + PLACE);
    expect(riskGas({ ...checked, isCode: true, beforeGas: 55_000n })).to.equal(CHECKED + PLACE + PERMIT);
    expect(riskGas({ ...split, isChecked: true, canCheck: true })).to.equal(CHECKED + 2n * PLACE);
    expect([riskGas({ ...checked, checks: 2 }), riskGas({ ...checked, checks: 5 })], 'more conditions').to.deep.equal([
      CHECKED + PLACE,
      CHECKED + PLACE + 36_000n,
    ]);
    expect(riskGas({ ...split, isChecked: true, checks: 5 }), 'over two places').to.equal(
      CHECKED + 2n * PLACE + 12_000n,
    );
    expect(riskGas({ ...checked, gasLimit: 40_000n })).to.equal(40_000n);
    expect(riskGas({ ...own, canCheck: true })).to.equal(200_000n);
  });

  it('is a checked transaction for a new account, and one as it is once the credit covers all of that', () => {
    const way = (dealings: Dealing[], ids: string[], isCode = false, beforeGas = 0n) =>
      wayOf({ ...limits, dealings, isCode, canCheck: true }, 0n, beforeGas)(ids);
    expect([way([], ['own']), way([], ['pool']), way([], ['own', 'pool'])]).to.deep.equal([
      ...['checked', 'checked', 'checked'],
    ]);
    expect(way([], ['own'], false, 55_000n), 'with an approval').to.equal('checked');
    expect(way([], ['own', 'pool', 'other']), '107,000 of 94,000').to.equal(null);
    expect([way([fill], ['own']), way([fill], ['pool'])]).to.deep.equal(['plain', 'checked']);
    expect([way([fill, fill], ['pool']), way([revert(60_000n)], ['own'])]).to.deep.equal(['plain', null]);
    expect([way([swap], ['own']), way([], ['own'], true)]).to.deep.equal(['checked', null]);
    const counted = (ids: string[], checks: number | null) =>
      wayOf({ ...limits, dealings: [], isCode: false, canCheck: true }, 0n)(ids, checks);
    expect(
      [2, 3, 4, null].map((checks) => counted(['pool'], checks)),
      'ticks within a pool: 89,000 and 101,000',
    ).to.deep.equal([...['checked', 'checked', null, null]]);
    expect(
      [4, 5].map((checks) => counted(['own', 'pool'], checks)),
      '92,000 and 104,000',
    ).to.deep.equal(['checked', null]);
    const lookFirst = { ...own, isChecked: true, canCheck: true };
    expect(judge([], lookFirst)).to.equal('send');
    expect(judge([], lookFirst, { underWay: [lookFirst] })).to.equal('wait');
    expect(judge([fill], lookFirst, { underWay: [lookFirst] })).to.equal('send');
    expect(judge([fill], { ...own, canCheck: true }, { underWay: [lookFirst] }), 'of 254,000').to.equal('wait');
    expect(judge([fill], { ...pool, canCheck: true })).to.equal('refuse');
  });

  it('never comes to more than what was spent, whatever happens in whatever order', () => {
    const spends = { fill: 160_000n, swap: 96_000n };
    let together = 0;
    for (let seed = 0; seed < 3_000; seed++) {
      let bits = seed * 2_654_435_761;
      const next = (n: number): number => {
        bits = (Math.imul(bits, 1_103_515_245) + 12_345) >>> 0;
        return (bits >>> 16) % n;
      };
      const dealings: Dealing[] = [];
      // One account keeps its code, or the lack of it.
      const kinds = next(2) === 0 ? [own, split] : [code, { ...code, gasLimit: 240_000n }];
      let underWay: Risky[] = [];
      let [spent, lost] = [94_000n, 0n];
      for (let step = 0; step < 30; step++) {
        const one = kinds[next(2)]!;
        const what = next(4);
        if (what === 0) {
          dealings.push({ kind: 'swap' });
          spent += spends.swap;
        } else if (what < 3) {
          if (judge(dealings, one, { underWay, maxReverts: 5 }) === 'send') underWay = [...underWay, one];
        } else {
          // All that is under way lands: it fills, or it burns what it can.
          together = Math.max(together, underWay.length);
          for (const landed of underWay) {
            if (next(3) === 0) {
              dealings.push({ kind: 'fill' });
              spent += spends.fill;
            } else {
              const gasUsed = riskGas(landed);
              dealings.push({ kind: 'revert', gasUsed });
              lost += gasUsed;
            }
          }
          underWay = [];
        }
        expect(lost <= spent, `seed ${seed}, step ${step}: ${lost} against ${spent}`).to.equal(true);
      }
    }
    expect(together, 'several at once').to.equal(5);
  });
});
