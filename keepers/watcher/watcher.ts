import type { Logger } from 'pino';
import { readArchivedCheckpoint } from '../../ledger/settlements/archived-checkpoint.js';
import { nameMarkets } from '../../core/token-names.js';
import type { Address, Market } from '../../core/types.js';
import { LedgerInvariantError } from '../../ledger/errors.js';
import { insertHalt } from '../../ledger/chain/halts.js';
import { generationSteps, loadLedgerHead, readBalances, readMarkets } from '../../ledger/chain/ledger-log.js';
import { carryOutReconcile, lastCarriedOut, readReconcileRequest } from '../../ledger/operator/reconcile-requests.js';
import { noteScan, readNotedScan } from '../../ledger/chain/generations.js';
import type { SnapshotStore } from '../../ledger/orders/snapshots.js';
import {
  type BalanceRow,
  type Db,
  type GenerationWrite,
  type LedgerEntry,
  type ScannedBlock,
  type Writer,
} from '../../ledger/types.js';
import { startLoop, type Loop } from '../loop.js';
import type { RpcPool } from '../chain/pool.js';
import { RpcAnswerTooLargeError, RpcResponseError, RpcUnavailableError, type Rpc } from '../chain/rpc.js';
import { createAttributor, type Attributor } from './derive/attributor.js';
import { confirmMismatch, minorityHistory, type KnownBlock } from './scan/canonical.js';
import type { ProveBlocks } from './scan/cross-check.js';
import type { Pace } from './wakes.js';
import { unbackedClaim } from './derive/custody.js';
import { bookScan } from './derive/derive.js';
import { MissingEventError } from './scan/event-proof.js';
import { hasGap } from './derive/gaps.js';
import { applyToBalances } from './derive/postings.js';
import { createProgress } from './progress.js';
import { createProofs, type ProofCounts } from './scan/proof.js';
import { ReconcileError, isSameChain, lostSince } from './reconcile.js';
import { CanonicalMismatchError, readBlock, scanRange, type Scan } from './scan/scan.js';
import { OlderHeadError, createHeads, type Observed } from './scan/observed-head.js';
import { readStandingHalt, stopsScans, CATCH_UP_BLOCKS, beforeFirstScan, type WatcherStatus } from './status.js';
import { firstFault } from './derive/suspense.js';
import { createTokenWatch, type TokenWatchDeps } from './tokens/token-watch.js';
import { readMarket } from './tokens/listing.js';

export interface WatcherDeps {
  db: Db;
  /** Writer of the ledger log. */
  writer: Writer;
  rpc: RpcPool;
  contracts: { custodian: Address; curveBook: Address; entrypoint: Address; orderSettler?: Address | undefined };
  deploymentId: string;
  deploymentBlock: number;
  /** Ledger row of the operator's residual and input fees. */
  operator: Address;
  /** Listed markets by index; the watcher appends to it, everybody else reads. */
  markets: Market[];
  snapshots: SnapshotStore;
  /** With true an item in suspense halts the ledger until the operator resumes; with false it only blocks settlements. */
  haltOnSuspense: boolean;
  pollIntervalMs: number;
  /** Says when to look next; absent: after `pollIntervalMs`. */
  pace?: Pace | undefined;
  scanMaxBlocks: number;
  /** Which blocks are proven from their receipts; absent: those with events, and those in doubt. */
  proveBlocks?: ProveBlocks;
  /** How tokens are held against the ledger and looked at, where tests have it otherwise. */
  proveEvents?: TokenWatchDeps['proveEvents'];
  holdingsPace?: TokenWatchDeps['holdingsPace'];
  tokenPace?: TokenWatchDeps['tokenPace'];
  nowMs(): number;
  /** Measures intervals; absent: `nowMs` does. */
  monotonicMs?: () => number;
  logger: Logger;
  /** Called after each commit, so that followers need not wait for their next poll. */
  onGeneration(generation: GenerationWrite): void;
  /** Called after a reversal was committed: the memory of other roles is out of date. */
  onReversal(): void;
}

