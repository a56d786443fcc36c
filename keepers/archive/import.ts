/** Imports from an archive what a database lacks, after checking it against the chain. */
import type { Address, Hex, Market, MarketSnapshot } from '../../core/types.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readSnapshot } from '../../ledger/chain/ledger-log.js';
import { readPublication } from '../../ledger/publications/publication-log.js';
import { checkBookWords, RecordFaultError } from '../../ledger/publications/rebuild.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { suspenseExplained } from '../../ledger/operator/resolve-suspense.js';
import {
  collectOrders,
  isBookOf,
  checkOrders,
  comparePublications,
  publicationsSince,
  rereadingOf,
  restartOrderLog,
  storeArchived,
  type ArchivedOrders,
  type BookOf,
} from '../../ledger/orders/restore.js';
import type { ReversalRequest } from '../../ledger/chain/reversals.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { storeArchivedCheckpoint } from '../../ledger/settlements/archived-checkpoint.js';
import {
  missingSettlements,
  settlementKey,
  storeArchivedSettlements,
} from '../../ledger/settlements/settlement-log.js';
import type { CheckpointHead, Db, Publication, Settlement } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { RpcPool } from '../chain/pool.js';
import { mayPost } from '../chain/quorum.js';
import { MAX_REORG_BLOCKS } from '../watcher/reconcile.js';
import { createCandidates, type InFile } from './candidates.js';
import { curveKey, readChainRecord, type ChainRecord, type LandedCurve } from './chain-record.js';
import { ArchiveError, booksByHash, decodeBatch, type ArchiveBatch, type ArchiveHighs } from './format.js';
import { setAside } from './set-aside.js';
import { readArchive, type ArchiveStore } from './store.js';

export interface ImportDeps {
  db: Db;
  store: ArchiveStore;
  rpc: RpcPool;
  deploymentId: string;
  deploymentBlock: number;
  contracts: { curveBook: Address; entrypoint: Address; custodian: Address };
  operator: Address;
  /** Former keys of posters and settlers whose files are accepted, too. */
  signers: ReadonlySet<Address>;
  nowMs(): number;
}

/** What an import would do. */
export interface ImportPlan {
  /** Files that were read. */
  files: number;
  publications: number;
  highs: ArchiveHighs;
  /** Publications that the database lacks, and how many of them landed. */
  missing: readonly Publication[];
  landed: number;
  /** Missing ones under whose number the database has another publication that is not what landed; that one is replaced. */
  superseded: readonly Publication[];
  /** Left out: another curve landed under their number, which neither the archive nor the database has. That one is among `unexplained`. */
  disproven: readonly InFile[];
  /** Settlements that the database lacks. */
  settlements: readonly Settlement[];
  /** The newest checkpoint that was published. */
  checkpoint: CheckpointHead | null;
  books: readonly BookOf[];
  orders: ArchivedOrders;
  /** Curves on the chain that neither the database nor the archive knows. */
  unexplained: readonly LandedCurve[];
  /** Reversal by which the watcher reads blocks again, because it scanned curves before their publications were imported. */
  rereading: ReversalRequest | null;
}

export interface ImportReport {
  imported: number;
  settlements: number;
  books: number;
  closedOrders: number;
  closedMakers: number;
  /** Number of the operator's request to read blocks again; null when none is needed. */
  reconcileSeq: number | null;
}

/**
 * Books of curves whose deadline is at most this long before the newest block are imported, too: after a reorganisation they may still be
 * hit.
 */
export const RECENT_SEC = 900;
const CLOSED_ORDERS = 2_000;
const ACQUIRE_TIMEOUT_MS = 10_000;

/**
 * Reads the whole archive and judges it: its files follow each other, each was signed by a key that may send what is in it or is named,
 * each landed curve has the words that the chain names or is left out, and each book that is needed gives its curve's words. Reads only.
 * Throws ArchiveError, and RestoreConflictError where the database and the archive, or two files of it, have different publications under a number
 * and the chain does not decide which of them was sent. Throws RpcContradictionError where the endpoints don't decide who may sign a file.
 */
