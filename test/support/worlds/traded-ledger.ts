/**
 * A ledger with random trades and random reorganisations: makers' orders in the order log, books at cuts of it, curves with the words of the books'
 * best prices, and fills that are attributed to the books' orders. Tests use only what it writes into the database.
 */
import { attributeFill, openSide, orderFillsOf, type SideState } from '../../../core/attribution.js';
import { packSide, wordsHash } from '../../../core/curve/words.js';
import { quoteUnitsFloor } from '../../../core/market.js';
import { snapshotHash } from '../../../core/snapshot.js';
import type { Address, Hex, Market, MarketSnapshot, OrderEffect, Side, SnapshotOrder } from '../../../core/types.js';
import { commitGeneration, lastGeneration } from '../../../ledger/chain/ledger-log.js';
import { reverseGenerations } from '../../../ledger/chain/reversals.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { appendOrderRows } from '../../../ledger/orders/order-log.js';
import { insertPublications } from '../../../ledger/publications/publication-log.js';
import type {
  AttributedFill,
  Db,
  GenerationWrite,
  PostSeen,
  Publication,
  ScannedBlock,
} from '../../../ledger/types.js';
import { OPERATOR, deposit, nothingWritten, withFills } from '../generations.js';
import type { Draw } from '../random.js';

export interface TradedLedger {
  makers: readonly Address[];
  takers: readonly Address[];
  /** Adds a generation of a few blocks; returns how many fills it has. */
  step(): Promise<number>;
  /** Takes back so many generations, as a reorganisation would. */
  reverse(depth: number): Promise<void>;
  height(): number;
  nowMs(): number;
}

interface Order extends SnapshotOrder {
  market: number;
  side: Side;
}

interface Live {
  seq: number;
  deadlineSec: number;
  publication: Publication;
  snapshot: MarketSnapshot;
  sides: Record<Side, SideState>;
}

interface Kept {
  block: ScannedBlock;
  generation: number;
  fills: AttributedFill[];
  /** The live curve of each market after it. */
  live: ReadonlyMap<number, Live>;
}

const GENESIS_SEC = Date.UTC(2024, 0, 30, 22) / 1_000;
const TTL_SEC = 20;

