/** Batches of order actions, nonces, and what is remembered of orders. */
import { expect } from 'chai';
import { createHistory } from '../../../server/orders/history.js';
import { refuseNonce } from '../../../server/orders/plan.js';
import { USDC, WETH_USDC } from '../../support/markets.js';
import {
  ALICE,
  BOB,
  CLOID,
  markets,
  createVenue,
  orders,
  statusesOf,
  errorOf,
} from '../../support/api/order-entries.js';

describe('order actions: batches', () => {
  it('judges entries in order, each on its own', () => {
    const venue = createVenue();
    const outcome = venue.act(
      ALICE,
      orders(
        { c: CLOID },
        { p: '2500.005' },
        { b: false, p: '2500' },
        { c: CLOID },
        { b: false, p: '2501' },
        { s: '11.0001' },
      ),
    );
    const statuses = statusesOf(outcome);
    expect(statuses[0]).to.deep.equal({ resting: { oid: 1, cloid: CLOID } });
    expect(statuses[1])
      .to.have.property('error')
      .that.matches(/^off_tick/);
    expect(statuses[2])
      .to.have.property('error')
      .that.matches(/^post_only.*bbo was 2500@0\./);
    expect(statuses[3])
      .to.have.property('error')
      .that.matches(/^duplicate_cloid/);
    expect(statuses[4]).to.deep.equal({ resting: { oid: 2 } });
    expect(statuses[5])
      .to.have.property('error')
      .that.matches(/^inventory_exceeded/);
    expect(venue.book.openOrders(ALICE).map((order) => order.oid)).to.deep.equal([1, 2]);
  });

  it('holds the caps', () => {
    const venue = createVenue();
    venue.available.set(USDC.address, 10n ** 30n);
    const many = (count: number): object => orders(...Array.from({ length: count }, () => ({ s: '0.0001' })));
    expect(venue.act(ALICE, many(1001)).reply).to.deep.equal({
      status: 'err',
      response: 'batch_too_large: Too many orders in batch',
    });
    expect(
      statusesOf(venue.act(ALICE, many(999))).every((status) => typeof status === 'object' && 'resting' in status),
    ).to.equal(true);
    const last = statusesOf(venue.act(ALICE, many(2)));
    expect(last[0]).to.deep.equal({ resting: { oid: 1000 } });
    expect(last[1]).to.deep.equal({ error: 'too_many_open_orders: Too many open orders. asset=10000' });
    expect(errorOf(venue, { s: '0.0001' }, BOB)).to.equal(null);
    const repeated = <T>(entry: T): T[] => Array.from({ length: 1001 }, () => entry);
    const cloid = `0x${'1'.repeat(32)}`;
    for (const action of [
      { type: 'cancel', cancels: repeated({ a: 10000, o: 1 }) },
      { type: 'cancelByCloid', cancels: repeated({ asset: 10000, cloid }) },
      { type: 'batchModify', modifies: repeated({ oid: 1, order: (many(1) as { orders: object[] }).orders[0] }) },
    ]) {
      expect(venue.act(ALICE, action).reply).to.deep.include({ status: 'err' });
      expect(JSON.stringify(venue.act(ALICE, action).reply)).to.contain('batch_too_large');
    }
    expect(venue.book.openOrders(ALICE)).to.have.length(1000);
  });

  it('refuses builder fees, groupings and empty batches as a whole, and accepts a builder without a fee', () => {
    const venue = createVenue();
    const b = `0x${'c'.repeat(40)}`;
    const refusals: [object, string][] = [
      [{ ...orders({}), builder: { b, f: 10 } }, 'builder_fee_unsupported: Builder fee has not been approved.'],
      [{ ...orders({}), grouping: 'normalTpsl' }, 'grouping_unsupported: Grouped orders are not supported'],
      [{ ...orders({}), grouping: { p: 5 } }, 'grouping_unsupported: Grouped orders are not supported'],
      [orders(), 'empty_batch: Orders are empty.'],
      [{ type: 'cancel', cancels: [] }, 'empty_batch: Orders are empty.'],
    ];
    for (const [action, response] of refusals) {
      expect(venue.act(ALICE, action).reply).to.deep.equal({ status: 'err', response });
    }
    expect(venue.book.lastOid()).to.equal(0);
    expect(statusesOf(venue.act(ALICE, { ...orders({}), builder: { b, f: 0 } }))).to.deep.equal([
      { resting: { oid: 1 } },
    ]);
    expect(statusesOf(venue.act(ALICE, { ...orders({}), brokerCode: 7 }))).to.deep.equal([{ resting: { oid: 2 } }]);
  });

  it('cancels own orders of the named market, each once', () => {
    const venue = createVenue();
    venue.act(ALICE, orders({ s: '1' }, { s: '1', c: CLOID }));
    venue.act(BOB, orders({ s: '1' }));
    const missing = { error: 'order_not_found: Order was never placed, already canceled, or filled. asset=10000' };
    const cancels = [1, 1, 3, 99].map((o) => ({ a: 10000, o }));
    expect(statusesOf(venue.act(ALICE, { type: 'cancel', cancels }))).to.deep.equal([
      'success',
      missing,
      missing,
      missing,
    ]);
    expect(statusesOf(venue.act(ALICE, { type: 'cancel', cancels: [{ a: 10001, o: 2 }] }))).to.deep.equal([
      { error: 'order_not_found: Order was never placed, already canceled, or filled. asset=10001' },
    ]);
    const byCloid = venue.act(ALICE, { type: 'cancelByCloid', cancels: [{ asset: 10000, cloid: CLOID }], f: true });
    expect(byCloid.reply).to.deep.equal({
      status: 'ok',
      response: { type: 'cancel', data: { statuses: ['success'] } },
    });
    expect(venue.book.openOrders(ALICE)).to.deep.equal([]);
    expect(venue.book.openOrders(BOB)).to.have.length(1);
  });

  it('names the type of an action that it does not support', () => {
    const venue = createVenue();
    expect(venue.act(ALICE, { type: 'evmUserModify', usingBigBlocks: true }).reply).to.deep.equal({
      status: 'err',
      response: 'unsupported_action: evmUserModify is not supported',
    });
  });
});

