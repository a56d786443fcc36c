/** What clients of the order gateway load, send and see. */
import { SymbolConverter } from '@nktkas/hyperliquid/utils';
import { ApiRequestError, HttpTransport } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { addressOf, clientOf, post, signRequest } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction } from '../../support/gateway-suite.js';

const CLOID = '0xabcdef0123456789abcdef0123456789';

/** The error that a published client raised. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    expect(error).to.be.instanceOf(ApiRequestError);
    return (error as Error).message;
  }
  throw new Error('the request was accepted');
}

forEachGateway('order gateway', (suite) => {
  const { start, act } = suite;

  it('serves a published client: place, see, cancel', async () => {
    const { url } = await start();
    for (const isTestnet of [false, true]) {
      const { exchange, info, user } = clientOf(url, 1, isTestnet);
      const placed = await exchange.order({
        orders: [limit(true, '2500.25', '0.5', { c: CLOID }), limit(false, '2600', '1')],
        grouping: 'na',
      });
      const [bid, ask] = placed.response.data.statuses as { resting: { oid: number; cloid?: string } }[];
      expect(bid?.resting.cloid).to.equal(CLOID);
      const oid = bid?.resting.oid ?? 0;
      expect(ask?.resting).to.deep.equal({ oid: oid + 1 });

      const open = await info.openOrders({ user });
      expect(open.map((order) => order.oid)).to.deep.equal([oid + 1, oid]);
      expect(open[1]).to.deep.include({
        coin: '@0',
        side: 'B',
        limitPx: '2500.25',
        sz: '0.5',
        origSz: '0.5',
        cloid: CLOID,
      });
      const [front] = await info.frontendOpenOrders({ user });
      expect(front).to.deep.include({
        orderType: 'Limit',
        tif: 'Gtc',
        cloid: null,
        reduceOnly: false,
        isTrigger: false,
      });
      const book = await info.l2Book({ coin: '@0' });
      expect(book?.levels).to.deep.equal([[{ px: '2500.25', sz: '0.5', n: 1 }], [{ px: '2600.0', sz: '1.0', n: 1 }]]);
      expect(await info.allMids()).to.deep.equal({ '@0': '2550.125' });
      const status = await info.orderStatus({ user, oid: CLOID });
      expect(status).to.have.nested.property('order.status', 'open');

      const canceled = await exchange.cancel({ cancels: [{ a: 10000, o: oid }] });
      expect(canceled.response).to.deep.equal({ type: 'cancel', data: { statuses: ['success'] } });
      expect(await refusal(exchange.cancel({ cancels: [{ a: 10000, o: oid }] }))).to.contain(
        'Order was never placed, already canceled, or filled. asset=10000',
      );
      await exchange.cancel({ cancels: [{ a: 10000, o: oid + 1 }] });
      await exchange.noop({ nonce: Date.now() });
      expect(await info.openOrders({ user })).to.deep.equal([]);
      expect(await info.orderStatus({ user, oid })).to.have.nested.property('order.status', 'canceled');
      expect(await info.l2Book({ coin: '@0' })).to.deep.include({ levels: [[], []] });
    }
  });

  it('gives clients what they load at start', async () => {
    const { url } = await start();
    const { info, user } = clientOf(url, 1);
    const converter = await SymbolConverter.create({ transport: new HttpTransport({ apiUrl: url }) });
    expect(converter.getAssetId('WETH/USDC')).to.equal(10000);
    expect(converter.getAssetId('WETH/DAI')).to.equal(10001);
    expect(converter.getSzDecimals('WETH/USDC')).to.equal(4);
    const { universe, tokens } = await info.spotMeta();
    expect(universe.map((one) => [one.name, one.index, one.tokens])).to.deep.equal([
      ['@0', 0, [0, 1]],
      ['@1', 1, [0, 2]],
    ]);
    expect(tokens.map((token) => [token.name, token.index, token.weiDecimals])).to.deep.equal([
      ['WETH', 0, 18],
      ['USDC', 1, 6],
      ['DAI', 2, 18],
    ]);
    expect(await info.perpDexs()).to.deep.equal([null]);
    expect(await info.metaAndAssetCtxs()).to.deep.equal([{ universe: [], marginTables: [], collateralToken: 0 }, []]);
    const [, contexts] = await info.spotMetaAndAssetCtxs();
    expect(contexts.map((one) => [one.coin, one.markPx, one.midPx])).to.deep.equal([
      ['@0', '0.01', null],
      ['@1', '2400.50', null],
    ]);
    const { balances } = await info.spotClearinghouseState({ user });
    expect(balances.map((row) => [row.coin, 'token' in row && row.token, row.total, row.hold])).to.deep.equal([
      ['WETH', 0, '10.0', '0.0'],
      ['USDC', 1, '30000.0', '0.0'],
      ['DAI', 2, '0.0', '0.0'],
    ]);
    expect((await info.clearinghouseState({ user })).withdrawable).to.equal('0.0');
    expect((await info.exchangeStatus()).specialStatuses).to.equal(null);
    expect(await info.extraAgents({ user })).to.deep.equal([]);
    expect(await info.userRole({ user })).to.deep.equal({ role: 'user' });
    expect(await info.userRole({ user: addressOf(50) })).to.deep.equal({ role: 'missing' });
    expect((await post(`${url}/info`, { type: 'userAbstraction', user })).text).to.equal('"default"');
    expect((await post(`${url}/info`, { type: 'l2Book', coin: '@9', nSigFigs: null })).text).to.equal('null');
    expect(await info.userFills({ user })).to.deep.equal([]);
    expect(await info.orderStatus({ user, oid: 5 })).to.deep.equal({ status: 'unknownOid' });
  });

  it('answers requests of another shape in plain text', async () => {
    const { url } = await start();
    const good = signRequest(orderAction(limit(true, '2500', '1')), 1, Date.now());
    const shape = 'Failed to deserialize the JSON body into the target type';
    const cases: [string, unknown, string, number, string][] = [
      ['/exchange', '{', 'application/json', 400, 'Failed to parse the request body as JSON'],
      ['/exchange', good, 'text/plain', 415, 'Content-Type'],
      ['/exchange', { ...good, nonce: 'x' }, 'application/json', 422, shape],
      ['/exchange', { ...good, action: { type: 'teleport' } }, 'application/json; charset=utf-8', 422, shape],
      ['/exchange', { ...good, action: orderAction(limit(true, '1e3', '1')) }, 'application/json', 422, 'orders[0].p'],
      ['/exchange', ' '.repeat(1024 * 1024 + 1), 'application/json', 413, '1048576'],
      ['/info', { type: 'candles' }, 'application/json', 422, shape],
      ['/info', { type: 'l2Book', coin: '@0', nSigFigs: 6 }, 'application/json', 422, 'nSigFigs'],
      ['/info', { type: 'openOrders', user: '0x1' }, 'application/json', 422, 'user'],
      [
        '/info',
        { type: 'userFills', user: addressOf(1), aggregateByTime: 1 },
        'application/json',
        422,
        'aggregateByTime',
      ],
      ['/info', [], 'application/json', 422, shape],
    ];
    for (const [path, body, contentType, status, text] of cases) {
      const answer = await post(url + path, body, contentType);
      expect([answer.status, answer.type], answer.text).to.deep.equal([status, 'text/plain; charset=utf-8']);
      expect(answer.text).to.contain(text);
    }
    expect(await readOrderRows(suite.db.knex, { after: 0, limit: 10 })).to.deep.equal([]);
  });

  it('takes user addresses in any case, with or without 0x', async () => {
    const { url } = await start();
    await act(1, orderAction(limit(true, '2500', '1')));
    for (const user of [addressOf(1).toUpperCase().replace('0X', '0x'), addressOf(1).slice(2)]) {
      expect((await post(`${url}/info`, { type: 'openOrders', user })).json).to.have.length(1);
    }
  });
});
