import type { Book } from '../../core/book.js';
import type { Address, CloseReason, OpenOrder, OrderEffect, OrderLogRow } from '../../core/types.js';
import type { MinOrderUnits } from '../../core/min-order.js';
import type { SignedRequest } from '../../core/wire/types.js';
import { judgeAction, type AdmittedAction } from './actions/registry.js';
import type { Plan } from './group-commit.js';
import { MAX_NONCES, NONCE_FUTURE_MS, NONCE_PAST_MS } from './limits.js';
import { REFUSALS, refuse } from './refusals.js';
import { closeForShortage } from './inventory.js';
import { resolveAccount, resolveSigner, type OperatorView, type SignerStanding } from './signers.js';
import type { GatewayState } from './state.js';
import type { ExchangeReply } from './types.js';
import type { Readiness } from '../../core/types.js';

/** A signed action and its signer. */
export interface SignedEntry {
  type: 'signed';
  request: SignedRequest;
  action: AdmittedAction;
  signer: Address;
}

/**
 * A request for rows of the order log: a signed action, or an act of the gateway itself (closing orders that must not stay open, and
 * carrying out scheduled cancels that are due).
 */
export type Entry = SignedEntry | { type: 'close'; maker: Address } | { type: 'trigger' };

interface PlannerDeps {
  state: GatewayState;
  operator: () => OperatorView;
  /** Tokens in quarantine. */
  quarantined: () => ReadonlySet<Address>;
  readiness: () => Readiness;
  minOrderUnits: MinOrderUnits;
  /** Unix milliseconds. */
  clock: () => number;
}

const DONE: ExchangeReply = { status: 'ok', response: { type: 'default' } };

/** Refusal of a signer that may not act. */
export function standingRefusal(standing: SignerStanding, signer: Address, isMaster = false): string {
  if (standing.kind === 'suspended') return REFUSALS.makerSuspended(standing.maker);
  if (standing.kind === 'notApproved') return REFUSALS.makerNotApproved(standing.maker);
  return isMaster ? REFUSALS.mustDeposit(signer) : REFUSALS.unknownSigner(signer);
}

/**
 * Judges entries on the planned state, in their order, and applies their rows. Before each entry every scheduled cancel that is due is
 * carried out, so that no entry is judged against orders that should be closed.
 */
