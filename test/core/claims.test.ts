import { expect } from 'chai';
import fc from 'fast-check';
import { MAX_U128 } from '../../core/amounts.js';
import {
  NO_CLAIM,
  afterExecution,
  afterRequest,
  afterSettlement,
  maySettle,
  settlementUnits,
  type ClaimState,
  type LaterRequests,
} from '../../core/claim-state.js';
import { PAID_GAS_MAX, REQUEST_GAS } from '../../core/settle-gas.js';
import { fcOptions } from '../support/fc.js';

/** Of a settlement that looked at blocks which the chain still has. */
const usual = { blockNumber: 20, lost: false };
const none = { units: 0n, sinceBlock: null };

/** Acts that paid nothing. */
const request = (state: ClaimState, units: bigint, block: number, paidGas = 0n): ClaimState =>
  afterRequest(state, { units, paidGas }, block);
const execute = (state: ClaimState, units: bigint, paidGas = 0n): ClaimState =>
  afterExecution(state, { units, paidGas });
type Later = Omit<LaterRequests, 'paidGas'> & Partial<LaterRequests>;
const settle = (state: ClaimState, settled: Parameters<typeof afterSettlement>[1], later: Later): ClaimState =>
  afterSettlement(state, settled, { paidGas: 0n, ...later });