export async function planImport(deps: ImportDeps): Promise<ImportPlan> {
  const { db, store, deploymentId } = deps;
  const judge = createSignerJudge(deps);
  const fileOf = new Map<Hex, number>();
  const candidates = createCandidates();
  const settlements = new Map<string, Settlement>();
  let checkpoint: CheckpointHead | null = null;
  let [files, publications] = [0, 0];
  let highs: ArchiveHighs = { seqs: {}, orderSeq: 0, oid: 0 };
  for await (const { batch, signer } of readArchive(store, deploymentId)) {
    await judge(batch, signer);
    files += 1;
    publications += batch.publications.length;
    for (const hash of booksByHash(batch.snapshots).keys()) fileOf.set(hash, batch.number);
    candidates.note(batch.number, await comparePublications(db.knex, batch.publications));
    // A settlement may be in two files: written again, or exported while its file was being written.
    for (const one of await missingSettlements(db.knex, batch.settlements)) {
      if (!settlements.has(settlementKey(one))) settlements.set(settlementKey(one), one);
    }
    checkpoint = batch.checkpoint ?? checkpoint;
    highs = batch.highs;
  }
  if (files === 0) throw new ArchiveError('ARCHIVE_EMPTY', 'the archive has no files');
  const head = await lastGeneration(db.knex);
  const markets = await readMarkets(db.knex);
  const fromBlock = markets.length === 0 ? deps.deploymentBlock : (head?.toBlock ?? deps.deploymentBlock) + 1;
  const chain = await readChainRecord(deps.rpc.endpoints, {
    contracts: deps.contracts,
    markets,
    fromBlock: candidates.earliestBlock(fromBlock),
  });
  const { missing, superseded, disproven } = candidates.choose(chain);
  const archived = new Map(missing.map((one) => [curveKey(one), one]));
  const landed = missing.filter((one) => chain.landed.has(curveKey(one))).length;
  const unexplained: LandedCurve[] = [];
  for (const [key, curve] of chain.landed) {
    if (!archived.has(key) && (await readPublication(db.knex, curve.market, curve.seq)) === null)
      unexplained.push(curve);
  }
  const found = await rereadingOf(db.knex, missing);
  if (found !== null && 'unreadable' in found) {
    throw new ArchiveError(
      'ARCHIVE_UNPROVEN',
      `the database read block ${found.unreadable} first of all, with a curve that it did not know; import into a new database`,
    );
  }
  const orders = collectOrders();
  const since = (found?.block.number ?? head?.toBlock ?? 0) - MAX_REORG_BLOCKS;
  const books = [
    ...(await neededBooks(deps, { missing, chain, fileOf, orders })),
    ...(await ownBooks(deps, markets, since, fileOf)),
  ];
  await checkOrders(db.knex, orders.rows(0, 0));
  return {
    ...{ files, publications, highs, missing, landed, superseded, disproven, checkpoint },
    settlements: [...settlements.values()],
    ...{ books, orders, unexplained, rereading: found },
  };
}

/**
 * Throws ArchiveError for a file whose content its signer may not send, and RpcContradictionError where the endpoints don't decide it. Each key is
 * checked once, and never by the word of one of several endpoints: a book that somebody else signs may name any makers.
 */
function createSignerJudge(deps: ImportDeps): (batch: ArchiveBatch, signer: Address) => Promise<void> {
  const known = new Map<string, boolean>();
  const check = async (contract: Address, signer: Address, number: number, what: string): Promise<void> => {
    const key = `${contract} ${signer}`;
    const ask = () => mayPost(deps.rpc, contract, signer, { isYesConfirmed: true });
    const may = deps.signers.has(signer) || (known.get(key) ?? (await ask()));
    known.set(key, may);
    if (may) return;
    throw new ArchiveError(
      'ARCHIVE_UNPROVEN',
      `file ${number} is signed by ${signer}, which may not ${what}; name it with --signer if it could once`,
    );
  };
  return async ({ number, publications, settlements, checkpoint }, signer) => {
    const settles = settlements.length > 0 || checkpoint !== null;
    if (settles) await check(deps.contracts.custodian, signer, number, 'settle');
    // Even a file without publications has highest numbers, so its signer is checked.
    if (!settles || publications.length > 0) await check(deps.contracts.curveBook, signer, number, 'post');
  };
}

interface Needed {
  missing: readonly Publication[];
  chain: ChainRecord;
  fileOf: ReadonlyMap<Hex, number>;
  orders: ArchivedOrders;
}

/** Books of curves that were hit, or still may be; their words are those that the books give. */
async function neededBooks(deps: ImportDeps, { missing, chain, fileOf, orders }: Needed): Promise<BookOf[]> {
  const afterSec = chain.timestampSec - RECENT_SEC;
  const wanted = missing.filter((one) => chain.hit.has(curveKey(one)) || one.deadlineSec > afterSec);
  const reader = createBookReader(deps.store, fileOf);
  const books: BookOf[] = [];
  for (const one of wanted) {
    const snapshot = await reader(one.snapshotHash);
    const name = `the book of curve ${one.seq} of market ${one.market}`;
    if (snapshot === null || !isBookOf(one, snapshot)) {
      throw new ArchiveError('ARCHIVE_DAMAGED', `${name} is not in the archive`);
    }
    checkWords(chain.markets, one, snapshot);
    orders.note(one, snapshot);
    books.push({ market: one.market, seq: one.seq, snapshot });
  }
  return books;
}