export function createPlanner(deps: PlannerDeps): (entry: Entry) => Plan<ExchangeReply> {
  const { state } = deps;
  let latestMs = 0;

  /** Time of the next row: the clock, but never before the last row's time. */
  function nextMs(): number {
    latestMs = Math.max(latestMs, state.lastRowMs(), deps.clock());
    return latestMs;
  }

  function append(row: Omit<OrderLogRow, 'orderSeq'>): OrderLogRow {
    const { book, agents } = state.planned();
    const { timeMs, maker, signer, nonce, kind, effects } = row;
    const full: OrderLogRow = { orderSeq: book.lastOrderSeq() + 1, timeMs, maker, signer, nonce, kind, effects };
    book.apply(full);
    agents.apply(full);
    return full;
  }

  function planDue(nowMs: number): OrderLogRow[] {
    const { book } = state.planned();
    const due: [Address, number][] = [];
    // Runs before every entry; nearly always none is due.
    for (const armed of book.armed()) if (armed[1] <= nowMs) due.push(armed);
    return due.map(([maker, timeMs]) =>
      append({
        timeMs: nowMs,
        maker,
        signer: null,
        nonce: null,
        kind: 'scheduledCancel',
        effects: [...closesOf(book, maker, 'scheduledCancel'), { type: 'trigger', timeMs }],
      }),
    );
  }

  /** Closes all orders of a suspended maker; of another maker those in delisted markets, then those that its inventory no longer backs. */
  function planClose(maker: Address, nowMs: number): OrderLogRow[] {
    const { book } = state.planned();
    const { suspended, delisted } = deps.operator();
    const close = (effects: OrderEffect[]): OrderLogRow[] =>
      effects.length === 0 ? [] : [append({ timeMs: nowMs, maker, signer: null, nonce: null, kind: 'close', effects })];
    if (suspended.has(maker)) return close(closesOf(book, maker, 'suspended'));
    const inDelisted = (order: OpenOrder): boolean => delisted.has(order.market);
    const rows = delisted.size === 0 ? [] : close(closesOf(book, maker, 'delisted', inDelisted));
    return [...rows, ...close(closeForShortage(book, state.markets, maker, state.inventory.available))];
  }

  function planSigned(entry: SignedEntry, nowMs: number): Plan<ExchangeReply> {
    const { request, action, signer } = entry;
    const { book, agents } = state.planned();
    const isMaster = action.type === 'approveAgent';
    const view = { operator: deps.operator(), agents, hasLedgerRow: state.inventory.has, nowMs };
    const standing = isMaster ? resolveAccount(signer, view) : resolveSigner(signer, view);
    if (standing.kind !== 'active') {
      return { rows: [], answer: refuse(standingRefusal(standing, signer, isMaster)) };
    }
    const { maker } = standing;
    // Zero when nothing was ever restored; then a nonce of zero is judged like any other.
    const { noncesAfterMs } = state;
    const sinceMs = noncesAfterMs === 0 ? standing.sinceMs : Math.max(standing.sinceMs, noncesAfterMs + 1);
    const badNonce =
      request.nonce < sinceMs
        ? REFUSALS.nonceTooLow(request.nonce, sinceMs)
        : refuseNonce(request.nonce, book.nonces(signer), nowMs);
    if (badNonce !== null) return { rows: [], answer: refuse(badNonce) };
    // From here on the nonce is used up, whatever the result.
    const { effects, reply } = judge(request, action, maker, nowMs);
    const row = append({ timeMs: nowMs, maker, signer, nonce: request.nonce, kind: action.type, effects });
    return { rows: [row], answer: reply };
  }

  function judge(request: SignedRequest, action: AdmittedAction, maker: Address, nowMs: number) {
    if (request.expiresAfter !== null && request.expiresAfter < nowMs) {
      return { effects: [], reply: refuse(REFUSALS.expired()) };
    }
    const operator = deps.operator();
    return judgeAction(action, maker, {
      ...state.planned(),
      markets: state.markets,
      available: state.inventory.available,
      minOrderUnits: deps.minOrderUnits,
      readiness: deps.readiness(),
      delisted: operator.delisted,
      quarantined: deps.quarantined(),
      isAccount(address) {
        return resolveAccount(address, { operator, hasLedgerRow: state.inventory.has }).kind !== 'unknown';
      },
      nowMs,
    });
  }

  return (entry) => {
    const nowMs = nextMs();
    const due = planDue(nowMs);
    if (entry.type === 'trigger') return { rows: due, answer: DONE };
    if (entry.type === 'close') return { rows: [...due, ...planClose(entry.maker, nowMs)], answer: DONE };
    const { rows, answer } = planSigned(entry, nowMs);
    return { rows: [...due, ...rows], answer };
  };
}

function closesOf(
  book: Book,
  maker: Address,
  reason: CloseReason,
  applies: (order: OpenOrder) => boolean = () => true,
): OrderEffect[] {
  const orders = book.openOrders(maker).filter(applies);
  return orders.map(({ oid }) => ({ type: 'close', oid, reason }));
}

/**
 * Why a nonce is not admitted, or null. It must lie strictly inside the window around `nowMs`, be new to the signer's set, and, once the
 * set is full, be above its lowest element, because lower nonces are no longer remembered. `used` is ascending.
 */
export function refuseNonce(nonce: number, used: readonly number[], nowMs: number): string | null {
  const low = nowMs - NONCE_PAST_MS;
  const high = nowMs + NONCE_FUTURE_MS;
  if (nonce <= low) return REFUSALS.nonceTooLow(nonce, low);
  if (nonce >= high) return REFUSALS.nonceTooHigh(nonce, high);
  if (used.includes(nonce)) return REFUSALS.duplicateNonce(nonce);
  if (used.length < MAX_NONCES) return null;
  const lowest = used[0] ?? high;
  return nonce < lowest ? REFUSALS.nonceTooLow(nonce, lowest) : null;
}
