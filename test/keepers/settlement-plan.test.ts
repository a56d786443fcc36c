/** Which claims are settled in what order, and how long small ones wait. */
import { expect } from 'chai';
import { NO_CLAIM, settlesFromMs } from '../../core/claim-state.js';
import { REQUEST_GAS, eventGas } from '../../core/settle-gas.js';
import { backoffMs, planLowering, planSettlements } from '../../keepers/settler/plan.js';
import type { PendingClaim } from '../../ledger/chain/claims.js';

describe('plan of settlements', () => {
  const claim = (digit: string, change: Partial<PendingClaim> = {}): PendingClaim => ({
    ...NO_CLAIM,
    maker: `0x${digit.repeat(40)}`,
    token: `0x${'f'.repeat(40)}`,
    outstandingUnits: 10n,
    pendingSinceBlock: 1,
    balanceUnits: 100n,
    paidGas: 2n * REQUEST_GAS,
    ...change,
  });
  const plan = (change: Partial<Parameters<typeof planSettlements>[0]>) =>
    planSettlements({
      funded: [],
      unfunded: [],
      worstUnits: () => 0n,
      batchMax: 10,
      emptyBudget: 10,
      ...change,
    }).map(({ maker, amountUnits }) => [maker.slice(2, 3), amountUnits]);

  it('serves in order, clamps to the balance, and leaves out who could still be made to pay too much', () => {
    const funded = [claim('1'), claim('2', { outstandingUnits: 1_000n }), claim('3'), claim('4')];
    const worstUnits = ({ maker }: PendingClaim): bigint =>
      maker.startsWith('0x3') ? 91n : maker.startsWith('0x4') ? 90n : 0n;
    expect(plan({ funded, worstUnits })).to.deep.equal([
      ['1', 10n],
      ['2', 100n],
      ['4', 10n],
    ]);
  });

  it('puts settlements that raise nothing last, within their budget, whoever asks for them', () => {
    const unfunded = ['5', '6', '7'].map((digit) => claim(digit, { balanceUnits: 0n }));
    const covered = claim('2', { balanceUnits: 5n, claimUnits: 5n });
    expect(plan({ funded: [covered, claim('1')], unfunded, emptyBudget: 2 })).to.deep.equal([
      ['1', 10n],
      ['2', 5n],
      ['5', 0n],
    ]);
    expect(plan({ unfunded, emptyBudget: -3 })).to.deep.equal([]);
    expect(plan({ funded: [claim('1'), claim('2')], unfunded, batchMax: 1 })).to.deep.equal([['1', 10n]]);
  });

  it('sends what raises a claim that stands, or nothing, beside other settlements or once its requests cost as much', () => {
    const stands = { claimUnits: 5n, basis: 1n };
    const raise = (requests: number) => claim('1', { ...stands, paidGas: BigInt(requests) * REQUEST_GAS });
    const empty = (requests: number) => claim('5', { balanceUnits: 0n, paidGas: BigInt(requests) * REQUEST_GAS });
    expect(plan({ funded: [raise(2)] }), 'two requests cost less').to.deep.equal([]);
    expect(plan({ funded: [raise(3)] })).to.deep.equal([['1', 10n]]);
    expect(plan({ unfunded: [empty(1)] })).to.deep.equal([]);
    expect(plan({ unfunded: [empty(2)] })).to.deep.equal([['5', 0n]]);
    expect(plan({ funded: [raise(2)], unfunded: [empty(1)] }), 'together').to.deep.equal([
      ['1', 10n],
      ['5', 0n],
    ]);
    const fresh = claim('2', { paidGas: 0n });
    expect(plan({ funded: [raise(1), fresh], unfunded: [empty(0)] }), 'riding along').to.deep.equal([
      ['2', 10n],
      ['1', 10n],
    ]);
    const dear = claim('3', { ...stands, token: `0x${'3'.repeat(40)}`, paidGas: REQUEST_GAS });
    expect(plan({ funded: [fresh, dear] }), 'the first of its token adds more than it paid').to.deep.equal([
      ['2', 10n],
    ]);
    const more = claim('4', { ...stands, token: dear.token, paidGas: 2n * REQUEST_GAS });
    expect(plan({ funded: [fresh, more, dear] }), 'the second does not').to.deep.equal([
      ['2', 10n],
      ['4', 10n],
      ['3', 10n],
    ]);
    const other = (digit: string, requests: number) =>
      claim(digit, { ...stands, token: `0x${digit.repeat(40)}`, paidGas: BigInt(requests) * REQUEST_GAS });
    const full = { funded: [other('2', 1), other('3', 1), other('4', 2), raise(3)], batchMax: 1 };
    expect(plan(full), 'none holds back another').to.deep.equal([['1', 10n]]);
    const first = { funded: [other('2', 1), other('3', 1), other('4', 1)], batchMax: 3 };
    expect(plan(first), 'three tokens cost more than three requests').to.deep.equal([]);
    expect(plan({ funded: [other('2', 2), raise(3)], batchMax: 4 }), 'what is left over').to.deep.equal([
      ['2', 10n],
      ['1', 10n],
    ]);
    expect(plan({ funded: [fresh] }), 'the first').to.deep.equal([['2', 10n]]);
    const again = { claimUnits: 0n, basis: 2n };
    const executed = eventGas('executed', 1);
    expect(plan({ funded: [claim('6', { ...again, paidGas: executed + REQUEST_GAS })] })).to.deep.equal([['6', 10n]]);
    const inOne = eventGas('executed', 2) + eventGas('requested', 2);
    expect(plan({ funded: [claim('6', { ...again, paidGas: inOne })] }), 'in one transaction').to.deep.equal([]);
    const above = claim('3', { ...stands, claimUnits: 8n, balanceUnits: 4n, paidGas: 0n });
    expect(plan({ funded: [above] }), 'taken back').to.deep.equal([['3', 4n]]);
  });

  it('lowers a claim that is above the amount, and no other', () => {
    const lower = { token: claim('1').token, amountUnits: 4n };
    const act = { operatorSeq: 9, timeMs: 0, kind: 'lowerClaim' as const, maker: claim('1').maker, note: '', lower };
    expect(planLowering(act, claim('1', { claimUnits: 4n }))).to.equal(null);
    expect(planLowering(act, claim('1', { claimUnits: 5n, basis: 3n }))).to.include({ amountUnits: 4n, basis: 3n });
  });

  it('tries again at once after one refusal, then less and less often', () => {
    expect([0, 1, 2, 3, 4, 40].map(backoffMs)).to.deep.equal([0, 0, 2_000, 4_000, 8_000, 300_000]);
  });
});