export interface Watcher {
  status(): WatcherStatus;
  /** How the blocks read since the start were proven. */
  proofCounts(): Readonly<ProofCounts>;
  /**
   * One scan of at most `scanMaxBlocks`, at most up to the head. Throws errors that the next scan may not have; a halt is durable and not
   * thrown.
   */
  scan(): Promise<void>;
  start(signal: AbortSignal): Loop;
}

/** Less than what makes the ledger stale, so that one good answer after an outage is seen in time. */
const MAX_BACKOFF_MS = 4_000;
/** How often a scan is noted while no block comes: far more often than others would call the ledger stale. */
const NOTE_INTERVAL_MS = 1_000;

type Halt = { code: string; message: string };
type NumberedRequest = NonNullable<Awaited<ReturnType<typeof readReconcileRequest>>>;

/** A generation that waits to be stored. */
interface Drafted {
  write: GenerationWrite;
  lastBlock: ScannedBlock;
  listed: readonly Market[];
  differences: WatcherStatus['solvency'];
  /** To be called once it is durable. */
  attributed(): void;
}

/**
 * Reads the chain into the ledger log, one generation per scan: custody events, posts, fills with their attribution, postings, and
 * the comparison of the ledger with the vault's holdings, committed together with the cursor.
 */
export async function createWatcher(deps: WatcherDeps): Promise<Watcher> {
  const { db, writer, rpc, markets, logger } = deps;
  const { custodian, curveBook, entrypoint, orderSettler } = deps.contracts;
  const addresses = [custodian, curveBook, entrypoint, ...(orderSettler === undefined ? [] : [orderSettler])];
  const status: WatcherStatus = beforeFirstScan(deps.deploymentBlock);
  let attributor: Attributor = createAttributor(deps.deploymentId, deps.snapshots);
  let balances = new Map<string, BalanceRow>();
  let archivedBlock = 0;
  let generation = 0;
  let last: (KnownBlock & { timestampSec?: number }) | null = null;
  /** Blocks per scan; less than the setting while the node refuses as many. */
  let span = deps.scanMaxBlocks;
  const progress = createProgress(deps.nowMs);
  const { monotonicMs = deps.nowMs } = deps;
  const proofs = createProofs({ rpc, prove: deps.proveBlocks ?? 'events', nowMs: monotonicMs, logger });
  const heads = createHeads({ rpc, nowMs: deps.nowMs, monotonicMs });
  /** When the head was last read. */
  let seenMs = 0;
  /** The newest scan that is durable. */
  let notedMs = 0;
  /** What the row that is kept of scans without a block says; one that a clock gone wrong left is replaced. */
  let noteMs = 0;
  /** A commit failed or its outcome is unknown: what is durable must be read again before the next scan. */
  let mustReload = true;
  /** What the operator asked for, until all of it is done: whether the commit came about, or what came after it, may not be known. */
  let undecided: NumberedRequest | null = null;
  /** Newest request of the operator that was outdated when it was to be carried out. */
  let voidRequest = 0;
  const tokens = createTokenWatch({ ...deps, vault: custodian, addresses });

  /** Takes everything from what is durable. */
  async function reload(): Promise<void> {
    const listed = await readMarkets(db.knex);
    // At once, for others read the list meanwhile; a market that stands stays the object that it is.
    markets.splice(
      0,
      markets.length,
      ...listed.map((one) => (markets[one.index]?.id === one.id ? markets[one.index]! : one)),
    );
    archivedBlock = (await readArchivedCheckpoint(db.knex))?.blockNumber ?? 0;
    const head = await loadLedgerHead(db.knex);
    const rows = await readBalances(db.knex);
    balances = new Map(rows.map((row) => [`${row.account}:${row.token}`, row]));
    attributor = createAttributor(deps.deploymentId, deps.snapshots);
    await tokens.load();
    status.findings = tokens.standing();
    if (head !== null) {
      generation = head.generation;
      last = { number: head.toBlock, hash: head.blockHash };
      status.inventoryRevision = generation;
      status.durableInventoryRevision = generation;
      status.nextBlock = head.toBlock + 1;
      status.scannedBlockHash = head.blockHash;
      status.observedHead = Math.max(status.observedHead, head.observedHead);
      status.observedHeadTimestampMs = head.observedHeadTimestampMs;
      status.lastSuccessfulScanMs = head.lastScanMs;
      notedMs = head.lastScanMs;
      noteMs = await readNotedScan(db.knex);
    }
    mustReload = false;
  }
  await reload();

  async function scan(): Promise<void> {
    if (mustReload) await reload();
    await reconcile();
    status.halt = await readStandingHalt(db.knex);
    if (stopsScans(status.halt)) return;
    try {
      await scanToHead();
    } catch (error) {
      if (error instanceof MissingEventError) {
        await halt({ code: 'missing_event', message: error.message });
        return;
      }
      if (!(error instanceof CanonicalMismatchError)) throw error;
      const known = { number: error.blockNumber, hash: last!.hash };
      const fromBlock = await lostSince(db.knex, rpc.endpoints, { from: deps.deploymentBlock, known, logger });
      await halt({ code: 'canonical_mismatch', message: error.message, fromBlock });
    }
  }

  /**
   * Carries out what the operator asked for with `curvebook reconcile`, in one transaction, even while the ledger is halted. What the ledger or the
   * chain has outdated is void.
   */
  async function reconcile(): Promise<void> {
    if (undecided !== null) {
      // A transaction of this writer begins when the database has decided about the one before.
      const done = await writer.tx((tx) => lastCarriedOut(tx));
      if (done >= undecided.operatorSeq) return reconciled(undecided);
    }
    const request = await readReconcileRequest(db.knex);
    if (request === null || request.operatorSeq <= voidRequest) return;
    const by = { operatorSeq: request.operatorSeq, timeMs: deps.nowMs(), operator: deps.operator };
    try {
      // A plan that finds nothing lost says nothing of blocks that the chain has lost since.
      if (request.reversal?.depth === 0 && last !== null && !(await isSameChain(rpc.endpoints, last))) {
        logger.warn(by, 'no majority of the nodes has the newest scanned block: what was asked for waits');
        return;
      }
      undecided = request;
      await writer.tx((tx) => carryOutReconcile(tx, request, by));
    } catch (error) {
      mustReload = true;
      if (!(error instanceof LedgerInvariantError || error instanceof ReconcileError)) throw error;
      undecided = null;
      voidRequest = request.operatorSeq;
      logger.error(
        { err: error.message, operatorSeq: request.operatorSeq },
        'the ledger can not be reconciled as asked',
      );
      return;
    }
    await reconciled(request);
  }

  /** After a request was carried out: what is in memory is out of date, and nobody is ready before the next scan. */
  async function reconciled({ operatorSeq, reversal, marketData }: NumberedRequest): Promise<void> {
    logger.warn({ operatorSeq, reversal }, 'reconciled the ledger as the operator asked');
    status.nextBlock = deps.deploymentBlock;
    status.catchingUp = true;
    await reload();
    undecided = null;
    if (reversal !== null || marketData) deps.onReversal();
  }

  async function scanToHead(): Promise<void> {
    await rpc.probe(false);
    const found = await rpc.attempt(look).catch((error: unknown) => {
      // Not a scan: if no endpoint gets further, the ledger grows stale and says so.
      if (error instanceof OlderHeadError) return null;
      throw error;
    });
    if (found === null) {
      logger.warn({ scanned: last?.number, rpc: rpc.name }, 'no node answers a newer head than what is scanned');
      return;
    }
    const { observed, drafted } = found;
    status.observedHead = observed.number;
    if (observed.timestampSec !== null) status.observedHeadTimestampMs = observed.timestampSec * 1_000;
    if (drafted !== null) await commit(drafted);
    const scannedMs = deps.nowMs();
    // Compares both ways, so that after the clock was set back an old note is replaced at once.
    if (Math.abs(scannedMs - notedMs) >= NOTE_INTERVAL_MS || noteMs > scannedMs) await note(scannedMs);
    status.lastSuccessfulScanMs = scannedMs;
    const behind = observed.number - (status.nextBlock - 1);
    status.catchingUp = behind > CATCH_UP_BLOCKS;
    const line = progress.line({ nextBlock: status.nextBlock, head: observed.number, catchingUp: status.catchingUp });
    if (line !== null) logger.info(line, 'catching up with the chain');
  }

  /** What one endpoint says of the next blocks, and the generation that follows from it; null when there is no new block. Reads only. */
  async function look(one: Rpc): Promise<{ observed: Observed; drafted: Drafted | null }> {
    const head = await heads.read(one, last);
    seenMs = monotonicMs();
    await checkCanonical(one, head);
    const observed = await heads.believed(head, last);
    const from = status.nextBlock;
    // A scan ends where a lost database had published its balances, so that they can be compared.
    const to = Math.min(observed, from + span - 1, archivedBlock < from ? observed : archivedBlock);
    if (to < from) {
      if (head.number >= from) return { observed: { number: observed, timestampSec: null }, drafted: null };
      const timestampSec = await heads.confirm(one, head, { last, context: proofs.context(one) });
      if (last?.hash === head.hash) last = { ...last, timestampSec };
      return { observed: { number: head.number, timestampSec }, drafted: null };
    }
    const drafted = await draft(await readRange(one, from, to), observed, one);
    // Of a head that is not scanned yet, only one endpoint says how old it is.
    return { observed: { number: observed, timestampSec: drafted?.lastBlock.timestampSec ?? null }, drafted };
  }

  /** A missing block is a fault of the node; so is another hash at a scanned height, unless a majority of the nodes has it. */
  async function checkCanonical(one: Rpc, head: ScannedBlock): Promise<void> {
    if (last === null) return;
    const block = head.number === last.number ? head : await readBlock(one, last.number);
    if (block !== null && block.hash !== last.hash) await judgeMismatch(one, last);
  }

  async function judgeMismatch(one: Rpc, known: KnownBlock): Promise<never> {
    const actual = await confirmMismatch(rpc.endpoints, known);
    if (actual === null) throw minorityHistory(one, known);
    throw new CanonicalMismatchError(known.number, known.hash, actual);
  }

  /** Halves the range when the node refuses one as large, or its answer is too large, and doubles it again after each success. */
  async function readRange(one: Rpc, from: number, to: number): Promise<Scan> {
    try {
      const range = { from, to, parent: last, addresses };
      let scan = await scanRange(one, range, proofs.context(one));
      if (deps.proveBlocks !== 'all' && (await hasGap(db.knex, scan.events, markets))) {
        logger.warn(
          { from, to },
          "the contracts' counters say that an event is missing: proving all blocks of the scan",
        );
        scan = await scanRange(one, range, proofs.context(one, 'all'));
      }
      span = Math.min(deps.scanMaxBlocks, span * 2);
      return scan;
    } catch (error) {
      if (error instanceof CanonicalMismatchError && last !== null) return judgeMismatch(one, last);
      if ((error instanceof RpcResponseError || error instanceof RpcAnswerTooLargeError) && to > from) {
        span = Math.max(1, Math.floor((to - from + 1) / 2));
        throw new RpcUnavailableError(`${one.name} refused blocks ${from} to ${to}: ${error.message}`, error);
      }
      throw error;
    }
  }

  /** The generation of a scan, with what the endpoint of the scan says beside it. Reads only. */
  async function draft(scan: Scan, observedHead: number, one: Rpc): Promise<Drafted | null> {
    const lastBlock = scan.blocks[scan.blocks.length - 1];
    if (lastBlock === undefined) return null;
    const read = [];
    for (const { event, log } of scan.events) {
      if (event.type !== 'listed') continue;
      read.push(await readMarket(rpc, event, { listedBlock: log.blockNumber, laterBlock: lastBlock.number }));
    }
    const known = nameMarkets([...markets, ...read.map(({ market }) => market)]);
    const listed = known.slice(markets.length);
    const {
      books,
      faults,
      commit: attributed,
    } = await bookScan(
      scan,
      { markets, listed },
      { q: db.knex, attributor, operator: deps.operator, balanceUnits, logger },
    );
    const { entries, claims } = books;
    const listings = read.map((found) => found.read);
    const compared = await tokens.judge({
      rpc: one,
      scan,
      lastBlock: last?.number ?? (scan.blocks[0]?.number ?? lastBlock.number) - 1,
      markets: known,
      read: listings,
      entries,
      balanceAfter,
      isNearHead: observedHead - lastBlock.number <= CATCH_UP_BLOCKS,
    });
    const write: GenerationWrite = {
      ...books,
      generation: generation + 1,
      fromBlock: scan.blocks[0]?.number ?? lastBlock.number,
      toBlock: lastBlock.number,
      blocks: scan.blocks,
      scannedMs: deps.nowMs(),
      observedHead,
      observedHeadTimestampMs: lastBlock.timestampSec * 1_000,
      listed,
      listings,
      entries: [...entries, ...compared.entries],
      holdings: compared.held,
      findings: compared.findings,
      halt:
        // Checked first, because a shortfall can only be committed with the halt that names it.
        compared.halt ??
        (await firstFault(db.knex, faults, deps)) ??
        (await unbackedClaim(db.knex, { claims, entries }, deps.operator, (account, token) =>
          balanceAfter(entries, account, token),
        )),
    };
    return { write, lastBlock, listed, differences: compared.differences, attributed };
  }

  async function commit({ write, lastBlock, listed, differences, attributed }: Drafted): Promise<void> {
    await store(write);
    attributed();
    finish(write, lastBlock, listed, differences);
  }

  /** For processes without the watcher: a scan that added no generation leaves no other trace. */
  async function note(scannedMs: number): Promise<void> {
    try {
      await writer.tx((tx) => noteScan(tx, scannedMs));
      status.failedWrite = false;
      notedMs = scannedMs;
      noteMs = scannedMs;
    } catch (error) {
      status.failedWrite = true;
      throw error;
    }
  }

  async function store(write: GenerationWrite): Promise<void> {
    try {
      const steps = generationSteps(write, { operator: deps.operator });
      await writer.tx(steps.write, steps.read);
      status.failedWrite = false;
    } catch (error) {
      status.failedWrite = true;
      mustReload = true;
      if (error instanceof LedgerInvariantError) await halt({ code: error.code, message: error.message });
      throw error;
    }
  }

  function finish(
    write: GenerationWrite,
    lastBlock: ScannedBlock,
    listed: readonly Market[],
    differences: WatcherStatus['solvency'],
  ): void {
    generation = write.generation;
    notedMs = write.scannedMs;
    last = lastBlock;
    for (const market of listed) markets.push(market);
    applyToBalances(balances, write);
    status.inventoryRevision = generation;
    status.durableInventoryRevision = generation;
    status.nextBlock = lastBlock.number + 1;
    status.scannedBlockHash = lastBlock.hash;
    if (write.observedHead === lastBlock.number) deps.pace?.observe(lastBlock.number, seenMs);
    status.solvency = differences;
    tokens.committed(write, listed);
    status.findings = tokens.standing();
    if (write.halt !== null) status.halt = { ...write.halt, byOperator: false };
    for (const post of write.posts) deps.snapshots.forget(post.market, post.seq);
    deps.onGeneration(write);
  }

  function balanceUnits(account: BalanceRow['account'], token: Address): bigint {
    return balances.get(`${account}:${token}`)?.balanceUnits ?? 0n;
  }

  function balanceAfter(entries: readonly LedgerEntry[], account: BalanceRow['account'], token: Address): bigint {
    const before = balanceUnits(account, token);
    return entries.reduce(
      (sum, entry) => (entry.account === account && entry.token === token ? sum + entry.amountUnits : sum),
      before,
    );
  }

  async function halt(reason: Halt & { fromBlock?: number }): Promise<void> {
    logger.fatal({ code: reason.code }, `ledger halted: ${reason.message}`);
    status.halt = { code: reason.code, message: reason.message, byOperator: false };
    await writer.tx((tx) => insertHalt(tx, { ...reason, timeMs: deps.nowMs() }));
  }

  /** Scans without a pause until it has caught up. */
  async function follow(signal: AbortSignal): Promise<void> {
    do await scan();
    while (status.catchingUp && !stopsScans(status.halt) && !signal.aborted);
  }

  return {
    status: () => status,
    proofCounts: proofs.counts,
    scan,
    start: (signal) =>
      startLoop(follow, {
        ...{ name: 'watcher', intervalMs: deps.pollIntervalMs, maxBackoffMs: MAX_BACKOFF_MS, signal, logger },
        ...(deps.pace === undefined ? {} : { pauseMs: deps.pace.pauseMs }),
      }),
  };
}