describe('nonces', () => {
  const nowMs = 1_700_000_000_000;
  const day = 86_400_000;

  it('lie strictly inside the window', () => {
    expect(refuseNonce(nowMs - 2 * day, [], nowMs)).to.equal(
      `nonce_too_low: Invalid nonce: nonce too low ${nowMs - 2 * day} < ${nowMs - 2 * day}`,
    );
    expect(refuseNonce(nowMs - 2 * day + 1, [], nowMs)).to.equal(null);
    expect(refuseNonce(nowMs + day - 1, [], nowMs)).to.equal(null);
    expect(refuseNonce(nowMs + day, [], nowMs)).to.match(/^nonce_too_high: Invalid nonce: nonce too high \d+ > \d+$/);
  });

  it('may come out of order but never twice, and not below a full set', () => {
    expect(refuseNonce(nowMs - 5, [nowMs], nowMs)).to.equal(null);
    expect(refuseNonce(nowMs, [nowMs], nowMs)).to.equal(`duplicate_nonce: Invalid nonce: duplicate nonce ${nowMs}`);
    const full = Array.from({ length: 100 }, (_, index) => nowMs + 2 * index);
    expect(refuseNonce(nowMs + 1, full, nowMs)).to.equal(null);
    expect(refuseNonce(nowMs - 1, full, nowMs)).to.match(/^nonce_too_low/);
    expect(refuseNonce(nowMs - 1, full.slice(1), nowMs)).to.equal(null);
  });
});

describe('order history', () => {
  const open = (oid: number, cloid: string | null = null) => ({
    type: 'open' as const,
    oid,
    market: 0,
    side: 'bid' as const,
    priceTicks: 100n,
    sizeLots: 2n,
    tif: 'Gtc' as const,
    cloid,
  });
  const row = (orderSeq: number, effects: Parameters<ReturnType<typeof createHistory>['apply']>[0]['effects']) => ({
    orderSeq,
    timeMs: orderSeq * 10,
    maker: ALICE,
    signer: ALICE,
    nonce: orderSeq,
    kind: 'order',
    effects,
  });
  const fill = (oid: number, lots: bigint) => ({
    oid,
    maker: ALICE,
    market: 0,
    side: 'bid' as const,
    priceTicks: 100n,
    baseUnits: lots * WETH_USDC.lotUnits,
  });

  it('tells what became of an order, however fills and rows interleave', () => {
    const rows = [
      row(1, [open(1), open(2), open(3), open(4)]),
      row(2, [{ type: 'close', oid: 2, reason: 'inventory' }]),
    ];
    // The third is cancelled, and then filled whole by a curve that still had it.
    rows.push(row(3, [{ type: 'close', oid: 3, reason: 'canceled' }]));
    const fills = [fill(1, 2n), fill(2, 1n), fill(3, 2n)];
    const forwards = createHistory(markets);
    rows.forEach((each) => forwards.apply(each));
    forwards.applyFills(fills);
    const backwards = createHistory(markets);
    backwards.applyFills(fills);
    rows.forEach((each) => backwards.apply(each));
    for (const history of [forwards, backwards]) {
      expect(history.order(1)).to.include({ state: 'filled', stateMs: null });
      expect(history.order(2)).to.include({ state: 'canceled', stateMs: 20 });
      expect(history.order(2)?.order.filledUnits).to.equal(WETH_USDC.lotUnits);
      expect(history.order(3)).to.include({ state: 'filled', stateMs: null });
      expect(history.order(4)).to.include({ state: 'open', stateMs: 10 });
      expect(history.order(5)).to.equal(undefined);
    }
  });

  it('finds the newest order of a client order id and forgets the oldest closed ones', () => {
    const history = createHistory(markets, 4);
    for (let oid = 1; oid <= 20; oid += 1) {
      history.apply(row(oid, [open(oid, CLOID), { type: 'close', oid, reason: 'canceled' }]));
      expect(history.orderByCloid(ALICE, CLOID)?.order.oid).to.equal(oid);
    }
    history.apply(row(21, [open(21)]));
    const kept = Array.from({ length: 21 }, (_, index) => index + 1).filter((oid) => history.order(oid) !== undefined);
    expect(kept.length).to.be.within(5, 7);
    expect(kept.at(-1)).to.equal(21);
    expect(history.orderByCloid(BOB, CLOID)).to.equal(undefined);
  });
});