export async function createTradedLedger(db: Db, markets: readonly Market[], pick: Draw): Promise<TradedLedger> {
  const [ledger, orders, publications] = await Promise.all([
    acquireWriter(db, 'ledger'),
    acquireWriter(db, 'order'),
    acquireWriter(db, 'publication'),
  ]);
  const makers = ['a', 'b', 'c', 'd'].map((letter): Address => `0x${letter.repeat(40)}`);
  const takers = ['5', '6', '7'].map((letter): Address => `0x${letter.repeat(40)}`);
  const book = new Map<number, Order>();
  const filled = new Map<number, bigint>();
  const chain: Kept[] = [];
  const fillSeqs = new Map<number, number>();
  const seqs = new Map<number, number>();
  let [orderSeq, oid, tid, txNo, branch, generation, timeSec] = [0, 0, 0, 0, 0, 0, GENESIS_SEC];
  const hash = (number: number): Hex =>
    `0x${branch.toString(16).padStart(8, '0')}${number.toString(16).padStart(56, '0')}`;

  /** Lots of an order that no fill has taken. */
  const leftLots = (order: Order): bigint => {
    const { lotUnits } = markets[order.market]!;
    return (order.sizeLots * lotUnits - (filled.get(order.oid) ?? 0n)) / lotUnits;
  };

  async function quote(): Promise<void> {
    const effects: { maker: Address; effects: OrderEffect[] }[] = [];
    for (const order of book.values()) {
      if (leftLots(order) > 0n && pick(25) > 0) continue;
      book.delete(order.oid);
      effects.push({ maker: order.maker, effects: [{ type: 'close', oid: order.oid, reason: 'canceled' }] });
    }
    for (let i = pick(4); i > 0 || book.size < 10; i -= 1) {
      const market = markets[pick(markets.length)]!.index;
      const side = pick(2) === 0 ? 'ask' : 'bid';
      const away = BigInt(1 + pick(40));
      const priceTicks = side === 'ask' ? 250_000n + away : 250_000n - away;
      const own = { oid: (oid += 1), maker: makers[pick(makers.length)]!, priceTicks };
      const sizeLots = BigInt(1 + pick(30_000));
      book.set(own.oid, { ...own, sizeLots, market, side });
      const open: OrderEffect = { type: 'open', market, side, priceTicks, sizeLots, oid, tif: 'Gtc', cloid: null };
      effects.push({ maker: own.maker, effects: [open] });
    }
    const rows = effects.map((one) => ({
      ...one,
      ...{ orderSeq: (orderSeq += 1), timeMs: timeSec * 1_000, signer: null, nonce: null, kind: 'order' },
    }));
    await orders.tx((tx) => appendOrderRows(tx, rows));
  }

  function cut(market: Market): MarketSnapshot {
    const sideOf = (side: Side): SnapshotOrder[] =>
      [...book.values()]
        .filter((order) => order.market === market.index && order.side === side)
        .map((order) => ({ ...order, sizeLots: leftLots(order) }))
        .filter(({ sizeLots }) => sizeLots > 0n)
        .map(({ market: _, side: __, ...order }) => order)
        .sort((a, b) => byPrice(side, a, b) || (a.maker < b.maker ? -1 : a.maker > b.maker ? 1 : a.oid - b.oid));
    const fillSeq = fillSeqs.get(market.index) ?? 0;
    return {
      market: market.index,
      fillSeq,
      askVolumeUnits: 0n,
      bidVolumeUnits: 0n,
      asks: sideOf('ask'),
      bids: sideOf('bid'),
    };
  }

  /** A curve whose first segment of each side is somewhere within its best level; sometimes a side is left out. */
  function words(side: Side, orders: readonly SnapshotOrder[]): bigint[] {
    const [best] = orders;
    if (best === undefined || pick(20) === 0) return [];
    const basePrice = best.priceTicks * 16n;
    const offset = BigInt(pick(12));
    return packSide({
      shift: 4n,
      basePrice,
      knots: [{ mantissa: BigInt(1 + pick(4_000)), exponent: BigInt(pick(4)), offset }],
    });
  }

  async function post(
    block: ScannedBlock,
    market: Market,
    before: Live | undefined,
  ): Promise<{ live: Live; seen: PostSeen }> {
    const seq = (seqs.get(market.index) ?? 0) + 1 + (pick(10) === 0 ? 1 : 0);
    seqs.set(market.index, seq);
    const isTouch = before !== undefined && before.deadlineSec > block.timestampSec && pick(4) === 0;
    const deadlineSec = block.timestampSec + 1 + pick(TTL_SEC);
    const snapshot = isTouch ? before.snapshot : cut(market);
    const askWords = isTouch ? before.publication.askWords : words('ask', snapshot.asks);
    const bidWords = isTouch ? before.publication.bidWords : words('bid', snapshot.bids);
    const publication: Publication = {
      ...{ market: market.index, seq, baseSeq: isTouch ? before.seq : seq, kind: isTouch ? 'touch' : 'full' },
      cut: isTouch ? before.publication.cut : { orderSeq, generation: generation - 1, timeMs: timeSec * 1_000 },
      ...{ blockNumber: block.number - 1, blockHash: block.parentHash, fillSeq: snapshot.fillSeq },
      ...{ askVolumeUnits: 0n, bidVolumeUnits: 0n, trims: [], excluded: [], snapshotHash: snapshotHash(snapshot) },
      ...{ askWords, bidWords, wordsHash: wordsHash(askWords, bidWords), askKnots: 1, bidKnots: 1, compression: 1 },
      ...{
        maxErrorMilliBps: 0,
        askErrorPpb: 1_000 * seq,
        bidErrorPpb: 700 * seq,
        exactAskKnots: 0,
        exactBidKnots: 0,
        deadlineSec,
        preparedMs: timeSec * 1_000,
      },
      txKey: `post:${(txNo += 1)}`,
    };
    await publications.tx((tx) => insertPublications(tx, [publication]));
    const sides = isTouch
      ? before.sides
      : { ask: openSide(market, snapshot, 'ask'), bid: openSide(market, snapshot, 'bid') };
    const seen: PostSeen = {
      ...{ market: market.index, seq, era: 0, baseSeq: publication.baseSeq, deadlineSec },
      postedSeq: seq,
      ...{ snapAskUnits: 0n, snapBidUnits: 0n, wordsHash: publication.wordsHash },
      ...{
        blockNumber: block.number,
        blockTimestampSec: block.timestampSec,
        txHash: `0xe${txNo.toString(16).padStart(63, '0')}`,
      },
    };
    return { live: { seq, deadlineSec, publication, snapshot, sides }, seen };
  }

  function fill(
    block: ScannedBlock,
    market: Market,
    live: Live,
    logIndex: number,
  ): { one: AttributedFill; live: Live } | null {
    const side: Side = pick(2) === 0 ? 'ask' : 'bid';
    const state = live.sides[side];
    const available = state.orders.reduce((sum, order) => sum + order.units, 0n);
    if (available < 2n) return null;
    const baseUnits = 1n + (available * BigInt(1 + pick(400))) / 1_000n;
    const legsUnits = attributeFill(market, state, { side, baseUnits, quoteUnits: 0n }).decomposition.legs;
    const paid = legsUnits.reduce((sum, leg) => sum + leg.quoteUnits, 0n) + BigInt(pick(2_000) - 500);
    const quoteUnits = paid > 0n ? paid : quoteUnitsFloor(market, 250_000n, baseUnits);
    const { decomposition, state: after } = attributeFill(market, state, { side, baseUnits, quoteUnits });
    const fillSeq = (fillSeqs.get(market.index) ?? 0) + 1;
    fillSeqs.set(market.index, fillSeq);
    const taker = takers[pick(takers.length)]!;
    const parts = orderFillsOf(market, side, decomposition);
    for (const part of parts) filled.set(part.oid, (filled.get(part.oid) ?? 0n) + part.baseUnits);
    const one: AttributedFill = {
      fill: {
        ...{ market: market.index, fillSeq, curveSeq: live.seq, side, baseUnits, quoteUnits, taker, recipient: taker },
        ...{ feeUnits: BigInt(pick(3)), inputFeeUnits: BigInt(pick(3)), consumedBeforeUnits: state.consumedUnits },
        ...{ blockNumber: block.number, blockHash: block.hash, timestampMs: block.timestampSec * 1_000, logIndex },
        txHash: `0xf${(txNo += 1).toString(16).padStart(63, '0')}`,
      },
      decomposition,
      orderFills: parts.map((part) => ({ ...part, tid: (tid += 1), cloid: null })),
    };
    return { one, live: { ...live, sides: { ...live.sides, [side]: after } } };
  }

  async function add(write: GenerationWrite, live: ReadonlyMap<number, Live>): Promise<void> {
    const { entries } = withFills(markets, write.fills);
    const whole = { ...write, entries: [...write.entries, ...entries] };
    await ledger.tx((tx) => commitGeneration(tx, db, whole, { operator: OPERATOR }));
    chain.push({ block: write.blocks.at(-1)!, generation: write.generation, fills: write.fills, live });
  }

  function nextGeneration(blockCount: number): GenerationWrite {
    const blocks: ScannedBlock[] = [];
    for (let i = 0; i < blockCount; i += 1) {
      const before: ScannedBlock | undefined = blocks.at(-1) ?? chain.at(-1)?.block;
      const number = before === undefined ? 100 : before.number + 1;
      timeSec += 1 + (pick(30) === 0 ? pick(20_000) : pick(6));
      blocks.push({
        number,
        hash: hash(number),
        parentHash: before?.hash ?? `0x${'0'.repeat(64)}`,
        timestampSec: timeSec,
      });
    }
    const [first, last] = [blocks[0]!, blocks.at(-1)!];
    return {
      ...nothingWritten(),
      ...{ generation: (generation += 1), fromBlock: first.number, toBlock: last.number, blocks },
      ...{ scannedMs: timeSec * 1_000, observedHead: last.number, observedHeadTimestampMs: timeSec * 1_000 },
    };
  }

  const first = nextGeneration(1);
  first.listed.push(...markets);
  const tokens = new Set(markets.flatMap(({ base, quote: other }) => [base.address, other.address]));
  for (const [i, maker] of makers.entries()) {
    for (const [j, token] of [...tokens].entries()) {
      const one = deposit(1, i * tokens.size + j, maker, token, 10n ** 36n);
      first.custody.push(...one.custody);
      first.entries.push(...one.entries);
      first.netCapital.push(...one.netCapital);
    }
  }
  await add(first, new Map());

  return {
    makers,
    takers,
    height: () => chain.length,
    nowMs: () => timeSec * 1_000,
    async step() {
      await quote();
      const write = nextGeneration(1 + pick(3));
      const live = new Map(chain.at(-1)!.live);
      for (const block of write.blocks) {
        for (const market of markets) {
          if (pick(3) === 0) continue;
          const posted = await post(block, market, live.get(market.index));
          live.set(market.index, posted.live);
          const base = write.posts.findLast((one) => one.market === market.index && one.seq === posted.seen.baseSeq);
          write.posts.push({ ...posted.seen, postedSeq: base?.postedSeq ?? posted.seen.baseSeq });
        }
        for (let i = pick(5); i > 0; i -= 1) {
          const market = markets[pick(markets.length)]!;
          const curve = live.get(market.index);
          if (curve === undefined || curve.deadlineSec <= block.timestampSec) continue;
          const made = fill(block, market, curve, 5 - i);
          if (made === null) continue;
          const isFirst = ![...chain.slice(-40).flatMap(({ fills }) => fills), ...write.fills].some(
            (other) => other.fill.market === market.index && other.fill.curveSeq === curve.seq,
          );
          if (isFirst) write.snapshots.push({ seq: curve.seq, snapshot: curve.snapshot });
          live.set(market.index, made.live);
          write.fills.push(made.one);
        }
      }
      await add(write, live);
      return write.fills.length;
    },
    async reverse(depth) {
      const gone = chain.splice(chain.length - depth);
      for (const { fills } of gone) {
        for (const { fill: one, orderFills } of fills) {
          fillSeqs.set(one.market, Math.min(fillSeqs.get(one.market)!, one.fillSeq - 1));
          for (const part of orderFills) filled.set(part.oid, filled.get(part.oid)! - part.baseUnits);
        }
      }
      branch += 1;
      const { block, generation: keptGeneration } = chain.at(-1)!;
      const { generation: headGeneration } = (await lastGeneration(db.knex))!;
      const kept = { number: block.number, hash: block.hash, timestampMs: block.timestampSec * 1_000 };
      const request = { headGeneration, keptGeneration, block: kept, depth };
      await ledger.tx((tx) => reverseGenerations(tx, request, { operatorSeq: 1, timeMs: 5 }));
      generation += 1;
      timeSec = block.timestampSec;
    },
  };
}

function byPrice(side: Side, a: SnapshotOrder, b: SnapshotOrder): number {
  if (a.priceTicks === b.priceTicks) return 0;
  return a.priceTicks < b.priceTicks === (side === 'ask') ? -1 : 1;
}
