/** Signed orders that may still be executed: those that the server lists, and those of which no answer said what became of them. */
import type { Answer, ReadClient } from '../../../sdk/src/index.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import { AFTER_END_SEC } from '../../../sdk/src/taker.js';
import { createStoredList, isText, isWhole } from '../wallet/stored.js';
import type { StoredList } from '../wallet/stored.js';

/** An order that was submitted, or may have been, of which this browser does not know the end. */
export interface UnsureOrder {
  clientOrderId: string;
  account: string;
  /** The deployment's id. */
  deployment: string;
  /** The token that is sold, by its address. */
  token: string;
  /** Last second at which it may be executed. */
  validToSec: number;
  sinceMs: number;
}

/** Whatever was on its way to the server has been stored by then, and whoever answers has read it. */
const LISTED_MS = 600_000;
/** Most that the server lists at once; no others are looked at. */
const LISTED = 50;
const MOST_KEPT = 20;

function unsureIn(value: unknown): UnsureOrder | null {
  const { clientOrderId, account, deployment, token, validToSec, sinceMs } = Object(value) as Record<string, unknown>;
  if (!isText(clientOrderId, /^[\w:-]{1,128}$/) || !isText(deployment, /^.{1,100}$/)) return null;
  if (!isText(account, /^0x[0-9a-f]{40}$/) || !isText(token, /^0x[0-9a-f]{40}$/)) return null;
  if (!isWhole(validToSec) || !isWhole(sinceMs)) return null;
  return { clientOrderId, account, deployment, token, validToSec, sinceMs };
}

export const createUnsureOrders = (area: Parameters<typeof createStoredList>[0]): StoredList<UnsureOrder> =>
  createStoredList(area, {
    key: 'curvebook.orders',
    entryIn: unsureIn,
    idOf: ({ clientOrderId }) => clientOrderId,
    most: MOST_KEPT,
  });

/** Those of this browser, the newest first. */
export const unsureOrders = createUnsureOrders(() => localStorage);

interface Selling {
  account: string;
  deployment: string;
  token: string;
}

/** Keeps the order that may still be executed in spite of an error; any other error names none. */
export function keepUnsure(orders: StoredList<UnsureOrder>, error: unknown, selling: Selling, nowMs: number): void {
  if (!(error instanceof CurvebookError) || error.order === null) return;
  const { clientOrderId, validToSec } = error.order;
  const { deployment } = selling;
  const [account, token] = [selling.account.toLowerCase(), selling.token.toLowerCase()];
  orders.keep([{ clientOrderId, account, deployment, token, validToSec, sinceMs: nowMs }, ...orders.all()]);
}

/** An order that waits. */
export interface WaitingOrder {
  /** By which it is found: its own id, or the client order id where it is not known whether there is an order. */
  id: string;
  /** Base units of what it sells; null where it is not known whether there is an order. */
  sellUnits: bigint | null;
  untilSec: number;
}

type Listed = Answer<'/api/v1/orders'>;

/**
 * An order of the account that sells the token and may still be executed, if there is one among its newest 50 or among those of which this browser does
 * not know the end; the latter are forgotten once the answer or the time tells it.
 */
export async function waitingOrder(
  read: Pick<ReadClient, 'get'>,
  unsure: StoredList<UnsureOrder>,
  { account, deployment, token }: Selling,
  nowMs: () => number = Date.now,
): Promise<WaitingOrder | null> {
  const page = await read.get('/api/v1/orders', { query: { owner: account, limit: `${LISTED}` } });
  const isOwn = (one: UnsureOrder): boolean => one.account === account.toLowerCase() && one.deployment === deployment;
  unsure.keep(unsure.all().filter((one) => !isOwn(one) || isUnsure(one, page, nowMs())));
  const listed = page.orders.find(({ status, sellToken }) => status === 'pending' && isSame(sellToken, token));
  if (listed !== undefined)
    return { id: listed.orderId, sellUnits: BigInt(listed.sellAmount), untilSec: listed.validTo };
  const kept = unsure.all().find((one) => isOwn(one) && isSame(one.token, token));
  if (kept === undefined) return null;
  return { id: kept.clientOrderId, sellUnits: null, untilSec: kept.validToSec + AFTER_END_SEC };
}

const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Whether the order may still be executed, and the server's list does not tell of it. */
function isUnsure({ clientOrderId, validToSec, sinceMs }: UnsureOrder, { orders, next }: Listed, nowMs: number) {
  if (nowMs > (validToSec + AFTER_END_SEC) * 1_000) return false;
  const listed = orders.find((one) => one.clientOrderId === clientOrderId);
  if (listed !== undefined) return false;
  // A list of all orders that lacks it after so long says that there is none.
  return next !== null || nowMs < sinceMs + LISTED_MS;
}
