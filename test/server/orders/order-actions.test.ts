import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { USDC, WETH, WETH_USDC } from '../../support/markets.js';
import { ALICE, BOB, CLOID, createVenue, entry, orders, statusesOf, errorOf } from '../../support/api/order-entries.js';

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
    // Nor do they while larger ones that came meanwhile keep them out of cuts.
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.equal(null);
    venue.act(BOB, { type: 'cancel', cancels: venue.book.openOrders(BOB).map(({ oid }) => ({ a: 10000, o: oid })) });
    expect(errorOf(venue, { b: false, p: '2500' }, BOB)).to.match(/^post_only/);
  });

  it('lets nobody keep others away with an order that an own larger one keeps out of every curve', () => {
    const venue = createVenue();
    const bids = (): bigint[] => venue.book.levels(0, 'bid').map(({ priceTicks }) => priceTicks);
    // While ALICE is left out of cuts, her own ask keeps nobody away; it is offered again as soon as she wants it to be.
    expect(errorOf(venue, { b: false, p: '2501', s: '0.5' })).to.equal(null);
    venue.act(ALICE, { type: 'scheduleCancel', time: 10_000 });
    venue.nowMs = 6_001;
    expect(errorOf(venue, { p: '2502', s: '0.1' })).to.equal(null);
    venue.act(ALICE, { type: 'scheduleCancel' });
    venue.nowMs = 16_002;
    expect(bids(), 'no curve has her bid').to.deep.equal([]);
    expect(errorOf(venue, { b: false, p: '2490' }, BOB)).to.equal(null);
    // Her ask is offered, and defends its price. Without it her bid is in curves, and does, also within one action.
    venue.act(BOB, { type: 'cancel', cancels: [{ a: 10000, o: 3 }] });
    expect(errorOf(venue, { p: '2501' }, BOB)).to.match(/^post_only: .*bbo was 0@2501/);
    const own = { type: 'batchModify', modifies: [{ oid: 1, order: entry({ b: false, p: '2501.5', s: '0.5' }) }] };
    expect(statusesOf(venue.act(ALICE, own))).to.deep.equal([
      { error: 'post_only: Post only order would have immediately matched, bbo was 2502@0. asset=10000' },
    ]);
    venue.act(ALICE, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
    expect(bids()).to.deep.equal([250_200n]);
    expect(errorOf(venue, { b: false, p: '2490' }, BOB)).to.match(/^post_only/);
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
