import { attributeFill, openSide, orderFillsOf } from '../../core/attribution.js';
import type { ChainFill } from '../../core/types.js';
import { checkFills } from '../../ledger/chain/invariants.js';
import { cpuUs, interleaved, type Row } from '../gateway/measure.js';
import { market, snapshotOf } from './feed.js';

const LEGS = 50;
const FILLS = 500;
const FILL_UNITS = 10n ** 18n + 12_345n;
const QUOTE_UNITS = 2_500_000_000n;

/** A fill as the chain reports it, of the given place in the sequence. */
function fillOf(fillSeq: number): ChainFill {
  return {
    market: market.index,
    fillSeq,
    curveSeq: 1,
    side: 'bid',
    baseUnits: FILL_UNITS,
    quoteUnits: QUOTE_UNITS,
    feeUnits: 0n,
    inputFeeUnits: 0n,
    consumedBeforeUnits: FILL_UNITS * BigInt(fillSeq - 1),
    taker: '0x',
    recipient: '0x',
    blockNumber: 1,
    blockHash: '0x',
    txHash: '0x',
    logIndex: fillSeq,
    timestampMs: 1,
  };
}

/** The ledger's code: attribution with residual, the parts of orders, and every check of a fill before it is committed. */
function replay(): bigint {
  let state = openSide(market, snapshotOf(LEGS, 1, 0n, 0), 'bid');
  let sum = 0n;
  const before = new Map();
  for (let fillSeq = 1; fillSeq <= FILLS; fillSeq += 1) {
    const fill = fillOf(fillSeq);
    const { decomposition, state: next } = attributeFill(market, state, fill);
    state = next;
    const orderFills = orderFillsOf(market, 'bid', decomposition).map((part) => ({ ...part, tid: 0, cloid: null }));
    const [progress] = checkFills([{ fill, decomposition, orderFills }], [market], before);
    before.set(market.index, progress);
    sum += decomposition.residualUnits;
  }
  return sum;
}

/** The least that gives the same numbers: shares by largest remainder, floored quote amounts, the residual. */
function bareLoop(): bigint {
  const left = snapshotOf(LEGS, 1, 0n, 0).bids.map(({ sizeLots, priceTicks }) => ({
    units: sizeLots * market.lotUnits,
    priceTicks,
  }));
  let sum = 0n;
  for (let fill = 0; fill < FILLS; fill += 1) {
    let total = 0n;
    for (const { units } of left) total += units;
    const remainders: { index: number; rest: bigint }[] = [];
    const shares: bigint[] = [];
    let rest = FILL_UNITS;
    for (const [index, { units }] of left.entries()) {
      const product = FILL_UNITS * units;
      const share = product / total;
      shares.push(share);
      remainders.push({ index, rest: product - share * total });
      rest -= share;
    }
    remainders.sort((a, b) => (a.rest === b.rest ? a.index - b.index : a.rest > b.rest ? -1 : 1));
    for (const { index } of remainders) {
      if (rest === 0n) break;
      shares[index]! += 1n;
      rest -= 1n;
    }
    let quote = 0n;
    for (const [index, order] of left.entries()) {
      order.units -= shares[index]!;
      quote += (order.priceTicks * market.tickLotUnits * shares[index]!) / market.lotUnits;
    }
    sum += QUOTE_UNITS - quote;
  }
  return sum;
}

/** G12: replaying fills of 50 legs against bare loops of bigints. Both must agree to the unit. */
export async function measureReplay(): Promise<Row[]> {
  if (replay() !== bareLoop()) throw new Error('replay and bare loop differ');
  const us = await interleaved(
    { replay: () => cpuUs(() => void replay()), bare: () => cpuUs(() => void bareLoop()) },
    9,
  );
  return [
    { goal: '', what: `replay, ${LEGS} legs: fills`, value: (FILLS * 1e6) / us.replay, unit: '/s', bound: null },
    {
      goal: 'G12',
      what: `replay, ${LEGS} legs / bare bigint loop`,
      value: us.bare / us.replay,
      unit: 'x',
      bound: { atLeast: 0.5 },
    },
  ];
}
