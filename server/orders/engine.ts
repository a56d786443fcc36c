import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from '../../core/book/agents.js';
import type { Book } from '../../core/book.js';
import type { Address, Market } from '../../core/types.js';
import { signatureBackend } from '../../core/wire/recover.js';
import { followOperatorLog, readOperatorState, type OperatorState } from '../../ledger/operator/operator-log.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { LedgerReversedError } from '../../ledger/errors.js';
import { rewindCompactedBook } from '../../ledger/orders/rewinding.js';
import { appendOrderRows, lastOrderSeq, readOrderRowOf, readOrderRows } from '../../ledger/orders/order-log.js';
import type { Db, Queryable, Writer } from '../../ledger/types.js';
import { isRefusedType } from './actions/registry.js';
import { createAuthenticator } from './authenticate.js';
import { createTurns } from '../turns.js';
import type { GatewayEvent } from './events.js';
import { createGroupCommit, createNoCommit, standby, type GroupSteps } from './group-commit.js';
import type { KnownOrder } from './history.js';
import type { OrderPlaces } from './order-places.js';
import { createPlanner, type Entry, type SignedEntry } from './plan.js';
import { GatewayUnavailableError, mayHideRepeat, REFUSALS, refuse } from './refusals.js';
import { isShort } from './inventory.js';
import { resolveAccount, resolveSigner, type SignerStanding } from './signers.js';
import { isOutdated, loadState, StateOutdatedError, type GatewayState } from './state.js';
import { storedReply } from './stored-outcome.js';
import type { ExchangeReply, Forward, ForwardedAction, GatewayDeps } from './types.js';
import { entryOf, isSignedBy, type ConnectionHint } from './verify.js';

/** Reply to a signed request, and the maker for whom it acted; null when it was not admitted. */
export interface Submitted {
  reply: ExchangeReply;
  maker: Address | null;
}

/** The order gateway: judges signed actions, makes them durable, and then answers. All reads show durable orders only. */
export interface Gateway {
  /**
   * Serves one signed request, as parsed from JSON. Resolves after the commit that makes the reply true. Throws WireError when the request
   * has another shape (nothing is stored), RateLimitedError, and GatewayUnavailableError when it can't be served. `bytes` is its length.
   */
  submit: (body: unknown, hint?: ConnectionHint, bytes?: number) => Promise<Submitted>;
  /**
   * Judges a request whose signer an edge recovered, and resolves as `submit` does. A repeated nonce gets the reply that its row tells, if the row is of the same action. With `verifies` the signer is
   * recovered here, too. Entries are judged in the order of the calls. Throws WireError when the action has another shape.
   */
  decide: (forwarded: ForwardedAction, verifies: boolean) => Promise<ExchangeReply>;
  /** The JSON value of a request's text; of a long one, unless its connection has proven itself, a promise that waits. Throws SyntaxError. */
  parse: (text: string, hint: ConnectionHint) => unknown;
  book: () => Book;
  /** Listed markets, in listing order. */
  markets: () => readonly Market[];
  /** Indexes of markets that take no orders, as far as the operator log was read. */
  delisted: () => ReadonlySet<number>;
  order: (oid: number) => KnownOrder | undefined;
  orderByCloid: (maker: Address, cloid: string) => KnownOrder | undefined;
  /** Rows of the order log about an order. */
  places: (oid: number) => OrderPlaces;
  /** Every order of the maker that is open, and its latest closed ones, in no fixed order. */
  ordersOf: (maker: Address) => KnownOrder[];
  /** Live agents of a maker. */
  agentsOf: (maker: Address) => Agent[];
  /** The maker for which an address acts. */
  resolve: (account: Address) => SignerStanding;
  /** Time of the maker's newest accepted action, null when it never had one. */
  lastActionMs: (maker: Address) => number | null;
  /** Newest generation applied in memory, 0 before the first. */
  generation: () => number;
  /** Resolves when orders are judged by this durable generation, or a later one; after a second in any case. */
  untilApplied: (generation: number) => Promise<void>;
  /** Why no new orders are accepted now; null while they are. */
  notReady: () => string | null;
  /** Calls back after each commit and each new generation; returns a function that stops it. */
  listen: (listener: (event: GatewayEvent) => void) => () => void;
  /** Row of the order log up to which all reads are. */
  orderSeq: () => number;
  /** Actions that wait for a commit, or for the outcome of their first time. */
  queued: () => number;
  /** False while another process owns the order log. */
  isActive: () => boolean;
  /**
   * Makes a standby whose process has taken the log over accept actions: it reads the rest of the log, to which no other process can append
   * any more, and continues from there. Needs `run`. Rejects when that ends before, or has ended already.
   */
  promote: (writer: Writer) => Promise<void>;
  /** Wakes the follower: a generation has become durable. */
  onGeneration: () => void;
  /**
   * Follows the ledger and operator logs, and carries out scheduled cancels, until the signal stops it. Rejects when what it holds can't
   * be moved on, and a new gateway is due: with LedgerReversedError after a reorganisation that took part of it back, with
   * LogCompactedError when a standby slept so long that rows which it lacks were compacted, and with StateOutdatedError when what it
   * read can't be applied.
   */
  run: (signal: AbortSignal) => Promise<void>;
  /** Resolves when everything submitted so far has been answered. */
  idle: () => Promise<void>;
}

