import { expect } from 'chai';
import { createAgents } from '../../../core/book/agents.js';
import type { Book } from '../../../core/book.js';
import { createBook } from '../../../core/book/create-book.js';
import type { Address } from '../../../core/types.js';
import { readAction } from '../../../core/wire/action.js';
import { judgeAction } from '../../../server/orders/actions/registry.js';
import { createHistory } from '../../../server/orders/history.js';
import { refuseNonce } from '../../../server/orders/plan.js';
import type { ActionOutcome, EntryStatus } from '../../../server/orders/types.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const ALICE: Address = `0x${'a'.repeat(40)}`;
const BOB: Address = `0x${'b'.repeat(40)}`;
const CLOID = '0x1234567890abcdef1234567890abcdef';
const markets = [WETH_USDC, WETH_DAI];

interface Venue {
  book: Book;
  available: Map<string, bigint>;
  reason: string | null;
  /** Least value of an order, in quote units. */
  minUnits: bigint;
  nowMs: number;
  quarantined: Set<Address>;
  /** Judges an action and applies what it does. */
  act(maker: Address, action: object): ActionOutcome;
}

function createVenue(): Venue {
  const book = createBook(markets);
  const venue: Venue = {
    book,
    available: new Map([
      [WETH.address, 10n * 10n ** 18n],
      [USDC.address, 30_000n * 10n ** 6n],
    ]),
    reason: null,
    quarantined: new Set(),
    minUnits: 0n,
    nowMs: 1,
    act: (maker, action) => {
      const outcome = judgeAction(readAction(action), maker, {
        book,
        markets,
        available: (_maker, token) => venue.available.get(token) ?? 0n,
        minOrderUnits: () => venue.minUnits,
        readiness: { ready: venue.reason === null, reason: venue.reason },
        quarantined: venue.quarantined,
        delisted: new Set(),
        agents: createAgents(),
        isAccount: () => false,
        nowMs: venue.nowMs,
      });
      const row = {
        timeMs: venue.nowMs,
        maker,
        signer: maker,
        nonce: book.lastOrderSeq(),
        kind: 'x',
        effects: outcome.effects,
      };
      book.apply({ ...row, orderSeq: book.lastOrderSeq() + 1 });
      return outcome;
    },
  };
  return venue;
}

const entry = (change: object = {}): object => ({
  a: 10000,
  b: true,
  p: '2500',
  s: '1',
  r: false,
  t: { limit: { tif: 'Gtc' } },
  ...change,
});
const orders = (...changes: object[]): object => ({ type: 'order', orders: changes.map(entry), grouping: 'na' });

function statusesOf(outcome: ActionOutcome): EntryStatus[] {
  if (outcome.reply.status !== 'ok') throw new Error(outcome.reply.response);
  return outcome.reply.response.data?.statuses ?? [];
}

/** One order's error, or null when it rests. */
function errorOf(venue: Venue, change: object, maker = ALICE): string | null {
  const [status] = statusesOf(venue.act(maker, orders(change)));
  expect(Object.keys(status ?? {})).to.have.length(1);
  return typeof status === 'object' && 'error' in status ? status.error : null;
}

