import type { Address, Market, OpenOrder } from '../../core/types.js';
import { userOrderFills, type UserFill } from '../../ledger/views/reads.js';
import type { Db } from '../../ledger/types.js';
import type { Gateway } from '../orders/engine.js';
import type { GatewayEvent, OrderChange } from '../orders/events.js';
import { frontendRow, orderHistoryOf, orderRow } from '../orders/info/orders.js';
import { mergedFills, mergedPage, userFillJson } from '../orders/info/fills.js';
import { MAX_USER_FILLS } from '../orders/limits.js';
import type { GatewayLogger } from '../orders/types.js';
import { channelFrame, type EventFrame, type UpdateListener } from './send-queue.js';
import { createFirstReads, type OnRead } from './first-reads.js';
import { createLedgerFeed } from './ledger-feed.js';
import type { Subscription } from './subscription.js';

/** Order updates and fills by user, in the order in which they became durable, each event serialised once. */
export interface UpdateFeed {
  /** Sends every later update. For fills it first sends the latest ones; then each later one exactly once. */
  subscribe(subscription: UserSubscription, listener: UpdateListener, onRead?: OnRead): void;
  unsubscribe(subscription: UserSubscription, listener: UpdateListener): void;
  onEvent(event: GatewayEvent): void;
  /** Number of the newest event. */
  lastSeq(): number;
  /** Takes the next number, for an event of another feed. */
  nextSeq(): number;
}

interface UpdateDeps {
  gateway: Pick<Gateway, 'markets' | 'order' | 'ordersOf' | 'generation'>;
  db: Db;
  clock: () => number;
  logger: GatewayLogger;
}

/** A subscription to one user's updates. */
type UserSubscription = Extract<Subscription, { kind: 'user' }>;

/** Newest generation that a subscription to fills was sent; null while the snapshot is being read. */
interface FillCursor {
  subscription: UserSubscription;
  listener: UpdateListener;
  upTo: number | null;
  /** Events that came meanwhile. */
  waiting: { generation: number; event: EventFrame }[];
}

/** What a subscription to the history of orders waits for: its first frame; null once that was sent. */
interface HistoryCursor {
  listener: UpdateListener;
  waiting: EventFrame[] | null;
}

/** Most fills of one maker read at a time; a generation may have more. */
const PAGE = 1_000;