describe('claims', () => {
  it('adds requests up, and remembers since when the first of them waits', () => {
    const one = request(NO_CLAIM, 30n, 7);
    const two = request(one, 12n, 9);
    expect(two).to.deep.equal({ ...NO_CLAIM, outstandingUnits: 42n, pendingSinceBlock: 7 });
  });

  it('saturates at 2^128 - 1, whatever strangers ask for', () => {
    let state = NO_CLAIM;
    for (let i = 0; i < 9; i++) state = request(state, 2n ** 256n - 1n, i);
    expect(state.outstandingUnits).to.equal(MAX_U128);
    const settled = settle(state, { units: 5n, readyAtSec: 1, ...usual }, { units: MAX_U128, sinceBlock: 3 });
    expect(settled.outstandingUnits).to.equal(MAX_U128);
  });

  it('replaces what a settlement looked at, drops the rest of it for good, and keeps what came after its cut', () => {
    const asked = request(request(NO_CLAIM, 100n, 7), 9n, 12);
    const settled = settle(asked, { units: 60n, readyAtSec: 700, ...usual }, { units: 9n, sinceBlock: 12 });
    expect(settled).to.deep.equal({
      claimUnits: 60n,
      basis: 1n,
      readyAtSec: 700,
      outstandingUnits: 69n,
      advanceUnits: 0n,
      pendingSinceBlock: 12,
      paidGas: 0n,
    });
  });

  it('sets and does not add when a claim is settled again', () => {
    const first = settle(request(NO_CLAIM, 10n, 1), { units: 10n, readyAtSec: 600, ...usual }, none);
    const second = request(first, 5n, 2);
    expect(second.outstandingUnits).to.equal(15n);
    const again = settle(second, { units: 15n, readyAtSec: 900, ...usual }, none);
    expect([again.claimUnits, again.outstandingUnits, again.readyAtSec, again.basis]).to.deep.equal([
      15n,
      15n,
      900,
      2n,
    ]);
  });

  it('keeps the version of a claim that an equal amount settles, as the custodian does', () => {
    const zero = settle(request(NO_CLAIM, 10n, 1), { units: 0n, readyAtSec: 0, ...usual }, none);
    expect(zero).to.deep.equal(NO_CLAIM);
    const raised = settle(request(NO_CLAIM, 10n, 1), { units: 10n, readyAtSec: 600, ...usual }, none);
    const same = settle(raised, { units: 10n, readyAtSec: 600, ...usual }, none);
    expect(same).to.deep.equal(raised);
  });

  it('releases what a lower claim gives up', () => {
    const raised = settle(request(NO_CLAIM, 10n, 1), { units: 10n, readyAtSec: 600, ...usual }, none);
    const lower = settle(raised, { units: 4n, readyAtSec: 600, ...usual }, none);
    expect([lower.claimUnits, lower.outstandingUnits, lower.basis]).to.deep.equal([4n, 4n, 2n]);
    const cancelled = settle(lower, { units: 0n, readyAtSec: 600, ...usual }, none);
    expect(cancelled).to.deep.equal({ ...NO_CLAIM, basis: 3n, paidGas: PAID_GAS_MAX });
  });

  it('takes an executed claim off, and leaves requests that wait', () => {
    const settled = settle(request(NO_CLAIM, 10n, 1), { units: 10n, readyAtSec: 600, ...usual }, none);
    const waiting = request(settled, 3n, 8);
    expect(execute(waiting, 10n)).to.deep.equal({
      claimUnits: 0n,
      basis: 2n,
      readyAtSec: null,
      outstandingUnits: 3n,
      advanceUnits: 0n,
      pendingSinceBlock: 8,
      paidGas: 0n,
    });
  });

  const lost = { readyAtSec: 600, blockNumber: 20, lost: true };

  it('covers the requests of this chain by a settlement whose own requests were taken back, before it or after it', () => {
    const before = settle(request(NO_CLAIM, 30n, 15), { units: 30n, ...lost }, { units: 30n, sinceBlock: 15 });
    const advance = settle(NO_CLAIM, { units: 30n, ...lost }, none);
    expect([advance.outstandingUnits, advance.advanceUnits, advance.pendingSinceBlock]).to.deep.equal([30n, 30n, null]);
    expect(request(advance, 30n, 25)).to.deep.equal(before);
    expect([before.claimUnits, before.outstandingUnits, before.pendingSinceBlock]).to.deep.equal([30n, 30n, null]);
    const more = request(request(advance, 10n, 25), 45n, 26);
    expect([more.outstandingUnits, more.advanceUnits, more.pendingSinceBlock]).to.deep.equal([55n, 0n, 26]);
    const short = settle(request(NO_CLAIM, 50n, 15), { units: 30n, ...lost }, none);
    expect([short.outstandingUnits, short.advanceUnits, short.pendingSinceBlock]).to.deep.equal([50n, 0n, 15]);
  });

  it('pays an advance out like any claim, and lowers it like any', () => {
    const advance = settle(NO_CLAIM, { units: 30n, ...lost }, none);
    expect(execute(advance, 30n)).to.deep.equal({ ...NO_CLAIM, basis: 2n });
    const lower = settle(advance, { units: 0n, readyAtSec: 600, ...usual }, none);
    expect(lower).to.deep.equal({ ...NO_CLAIM, basis: 2n, paidGas: PAID_GAS_MAX });
    const half = settle(request(advance, 10n, 25), { units: 20n, readyAtSec: 600, ...usual }, none);
    expect([half.outstandingUnits, half.advanceUnits, half.pendingSinceBlock]).to.deep.equal([20n, 10n, null]);
  });

  it('drops what a lowered advance no longer covers of the requests that it looked at, and keeps those after its cut', () => {
    const asked = request(settle(NO_CLAIM, { units: 30n, ...lost }, none), 10n, 25);
    const lowered = (units: bigint, later: typeof none | { units: bigint; sinceBlock: number }) => {
      const state = settle(asked, { units, readyAtSec: 600, ...usual }, later);
      return [state.outstandingUnits, state.advanceUnits, state.pendingSinceBlock];
    };
    expect(lowered(4n, none), 'six of ten, for good').to.deep.equal([4n, 0n, null]);
    expect(lowered(0n, none)).to.deep.equal([0n, 0n, null]);
    const later = { units: 10n, sinceBlock: 25 };
    expect(lowered(4n, later), 'six of ten wait').to.deep.equal([10n, 0n, 25]);
    expect(lowered(10n, later)).to.deep.equal([10n, 0n, null]);
    expect(lowered(25n, later)).to.deep.equal([25n, 15n, null]);
    expect(lowered(11n, { units: 3n, sinceBlock: 25 }), 'seven before the cut, three after it').to.deep.equal([
      11n,
      1n,
      null,
    ]);
  });

  it('keeps what was paid since the last settlement, which uses it up but for requests after its cut', () => {
    const asked = request(request(NO_CLAIM, 10n, 1, REQUEST_GAS), 5n, 2, REQUEST_GAS);
    expect(asked.paidGas).to.equal(2n * REQUEST_GAS);
    const at = { readyAtSec: 600, ...usual };
    const raised = settle(asked, { units: 15n, ...at }, none);
    expect(raised.paidGas).to.equal(0n);
    expect(settle(asked, { units: 10n, ...at }, { units: 5n, sinceBlock: 2, paidGas: REQUEST_GAS }).paidGas).to.equal(
      REQUEST_GAS,
    );
    expect(execute(raised, 15n, 45_800n).paidGas, 'an execution pays for the next').to.equal(45_800n);
    let many = asked;
    for (let i = 3; i < 9; i++) many = request(many, 1n, i, REQUEST_GAS);
    expect(many.paidGas).to.equal(PAID_GAS_MAX);
  });

  it('owes a settlement to whose claim was taken back, or fell short by one that a reorganisation moved', () => {
    const at = { readyAtSec: 600, ...usual };
    const raised = settle(request(NO_CLAIM, 10n, 1, REQUEST_GAS), { units: 10n, ...at }, none);
    expect(settle(raised, { units: 4n, ...at }, none).paidGas).to.equal(PAID_GAS_MAX);
    const short = settle({ ...raised, claimUnits: 0n }, { units: 6n, ...lost }, none);
    expect([short.pendingSinceBlock, short.paidGas]).to.deep.equal([20, PAID_GAS_MAX]);
    const waiting = request(raised, 10n, 15, REQUEST_GAS);
    expect(settle(waiting, { units: 12n, ...lost }, none).paidGas, 'what waits was paid for').to.equal(REQUEST_GAS);
    expect(settle(waiting, { units: 20n, ...lost }, none).paidGas).to.equal(0n);
    const advance = settle(raised, { units: 30n, ...lost }, none);
    expect(request(advance, 20n, 25, REQUEST_GAS).paidGas, 'settled already').to.equal(0n);
    expect(request(advance, 21n, 25, REQUEST_GAS).paidGas).to.equal(REQUEST_GAS);
  });

  it('settles everything outstanding, clamped to the balance, and nothing without one', () => {
    expect(settlementUnits(10n, 25n)).to.equal(10n);
    expect(settlementUnits(10n, 7n)).to.equal(7n);
    expect(settlementUnits(10n, 0n)).to.equal(0n);
    expect(settlementUnits(10n, -3n)).to.equal(0n);
  });

  it('waits until what is still executable fits beside the claim', () => {
    expect(maySettle(10n, 25n, 15n)).to.equal(true);
    expect(maySettle(10n, 25n, 16n)).to.equal(false);
    expect(maySettle(25n, 25n, 0n)).to.equal(true);
    expect(maySettle(0n, -3n, 0n), 'nothing can be taken from a debtor').to.equal(true);
    expect(maySettle(0n, 3n, 4n)).to.equal(false);
  });

  type Act =
    | { kind: 'request'; units: bigint }
    | { kind: 'settle'; balance: bigint; late: bigint[] }
    | { kind: 'lower'; permille: bigint }
    | { kind: 'execute' };
  const actOf = (units: fc.Arbitrary<bigint>): fc.Arbitrary<Act> =>
    fc.oneof(
      fc.record({ kind: fc.constant('request' as const), units }),
      fc.record({
        kind: fc.constant('settle' as const),
        balance: fc.bigInt(0n, 3_000n),
        late: fc.array(units, { maxLength: 3 }),
      }),
      fc.record({ kind: fc.constant('lower' as const), permille: fc.bigInt(0n, 1_000n) }),
      fc.record({ kind: fc.constant('execute' as const) }),
    );

  /** Runs acts beside the contract's own word and the list of requests that no settlement has looked at. */
  function run(
    acts: readonly Act[],
    check: (state: ClaimState, chain: { amount: bigint; basis: bigint }, uncovered: readonly bigint[]) => void,
  ): void {
    let state: ClaimState = NO_CLAIM;
    const chain = { amount: 0n, basis: 0n };
    let uncovered: bigint[] = [];
    acts.forEach((one, block) => {
      if (one.kind === 'request') {
        state = request(state, one.units, block);
        uncovered.push(one.units);
      } else if (one.kind === 'execute') {
        if (chain.amount === 0n) return;
        state = execute(state, chain.amount);
        chain.amount = 0n;
        chain.basis += 1n;
      } else {
        const amount =
          one.kind === 'settle'
            ? settlementUnits(state.outstandingUnits, one.balance)
            : (chain.amount * one.permille) / 1_000n;
        if (one.kind === 'settle') {
          for (const more of one.late) state = request(state, more, block);
          uncovered = one.late;
        }
        const later = {
          units: uncovered.reduce((a, b) => (a + b > MAX_U128 ? MAX_U128 : a + b), 0n),
          sinceBlock: uncovered.length === 0 ? null : block,
        };
        state = settle(state, { units: amount, readyAtSec: block, ...usual }, later);
        if (amount !== chain.amount) chain.basis += 1n;
        chain.amount = amount;
      }
      check(state, chain, uncovered);
    });
  }

  it('follows the claim and its version on-chain, and reserves exactly it and what is uncovered', () => {
    fc.assert(
      fc.property(fc.array(actOf(fc.bigInt(1n, 1_000n)), { maxLength: 40 }), (acts) => {
        run(acts, (state, chain, uncovered) => {
          expect([state.claimUnits, state.basis]).to.deep.equal([chain.amount, chain.basis]);
          expect(state.outstandingUnits).to.equal(uncovered.reduce((a, b) => a + b, chain.amount));
          expect(state.pendingSinceBlock === null).to.equal(uncovered.length === 0);
        });
      }),
      fcOptions(300),
    );
  });

  it('stays between the claim and 2^128 - 1 when strangers ask for anything', () => {
    fc.assert(
      fc.property(fc.array(actOf(fc.bigInt(1n, 2n ** 256n - 1n)), { maxLength: 40 }), (acts) => {
        run(acts, (state, chain) => {
          expect([state.claimUnits, state.basis]).to.deep.equal([chain.amount, chain.basis]);
          expect(state.outstandingUnits >= state.claimUnits && state.outstandingUnits <= MAX_U128).to.equal(true);
        });
      }),
      fcOptions(300),
    );
  });
});