describe('order actions: one entry', () => {
  const cases: [string, object, string][] = [
    ['a price between ticks', { p: '2500.005' }, 'off_tick: Price must be divisible by tick size. asset=10000'],
    ['a size between lots', { s: '0.00001' }, 'off_lot: Order has invalid size.'],
    ['no size', { s: '0' }, 'zero_size: Order has zero size.'],
    ['no price', { p: '0' }, 'bad_price: Order has invalid price.'],
    ['a price beyond the grid', { p: '99999999.99' }, 'bad_price: Order has invalid price.'],
    ['reduce-only', { r: true }, 'reduce_only_unsupported: Reduce-only is invalid for spot trading.'],
    [
      'an immediate order',
      { t: { limit: { tif: 'Ioc' } } },
      'ioc_unsupported: Order could not immediately match against any resting orders. asset=10000',
    ],
    [
      'a market order',
      { t: { limit: { tif: 'FrontendMarket' } } },
      'ioc_unsupported: Order could not immediately match against any resting orders. asset=10000',
    ],
    [
      'a trigger',
      { t: { trigger: { isMarket: true, triggerPx: '1', tpsl: 'sl' } } },
      'trigger_unsupported: Trigger orders are not supported. asset=10000',
    ],
    ['a perpetual', { a: 1 }, 'unknown_asset: Unknown asset. asset=1'],
    ['a market that is not listed', { a: 10002 }, 'unknown_asset: Unknown asset. asset=10002'],
    ['more than the inventory', { s: '12.0001' }, 'inventory_exceeded: Insufficient spot balance asset=10000'],
  ];
  for (const [name, change, error] of cases) {
    it(`refuses ${name}`, () => {
      const venue = createVenue();
      expect(errorOf(venue, change)).to.equal(error);
      expect(venue.book.lastOid()).to.equal(0);
    });
  }

  it('refuses orders in markets of a token in quarantine and no others, and cancels there', () => {
    const venue = createVenue();
    expect(errorOf(venue, {})).to.equal(null);
    venue.quarantined.add(USDC.address);
    expect(errorOf(venue, {})).to.equal('market_quarantined: Asset is in quarantine. asset=10000');
    expect(errorOf(venue, { b: false, p: '2600', a: 10001 })).to.equal(null);
    const [modified] = statusesOf(
      venue.act(ALICE, { type: 'batchModify', modifies: [{ oid: 1, order: entry({ p: '2400' }) }] }),
    );
    expect(modified).to.deep.equal({ error: 'market_quarantined: Asset is in quarantine. asset=10000' });
    expect(statusesOf(venue.act(ALICE, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] }))).to.deep.equal(['success']);
  });

  it('accepts every multiple of the tick, whatever its significant figures', () => {
    const venue = createVenue();
    for (const p of ['2500.25', '0.01', '12345.67', '2500.10']) {
      expect(errorOf(venue, { p, s: '0.0001' }), p).to.equal(null);
    }
  });

  it('admits exactly the inventory, over all markets that pay the token', () => {
    const venue = createVenue();
    expect(errorOf(venue, { b: false, p: '2600', s: '6' })).to.equal(null);
    expect(errorOf(venue, { b: false, p: '2600', s: '4.0001', a: 10001 })).to.match(
      /^inventory_exceeded: .*asset=10001$/,
    );
    expect(errorOf(venue, { b: false, p: '2600', s: '4', a: 10001 })).to.equal(null);
    expect(errorOf(venue, { b: false, p: '2600', s: '0.0001' })).to.match(/^inventory_exceeded/);
    expect(errorOf(venue, { p: '2500', s: '12' })).to.equal(null);
    expect(errorOf(venue, { p: '0.01', s: '0.0001' })).to.match(/^inventory_exceeded/);
    venue.available.set(USDC.address, 30_000_000_001n);
    expect(errorOf(venue, { p: '0.01', s: '0.0001' })).to.equal(null);
  });

  it('refuses orders that meet the other side, own ones too, at an equal price too', () => {
    const venue = createVenue();
    expect(errorOf(venue, { b: false, p: '2501', s: '1' })).to.equal(null);
    const text = (bbo: string): string =>
      `post_only: Post only order would have immediately matched, bbo was ${bbo}. asset=10000`;
    expect(errorOf(venue, { p: '2501' }, BOB)).to.equal(text('0@2501'));
    expect(errorOf(venue, { p: '2499.5' }, BOB)).to.equal(null);
    expect(errorOf(venue, { p: '2600' })).to.equal(text('2499.5@2501'));
    expect(errorOf(venue, { b: false, p: '2499.5', t: { limit: { tif: 'Alo' } } })).to.equal(text('2499.5@2501'));
    expect(errorOf(venue, { p: '2600', a: 10001, s: '0' }, BOB)).to.match(/^zero_size/);
  });

  it('refuses what is worth less than the least of its market, in the words of the wire, and leaves what rests alone', () => {
    const venue = createVenue();
    expect(errorOf(venue, { s: '0.0001' })).to.equal(null);
    venue.minUnits = 10_500_000n;
    const text = 'below_min_value: Order must have minimum value of 10.5 USDC. asset=10000';
    expect(errorOf(venue, { s: '0.0041' })).to.equal(text);
    expect(errorOf(venue, { s: '0.0042' })).to.equal(null);
    expect(errorOf(venue, { b: false, p: '2625', s: '0.0039' })).to.equal(text);
    expect(errorOf(venue, { b: false, p: '2625', s: '0.0040' })).to.equal(null);
    // A replacement is an order like any other, also one that only makes the original smaller.
    const modify = (oid: number, s: string) => venue.act(ALICE, { type: 'modify', oid, order: entry({ s }) }).reply;
    expect(modify(2, '0.0041')).to.deep.equal({ status: 'err', response: text });
    expect(venue.book.openOrders(ALICE).map(({ oid }) => oid)).to.deep.equal([1, 2, 3]);
    expect(modify(1, '0.005').status).to.equal('ok');
    const [small, large] = statusesOf(venue.act(ALICE, orders({ s: '0.004' }, { s: '0.1' })));
    expect([small, large]).to.deep.equal([{ error: text }, { resting: { oid: 5 } }]);
  });

  it('lets nobody keep others away with what is too small to be worth a fill, or is in no curve', () => {
    const venue = createVenue();
    venue.minUnits = 10_000_000n;
    const taken = (oid: number, maker: Address, lots: bigint): void =>
      venue.book.applyFills([
        { oid, maker, market: 0, side: 'bid', priceTicks: 252_500n, baseUnits: lots * WETH_USDC.lotUnits },
      ]);
    // A bid at 1 % above the others' price, of which a fill leaves one lot.
    expect(errorOf(venue, { p: '2525', s: '0.01' })).to.equal(null);
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.match(/^post_only: .*bbo was 2525@0\. /);
    taken(1, ALICE, 99n);
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.equal(null);
    expect(errorOf(venue, { p: '2499' }, BOB)).to.equal(null);
    // What crosses is in no book that anybody sees, and the others are held apart as ever.
    expect(venue.book.openOrders(ALICE)).to.have.length(1);
    expect(venue.book.levels(0, 'bid')).to.deep.equal([{ priceTicks: 249_900n, lots: 10_000n, orders: 1 }]);
    expect([venue.book.bestTicks(0, 'bid'), venue.book.bestTicks(0, 'ask')]).to.deep.equal([249_900n, 250_000n]);
    expect(errorOf(venue, { p: '2525', s: '0.01' })).to.match(/^post_only: .*bbo was 2499@2500\. /);
    // A maker whose scheduled cancel is so near that no cut offers its orders defends nothing with them either.
    venue.act(BOB, { type: 'cancel', cancels: [2, 3].map((o) => ({ a: 10000, o })) });
    expect(errorOf(venue, { p: '2525', s: '0.01' })).to.equal(null);
    venue.act(ALICE, { type: 'scheduleCancel', time: 10_000 });
    venue.nowMs = 6_000;
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.match(/^post_only/);
    venue.nowMs = 6_001;
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.equal(null);
    // Moving it between two cuts brings nothing back before the orders were in a cut again.
    venue.act(ALICE, { type: 'scheduleCancel', time: 600_000 });
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.equal(null);
    venue.nowMs = 16_000;
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.equal(null);
    venue.nowMs = 16_001;
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.match(/^post_only/);
  });

  it('lets nobody keep others away with what the exposure limit may trim: a balance that a live curve still offers elsewhere', () => {
    const venue = createVenue();
    const meets = (): string | null => {
      const error = errorOf(venue, { s: '0.1' }, BOB);
      if (error === null) venue.act(BOB, { type: 'cancel', cancels: [{ a: 10000, o: venue.book.lastOid() }] });
      return error;
    };
    const takeBack = (market: number): void => {
      const [order] = venue.book.openOrders(ALICE).filter((one) => one.market === market);
      venue.act(ALICE, { type: 'cancel', cancels: [{ a: 10000 + market, o: order!.oid }] });
    };
    // Ten WETH: six elsewhere and four here are backed side by side.
    expect(errorOf(venue, { a: 10001, b: false, p: '9000', s: '6' })).to.equal(null);
    expect(errorOf(venue, { b: false, s: '4' })).to.equal(null);
    expect(meets()).to.match(/^post_only/);
    // A curve may still sell the six when a tenth of a WETH more is offered here: the limit may trim it, so nothing of it defends a price.
    venue.nowMs = 1_000;
    takeBack(1);
    expect(meets()).to.match(/^post_only/);
    expect(errorOf(venue, { b: false, p: '2501', s: '0.1' })).to.equal(null);
    expect(meets()).to.equal(null);
    venue.nowMs = 10_999;
    expect(meets()).to.equal(null);
    // No curve may any more.
    venue.nowMs = 11_000;
    expect(meets()).to.match(/^post_only/);
    // Nor is anything gained by moving an order to and fro, or by changing it in place.
    expect(errorOf(venue, { a: 10001, b: false, p: '9000', s: '5.9' })).to.equal(null);
    const [far] = venue.book.openOrders(ALICE).filter(({ market }) => market === 1);
    const smaller = entry({ a: 10001, b: false, p: '9000', s: '1' });
    venue.act(ALICE, { type: 'batchModify', modifies: [{ oid: far!.oid, order: smaller }] });
    expect(meets()).to.match(/^post_only/);
    expect(errorOf(venue, { b: false, p: '2501', s: '0.1' })).to.equal(null);
    expect(meets()).to.equal(null);
    venue.nowMs = 21_000;
    expect(meets()).to.match(/^post_only/);
  });

  it('takes what was filled for paid, not for offered a second time', () => {
    const venue = createVenue();
    expect(errorOf(venue, { a: 10001, b: false, p: '9000', s: '9' })).to.equal(null);
    expect(errorOf(venue, { b: false, s: '1' })).to.equal(null);
    // Requoted, then eight of nine are sold on the curve before.
    venue.act(ALICE, {
      type: 'batchModify',
      modifies: [{ oid: 1, order: entry({ a: 10001, b: false, p: '9001', s: '9' }) }],
    });
    const sold = { maker: ALICE, market: 1, side: 'ask' as const, priceTicks: 900_000n, baseUnits: 8n * 10n ** 18n };
    const [order] = venue.book.openOrders(ALICE).filter(({ market }) => market === 1);
    venue.book.applyFills([{ ...sold, oid: order!.oid }]);
    venue.available.set(WETH.address, 2n * 10n ** 18n);
    expect(errorOf(venue, { s: '0.1' }, BOB)).to.match(/^post_only/);
  });

  it('judges a maker once in an action, however many orders it rests that nothing backs', () => {
    const ENTRIES = 20;
    const callsBefore = (restingCount: number): { committed: number; walks: number } => {
      const venue = createVenue();
      const cheap = { a: 10000, b: false, p: '2500', s: '0.0001' };
      venue.act(ALICE, orders(...Array.from({ length: restingCount }, () => cheap)));
      expect(venue.book.openCount(ALICE)).to.equal(restingCount);
      venue.available.set(WETH.address, 0n);
      const { committedUnits, bestTicksWorth } = venue.book;
      const calls = { committed: 0, walks: 0 };
      venue.book.committedUnits = (...args) => {
        calls.committed += 1;
        return committedUnits(...args);
      };
      venue.book.bestTicksWorth = (...args) => {
        calls.walks += 1;
        return bestTicksWorth(...args);
      };
      const crossing = Array.from({ length: ENTRIES }, () => ({ p: '2500', s: '0.0001' }));
      for (const status of statusesOf(venue.act(BOB, orders(...crossing)))) expect(status).to.have.property('resting');
      return calls;
    };
    for (const restingCount of [1, 10, 1_000]) {
      expect(callsBefore(restingCount)).to.deep.equal({ committed: 1, walks: 1 });
    }
  });

  it('judges each entry after what those before it in the same action closed, moved and left', () => {
    const venue = createVenue();
    const bid = (p: string): object => entry({ p, s: '1' });
    const ask = (p: string): object => entry({ b: false, p, s: '1' });
    venue.act(ALICE, { type: 'order', orders: [bid('2500'), bid('2499'), ask('2600')], grouping: 'na' });
    const modifies = [
      // Refused since it meets the bid below, so that the bid stays where it is: before and after the best bid was looked for.
      { oid: 1, order: ask('2499') },
      { oid: 3, order: ask('2500') },
      { oid: 1, order: ask('2499') },
      { oid: 3, order: ask('2500') },
      { oid: 1, order: bid('2498') },
      { oid: 3, order: ask('2499') },
      { oid: 3, order: ask('2500') },
      { oid: 2, order: bid('2500') },
    ];
    const outcomes = statusesOf(venue.act(ALICE, { type: 'batchModify', modifies })).map((status) =>
      typeof status === 'object' && 'error' in status ? status.error : 'rests',
    );
    const patterns = [
      /was 2499@/,
      /was 2500@/,
      /was 2499@/,
      /was 2500@/,
      /^rests$/,
      /was 2499@/,
      /^rests$/,
      /was 2498@2500\./,
    ];
    expect(outcomes).to.have.length(patterns.length);
    outcomes.forEach((outcome, index) => expect(outcome).to.match(patterns[index]!));
  });

  it('refuses a client order id that an open order has, until that one is gone', () => {
    const venue = createVenue();
    expect(errorOf(venue, { c: CLOID, s: '0.1' })).to.equal(null);
    expect(errorOf(venue, { c: CLOID.toUpperCase().replace('0X', '0x'), s: '0.1' })).to.equal(
      'duplicate_cloid: Client order id is already in use. asset=10000',
    );
    expect(errorOf(venue, { c: CLOID, s: '0.1' }, BOB)).to.equal(null);
    venue.act(ALICE, { type: 'cancelByCloid', cancels: [{ asset: 10000, cloid: CLOID }] });
    expect(errorOf(venue, { c: CLOID, s: '0.1' })).to.equal(null);
  });

  it('refuses new orders while the ledger is not ready, and cancels all the same', () => {
    const venue = createVenue();
    expect(errorOf(venue, { s: '0.1' })).to.equal(null);
    venue.reason = 'stale';
    expect(errorOf(venue, { s: '0.1' })).to.equal('not_ready: The ledger is not ready: stale');
    expect(statusesOf(venue.act(ALICE, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] }))).to.deep.equal(['success']);
  });
});

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
