import { expect } from 'chai';
import fc from 'fast-check';
import { createAgents } from '../../../core/book/agents.js';
import type { Book } from '../../../core/book.js';
import { createBook } from '../../../core/book/create-book.js';
import type { Address } from '../../../core/types.js';
import { readAction } from '../../../core/wire/action.js';
import { judgeAction } from '../../../server/orders/actions/registry.js';
import { closeForShortage, isShort } from '../../../server/orders/inventory.js';
import type { ActionOutcome } from '../../../server/orders/types.js';
import { fcOptions } from '../../support/fc.js';
import { limit, orderAction } from '../../support/gateway-suite.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const ALICE: Address = `0x${'a'.repeat(40)}`;
const BOB: Address = `0x${'b'.repeat(40)}`;
const CLOID = `0x${'12'.repeat(16)}`;
const OTHER = `0x${'34'.repeat(16)}`;
const markets = [WETH_USDC, WETH_DAI];

describe('modify', () => {
  let book: Book;
  let ready: boolean;
  const available = (_maker: Address, token: Address): bigint =>
    token === WETH.address ? 10n * 10n ** 18n : token === USDC.address ? 30_000n * 10n ** 6n : 0n;

  function act(maker: Address, action: object): ActionOutcome {
    const outcome = judgeAction(readAction(action), maker, {
      book,
      markets,
      available,
      minOrderUnits: () => 10_000_000n,
      readiness: { ready, reason: ready ? null : 'stale' },
      quarantined: new Set(),
      delisted: new Set(),
      agents: createAgents(),
      isAccount: () => false,
      ...{ nowMs: 1, rowMs: 1 },
    });
    const orderSeq = book.lastOrderSeq() + 1;
    const { effects } = outcome;
    book.apply({ orderSeq, timeMs: 1, maker, signer: maker, nonce: orderSeq, kind: 'x', effects });
    return outcome;
  }

  const one = (oid: number | string, order: object, extra: object = {}) =>
    act(ALICE, { type: 'modify', oid, order, ...extra }).reply;
  const batch = (modifies: [number | string, object][], extra: object = {}) => {
    const entries = modifies.map(([oid, order]) => ({ oid, order }));
    const { reply } = act(ALICE, { type: 'batchModify', modifies: entries, ...extra });
    return reply.status === 'ok' ? reply.response.data?.statuses : reply.response;
  };
  const open = () =>
    book
      .openOrders(ALICE)
      .map(({ oid, priceTicks, sizeLots, tif, cloid }) => ({ oid, priceTicks, sizeLots, tif, cloid }));

  beforeEach(() => {
    book = createBook(markets);
    ready = true;
    act(ALICE, orderAction(limit(true, '2500', '1', { c: CLOID }), limit(false, '2600', '9')));
  });

  it('replaces the named order by id or client order id, with a new id and post-only', () => {
    expect(one(1, limit(true, '2499', '2', { c: CLOID }))).to.deep.equal({
      status: 'ok',
      response: { type: 'default' },
    });
    expect(open()[1]).to.deep.equal({ oid: 3, priceTicks: 249_900n, sizeLots: 20_000n, tif: 'Alo', cloid: CLOID });
    expect(one(CLOID.toUpperCase().replace('0X', '0x'), limit(true, '2498', '2', { c: OTHER }))).to.have.property(
      'status',
      'ok',
    );
    expect(book.order(3)).to.equal(undefined);
    expect(book.orderByCloid(ALICE, CLOID)).to.equal(undefined);
    expect(book.orderByCloid(ALICE, OTHER)?.oid).to.equal(4);
  });

  it('leaves the original out of every check of the replacement', () => {
    // The ask beside it uses 9 of 10 WETH, and 10 would exceed with the original counted in.
    expect(batch([[2, limit(false, '2600', '10')]])).to.deep.equal([{ resting: { oid: 3 } }]);
    expect(batch([[1, limit(true, '2500', '12', { c: CLOID })]])).to.deep.equal([
      { resting: { oid: 4, cloid: CLOID } },
    ]);
    // A bid may move to where the ask was that it replaces.
    expect(batch([[3, limit(true, '2600', '0')]])?.[0]).to.have.property('error');
    expect(batch([[3, limit(false, '2500.01', '10')]])).to.deep.equal([{ resting: { oid: 5 } }]);
  });

  it('keeps the original open, untouched, when the replacement is invalid', () => {
    const before = open();
    const exposure = new Map(book.exposureUnits(ALICE));
    const cases: [object, RegExp][] = [
      [limit(true, '2500.005', '1'), /^off_tick/],
      [limit(true, '2600', '1'), /^post_only.*bbo was 0@2600/],
      [limit(true, '2500', '12.0001'), /^inventory_exceeded/],
      [limit(true, '2500', '1', { t: { limit: { tif: 'Ioc' } } }), /^ioc_unsupported/],
      [limit(true, '2500', '1', { r: true }), /^reduce_only/],
      [limit(true, '2500', '1', { a: 10001 }), /^order_not_open: Cannot modify canceled or filled order/],
      [limit(true, '2500', '1', { a: 10007 }), /^unknown_asset/],
    ];
    for (const [order, text] of cases) {
      for (const extra of [{}, { a: true }]) {
        expect(one(1, order, extra))
          .to.have.property('response')
          .that.matches(text);
        expect(batch([[1, order]], extra)?.[0])
          .to.have.property('error')
          .that.matches(text);
      }
    }
    ready = false;
    expect(one(1, limit(true, '2499', '1')))
      .to.have.property('response')
      .that.matches(/^not_ready/);
    expect(open()).to.deep.equal(before);
    expect(book.exposureUnits(ALICE)).to.deep.equal(exposure);
    expect(book.lastOid()).to.equal(2);
  });

  it('needs an open original unless told to place always', () => {
    act(ALICE, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
    const gone = 'order_not_open: Cannot modify canceled or filled order. asset=10000';
    expect(one(1, limit(true, '2400', '1'))).to.deep.equal({ status: 'err', response: gone });
    expect(batch([[CLOID, limit(true, '2400', '1')]])).to.deep.equal([{ error: gone }]);
    expect(batch([[1, limit(true, '2400', '1')]], { a: true })).to.deep.equal([{ resting: { oid: 3 } }]);
    expect(open().at(-1)).to.include({ tif: 'Gtc' });
    expect(one(1, limit(true, '2401', '1'), { a: true })).to.have.property('status', 'ok');
  });

  it('can not name the order of another maker', () => {
    act(BOB, orderAction(limit(true, '2400', '1', { c: OTHER })));
    for (const oid of [3, OTHER]) expect(one(oid, limit(true, '2300', '1'))).to.have.property('status', 'err');
    expect(book.openOrders(BOB)).to.have.length(1);
  });

  it('judges a batch in order, each entry on its own', () => {
    const statuses = batch([
      [1, limit(true, '2450', '1')],
      [1, limit(true, '2451', '1')],
      [3, limit(true, '2600', '1')],
      [2, limit(false, '2450', '1')],
      [2, limit(false, '2460', '1', { c: CLOID })],
      [CLOID, limit(false, '2455', '1')],
    ]);
    expect(statuses).to.deep.equal([
      { resting: { oid: 3 } },
      { error: 'order_not_open: Cannot modify canceled or filled order. asset=10000' },
      { error: 'post_only: Post only order would have immediately matched, bbo was 0@2600. asset=10000' },
      { error: 'post_only: Post only order would have immediately matched, bbo was 2450@0. asset=10000' },
      { resting: { oid: 4, cloid: CLOID } },
      { resting: { oid: 5 } },
    ]);
    expect(open().map((order) => order.oid)).to.deep.equal([3, 5]);
    expect(batch([])).to.equal('empty_batch: Orders are empty.');
    expect(batch(Array.from({ length: 1001 }, () => [1, limit(true, '2450', '1')]))).to.match(/^batch_too_large/);
  });
});

describe('lasting shortage', () => {
  const quote = fc.record({
    market: fc.nat(1),
    isBid: fc.boolean(),
    step: fc.bigInt(1n, 40n),
    sizeLots: fc.bigInt(1n, 30n),
    filledUnits: fc.bigInt(0n, 29n * WETH_USDC.lotUnits),
  });

  it('leaves what is backed, to within one lot of the last order, and never more', () => {
    fc.assert(
      fc.property(fc.array(quote, { maxLength: 12 }), fc.nat(1_000), fc.nat(1_000), (quotes, base, cash) => {
        const book = createBook(markets);
        quotes.forEach(({ market, isBid, step, sizeLots, filledUnits }, index) => {
          const priceTicks = isBid ? 250_000n - step : 250_000n + step;
          const side = isBid ? ('bid' as const) : ('ask' as const);
          const [oid, orderSeq] = [index + 1, index + 1];
          const terms = { oid, market, side, priceTicks, sizeLots, tif: 'Gtc' as const, cloid: null };
          book.apply({
            orderSeq,
            timeMs: 1,
            maker: ALICE,
            signer: ALICE,
            nonce: orderSeq,
            kind: 'order',
            effects: [{ type: 'open', ...terms }],
          });
          if (filledUnits > 0n) book.applyFills([{ ...terms, maker: ALICE, baseUnits: filledUnits }]);
        });
        const full = book.exposureUnits(ALICE);
        const permille = (token: Address): bigint => BigInt(token === WETH.address ? base : cash);
        const available = (_: Address, token: Address): bigint => ((full.get(token) ?? 0n) * permille(token)) / 1_000n;
        const effects = closeForShortage(book, markets, ALICE, available);
        const changed = new Map(effects.map((effect) => ['oid' in effect ? effect.oid : 0, effect]));
        const before = new Map(book.openOrders(ALICE).map((order) => [order.oid, order]));
        const orderSeq = book.lastOrderSeq() + 1;
        const short = isShort(book, ALICE, available);
        expect(effects.length > 0).to.equal(short);
        book.apply({ orderSeq, timeMs: 1, maker: ALICE, signer: null, nonce: null, kind: 'close', effects });
        expect(isShort(book, ALICE, available)).to.equal(false);
        for (const token of [WETH, USDC]) {
          const paid = book.exposureUnits(ALICE).get(token.address) ?? 0n;
          const touched = [...changed].map(([oid]) => before.get(oid)!);
          const lot = touched
            .filter((order) => (order.side === 'ask') === (token === WETH) && markets[order.market]!.quote !== WETH)
            .map((order) =>
              order.side === 'ask' ? WETH_USDC.lotUnits : order.priceTicks * markets[order.market]!.tickLotUnits,
            )
            .reduce((most, one) => (one > most ? one : most), 0n);
          // An order closes whole only when less than one lot of it would be backed; dust of a part-filled order goes with it.
          if ((full.get(token.address) ?? 0n) > available(ALICE, token.address))
            expect(available(ALICE, token.address) - paid < 2n * lot).to.equal(true);
        }
      }),
      fcOptions(150),
    );
  });
});
