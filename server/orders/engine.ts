import { setTimeout as delay } from 'node:timers/promises';
import type { Book } from '../../core/book.js';
import type { Address, Market, OrderEffect } from '../../core/types.js';
import { readSignedRequest } from '../../core/wire/request.js';
import type { SignedRequest, WireAction } from '../../core/wire/types.js';
import { readOperatorState } from '../../ledger/operator-log.js';
import type { OperatorState } from '../../ledger/operator-log.js';
import { appendOrderRows, readOrderRows } from '../../ledger/order-log.js';
import type { Queryable } from '../../ledger/types.js';
import { isRefusedType, judgeAction } from './actions/registry.js';
import { createGroupCommit } from './group-commit.js';
import type { Plan } from './group-commit.js';
import type { KnownOrder } from './history.js';
import { refuseNonce } from './nonces.js';
import { REFUSALS, refuse } from './refusals.js';
import { closeForShortage, isShort } from './shortage.js';
import { resolveSigner } from './signers.js';
import type { SignerStanding } from './signers.js';
import { loadState } from './state.js';
import type { ExchangeReply, GatewayDeps } from './types.js';
import { verifyRequest } from './verify.js';
import type { ConnectionHint } from './verify.js';

/** The order gateway: judges signed actions, makes them durable, and answers after. All reads show durable orders only. */
export interface Gateway {
  /**
   * Serves one signed request, as parsed from JSON. Resolves after the commit that makes the reply true. Throws WireError when the
   * request has another shape (nothing is stored), GatewayUnavailableError when it can't be served.
   */
  submit: (body: unknown, hint?: ConnectionHint) => Promise<ExchangeReply>;
  book: () => Book;
  /** Listed markets, in listing order. */
  markets: () => readonly Market[];
  order: (oid: number) => KnownOrder | undefined;
  orderByCloid: (maker: Address, cloid: string) => KnownOrder | undefined;
  /** Whether the address is a maker of this venue or has a row in its ledger. */
  isKnown: (account: Address) => boolean;
  /** Time of the maker's newest accepted action, null when it never had one. */
  lastActionMs: (maker: Address) => number | null;
  /** Newest generation applied in memory, 0 before the first. */
  generation: () => number;
  /** False once another process owns the order log. */
  isActive: () => boolean;
  /** Wakes the follower: a generation has become durable. */
  onGeneration: () => void;
  /** Follows the ledger and operator logs until the signal stops it. */
  run: (signal: AbortSignal) => Promise<void>;
  /** Resolves when everything submitted so far has been answered. */
  idle: () => Promise<void>;
}

/** An action that somebody signed, or the gateway's own act of closing orders that may not stand any longer. */
type Entry =
  { type: 'signed'; request: SignedRequest; action: WireAction; signer: Address } | { type: 'close'; maker: Address };

