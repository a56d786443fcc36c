/** What the gateway keeps of its logs depends on how many orders are open and remembered, not on how long the logs are. */
import { expect } from 'chai';
import type { OrderEffect, OrderLogRow } from '../../../core/types.js';
import { migrate, openDb } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';
import { MAX_CLOSED_ORDERS } from '../../../server/orders/limits.js';
import { loadState, type GatewayState } from '../../../server/orders/state.js';
import { liveBytes } from '../../support/worlds/garbage.js';
import { addressOf, seed } from '../../support/gateway.js';

const MAKERS = [1, 2, 3].map(addressOf);
/** Orders that each maker replaces per round. */
const LADDER = 20;
/** The history forgets by the thousand: after so many rounds it remembers as many orders as before. */
const PERIOD = MAX_CLOSED_ORDERS / 2 / LADDER + 1;
const ROUNDS = 48 * PERIOD;
/** Less than an entry of a map takes; the sizes of tables, and compiled code, leave some 1.5 MB open, however many orders there were. */
const MAX_BYTES_PER_ORDER = 20;

describe('memory of the gateway', function () {
  this.timeout(120_000);
  let db: Db;

  before(async () => {
    db = await openDb('sqlite::memory:');
    await migrate(db);
    await seed(db);
  });
  after(() => db.close());

  /** Makers that cancel all their orders and place others, for ever. */
  function* requotes(): Generator<OrderLogRow> {
    let [oid, orderSeq] = [0, 0];
    const resting = new Map<string, number[]>();
    for (;;) {
      for (const maker of MAKERS) {
        const closes = (resting.get(maker) ?? []).map((one): OrderEffect => ({
          type: 'close',
          oid: one,
          reason: 'canceled',
        }));
        const opens = Array.from({ length: LADDER }, (_, i): Extract<OrderEffect, { type: 'open' }> => {
          oid += 1;
          const [side, priceTicks] = i % 2 === 0 ? ['ask' as const, 300_000n] : ['bid' as const, 299_000n];
          const cloid = `0x${oid.toString(16).padStart(32, '0')}`;
          return { type: 'open', oid, market: i % 4 < 2 ? 0 : 1, side, priceTicks, sizeLots: 10n, tif: 'Gtc', cloid };
        });
        resting.set(
          maker,
          opens.map((one) => one.oid),
        );
        orderSeq += 1;
        const head = { orderSeq, timeMs: 1_700_000_000_000 + orderSeq, maker, signer: maker, nonce: orderSeq };
        yield { ...head, kind: 'batch', effects: [...closes, ...opens] };
      }
    }
  }

  function requote(state: GatewayState, rows: Generator<OrderLogRow>, rounds: number): void {
    for (let i = 0; i < rounds * MAKERS.length; i++) {
      const row = rows.next().value as OrderLogRow;
      state.commit([row]);
      const fills = row.effects.flatMap((effect) =>
        effect.type === 'open' && effect.oid % 7 === 0 ? [{ ...effect, maker: row.maker, baseUnits: 10n ** 14n }] : [],
      );
      state.committed().book.applyFills(fills);
      state.history.applyFills(fills);
    }
    state.rollback();
  }

  it('is the same after more orders of the same makers', async () => {
    const state = await loadState(db);
    const rows = requotes();
    requote(state, rows, 6 * PERIOD);
    const before = liveBytes();
    requote(state, rows, ROUNDS);
    const perOrder = (liveBytes() - before) / (ROUNDS * LADDER * MAKERS.length);
    for (const maker of MAKERS) {
      expect(state.committed().book.openOrders(maker)).to.have.length(LADDER);
      expect(state.history.ofMaker(maker).length).to.be.within(MAX_CLOSED_ORDERS, 1.5 * MAX_CLOSED_ORDERS + 2 * LADDER);
    }
    expect(perOrder).to.be.below(MAX_BYTES_PER_ORDER);
  });
});
