/** What the read API is measured with: ten markets, a thousand makers that quote in all of them, and a history of fills. */
import { createMarket, quoteUnitsFloor } from '../../core/market.js';
import type { Address, Hex, Market, OrderLogRow, Side } from '../../core/types.js';
import { depositEntries } from '../../keepers/watcher/derive/postings.js';
import { fillEntries } from '../../ledger/chain/fill-postings.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { insertCheckpoint, readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import { commitGeneration, lastGeneration } from '../../ledger/chain/ledger-log.js';
import { appendOrderRows } from '../../ledger/orders/order-log.js';
import { insertPublications } from '../../ledger/publications/publication-log.js';
import type { AttributedFill, Db, GenerationWrite, PostSeen, Publication } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { copyHistory } from './copies.js';
import { nothingWritten } from '../../test/support/generations.js';

export const MAKERS = 1_000;
export const MARKETS = 10;
/** Fills of one generation, as many of each market. */
const FILLS_AT_ONCE = 100;
const DEPLOYMENT_BLOCK = 1;
/** The generation of the first fills. */
const FIRST_FILLS = 3;
/** A full hour, at which the first fills are. */
export const GENESIS_MS = 1_700_006_400_000;
/** Between generations of a long history. */
const BLOCK_SEC = 9;
/** Of a short one, so that 10,000 fills make a day. */
export const SPARSE_BLOCK_SEC = 864;
/** As many fills as make an hour, of which each market has a multiple of what `fillOf` repeats itself after. */
export const FILLS_PER_HOUR = (3_600 / BLOCK_SEC) * FILLS_AT_ONCE;
const OPERATOR: Address = `0x${'9'.repeat(40)}`;
const WEI = 10n ** 18n;

const hex = (kind: string, number: number, digits: number): Hex =>
  `0x${kind}${number.toString(16).padStart(digits - 1, '0')}`;
const hash = (kind: string, number: number): Hex => hex(kind, number, 64);
export const makerOf = (index: number): Address => hex('a', index, 40);
export const takerOf = (index: number): Address => hex('7', index % 100, 40);

const quote = { symbol: 'USDC', address: hex('c', 0, 40), decimals: 6 };
export const markets: Market[] = Array.from({ length: MARKETS }, (_, index) =>
  createMarket({
    index,
    base: { symbol: `T${index}`, address: hex('b', index, 40), decimals: 18 },
    quote,
    lotUnits: 10n ** 14n,
    tickLotUnits: 1n,
    maxTtlSec: 60,
  }),
);

function emptyGeneration(n: number, blockSec = BLOCK_SEC): GenerationWrite {
  const number = DEPLOYMENT_BLOCK + n;
  // The first generation with fills is at the full hour.
  const timestampSec = GENESIS_MS / 1_000 + blockSec * (n - FIRST_FILLS);
  return {
    generation: n,
    fromBlock: number,
    toBlock: number,
    blocks: [{ number, hash: hash('d', number), parentHash: hash('d', number - 1), timestampSec }],
    scannedMs: timestampSec * 1_000,
    observedHead: number,
    observedHeadTimestampMs: timestampSec * 1_000,
    ...nothingWritten(),
  };
}

/** Every maker gets a million of each token that it quotes. */
function deposits(n: number, blockSec: number): GenerationWrite {
  const write = emptyGeneration(n, blockSec);
  const tokens = [...markets.map(({ base }) => base), quote];
  for (let maker = 0; maker < MAKERS; maker += 1) {
    for (const [i, token] of tokens.entries()) {
      const amountUnits = 1_000_000n * 10n ** BigInt(token.decimals);
      const account = makerOf(maker);
      const txHash = hash('e', maker * 16 + i);
      const event = { kind: 'deposited' as const, maker: account, token: token.address, amountUnits };
      write.custody.push({
        ...event,
        basis: null,
        readyAtSec: null,
        settlementNo: null,
        paidGas: 0n,
        blockNumber: write.toBlock,
        txHash,
        logIndex: 0,
      });
      write.entries.push(...depositEntries(`deposit:${txHash}:0`, account, token.address, amountUnits));
      write.netCapital.push({ account, token: token.address, deltaUnits: amountUnits });
    }
  }
  return write;
}

/** A fill of two makers' orders, a cent apart. */
function fillOf(write: GenerationWrite, market: Market, fillSeq: number): AttributedFill {
  const side: Side = fillSeq % 2 === 0 ? 'ask' : 'bid';
  const legs = [0, 1].map((place) => {
    const maker = makerOf((fillSeq * 7 + place) % MAKERS);
    const priceTicks = 250_000n + BigInt((fillSeq % 50) + place);
    const baseUnits = WEI / 100n;
    const quoteUnits = quoteUnitsFloor(market, priceTicks, baseUnits);
    return { maker, priceTicks, baseUnits, quoteUnits, orders: [{ oid: 2 * fillSeq + place, baseUnits }] };
  });
  const residualUnits = side === 'ask' ? 7n : -7n;
  const decomposition = {
    legs,
    residualUnits,
    roundingUnits: 0n,
    compressionResidualUnits: residualUnits,
    operatorGainUnits: 7n,
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
      feeUnits: 5n,
      inputFeeUnits: 0n,
      consumedBeforeUnits: 0n,
      taker: takerOf(fillSeq),
      recipient: takerOf(fillSeq),
      blockNumber: write.toBlock,
      blockHash: write.blocks[0]!.hash,
      txHash: hash('f', market.index * 10_000_000 + fillSeq),
      logIndex: 0,
      timestampMs: write.scannedMs,
    },
    decomposition,
    orderFills: legs.map(({ maker, priceTicks, baseUnits, orders }) => ({
      oid: orders[0]!.oid,
      maker,
      market: market.index,
      side,
      priceTicks,
      baseUnits,
      tid: (market.index * 10_000_000 + fillSeq) * 2 + (orders[0]!.oid % 2),
      cloid: null,
    })),
  };
}