export function createUpdateFeed(deps: UpdateDeps): UpdateFeed {
  const { gateway, db, clock, logger } = deps;
  const orderListeners = new Map<Address, Set<UpdateListener>>();
  const fillListeners = new Map<Address, Set<FillCursor>>();
  const historyListeners = new Map<Address, Set<HistoryCursor>>();
  const firstReads = createFirstReads();
  const ledger = createLedgerFeed({ ...deps, firstReads }, () => (seq += 1));
  const jobs: (() => void | Promise<void>)[] = [];
  let working = false;
  let seq = 0;

  const eventOf = (frame: Buffer): EventFrame => ({ frame, seq: (seq += 1), timeMs: clock() });

  /** Jobs run one after the other, so that updates keep the order of events; without a running job a job runs at once. */
  function enqueue(job: () => void | Promise<void>): void {
    jobs.push(job);
    if (!working) void work();
  }

  async function work(): Promise<void> {
    working = true;
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
      try {
        const running = job();
        if (running !== undefined) await running;
      } catch (error) {
        logger.error({ err: error }, 'an update could not be told to its subscribers');
      }
    }
    working = false;
  }

  function publishOrders(changes: readonly OrderChange[], fillMs: ReadonlyMap<number, number>): void {
    for (const [user, own] of Map.groupBy(changes, ({ known }) => known.order.maker)) {
      const rows = (rowOf: (markets: readonly Market[], order: OpenOrder) => object): object[] =>
        own.map(({ known, timeMs }) => ({
          order: rowOf(gateway.markets(), known.order),
          status: known.state,
          statusTimestamp: timeMs ?? fillMs.get(known.order.oid) ?? clock(),
        }));
      const listeners = orderListeners.get(user);
      if (listeners !== undefined) {
        const event = eventOf(channelFrame('orderUpdates', rows(orderRow)));
        for (const { queue } of listeners) queue.event(event);
      }
      const cursors = historyListeners.get(user);
      if (cursors === undefined) continue;
      const event = eventOf(channelFrame('userHistoricalOrders', { user, orderHistory: rows(frontendRow) }));
      for (const { listener, waiting } of cursors) {
        if (waiting === null) listener.queue.event(event);
        else waiting.push(event);
      }
    }
  }

  /** Changes during the read are sent after it, and may be in it already; the newest status of an order counts. */
  async function sendHistory(user: Address, cursor: HistoryCursor, onRead: OnRead): Promise<void> {
    try {
      const orderHistory = await orderHistoryOf(user, { gateway, db });
      onRead(orderHistory);
      if (historyListeners.get(user)?.has(cursor) !== true) return;
      const { queue } = cursor.listener;
      queue.reply(channelFrame('userHistoricalOrders', { isSnapshot: true, user, orderHistory }));
      cursor.waiting?.forEach((event) => queue.event(event));
      cursor.waiting = null;
    } catch (error) {
      logger.error({ err: error, user }, 'orders could not be read for a subscriber');
      cursor.listener.lost();
    }
  }

  async function publishGenerations(event: Extract<GatewayEvent, { type: 'generations' }>): Promise<void> {
    const heard = [orderListeners, fillListeners, historyListeners];
    const users = [...event.makers].filter((maker) => heard.some((listeners) => listeners.has(maker)));
    for (const user of users) {
      try {
        const fills = await readFills(user, event.from - 1, event.to);
        publishFills(user, fills);
        const own = event.changes.filter(({ known }) => known.order.maker === user);
        publishOrders(own, new Map(fills.map((fill) => [fill.oid, fill.timestampMs])));
      } catch (error) {
        logger.error({ err: error, user }, 'fills could not be read for their subscribers, who are disconnected');
        drop(user);
      }
    }
  }

  /** Fills of the generations, oldest first. */
  async function readFills(user: Address, after: number, upTo: number): Promise<UserFill[]> {
    const fills: UserFill[] = [];
    for (;;) {
      const page = await userOrderFills(db.reads, user, PAGE, { after, upTo, skip: fills.length });
      fills.push(...page);
      if (page.length < PAGE) return fills.reverse();
    }
  }

  function publishFills(user: Address, fills: readonly UserFill[]): void {
    const cursors = fillListeners.get(user);
    if (cursors === undefined) return;
    for (const [generation, group] of Map.groupBy(fills, (fill) => fill.generation)) {
      const events = new Map<string, EventFrame>();
      for (const cursor of cursors) {
        const { type, aggregated } = cursor.subscription;
        const name = `${type}:${aggregated}`;
        const event = events.get(name) ?? eventOf(fillsFrame(cursor.subscription, group));
        events.set(name, event);
        if (cursor.upTo === null) cursor.waiting.push({ generation, event });
        else if (generation > cursor.upTo) cursor.listener.queue.event(event);
      }
    }
  }

  function fillsFrame({ type, user, aggregated }: UserSubscription, group: readonly UserFill[]): Buffer {
    const fills = (aggregated ? mergedFills(group) : group).map((fill) => userFillJson(fill, gateway));
    return type === 'userEvents' ? channelFrame('user', { fills }) : channelFrame('userFills', { user, fills });
  }

  /** Reads what is durable and applied by now; later generations come as events. */
  async function sendSnapshot(cursor: FillCursor, onRead: OnRead): Promise<void> {
    const { listener } = cursor;
    const { user, aggregated } = cursor.subscription;
    const upTo = gateway.generation();
    try {
      const rows = await userOrderFills(db.reads, user, MAX_USER_FILLS, { after: 0, upTo, skip: 0 });
      onRead(rows);
      if (fillListeners.get(user)?.has(cursor) !== true) return;
      const fills = (aggregated ? mergedPage(rows) : rows).map((fill) => userFillJson(fill, gateway));
      listener.queue.reply(channelFrame('userFills', { isSnapshot: true, user, fills }));
    } catch (error) {
      logger.error({ err: error, user }, 'a snapshot of fills could not be read');
      listener.lost();
      return;
    }
    cursor.upTo = upTo;
    for (const { generation, event } of cursor.waiting.splice(0)) {
      if (generation > upTo) listener.queue.event(event);
    }
  }

  function drop(user: Address): void {
    const listeners = [
      ...(orderListeners.get(user) ?? []),
      ...[...(fillListeners.get(user) ?? [])].map(({ listener }) => listener),
      ...[...(historyListeners.get(user) ?? [])].map(({ listener }) => listener),
    ];
    new Set(listeners).forEach((listener) => listener.lost());
  }

  function beginOrders(user: Address, listener: UpdateListener): void {
    orderListeners.set(user, (orderListeners.get(user) ?? new Set<UpdateListener>()).add(listener));
  }

  function beginHistory(user: Address, listener: UpdateListener, onRead: OnRead): void {
    const cursor: HistoryCursor = { listener, waiting: [] };
    historyListeners.set(user, (historyListeners.get(user) ?? new Set<HistoryCursor>()).add(cursor));
    firstReads.add(listener, cursor, () => sendHistory(user, cursor, onRead));
  }

  /** Events begin with the next one; of fills the latest are sent first. */
  function beginFills(subscription: UserSubscription, listener: UpdateListener, onRead: OnRead): void {
    const { type, user } = subscription;
    const upTo = type === 'userEvents' ? gateway.generation() : null;
    const cursor: FillCursor = { subscription, listener, upTo, waiting: [] };
    fillListeners.set(user, (fillListeners.get(user) ?? new Set<FillCursor>()).add(cursor));
    if (upTo === null) firstReads.add(listener, cursor, () => sendSnapshot(cursor, onRead));
  }

  /** Takes cursors out, and what they wait for. */
  function forget<T extends FillCursor | HistoryCursor>(
    sets: Map<Address, Set<T>>,
    user: Address,
    isMeant: (cursor: T) => boolean,
  ): void {
    for (const cursor of sets.get(user) ?? []) if (isMeant(cursor)) firstReads.drop(cursor.listener, cursor);
    without(sets, user, isMeant);
  }

  return {
    subscribe(subscription, listener, onRead = () => undefined) {
      const { type, user } = subscription;
      switch (type) {
        case 'orderUpdates':
          return beginOrders(user, listener);
        case 'userHistoricalOrders':
          return beginHistory(user, listener, onRead);
        case 'userNonFundingLedgerUpdates':
          return ledger.subscribe(user, listener, onRead);
        case 'userFundings':
          return listener.queue.reply(channelFrame(type, { isSnapshot: true, user, fundings: [] }));
        case 'notification':
          // Nothing to send.
          return;
        case 'userFills':
        case 'userEvents':
          beginFills(subscription, listener, onRead);
      }
    },
    unsubscribe(subscription, listener) {
      const { type, user, key } = subscription;
      if (type === 'userNonFundingLedgerUpdates') return ledger.unsubscribe(user, listener);
      if (type === 'orderUpdates') return without(orderListeners, user, (one) => one === listener);
      if (type === 'userHistoricalOrders')
        return forget(historyListeners, user, (cursor) => cursor.listener === listener);
      forget(fillListeners, user, (cursor) => cursor.listener === listener && cursor.subscription.key === key);
    },
    onEvent(event) {
      if (event.type === 'generations') {
        enqueue(() => publishGenerations(event));
        ledger.onGenerations(event);
      } else if (event.changes.length > 0) enqueue(() => publishOrders(event.changes, new Map()));
    },
    lastSeq: () => seq,
    nextSeq: () => (seq += 1),
  };
}

/** Takes out of a user's set what is meant, and the user when nothing is left. */
function without<T>(sets: Map<Address, Set<T>>, user: Address, isMeant: (one: T) => boolean): void {
  const own = sets.get(user);
  for (const one of own ?? []) if (isMeant(one)) own?.delete(one);
  if (own?.size === 0) sets.delete(user);
}