function checkWords(markets: readonly Market[], one: Publication, snapshot: MarketSnapshot): void {
  const market = markets.find(({ index }) => index === one.market);
  if (market === undefined)
    throw new ArchiveError('ARCHIVE_UNPROVEN', `market ${one.market} is not listed on the chain`);
  try {
    checkBookWords(market, snapshot, one);
  } catch (error) {
    if (error instanceof RecordFaultError) throw new ArchiveError('ARCHIVE_UNPROVEN', error.message);
    throw error;
  }
}

/** Books of the database's own publications that may still be hit; they can't be rebuilt once its order log is compacted. */
async function ownBooks(
  { db, store }: ImportDeps,
  markets: readonly Market[],
  sinceBlock: number,
  fileOf: ReadonlyMap<Hex, number>,
): Promise<BookOf[]> {
  const snapshots = createSnapshotStore(markets);
  const reader = createBookReader(store, fileOf);
  const books: BookOf[] = [];
  for (const one of await publicationsSince(db.knex, sinceBlock)) {
    if ((await readSnapshot(db.knex, one.market, one.seq)) !== null) continue;
    const snapshot = (await reader(one.snapshotHash)) ?? (await snapshots.get(db.knex, one));
    books.push({ market: one.market, seq: one.seq, snapshot });
  }
  return books;
}

/** Reads books by their hash, one file at a time. */
function createBookReader(store: ArchiveStore, fileOf: ReadonlyMap<Hex, number>) {
  let open: { number: number; books: Map<Hex, MarketSnapshot> } | null = null;
  return async (hash: Hex): Promise<MarketSnapshot | null> => {
    const number = fileOf.get(hash);
    if (number === undefined) return null;
    if (open?.number !== number) {
      const { batch } = decodeBatch(await store.read(number), `file ${number} of the archive`);
      open = { number, books: booksByHash(batch.snapshots) };
    }
    return open.books.get(hash) ?? null;
  };
}

/** The earlier of two reversals: an import that was stopped may have left blocks that must also be read again. */
function earlier(one: ReversalRequest | null, other: ReversalRequest | null): ReversalRequest | null {
  if (one === null || other === null) return one ?? other;
  return other.block.number < one.block.number ? other : one;
}

/**
 * Carries out a plan: books first, then the order log, then the request to read blocks again. If it is stopped half-way, it can be run
 * again from the beginning. Rejects when a gateway, a poster or a settler holds its log.
 */
export async function carryOutImport(deps: ImportDeps, plan: ImportPlan): Promise<ImportReport> {
  const { db, nowMs } = deps;
  const signal = AbortSignal.timeout(ACQUIRE_TIMEOUT_MS);
  const publicationWriter = await acquireWriter(db, 'publication', { signal });
  try {
    const orderWriter = await acquireWriter(db, 'order', { signal });
    try {
      const { missing: publications, books, superseded } = plan;
      for (const one of superseded) await setAside(deps, one);
      await publicationWriter.tx((tx) => storeArchived(tx, { publications, books, superseded }));
      await importSettlements(deps, plan);
      const { highs, orders } = plan;
      const { operator } = deps;
      const { closed, makers } = await restartOrderLog(orderWriter, {
        highs,
        orders,
        operator,
        nowMs: nowMs(),
        closedOrders: CLOSED_ORDERS,
      });
      const reversal = earlier(plan.rereading, await suspenseExplained(db));
      const reconcileSeq =
        reversal === null ? null : await requestReconcile(db, { reversal, capitalOrigin: false }, nowMs());
      return {
        imported: plan.missing.length,
        settlements: plan.settlements.length,
        books: plan.books.length,
        closedOrders: closed,
        closedMakers: makers,
        reconcileSeq,
      };
    } finally {
      await orderWriter.release();
    }
  } finally {
    await publicationWriter.release();
  }
}

/** Imports settlements before the watcher reads on, because it needs them to explain settlements that landed. */
async function importSettlements({ db, nowMs }: ImportDeps, { settlements, checkpoint }: ImportPlan): Promise<void> {
  if (settlements.length === 0 && checkpoint === null) return;
  const writer = await acquireWriter(db, 'settlement', { signal: AbortSignal.timeout(ACQUIRE_TIMEOUT_MS) });
  try {
    await writer.tx(async (tx) => {
      await storeArchivedSettlements(tx, await missingSettlements(tx, settlements), nowMs());
      if (checkpoint !== null) await storeArchivedCheckpoint(tx, checkpoint);
    });
  } finally {
    await writer.release();
  }
}