function fillGeneration(n: number, firstSeq: number, blockSec: number): GenerationWrite {
  const write = emptyGeneration(n, blockSec);
  for (let place = 0; place < FILLS_AT_ONCE; place += 1) {
    const market = markets[place % MARKETS] as Market;
    const one = fillOf(write, market, firstSeq + Math.floor(place / MARKETS));
    write.fills.push(one);
    write.entries.push(...fillEntries(market, one.fill, one.decomposition, OPERATOR));
  }
  return write;
}

/** One order per maker, market and side, on 100 price levels per side; oids lie above those of the history. */
function* orderRows(firstOid: number): Generator<OrderLogRow> {
  let oid = firstOid;
  let orderSeq = 0;
  for (let maker = 0; maker < MAKERS; maker += 1) {
    const level = BigInt(maker % 100);
    const effects = markets.flatMap(({ index: market }) =>
      (['ask', 'bid'] as const).map((side) => ({
        type: 'open' as const,
        oid: (oid += 1),
        market,
        side,
        priceTicks: side === 'ask' ? 250_100n + level : 250_000n - level,
        sizeLots: 10n + level,
        tif: 'Gtc' as const,
        cloid: null,
      })),
    );
    const timeMs = 1_700_000_000_000 + maker;
    orderSeq += 1;
    yield { orderSeq, timeMs, maker: makerOf(maker), signer: makerOf(maker), nonce: timeMs, kind: 'order', effects };
  }
}

function publicationOf(seq: number): { post: PostSeen; publication: Publication } {
  const wordsHash = hash('5', seq);
  const post: PostSeen = {
    market: 0,
    seq,
    era: 0,
    baseSeq: seq,
    postedSeq: seq,
    deadlineSec: 1_700_000_000,
    snapAskUnits: 0n,
    snapBidUnits: 0n,
    wordsHash,
    blockNumber: 2,
    blockTimestampSec: 1_700_000_000,
    txHash: hash('6', seq),
  };
  const publication: Publication = {
    market: 0,
    seq,
    baseSeq: seq,
    kind: 'full',
    cut: { orderSeq: 0, generation: 1, timeMs: 0 },
    blockNumber: 2,
    blockHash: hash('d', 2),
    fillSeq: 0,
    askVolumeUnits: 0n,
    bidVolumeUnits: 0n,
    trims: [],
    excluded: [],
    snapshotHash: wordsHash,
    askWords: [],
    bidWords: [],
    wordsHash,
    askKnots: 7,
    bidKnots: 7,
    maxErrorMilliBps: 0,
    askErrorPpb: 12_345,
    bidErrorPpb: null,
    compression: 1,
    exactAskKnots: 0,
    exactBidKnots: 0,
    deadlineSec: 1_700_000_000,
    preparedMs: 0,
    txKey: `post:${seq}`,
  };
  return { post, publication };
}

/** Curves that were posted; as many as one market posts in some hours. */
const CURVES = 10_000;

/** Fills an empty, migrated database. `fills` is a multiple of 100; of more than an hour holds, of FILLS_PER_HOUR. */
export async function loadWorld(
  db: Db,
  fills: number,
  { curves: posted = CURVES, blockSec = BLOCK_SEC } = {},
): Promise<void> {
  const curves = Array.from({ length: posted }, (_, i) => publicationOf(i + 1));
  const publication = await acquireWriter(db, 'publication');
  for (let at = 0; at < posted; at += 500) {
    const part = curves.slice(at, at + 500).map((one) => one.publication);
    await publication.tx((tx) => insertPublications(tx, part));
  }
  const ledger = await acquireWriter(db, 'ledger');
  const commit = (write: GenerationWrite) =>
    ledger.tx(async (tx) => void (await commitGeneration(tx, db, write, { operator: OPERATOR })));
  await commit({ ...emptyGeneration(1, blockSec), listed: markets, posts: curves.map(({ post }) => post) });
  await commit(deposits(2, blockSec));
  const written = Math.min(fills, FILLS_PER_HOUR);
  for (let i = 0; i < written / FILLS_AT_ONCE; i += 1) {
    await commit(fillGeneration(FIRST_FILLS + i, 1 + (i * FILLS_AT_ONCE) / MARKETS, blockSec));
  }
  await ledger.release();
  if (fills > written) {
    const hour = { generations: written / FILLS_AT_ONCE, fills: written / MARKETS, ms: 3_600_000 };
    await copyHistory(db, { generation: FIRST_FILLS, timeMs: GENESIS_MS }, hour, fills / written - 1);
  }
  const orders = await acquireWriter(db, 'order');
  const rows = [...orderRows((2 * fills) / MARKETS + 2)];
  await orders.tx((tx) => appendOrderRows(tx, rows));
  await orders.release();
  const checkpointer = createCheckpointer(db);
  const head = await lastGeneration(db.knex);
  const changed = await readBalancesSince(db.knex, 0);
  const cut = await checkpointer.cut({ head: head!, changed, ackFillSeqs: {} }, Date.now());
  const settlement = await acquireWriter(db, 'settlement');
  await settlement.tx((tx) => insertCheckpoint(tx, cut.head, cut.changed));
}
