/** A market with many fills: generated events of the chain, and generated publications of the poster. */
import { createMarket, quoteUnitsFloor } from '../../core/market.js';
import { snapshotHash } from '../../core/snapshot.js';
import type { Address, ChainFill, Hex, Market, MarketSnapshot } from '../../core/types.js';
import { depositEntries } from '../../keepers/watcher/derive/postings.js';
import { createAttributor, type Attributor } from '../../keepers/watcher/derive/attributor.js';
import { fillPostings } from '../../keepers/watcher/derive/suspense.js';
import { generationSteps } from '../../ledger/chain/ledger-log.js';
import { insertPublications } from '../../ledger/publications/publication-log.js';
import { createSnapshotStore, type SnapshotStore } from '../../ledger/orders/snapshots.js';
import { VAULT, type Db, type GenerationWrite, type LedgerEntry, type Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';

const OPERATOR: Address = `0x${'9'.repeat(40)}`;
const TAKER: Address = `0x${'8'.repeat(40)}`;
const PRICE_TICKS = 250_000n;
const FUNDS_UNITS = 10n ** 30n;
/** After so many generations the makers change their orders, and the next fill is on another curve. */
const GENERATIONS_PER_CURVE = 25;

/** How many orders a curve's book has, beside those that fills hit, and how many generations it lives. */
interface FeedBooks {
  others: number;
  generationsPerCurve: number;
}
/** Base units of every fill: such that no maker's share is a whole number, so that remainders must be distributed. */
const FILL_UNITS = 10n ** 18n + 12_345n;
const RESIDUAL_UNITS = 1_234n;
const FEE_UNITS = 77n;

export const market: Market = createMarket({
  index: 0,
  base: { symbol: 'WETH', address: `0x${'1'.repeat(40)}`, decimals: 18 },
  quote: { symbol: 'USDC', address: `0x${'2'.repeat(40)}`, decimals: 6 },
  lotUnits: 10n ** 14n,
  tickLotUnits: 1n,
  maxTtlSec: 60,
});

const hash = (kind: string, number: number): Hex => `0x${kind}${number.toString(16).padStart(63, '0')}`;
export const makerOf = (index: number): Address => `0x${(index + 1).toString(16).padStart(40, 'a')}`;

/** The ledger over one database, fed with made-up fills. */
interface Feed {
  /**
   * Attributes and commits generations, each with `fills` fills; resolves when the last one is durable. Curves are prepared within
   * `aside`, since that is no work of the ledger.
   */
  run(generations: number, fills: number, aside?: (work: () => Promise<void>) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** The book of a curve: orders of unequal size at one price, deep enough for all fills of that curve, so that each fill takes from all orders. */
export function snapshotOf(legs: number, seq: number, takenUnits: bigint, fillSeq: number): MarketSnapshot {
  const bids = Array.from({ length: legs }, (_, index) => ({
    oid: seq * legs + index + 1,
    maker: makerOf(index),
    priceTicks: PRICE_TICKS,
    sizeLots: 10_000_000n + BigInt((index * 7_919) % 1_000),
  }));
  return { market: market.index, fillSeq, askVolumeUnits: 0n, bidVolumeUnits: takenUnits, asks: [], bids };
}

/** Orders on the other side, which no fill hits. */
const othersOf = (legs: number, seq: number, count: number): MarketSnapshot['asks'] =>
  Array.from({ length: count }, (_, index) => ({
    oid: 1_000_000_000 + seq * count + index,
    maker: makerOf(index % legs),
    priceTicks: PRICE_TICKS + BigInt(25 * (index + 1)),
    sizeLots: 4_000n + BigInt(1_997 * index),
  }));

/** Starts on an empty, migrated database: market listed, makers funded. */
export async function createFeed(
  db: Db,
  legs: number,
  { others, generationsPerCurve }: FeedBooks = { others: 0, generationsPerCurve: GENERATIONS_PER_CURVE },
): Promise<Feed> {
  const [ledger, publication] = [await acquireWriter(db, 'ledger'), await acquireWriter(db, 'publication')];
  const markets = [market];
  const snapshots = createSnapshotStore(markets);
  const attributor = createAttributor('bench', snapshots);
  let generation = 0;
  let fillSeq = 0;
  let curve = { seq: 0, takenUnits: 0n, consumedUnits: 0n };
  const held = new Map<Address, bigint>([
    [market.base.address, 0n],
    [market.quote.address, 0n],
  ]);

  function commit(write: GenerationWrite): Promise<unknown> {
    const steps = generationSteps(write, { operator: OPERATOR });
    return ledger.tx(steps.write, steps.read);
  }

  function writeOf(entries: LedgerEntry[], change: Partial<GenerationWrite>): GenerationWrite {
    for (const { account, token, amountUnits } of entries) {
      if (account === VAULT) held.set(token, held.get(token)! - amountUnits);
    }
    return {
      generation,
      fromBlock: generation,
      toBlock: generation,
      blocks: [
        {
          number: generation,
          hash: hash('b', generation),
          parentHash: hash('b', generation - 1),
          timestampSec: generation,
        },
      ],
      scannedMs: generation,
      observedHead: generation,
      observedHeadTimestampMs: generation,
      listed: [],
      custody: [],
      posts: [],
      fills: [],
      reservations: [],
      claims: [],
      netCapital: [],
      snapshots: [],
      halt: null,
      ...change,
      entries,
      holdings: [...held].map(([token, units]) => ({ token, units })),
    };
  }

  async function begin(): Promise<void> {
    generation = 1;
    const entries = Array.from({ length: legs }, (_, index) =>
      depositEntries(`deposit:${index}`, makerOf(index), market.quote.address, FUNDS_UNITS),
    );
    await commit(writeOf(entries.flat(), { listed: [market] }));
  }

  async function nextCurve(): Promise<void> {
    curve = { seq: curve.seq + 1, takenUnits: curve.takenUnits + curve.consumedUnits, consumedUnits: 0n };
    const book = snapshotOf(legs, curve.seq, curve.takenUnits, fillSeq);
    const snapshot = { ...book, asks: othersOf(legs, curve.seq, others) };
    await prepare(snapshots, publication, snapshot, curve.seq, generation);
    snapshots.forget(market.index, curve.seq);
  }

  function fillsOf(count: number): ChainFill[] {
    return Array.from({ length: count }, (_, logIndex) => {
      fillSeq += 1;
      const fill: ChainFill = {
        market: market.index,
        fillSeq,
        curveSeq: curve.seq,
        side: 'bid',
        baseUnits: FILL_UNITS,
        quoteUnits: quoteUnitsFloor(market, PRICE_TICKS, FILL_UNITS) - RESIDUAL_UNITS,
        feeUnits: FEE_UNITS,
        inputFeeUnits: 0n,
        consumedBeforeUnits: curve.consumedUnits,
        taker: TAKER,
        recipient: TAKER,
        blockNumber: generation,
        blockHash: hash('b', generation),
        txHash: hash('f', fillSeq),
        logIndex,
        timestampMs: generation * 1_000,
      };
      curve.consumedUnits += FILL_UNITS;
      return fill;
    });
  }

  await begin();
  return {
    async run(generations, fills, aside = (work) => work()) {
      for (let count = 0; count < generations; count += 1) {
        if ((generation - 1) % generationsPerCurve === 0) await aside(nextCurve);
        generation += 1;
        await commit(await attributed(db, attributor, fillsOf(fills), writeOf));
      }
    },
    async close() {
      await ledger.release();
      await publication.release();
    },
  };
}

/** What the watcher does with the fills of one scan before it commits them. */
async function attributed(
  db: Db,
  attributor: Attributor,
  fills: readonly ChainFill[],
  writeOf: (entries: LedgerEntry[], change: Partial<GenerationWrite>) => GenerationWrite,
): Promise<GenerationWrite> {
  const run = attributor.begin(db.knex);
  const explained = [];
  for (const fill of fills) explained.push(await run.attribute(market, fill));
  const fault = run.faults()[0];
  if (fault !== undefined) throw new Error(fault.message);
  run.commit();
  const entries = fillPostings([market], explained, OPERATOR);
  return writeOf(entries, { fills: explained, snapshots: run.snapshots() });
}

async function prepare(
  snapshots: SnapshotStore,
  writer: Writer,
  snapshot: MarketSnapshot,
  seq: number,
  generation: number,
): Promise<void> {
  const prepared = { market: market.index, seq, snapshotHash: snapshotHash(snapshot) };
  snapshots.put(prepared, snapshot);
  await writer.tx((tx) =>
    insertPublications(tx, [
      {
        ...prepared,
        baseSeq: seq,
        kind: 'full',
        cut: { orderSeq: 0, generation, timeMs: generation },
        blockNumber: generation,
        blockHash: hash('b', generation),
        fillSeq: snapshot.fillSeq,
        askVolumeUnits: snapshot.askVolumeUnits,
        bidVolumeUnits: snapshot.bidVolumeUnits,
        trims: [],
        excluded: [],
        askWords: [],
        bidWords: [],
        wordsHash: '0x',
        askKnots: 0,
        bidKnots: 0,
        maxErrorMilliBps: 0,
        askErrorPpb: 12_345,
        bidErrorPpb: null,
        compression: 0,
        exactAskKnots: 0,
        exactBidKnots: 0,
        deadlineSec: generation + 60,
        preparedMs: generation,
        txKey: `post:${seq}`,
      },
    ]),
  );
}