/** How long an edge waits to read back what it acknowledges. */
const FOLLOW_LIMIT_MS = 1_000;
/** How long whoever has seen a generation waits for the gateway to have it, too. */
const APPLY_LIMIT_MS = 1_000;
/** Pause before an edge reads the logs again for a signer that it does not know. */
const REFRESH_SPACING_MS = 20;

/** Repeats whose row is read at the same time: commits need the database more. */
const MAX_LOOK_UPS = 2;

const NO_TOKENS: ReadonlySet<Address> = new Set();

/**
 * Loads the state. Where a reversal was carried out by a version that left the compacted book beyond it, the owner of the order log takes the
 * book back first.
 */
async function loadOwnState(db: Db, writer: Writer | null): Promise<GatewayState> {
  try {
    return await loadState(db);
  } catch (error) {
    if (writer === null || !(error instanceof LedgerReversedError)) throw error;
    await writer.tx(async (tx) => rewindCompactedBook(tx, await readMarkets(tx)));
    return loadState(db);
  }
}

/** Loads the state from the logs and returns a gateway that accepts at once, unless it is a standby. The caller starts `run`. */
export async function createGateway(deps: GatewayDeps): Promise<Gateway> {
  const { db, writer, config, logger, clock, forward = null, relay = null } = deps;
  const state = await loadOwnState(db, writer);
  logger.info({ signatureBackend }, 'recovering signatures');
  let operator: OperatorState = await readOperatorState(db.reads);
  let reading: Promise<void> | null = null;
  let readingNext: Promise<void> | null = null;
  let refreshing: Promise<void> | null = null;
  let wake = new AbortController();
  /** This process owns the log, but may not have read all of it yet. */
  let promotion: { writer: Writer; done: PromiseWithResolvers<void> } | null = null;
  /** `run` has ended. */
  let hasEnded = false;
  /** Told when the next read of the logs has ended. */
  let stepWaits: (() => void)[] = [];

  const signerView = () => ({
    operator,
    agents: state.committed().agents,
    hasLedgerRow: state.inventory.has,
    nowMs: clock(),
  });
  const resolve = (signer: Address): SignerStanding => resolveSigner(signer, signerView());
  const isOwner = (): boolean => !commits.isLost();
  const authenticator = createAuthenticator({
    config,
    resolveSigner: resolve,
    resolveAccount: (account) => resolveAccount(account, signerView()),
    // What another process took for an agent is in its order log.
    refreshOperator: () => (isOwner() ? refreshOperator() : refreshAll()),
    clock,
  });

  const lookUps = createTurns(MAX_LOOK_UPS);

  const steps: GroupSteps<Entry, ExchangeReply> = {
    begin: readOperator,
    plan: createPlanner({
      state,
      operator: () => operator,
      readiness: deps.readiness,
      quarantined: deps.quarantined ?? (() => NO_TOKENS),
      minOrderUnits: config.minOrderUnits,
      clock,
    }),
    append: appendOrderRows,
    readBack: (tx) => readOrderRows(tx, { after: state.committed().book.lastOrderSeq(), limit: 10_000 }),
    commit: (rows) => {
      state.commit(rows);
      // Wakes the follower, which may be sleeping beyond a newly armed time.
      if (rows.some((row) => row.kind === 'scheduleCancel')) wake.abort();
    },
    rollback: state.rollback,
  };
  let commits = writer === null ? createNoCommit<Entry, ExchangeReply>() : createGroupCommit(writer, steps, logger);

  /** On an edge, the sequencer's judgement, which this process then reads back: its own reads show what it has acknowledged. */
  async function forwarded(to: Forward, { request, signer }: SignedEntry, maker: Address): Promise<ExchangeReply> {
    const { reply, orderSeq } = await to.submit({ request, signer }, maker);
    const given = new AbortController();
    await Promise.race([followed(orderSeq, given.signal), delay(FOLLOW_LIMIT_MS, undefined, { ref: false })]);
    given.abort();
    return reply;
  }

  /** Reads the logs until they show the row, or the signal is aborted; with a pause, since a replica gets the row when it does. */
  async function followed(orderSeq: number, signal: AbortSignal): Promise<void> {
    const isBehind = (): boolean => !hasEnded && !signal.aborted && state.committed().book.lastOrderSeq() < orderSeq;
    if (isBehind()) await nextStep();
    while (isBehind()) {
      await delay(REFRESH_SPACING_MS);
      await nextStep();
    }
  }

  /** Resolves when a read of the logs that begins from now on has ended. */
  function nextStep(): Promise<void> {
    if (hasEnded) return Promise.resolve();
    wake.abort();
    return new Promise((resolve) => stepWaits.push(resolve));
  }

  /** Reads the logs once more unless they have shown it. The limit is for a database that does not answer. */
  async function untilApplied(generation: number): Promise<void> {
    if (state.generation() >= generation) return;
    const timer = new AbortController();
    const pause = delay(APPLY_LIMIT_MS, undefined, { signal: timer.signal }).catch(() => undefined);
    await Promise.race([nextStep(), pause]);
    timer.abort();
  }

  function decide({ request, signer }: ForwardedAction, verifies: boolean): Promise<ExchangeReply> {
    const { type } = request.action;
    if (isRefusedType(type)) return Promise.resolve(refuse(REFUSALS.unsupportedAction(type)));
    if (request.vaultAddress !== null) return Promise.resolve(refuse(REFUSALS.vault(request.vaultAddress)));
    if (commits.isLost()) return Promise.reject(standby());
    const entry = entryOf(request, signer);
    if (verifies && !isSignedBy(request, signer, config)) return Promise.resolve(refuse(REFUSALS.badSignature()));
    return commits.submit(entry).then((reply) => (mayHideRepeat(reply) ? whatBecameOf(entry, reply) : reply));
  }

  /**
   * What was answered when the nonce was used, if the log tells; else the refusal. Where the log can't be read, the action may be in it:
   * rejects with GatewayUnavailableError.
   */
  async function whatBecameOf(
    { request, action, signer }: SignedEntry,
    refusal: ExchangeReply,
  ): Promise<ExchangeReply> {
    try {
      const row = await lookUps.run(() => readOrderRowOf(db.reads, signer, request.nonce));
      return (row === null ? null : storedReply(action, row, { markets: state.markets, cloidOf })) ?? refusal;
    } catch (error) {
      logger.error({ err: error }, 'an earlier outcome of an action can not be read');
      const message = 'The action may or may not have been stored; its nonce was used';
      throw new GatewayUnavailableError('outcome_unknown', message, { cause: error });
    }
  }

  const cloidOf = (oid: number): string | null | undefined => state.history.order(oid)?.order.cloid;

  async function submit(body: unknown, hint: ConnectionHint = {}, bytes = 0): Promise<Submitted> {
    const request = authenticator.read(body, hint, bytes);
    const { type } = request.action;
    if (isRefusedType(type)) return { reply: refuse(REFUSALS.unsupportedAction(type)), maker: null };
    if (commits.isLost() && forward === null && relay === null) throw standby();
    const authenticated = await authenticator.authenticate(request, hint, bytes);
    if ('refusal' in authenticated) return { reply: refuse(authenticated.refusal), maker: null };
    const { maker, entry } = authenticated;
    const reply = await (forward === null ? own(entry, body, maker, hint) : forwarded(forward, entry, maker));
    return { reply, maker: reply.status === 'ok' ? maker : null };
  }

  /** By this process, or, while it stands by, by the active one. */
  async function own(entry: SignedEntry, body: unknown, maker: Address, hint: ConnectionHint): Promise<ExchangeReply> {
    if (!commits.isLost() || relay === null) return commits.submit(entry);
    try {
      return await relay.action(body, maker, hint.address);
    } catch (error) {
      // Nothing was stored, and meanwhile this process has become the one that stores it.
      const isFree = error instanceof GatewayUnavailableError && error.code === 'standby';
      if (!isFree || commits.isLost()) throw error;
      return commits.submit(entry);
    }
  }

  /** Reads the operator log again; if a read is already in progress it may be too old, so another one follows it. */
  function refreshOperator(): Promise<void> {
    if (reading === null) {
      reading = readOperator(db.reads).finally(() => {
        reading = null;
      });
      return reading;
    }
    readingNext ??= reading
      .catch(() => undefined)
      .then(() => {
        readingNext = null;
        return refreshOperator();
      });
    return readingNext;
  }

  /** The same for both logs; a flood of unknown signers makes it read only so often. */
  function refreshAll(): Promise<void> {
    refreshing ??= delay(REFRESH_SPACING_MS).then(() => {
      refreshing = null;
      return nextStep();
    });
    return refreshing;
  }

  async function readOperator(q: Queryable): Promise<void> {
    const read = await followOperatorLog(q, operator);
    // Two reads may overlap; an older result must not replace a newer one.
    if (read.lastSeq >= operator.lastSeq) operator = read;
  }

  /** Closes orders that must not stay open after an act of the operator, a new generation, or a scheduled cancel that is due. */
  async function closeOrders(): Promise<void> {
    const { book } = state.committed();
    if (sleepMs() === 0) await commits.submit({ type: 'trigger' });
    const { suspended, delisted } = operator;
    const leaving = new Set([...delisted].flatMap((market) => [...book.makersIn(market)]));
    const makers = book
      .makersWithOrders()
      .filter((maker) => suspended.has(maker) || leaving.has(maker) || isShort(book, maker, state.inventory.available));
    await Promise.all(makers.map((maker) => commits.submit({ type: 'close', maker })));
  }

  async function step(): Promise<void> {
    // Only a read from here on includes everything that the earlier owner appended.
    const promoting = promotion;
    // Without owning the order log, this process follows its owner's rows.
    await (commits.isLost() ? state.followAll(db) : state.follow(db));
    await refreshOperator();
    if (promoting !== null) {
      await checkComplete(promoting.writer);
      state.rollback();
      commits = createGroupCommit(promoting.writer, steps, logger);
      promotion = null;
      promoting.done.resolve();
    }
    if (!commits.isLost()) await closeOrders();
  }

  /** The new owner's state must include every acknowledged order. */
  async function checkComplete(owner: Writer): Promise<void> {
    const stored = await owner.tx(lastOrderSeq);
    const held = state.committed().book.lastOrderSeq();
    if (held !== stored) throw new StateOutdatedError(`the book stands at order row ${held}, the log at ${stored}`);
  }

  function promote(to: Writer): Promise<void> {
    if (!commits.isLost() || promotion !== null) return Promise.reject(new Error('the gateway has its log already'));
    if (hasEnded) return Promise.reject(new Error('the gateway has stopped, and reads no log any more'));
    promotion = { writer: to, done: Promise.withResolvers() };
    wake.abort();
    return promotion.done.promise;
  }

  /** Time until the next read of the logs: the poll interval, or less when a scheduled cancel is due before. */
  function sleepMs(): number {
    const nowMs = clock();
    let least: number = config.pollMs;
    for (const timeMs of state.committed().book.armed().values()) least = Math.min(least, timeMs - nowMs);
    return Math.max(least, 0);
  }

  async function run(signal: AbortSignal): Promise<void> {
    let cause: unknown;
    try {
      await follow(signal);
    } catch (error) {
      cause = error;
      throw error;
    } finally {
      hasEnded = true;
      stepWaits.forEach((resolve) => resolve());
      promotion?.done.reject(new Error('the gateway stopped before it had read its log', { cause }));
    }
  }

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const told = stepWaits;
      stepWaits = [];
      try {
        await step();
      } catch (error) {
        if (isOutdated(error)) throw error;
        logger.error({ err: error }, 'following the ledger log failed; it will be tried again');
        await delay(config.pollMs, undefined, { signal }).catch(() => undefined);
      } finally {
        told.forEach((resolve) => resolve());
      }
      const sleeping = { signal: AbortSignal.any([signal, wake.signal]) };
      await delay(commits.isLost() ? config.pollMs : sleepMs(), undefined, sleeping).catch(() => undefined);
      if (wake.signal.aborted) wake = new AbortController();
    }
  }

  return {
    submit,
    decide,
    parse: authenticator.parse,
    run,
    book: () => state.committed().book,
    markets: () => state.markets,
    delisted: () => operator.delisted,
    order: state.history.order,
    orderByCloid: state.history.orderByCloid,
    places: state.history.places,
    ordersOf: state.history.ofMaker,
    agentsOf: (maker) => {
      const { nowMs, ...view } = signerView();
      return view.agents
        .ofMaster(maker)
        .filter((agent) => agent.validUntilMs > nowMs)
        .filter((agent) => !operator.approved.has(agent.address) && !operator.suspended.has(agent.address));
    },
    resolve,
    lastActionMs: state.lastActionMs,
    generation: state.generation,
    untilApplied,
    notReady: () => {
      const { ready, reason } = deps.readiness();
      return ready ? null : (reason ?? 'not_ready');
    },
    listen: state.events.listen,
    orderSeq: () => state.committed().book.lastOrderSeq(),
    queued: () => forward?.waiting() ?? commits.waiting() + lookUps.waiting(),
    isActive: () => !commits.isLost(),
    promote,
    onGeneration: () => wake.abort(),
    idle: () => (forward ?? commits).idle(),
  };
}