describe('pace of settlements', () => {
  const pace = { intervalMs: 300, smallIntervalMs: 3_600, smallBps: 100 };
  const from = (claimUnits: bigint, outstandingUnits: bigint, balanceUnits: bigint, lastMs: number | null = 1_000) =>
    settlesFromMs({ claimUnits, outstandingUnits, balanceUnits }, lastMs, pace);

  it('waits longer for what is small beside the balance, or nothing, but not for what takes the rest', () => {
    expect(from(0n, 10n, 1_000n, null), 'the first').to.equal(0);
    expect(from(500n, 510n, 1_000n)).to.equal(1_300);
    expect(from(500n, 509n, 1_000n)).to.equal(4_600);
    expect(from(995n, 1_000n, 1_000n), 'the rest').to.equal(1_300);
    expect(from(995n, 9_999n, 1_000n), 'more than the rest').to.equal(1_300);
    expect(from(1_000n, 1_001n, 1_000n), 'nothing').to.equal(4_600);
    expect(from(0n, 1n, 0n), 'without funds').to.equal(4_600);
    expect(from(500n, 500n, 400n), 'taken back').to.equal(0);
  });

  it('never makes the small wait less than the large', () => {
    const slow = { ...pace, intervalMs: 5_000 };
    expect(settlesFromMs({ claimUnits: 1n, outstandingUnits: 2n, balanceUnits: 1_000n }, 1_000, slow)).to.equal(6_000);
  });
});
