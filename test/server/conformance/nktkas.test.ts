import { readFileSync } from 'node:fs';
import {
  ApiRequestError,
  ExchangeClient,
  HttpTransport,
  InfoClient,
  SubscriptionClient,
  WebSocketTransport,
} from '@nktkas/hyperliquid';
import { SymbolConverter, formatPrice, formatSize } from '@nktkas/hyperliquid/utils';
import { expect } from 'chai';
import { ethers } from 'ethers';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { expectDocumented, noCalls, recording } from '../../support/api/client-calls.js';
import { addGeneration, addressOf, fillOf, keyOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

const NAME = '`@nktkas/hyperliquid` 0.33.3';
const CLOID = `0x${'d1'.repeat(16)}` as const;
const OTHER = `0x${'d2'.repeat(16)}` as const;
/** Every action that is admitted. */
const ACTION_TYPES = [
  ...['order', 'modify', 'batchModify', 'cancel', 'cancelByCloid', 'scheduleCancel'],
  ...['approveAgent', 'noop'],
];
const ETHER = 10n ** 18n;

forEachGateway(NAME, (suite) => {
  const calls = noCalls();

  it('is of the version that the guide names', () => {
    const text = readFileSync('node_modules/@nktkas/hyperliquid/package.json', 'utf8');
    expect(NAME).to.equal(`\`@nktkas/hyperliquid\` ${(JSON.parse(text) as { version: string }).version}`);
  });

  after(() => expectDocumented(NAME, calls));

  const message = async (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => 'accepted',
      (error: unknown) => (error instanceof ApiRequestError ? error.message : `unexpected: ${String(error)}`),
    );

  for (const [name, isTestnet, isWebSocket] of [
    ['HTTP, mainnet', false, false],
    ['HTTP, testnet', true, false],
    ['WebSocket', false, true],
  ] as const) {
    it(`does everything over ${name}`, async () => {
      const { url, gateway } = await suite.start();
      const transport = isWebSocket
        ? new WebSocketTransport({ url: `${url.replace('http', 'ws')}/ws`, isTestnet })
        : new HttpTransport({ apiUrl: url, isTestnet });
      const asked = new Set<string>();
      const request = transport.request.bind(transport);
      transport.request = ((endpoint: 'info' | 'exchange', payload: { type?: string; action?: { type: string } }) => {
        asked.add(payload.action?.type ?? payload.type ?? '');
        return request(endpoint, payload);
      }) as typeof transport.request;
      const signing = new ExchangeClient({ transport, wallet: new ethers.Wallet(keyOf(1)) });
      const exchange = recording(signing, calls, 'exchange.');
      const asking = new InfoClient({ transport });
      const info = recording(asking, calls, 'info.');
      const user = addressOf(1);
      const converter = await SymbolConverter.create({ transport });
      const a = converter.getAssetId('WETH/USDC') ?? 0;
      const decimals = converter.getSzDecimals('WETH/USDC') ?? 0;
      const order = (b: boolean, p: string, s: string, extra: object = {}) => ({
        ...limit(b, formatPrice(p, decimals, 'spot'), formatSize(s, decimals), extra),
        a,
      });

      await exchange.scheduleCancel({ time: Date.now() + 60_000 });
      const placed = await exchange.order({
        orders: [order(true, '2500', '0.5', { c: CLOID }), order(true, '2400', '0.5'), order(false, '2600', '1')],
        grouping: 'na',
      });
      expect(placed.response.data.statuses).to.deep.equal([
        { resting: { oid: 1, cloid: CLOID } },
        { resting: { oid: 2 } },
        { resting: { oid: 3 } },
      ]);
      expect(
        (await exchange.modify({ oid: CLOID, order: order(true, '2499', '0.4', { c: OTHER }) })).response,
      ).to.deep.equal({
        type: 'default',
      });
      const modified = await exchange.batchModify({
        modifies: [
          { oid: 2, order: order(true, '2401', '0.6') },
          { oid: 3, order: order(false, '2601', '1.1') },
        ],
      });
      expect(modified.response.data.statuses).to.deep.equal([{ resting: { oid: 5 } }, { resting: { oid: 6 } }]);
      expect(await message(exchange.modify({ oid: 2, order: order(true, '2402', '0.6') }))).to.contain(
        'order_not_open',
      );
      await exchange.modify({ oid: 2, order: order(true, '2402', '0.1'), a: true });
      const canceled = await exchange.cancelByCloid({ cancels: [{ asset: a, cloid: OTHER }] });
      expect(canceled.response.data.statuses).to.deep.equal(['success']);
      await exchange.cancel({ cancels: [{ a, o: 5 }] });
      // An hour ahead, where no later action of this test can come upon it.
      await exchange.noop({ nonce: Date.now() + 3_600_000 });
      await exchange.approveAgent({ agentAddress: addressOf(11), agentName: 'bot' });
      const agent = new ExchangeClient({ transport, wallet: new ethers.Wallet(keyOf(11)) });
      await agent.order({ orders: [order(true, '2300', '0.1')], grouping: 'na' });
      await exchange.scheduleCancel({});
      expect(gateway.book().armed().size).to.equal(0);

      const resting = gateway.order(6)?.order;
      if (resting === undefined) throw new Error('no order');
      await addGeneration(suite.db, fillOf(WETH_USDC, resting, ETHER, 1));
      gateway.onGeneration();
      await until(() => gateway.generation() === 2);

      expect((await info.openOrders({ user })).map(({ oid, sz }) => [oid, sz])).to.deep.equal([
        [8, '0.1'],
        [7, '0.1'],
        [6, '0.1'],
      ]);
      expect((await info.frontendOpenOrders({ user })).map(({ oid, tif }) => [oid, tif])).to.deep.equal([
        [8, 'Gtc'],
        [7, 'Gtc'],
        [6, 'Alo'],
      ]);
      expect(await info.orderStatus({ user, oid: 6 })).to.have.nested.property('order.status', 'open');
      expect(await info.orderStatus({ user, oid: OTHER })).to.have.nested.property('order.status', 'canceled');
      const history = await info.historicalOrders({ user });
      expect(new Map(history.map((one) => [one.order.oid, one.status]))).to.deep.equal(
        new Map([1, 2, 3, 4, 5, 6, 7, 8].map((oid) => [oid, oid > 5 ? 'open' : 'canceled'])),
      );
      const [fill] = await info.userFills({ user });
      expect(fill).to.include({ oid: 6, sz: '1.0', px: '2601.0', side: 'A', dir: 'Sell' });
      const at = fill?.time ?? 0;
      expect(await info.userFillsByTime({ user, startTime: at, endTime: at })).to.deep.equal([fill]);
      expect(await info.userFillsByTime({ user, startTime: at + 1 })).to.deep.equal([]);
      expect((await info.recentTrades({ coin: '@0' }))[0]).to.include({ px: '2601.0', sz: '1.0', side: 'B' });
      expect((await info.l2Book({ coin: '@0' }))?.levels[1]).to.deep.equal([{ px: '2601.0', sz: '0.1', n: 1 }]);
      expect(await info.allMids()).to.deep.equal({ '@0': '2501.5' });
      const { balances } = await info.spotClearinghouseState({ user });
      expect(balances.map(({ coin, total }) => [coin, total])).to.deep.equal([
        ['WETH', '9.0'],
        ['USDC', '32601.0'],
        ['DAI', '0.0'],
      ]);
      expect((await info.extraAgents({ user })).map((one) => one.name)).to.deep.equal(['bot']);
      expect(await info.userRole({ user: addressOf(11) })).to.deep.equal({ role: 'agent', data: { user } });
      expect((await info.userRateLimit({ user })).nRequestsUsed).to.equal(0);
      expect((await info.userFees({ user })).userAddRate).to.equal('0.0');
      expect(await info.meta())
        .to.have.property('universe')
        .that.deep.equals([]);
      expect(await info.perpDexs()).to.deep.equal([null]);
      expect((await info.metaAndAssetCtxs())[1]).to.deep.equal([]);
      expect((await info.spotMetaAndAssetCtxs())[1].map(({ coin }) => coin)).to.deep.equal(['@0', '@1']);
      expect((await info.clearinghouseState({ user })).assetPositions).to.deep.equal([]);
      expect((await info.exchangeStatus()).specialStatuses).to.equal(null);
      expect(await info.userAbstraction({ user })).to.equal('default');
      expect(await info.maxBuilderFee({ user, builder: addressOf(2) })).to.equal(0);
      expect(await info.vaultDetails({ vaultAddress: addressOf(2) })).to.equal(null);
      const start = { startTime: 0 };
      for (const empty of [
        info.userFunding({ user, ...start }),
        info.fundingHistory({ coin: '@0', ...start }),
        info.userNonFundingLedgerUpdates({ user, ...start }),
        info.twapHistory({ user }),
        info.userTwapSliceFills({ user }),
        info.userVaultEquities({ user }),
      ])
        expect(await empty).to.deep.equal([]);
      const candles = await info.candleSnapshot({ coin: '@0', interval: '1M', ...start });
      // What test fills say of their time lies years back.
      expect(candles.length).to.be.greaterThan(12);
      expect(candles[0]).to.include({ s: '@0', i: '1M', n: 1 });
      expect(await info.subAccounts({ user })).to.equal(null);

      for (const refused of [
        exchange.setReferrer({ code: 'ABC' }),
        exchange.updateLeverage({ asset: 0, isCross: true, leverage: 2 }),
        exchange.usdClassTransfer({ amount: '1', toPerp: true }),
        exchange.spotSend({ destination: addressOf(2), token: `USDC:${addressOf(2).slice(0, 34)}`, amount: '1' }),
        exchange.withdraw3({ destination: addressOf(2), amount: '1' }),
        exchange.approveBuilderFee({ maxFeeRate: '0.01%', builder: addressOf(2) }),
      ])
        expect(await message(refused)).to.match(/unsupported_action: \w+ is not supported/);
      expect((await info.spotMeta()).universe.map(({ name }) => name)).to.deep.equal(['@0', '@1']);
      expect(await info.outcomeMeta()).to.deep.equal({ outcomes: [], questions: [] });
      const methods = (client: object): string[] => Object.getOwnPropertyNames(Object.getPrototypeOf(client));
      const ours = [...INFO_TYPES.filter((type) => methods(asking).includes(type)), ...ACTION_TYPES];
      expect(ours.length).to.be.greaterThan(35);
      expect([...asked]).to.include.members(ours);
      if (transport instanceof WebSocketTransport) transport.close();
    });
  }

  it('subscribes to everything', async () => {
    const { url, gateway } = await suite.start();
    const transport = new WebSocketTransport({ url: `${url.replace('http', 'ws')}/ws` });
    const client = recording(new SubscriptionClient({ transport }), calls, 'subscription.');
    const user = addressOf(1);
    const seen: Record<string, unknown[]> = {};
    const into = (name: string) => {
      const own: unknown[] = [];
      seen[name] = own;
      return (data: unknown): void => void own.push(data);
    };
    const first = [
      await client.allMids(into('allMids')),
      await client.l2Book({ coin: '@0' }, into('l2Book')),
      await client.bbo({ coin: '@0' }, into('bbo')),
      await client.trades({ coin: '@0' }, into('trades')),
      await client.candle({ coin: '@0', interval: '1M' }, into('candle')),
      await client.activeSpotAssetCtx({ coin: '@0' }, into('activeSpotAssetCtx')),
      await client.spotAssetCtxs(into('spotAssetCtxs')),
      await client.orderUpdates({ user }, into('orderUpdates')),
      await client.userFills({ user, aggregateByTime: false }, into('userFills')),
      await client.userEvents({ user }, into('userEvents')),
      await client.userHistoricalOrders({ user }, into('userHistoricalOrders')),
      await client.userNonFundingLedgerUpdates({ user }, into('userNonFundingLedgerUpdates')),
      await client.userFundings({ user }, into('userFundings')),
      await client.openOrders({ user }, into('openOrders')),
      await client.spotState({ user, ignorePortfolioMargin: true }, into('spotState')),
      await client.notification({ user }, into('notification')),
    ];
    await until(() => seen.userFills!.length > 0 && seen.userHistoricalOrders!.length > 0);
    await suite.act(1, orderAction(limit(false, '2600', '1'), limit(true, '2500', '1')));
    await addGeneration(suite.db, fillOf(WETH_USDC, gateway.order(1)!.order, ETHER / 2n, 1));
    gateway.onGeneration();
    await until(() => Object.entries(seen).every(([name, own]) => own.length > 0 || name === 'notification'));
    const last = (name: string): string => JSON.stringify(seen[name]!.at(-1));
    await until(() => last('userFills').includes('"oid":1') && last('openOrders').includes('"sz":"0.5"'));
    await until(
      () => last('spotState').includes('"total":"9.5"') && last('userHistoricalOrders').includes('"sz":"0.5"'),
    );
    expect(seen.notification).to.deep.equal([]);
    expect(seen.userNonFundingLedgerUpdates).to.deep.equal([{ isSnapshot: true, user, nonFundingLedgerUpdates: [] }]);
    for (const refused of [
      () => client.webData3({ user }, into('webData3')),
      () => client.clearinghouseState({ user }, into('clearinghouseState')),
      () => client.activeAssetData({ user, coin: '@0' }, into('activeAssetData')),
      () => client.twapStates({ user }, into('twapStates')),
      () => client.userTwapHistory({ user }, into('userTwapHistory')),
      () => client.userTwapSliceFills({ user }, into('userTwapSliceFills')),
      () => client.assetCtxs(into('assetCtxs')),
    ])
      expect(await message(refused())).to.match(/^unexpected: .*Invalid subscription/);
    for (const one of first) await one.unsubscribe();
    transport.close();
  });
});
