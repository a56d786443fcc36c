import { ApiRequestError, ExchangeClient, HttpTransport, InfoClient, WebSocketTransport } from '@nktkas/hyperliquid';
import { SymbolConverter, formatPrice, formatSize } from '@nktkas/hyperliquid/utils';
import { expect } from 'chai';
import { ethers } from 'ethers';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { addGeneration, addressOf, fillOf, keyOf } from '../../support/gateway.js';
import { forEachGateway, limit, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

const CLOID = `0x${'d1'.repeat(16)}` as const;
const OTHER = `0x${'d2'.repeat(16)}` as const;
/** Every action that is admitted. */
const ACTION_TYPES = [
  ...['order', 'modify', 'batchModify', 'cancel', 'cancelByCloid', 'scheduleCancel'],
  ...['approveAgent', 'noop'],
];
const ETHER = 10n ** 18n;

forEachGateway('@nktkas/hyperliquid', (suite) => {
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
      const exchange = new ExchangeClient({ transport, wallet: new ethers.Wallet(keyOf(1)) });
      const info = new InfoClient({ transport });
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
      const methods = (client: object): string[] => Object.getOwnPropertyNames(Object.getPrototypeOf(client));
      const ours = [...INFO_TYPES.filter((type) => methods(info).includes(type)), ...ACTION_TYPES];
      expect(ours.length).to.be.greaterThan(35);
      expect([...asked]).to.include.members(ours);
      if (transport instanceof WebSocketTransport) transport.close();
    });
  }
});