/** Loads the state from the logs and returns a gateway that accepts at once. The caller starts `run`. */
export async function createGateway(deps: GatewayDeps): Promise<Gateway> {
  const { db, writer, config, logger } = deps;
  const state = await loadState(db);
  let operator: OperatorState = await readOperatorState(db.knex);
  let reading: Promise<void> | null = null;
  let readingNext: Promise<void> | null = null;
  let latestMs = 0;
  let wake = new AbortController();

  const resolve = (signer: Address): SignerStanding => resolveSigner(signer, operator, state.inventory.has);

  const commits = createGroupCommit<Entry, ExchangeReply>(
    writer,
    {
      begin: readOperator,
      plan,
      append: appendOrderRows,
      readBack: (tx) => readOrderRows(tx, { after: state.committed().lastOrderSeq(), limit: 10_000 }),
      commit: state.commit,
      rollback: state.rollback,
    },
    logger,
  );

  /** Time of the next row: the clock, but never behind the log. */
  function nextMs(): number {
    latestMs = Math.max(latestMs, state.lastRowMs(), deps.clock());
    return latestMs;
  }

  function plan(entry: Entry): Plan<ExchangeReply> {
    return entry.type === 'signed' ? planSigned(entry) : planClose(entry.maker);
  }

  function planSigned({ request, action, signer }: Extract<Entry, { type: 'signed' }>): Plan<ExchangeReply> {
    const standing = resolve(signer);
    if (standing.kind !== 'active') return { row: null, answer: refuse(standingRefusal(standing, signer)) };
    const nowMs = nextMs();
    const badNonce = refuseNonce(request.nonce, state.planned().nonces(signer), nowMs);
    if (badNonce !== null) return { row: null, answer: refuse(badNonce) };
    const { maker } = standing;
    const { effects, reply } = judge(request, action, maker, nowMs);
    const row = append(maker, signer, request.nonce, action.type, effects, nowMs);
    return { row, answer: reply };
  }

  /** From here on the nonce is used up, whatever comes out. */
  function judge(request: SignedRequest, action: WireAction, maker: Address, nowMs: number) {
    if (request.expiresAfter !== null && request.expiresAfter < nowMs) {
      return { effects: [], reply: refuse(REFUSALS.expired()) };
    }
    const view = {
      book: state.planned(),
      markets: state.markets,
      available: state.inventory.available,
      readiness: deps.readiness(),
    };
    return judgeAction(action, maker, view);
  }

  /** Closes all orders of a suspended maker, and what the inventory of any other no longer backs. */
  function planClose(maker: Address): Plan<ExchangeReply> {
    const answer: ExchangeReply = { status: 'ok', response: { type: 'default' } };
    const book = state.planned();
    const effects = operator.suspended.has(maker)
      ? book.openOrders(maker).map(({ oid }): OrderEffect => ({ type: 'close', oid, reason: 'suspended' }))
      : closeForShortage(book, state.markets, maker, state.inventory.available);
    if (effects.length === 0) return { row: null, answer };
    return { row: append(maker, null, null, 'close', effects, nextMs()), answer };
  }

  function append(
    maker: Address,
    signer: Address | null,
    nonce: number | null,
    kind: string,
    effects: OrderEffect[],
    timeMs: number,
  ) {
    const book = state.planned();
    const row = { orderSeq: book.lastOrderSeq() + 1, timeMs, maker, signer, nonce, kind, effects };
    book.apply(row);
    return row;
  }

  async function submit(body: unknown, hint: ConnectionHint = {}): Promise<ExchangeReply> {
    const request = readSignedRequest(body);
    if (isRefusedType(request.action.type)) return refuse(REFUSALS.unsupportedAction(request.action.type));
    const verified = await verify(request, hint);
    if (verified === null) return refuse(REFUSALS.badSignature());
    if (request.vaultAddress !== null) return refuse(REFUSALS.vault(request.vaultAddress));
    const { action, signer, standing } = verified;
    if (standing.kind !== 'active') return refuse(standingRefusal(standing, signer));
    return commits.submit({ type: 'signed', request, action, signer });
  }

  /** An approval may be newer than what was last read, so nobody is called unknown before the operator log was asked. */
  async function verify(request: SignedRequest, hint: ConnectionHint) {
    const options = { sources: config.sources, resolve, hint };
    const verified = verifyRequest(request, options);
    if (verified === null || verified.standing.kind === 'active') return verified;
    await refreshOperator();
    return verifyRequest(request, options);
  }

  /** Reads the operator log once more; a read that is already under way may be too old, so then another one follows it. */
  function refreshOperator(): Promise<void> {
    if (reading === null) {
      reading = readOperator(db.knex).finally(() => {
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

  async function readOperator(q: Queryable): Promise<void> {
    const read = await readOperatorState(q, operator);
    // Two reads may overlap; the older one must not win.
    if (read.lastSeq >= operator.lastSeq) operator = read;
  }

  /** Closes what may not stand any longer after an act of the operator or a new generation. */
  async function closeOrders(): Promise<void> {
    const book = state.committed();
    const makers = book
      .makersWithOrders()
      .filter((maker) => operator.suspended.has(maker) || isShort(book, maker, state.inventory.available));
    await Promise.all(makers.map((maker) => commits.submit({ type: 'close', maker })));
  }

  async function step(): Promise<void> {
    await state.follow(db);
    await refreshOperator();
    if (!commits.isLost()) await closeOrders();
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await step();
      } catch (error) {
        logger.error({ err: error }, 'following the ledger log failed; it will be tried again');
      }
      await delay(config.pollMs, undefined, { signal: AbortSignal.any([signal, wake.signal]) }).catch(() => undefined);
      if (wake.signal.aborted) wake = new AbortController();
    }
  }

  return {
    submit,
    run,
    book: state.committed,
    markets: () => state.markets,
    order: state.history.order,
    orderByCloid: state.history.orderByCloid,
    isKnown: (account) => resolve(account).kind !== 'unknown',
    lastActionMs: state.lastActionMs,
    generation: state.generation,
    isActive: () => !commits.isLost(),
    onGeneration: () => wake.abort(),
    idle: commits.idle,
  };
}

function standingRefusal(standing: SignerStanding, signer: Address): string {
  if (standing.kind === 'suspended') return REFUSALS.makerSuspended(standing.maker);
  if (standing.kind === 'notApproved') return REFUSALS.makerNotApproved(standing.maker);
  return REFUSALS.unknownSigner(signer);
}
