/** The package `hyperliquid` of npm, by nomeida. Its base URLs are constants, which it exports; nothing else of it is changed. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { BASE_URLS, Hyperliquid, WSS_URLS } from 'hyperliquid';
import { addGeneration, addressOf, fillOf, keyOf, post } from '../../support/gateway.js';
import { expectDocumented, noCalls, recording } from '../../support/api/client-calls.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

const NAME = '`hyperliquid` 1.7.7';
const COIN = 'WETH-SPOT';
const ETHER = 10n ** 18n;
const limitTerms = { reduce_only: false, order_type: { limit: { tif: 'Gtc' as const } } };
const CLOID = `0x${'e1'.repeat(16)}`;

interface Statuses {
  status: string;
  response: { data: { statuses: unknown[] } };
}

forEachGateway(NAME, (suite) => {
  const calls = noCalls();
  const { log, warn } = console;
  let client: Hyperliquid | null = null;

  // It tells standard output of each frame.
  before(() => Object.assign(console, { log: () => undefined, warn: () => undefined }));
  afterEach(() => client?.disconnect());
  after(() => {
    Object.assign(console, { log, warn });
    expectDocumented(NAME, calls);
  });

  async function connect(index: number, enableWs = false) {
    const { url } = suite.running;
    Object.assign(BASE_URLS, { PRODUCTION: url });
    Object.assign(WSS_URLS, { PRODUCTION: `${url.replace('http', 'ws')}/ws` });
    client = new Hyperliquid({ privateKey: keyOf(index), walletAddress: addressOf(index), enableWs });
    // Only to save time: the client paces itself otherwise.
    Object.assign(client.getRateLimiter(), { capacity: 1_000_000, tokens: 1_000_000 });
    await client.connect();
    return {
      info: recording(client.info, calls, 'info.'),
      spot: recording(client.info.spot, calls, 'info.spot.'),
      perpetuals: recording(client.info.perpetuals, calls, 'info.perpetuals.'),
      exchange: recording(client.exchange, calls, 'exchange.'),
      custom: recording(client.custom, calls, 'custom.'),
      subscriptions: recording(client.subscriptions, calls, 'subscriptions.'),
      wsPayloads: recording(client.wsPayloads, calls, 'wsPayloads.'),
    };
  }

  async function fill(oid: number, baseUnits: bigint): Promise<void> {
    const order = suite.running.gateway.order(oid)!.order;
    const before = suite.running.gateway.generation();
    await addGeneration(suite.db, fillOf(WETH_USDC, order, baseUnits, 1));
    suite.running.gateway.onGeneration();
    await until(() => suite.running.gateway.generation() > before);
  }

  it('is of the version that the guide names', () => {
    const text = readFileSync('node_modules/hyperliquid/package.json', 'utf8');
    const { version } = JSON.parse(text) as { version: string };
    expect(NAME).to.equal(`\`hyperliquid\` ${version}`);
  });

  it('trades over HTTP, and reads what became of it', async () => {
    const { gateway } = await suite.start();
    const { info, spot, perpetuals, exchange, custom } = await connect(1);
    const user = addressOf(1);
    const order = (is_buy: boolean, limit_px: string, sz: string, extra: object = {}) => ({
      ...{ coin: COIN, is_buy, limit_px, sz, ...limitTerms, ...extra },
    });
    const oidsOf = (answer: unknown): unknown => (answer as Statuses).response.data.statuses;
    expect((await custom.getAllAssets()).spot).to.deep.equal([COIN]);
    await exchange.scheduleCancel(Date.now() + 60_000);
    const placed: unknown = await exchange.placeOrder(order(true, '2500.25', '0.50', { cloid: CLOID }));
    expect(oidsOf(placed)).to.deep.equal([{ resting: { oid: 1, cloid: CLOID } }]);
    const both = { orders: [order(false, '2600', '1'), order(true, '2400', '0.1')] };
    expect(oidsOf(await exchange.placeOrder(both))).to.deep.equal([{ resting: { oid: 2 } }, { resting: { oid: 3 } }]);
    const modified: unknown = await exchange.modifyOrder(3, order(true, '2401', '0.2'));
    expect(modified).to.deep.equal({ status: 'ok', response: { type: 'default' } });
    const changes = [{ oid: 4, order: order(true, '2402', '0.3') }];
    expect(oidsOf(await exchange.batchModifyOrders(changes))).to.deep.equal([{ resting: { oid: 5 } }]);
    expect(oidsOf(await exchange.cancelOrder({ coin: COIN, o: 5 }))).to.deep.equal(['success']);
    await exchange.noop();
    await exchange.approveAgent({ agentAddress: addressOf(11), agentName: 'bot' });
    await fill(2, ETHER / 4n);

    const open = await info.getUserOpenOrders(user);
    expect(open.map(({ coin, oid, side, sz }) => [coin, oid, side, sz])).to.deep.equal([
      [COIN, 2, 'sell', 0.75],
      [COIN, 1, 'buy', 0.5],
    ]);
    expect((await info.getFrontendOpenOrders(user)).map(({ oid }) => oid)).to.deep.equal([2, 1]);
    const [own] = await info.getUserFills(user);
    expect(own).to.include({ coin: COIN, px: 2600, sz: 0.25, side: 'sell' });
    expect(await info.getUserFillsByTime(user, own!.time, own!.time)).to.deep.equal([own]);
    expect(await info.getOrderStatus(user, 5)).to.have.nested.property('order.status', 'canceled');
    expect((await info.getHistoricalOrders(user)).map(({ status }) => status).sort()).to.deep.equal([
      ...['canceled', 'canceled', 'canceled', 'open', 'open'],
    ]);
    const book = await info.getL2Book(COIN);
    expect(book.levels.map((side) => side.map(({ px }) => px))).to.deep.equal([[2500.2], [2600]]);
    expect(await info.getAllMids()).to.deep.equal({ [COIN]: 2550.125 });
    const candles = await info.getCandleSnapshot(COIN, '1M', 0, Date.now());
    expect(candles[0]).to.include({ s: COIN, n: 1, v: 0.25 });
    expect((await info.getUserRateLimit(user)).cumVlm).to.equal(650);
    expect((await info.userFees(user)).userAddRate).to.equal(0);
    expect(await info.getUserRole(user)).to.deep.equal({ role: 'user' });
    expect((await info.extraAgents(user)).map(({ name }) => name)).to.deep.equal(['bot']);
    expect(await info.getMaxBuilderFee(user, addressOf(2))).to.equal(0);
    expect(await info.getUserTwapSliceFills(user)).to.deep.equal([]);
    expect(await info.twapHistory(user)).to.deep.equal([]);
    expect(await info.getUserVaultEquities(user)).to.deep.equal([]);
    expect((await spot.getSpotMeta()).tokens.length).to.equal(3);
    expect((await spot.getSpotMetaAndAssetCtxs())[1].length).to.equal(2);
    const state = await spot.getSpotClearinghouseState(user);
    expect(state.balances.map(({ total }) => total)).to.deep.equal([9.75, 30_650, 0]);
    expect((await perpetuals.getMeta()).universe).to.deep.equal([]);
    expect((await perpetuals.getMetaAndAssetCtxs())[1]).to.deep.equal([]);
    expect((await perpetuals.getClearinghouseState(user)).assetPositions).to.deep.equal([]);
    expect(await perpetuals.getUserFunding(user, 0)).to.deep.equal([]);
    expect(await perpetuals.getFundingHistory('@0', 0)).to.deep.equal([]);
    expect(await perpetuals.getUserNonFundingLedgerUpdates(user, 0)).to.deep.equal([]);

    await exchange.cancelOrderByCloid(COIN, CLOID);
    expect(oidsOf(await custom.cancelAllOrders())).to.deep.equal(['success']);
    await exchange.scheduleCancel(null);
    expect([gateway.book().openOrders(user).length, gateway.book().armed().size]).to.deep.equal([0, 0]);
  });

  it('is refused what this venue does not have', async () => {
    await suite.start();
    const { info, exchange, perpetuals } = await connect(1);
    const user = addressOf(1);
    // It takes no null for an answer, and turns a refusal of the exchange into no error.
    for (const call of [
      () => info.getSubAccounts(user),
      () => info.getVaultDetails(addressOf(2)),
      () => info.portfolio(user),
      () => info.referral(user),
      () => info.getDelegations(user),
      () => perpetuals.getPredictedFundings(),
    ])
      expect(await call().catch((error: unknown) => error)).to.be.instanceOf(Error);
    const past = await post(`${suite.running.url}/info`, { type: 'portfolio', user });
    expect([past.status, past.text], 'what is asked instead').to.satisfy(
      ([status, text]: [number, string]) => status === 422 && text.includes('/v0/makers/{maker}/performance'),
    );
    for (const call of [
      () => exchange.setReferrer('ABC'),
      () => exchange.updateLeverage(COIN, 'cross', 2),
      () => exchange.usdTransfer(addressOf(2), 1),
      () => exchange.initiateWithdrawal(addressOf(2), 1),
    ]) {
      const answer = (await call()) as { status: string; response: string };
      expect(answer.status).to.equal('err');
      expect(answer.response).to.match(/^unsupported_action: /);
    }
  });

  it('watches and posts over WebSocket', async () => {
    await suite.start();
    const { subscriptions, wsPayloads } = await connect(1, true);
    const user = addressOf(1);
    const seen: Record<string, unknown[]> = {};
    const into = (name: string) => {
      const own: unknown[] = [];
      seen[name] = own;
      return (data: unknown): void => void own.push(data);
    };
    await subscriptions.subscribeToAllMids(into('mids'));
    await subscriptions.subscribeToL2Book(COIN, into('book'));
    await subscriptions.subscribeToTrades(COIN, into('trades'));
    await subscriptions.subscribeToCandle(COIN, '1d', into('candle'));
    await subscriptions.subscribeToOrderUpdates(user, into('orders'));
    await subscriptions.subscribeToUserFills(user, into('fills'));
    await subscriptions.subscribeToUserFundings(user, into('fundings'));
    await subscriptions.subscribeToUserNonFundingLedgerUpdates(user, into('ledger'));
    await subscriptions.subscribeToNotification(user, into('nothing'));
    await subscriptions.subscribeToWebData2(`0x${'0'.repeat(40)}`, into('contexts'));
    await suite.act(2, orderAction(limit(true, '2400', '1'), limit(false, '2700', '1')));
    const placed = (await wsPayloads.placeOrder({
      ...{ coin: COIN, is_buy: false, sz: '1', limit_px: '2600', ...limitTerms },
    })) as Statuses;
    expect(placed.response.data.statuses).to.deep.equal([{ resting: { oid: 3 } }]);
    await fill(3, ETHER / 2n);
    await until(() => Object.entries(seen).every(([name, own]) => name === 'nothing' || own.length > 0));
    expect((seen.trades as { px: number }[][])[0]![0]).to.include({ coin: COIN, px: 2600, sz: 0.5, side: 'buy' });
    expect(seen.nothing).to.deep.equal([]);
    await until(() => JSON.stringify(seen.fills!.at(-1)).includes('"oid":3'));
    const canceled = (await wsPayloads.cancelOrder({ coin: COIN, o: 3 })) as Statuses;
    expect(canceled.response.data.statuses).to.deep.equal(['success']);
    await until(() => JSON.stringify(seen.orders!.at(-1)).includes('"canceled"'));
    const post = (type: 'info', payload: object) =>
      subscriptions.postRequest(type, payload) as Promise<{ data: unknown }>;
    expect((await post('info', { type: 'openOrders', user })).data).to.deep.equal([]);
    await subscriptions.unsubscribeFromAllMids();
    // Before the server goes away, to which it would connect again for as long as it is told to.
    client!.disconnect();
  });
});
