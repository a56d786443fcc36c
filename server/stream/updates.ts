import type { Address } from '../../core/types.js';
import { userOrderFills, type UserFill } from '../../ledger/views/reads.js';
import type { Db } from '../../ledger/types.js';
import type { Gateway } from '../orders/engine.js';
import type { GatewayEvent, OrderChange } from '../orders/events.js';
import { orderRow } from '../orders/info/orders.js';
import { userFillJson } from '../orders/info/fills.js';
import { MAX_USER_FILLS } from '../orders/limits.js';
import type { GatewayLogger } from '../orders/types.js';
import { channelFrame, type EventFrame, type SendQueue } from './send-queue.js';

/** A connection as the feed of a user's updates sees it. */
export interface UpdateListener {
  queue: SendQueue;
  /** Ends the connection, because updates of it were lost. */
  lost(): void;
}

/** Order updates and fills by user, in the order in which they became durable, each event serialised once. */
export interface UpdateFeed {
  /** Every later update. Of fills the latest ones are sent first, then every later one, none twice and none left out. */
  subscribe(type: 'orderUpdates' | 'userFills', user: Address, listener: UpdateListener): void;
  unsubscribe(type: 'orderUpdates' | 'userFills', user: Address, listener: UpdateListener): void;
  onEvent(event: GatewayEvent): void;
  /** Number of the newest event. */
  lastSeq(): number;
}

export interface UpdateDeps {
  gateway: Pick<Gateway, 'markets' | 'order' | 'generation'>;
  db: Db;
  clock: () => number;
  logger: GatewayLogger;
}

/** What a subscription to fills has been sent: all up to a generation; null while the snapshot is being read. */
interface FillCursor {
  upTo: number | null;
  /** Events that came meanwhile. */
  waiting: { generation: number; event: EventFrame }[];
}

/** Most fills of one maker read at a time; a generation may have more. */
const PAGE = 1_000;

export function createUpdateFeed(deps: UpdateDeps): UpdateFeed {
  const { gateway, db, clock, logger } = deps;
  const orderListeners = new Map<Address, Set<UpdateListener>>();
  const fillListeners = new Map<Address, Map<UpdateListener, FillCursor>>();
  const jobs: (() => void | Promise<void>)[] = [];
  let working = false;
  let seq = 0;

  const eventOf = (frame: Buffer): EventFrame => ({ frame, seq: (seq += 1), timeMs: clock() });

  /** Jobs run one after the other, so that updates keep the order of what they tell; a job that needn't wait runs at once. */
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
      const listeners = orderListeners.get(user);
      if (listeners === undefined) continue;
      const data = own.map(({ known, timeMs }) => ({
        order: orderRow(gateway.markets(), known.order),
        status: known.state,
        statusTimestamp: timeMs ?? fillMs.get(known.order.oid) ?? clock(),
      }));
      const event = eventOf(channelFrame('orderUpdates', data));
      for (const { queue } of listeners) queue.event(event);
    }
  }

  async function publishGenerations(event: Extract<GatewayEvent, { type: 'generations' }>): Promise<void> {
    const users = [...event.makers].filter((maker) => orderListeners.has(maker) || fillListeners.has(maker));
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
      const data = { user, fills: group.map((fill) => userFillJson(fill, gateway)) };
      const event = eventOf(channelFrame('userFills', data));
      for (const [listener, cursor] of cursors) {
        if (cursor.upTo === null) cursor.waiting.push({ generation, event });
        else if (generation > cursor.upTo) listener.queue.event(event);
      }
    }
  }

  /** Reads what is durable and applied by now; later generations come as events. */
  async function sendSnapshot(user: Address, listener: UpdateListener, cursor: FillCursor): Promise<void> {
    const upTo = gateway.generation();
    try {
      const rows = await userOrderFills(db.reads, user, MAX_USER_FILLS, { after: 0, upTo, skip: 0 });
      if (fillListeners.get(user)?.get(listener) !== cursor) return;
      const fills = rows.map((fill) => userFillJson(fill, gateway));
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
    const listeners = [...(orderListeners.get(user) ?? []), ...(fillListeners.get(user)?.keys() ?? [])];
    new Set(listeners).forEach((listener) => listener.lost());
  }

  return {
    subscribe(type, user, listener) {
      if (type === 'orderUpdates') {
        orderListeners.set(user, (orderListeners.get(user) ?? new Set<UpdateListener>()).add(listener));
        return;
      }
      const cursor: FillCursor = { upTo: null, waiting: [] };
      const cursors = fillListeners.get(user) ?? new Map<UpdateListener, FillCursor>();
      fillListeners.set(user, cursors.set(listener, cursor));
      void sendSnapshot(user, listener, cursor);
    },
    unsubscribe(type, user, listener) {
      const listeners = type === 'orderUpdates' ? orderListeners : fillListeners;
      listeners.get(user)?.delete(listener);
      if (listeners.get(user)?.size === 0) listeners.delete(user);
    },
    onEvent(event) {
      if (event.type === 'generations') enqueue(() => publishGenerations(event));
      else if (event.changes.length > 0) enqueue(() => publishOrders(event.changes, new Map()));
    },
    lastSeq: () => seq,
  };
}
