/** Generations for tests of the ledger log: a chain of blocks with made-up hashes, deposits, and fills of given legs. */
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, Decomposition, Hex, Leg, Market, Side } from '../../core/types.js';
import { depositEntries } from '../../keepers/watcher/derive/postings.js';
import { fillEntries } from '../../ledger/chain/fill-postings.js';
import type { AttributedFill, GenerationWrite, ScannedBlock } from '../../ledger/types.js';

export const OPERATOR: Address = `0x${'9'.repeat(40)}`;
export const TAKER: Address = `0x${'8'.repeat(40)}`;

const hash = (kind: string, number: number): Hex => `0x${kind}${number.toString(16).padStart(63, '0')}`;

export function blockOf(number: number): ScannedBlock {
  return {
    number,
    hash: hash('b', number),
    parentHash: hash('b', number - 1),
    timestampSec: 1_800_000_000 + 2 * number,
  };
}

/** The lists of a generation in which nothing happened; new arrays at each call. */
export const nothingWritten = () =>
  ({
    listed: [],
    custody: [],
    posts: [],
    fills: [],
    entries: [],
    reservations: [],
    claims: [],
    holdings: [],
    netCapital: [],
    snapshots: [],
    halt: null,
  }) satisfies Partial<GenerationWrite>;

/** Generation `n` of one block, number 100 + n, with nothing in it. */
export function generationOf(n: number, change: Partial<GenerationWrite> = {}): GenerationWrite {
  const block = blockOf(100 + n);
  return {
    generation: n,
    fromBlock: block.number,
    toBlock: block.number,
    blocks: [block],
    scannedMs: block.timestampSec * 1_000 + 300,
    observedHead: block.number,
    observedHeadTimestampMs: block.timestampSec * 1_000,
    ...nothingWritten(),
    ...change,
  };
}

/** What a deposit adds to a generation. */
export function deposit(n: number, logIndex: number, maker: Address, token: Address, amountUnits: bigint) {
  const txHash = hash('d', n * 1_000 + logIndex);
  return {
    custody: [
      {
        kind: 'deposited' as const,
        maker,
        token,
        amountUnits,
        basis: null,
        readyAtSec: null,
        settlementNo: null,
        paidGas: 0n,
        blockNumber: 100 + n,
        txHash,
        logIndex,
      },
    ],
    entries: depositEntries(`deposit:${txHash}:${logIndex}`, maker, token, amountUnits),
    netCapital: [{ account: maker, token, deltaUnits: amountUnits }],
  };
}

interface FillPart {
  oid: number;
  maker: Address;
  priceTicks: bigint;
  baseUnits: bigint;
}

/** A fill of the given parts, each a leg of its own, whose curve amount lies `residualUnits` above the legs. */
export function fillOf(
  n: number,
  market: Market,
  fillSeq: number,
  side: Side,
  parts: readonly FillPart[],
  { residualUnits = 7n, feeUnits = 3n, inputFeeUnits = 2n } = {},
): AttributedFill {
  const block = blockOf(100 + n);
  const legs = parts.map(({ oid, maker, priceTicks, baseUnits }): Leg => ({
    maker,
    priceTicks,
    baseUnits,
    quoteUnits: quoteUnitsFloor(market, priceTicks, baseUnits),
    orders: [{ oid, baseUnits }],
  }));
  const decomposition: Decomposition = {
    legs,
    residualUnits,
    roundingUnits: 1n,
    compressionResidualUnits: residualUnits - 1n,
    operatorGainUnits: side === 'ask' ? residualUnits : -residualUnits,
    missingBaseUnits: 0n,
  };
  return {
    fill: {
      market: market.index,
      fillSeq,
      curveSeq: 1,
      side,
      baseUnits: legs.reduce((sum, leg) => sum + leg.baseUnits, 0n),
      quoteUnits: legs.reduce((sum, leg) => sum + leg.quoteUnits, residualUnits),
      feeUnits,
      inputFeeUnits,
      consumedBeforeUnits: 0n,
      taker: TAKER,
      recipient: TAKER,
      blockNumber: block.number,
      blockHash: block.hash,
      txHash: hash('f', market.index * 10_000 + fillSeq),
      logIndex: fillSeq,
      timestampMs: block.timestampSec * 1_000,
    },
    decomposition,
    orderFills: parts.map((part) => ({
      ...part,
      market: market.index,
      side,
      tid: 1_000_000 * (market.index + 1) + fillSeq * 1_000 + part.oid,
      cloid: null,
    })),
  };
}

/** What fills add to a generation. */
export function withFills(
  markets: readonly Market[],
  fills: AttributedFill[],
): Pick<GenerationWrite, 'fills' | 'entries'> {
  const entries = fills.flatMap(({ fill, decomposition }) =>
    fillEntries(markets[fill.market]!, fill, decomposition, OPERATOR),
  );
  return { fills, entries };
}
