import { setTimeout as delay } from 'node:timers/promises';
import ccxt from 'ccxt';
import { expect } from 'chai';
import { addGeneration, addressOf, clientOf, fillOf, keyOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

const SYMBOL = 'WETH/USDC';
const ETHER = 10n ** 18n;
type Client = InstanceType<typeof ccxt.pro.hyperliquid>;

forEachGateway('ccxt', (suite) => {
  const opened: Client[] = [];

  /** A client whose only difference from that of the real venue is its URLs. */
  async function connect(index: number, options: object = {}): Promise<Client> {
    const { url } = suite.running;
    const client = new ccxt.pro.hyperliquid({
      walletAddress: addressOf(index),
      privateKey: keyOf(index),
      // Only to save time: the client paces itself otherwise.
      enableRateLimit: false,
      options: { defaultType: 'spot', ...options },
    });
    client.urls.api = { public: url, private: url, ws: { public: `${url.replace('http', 'ws')}/ws` } };
    await client.loadHttpProxyAgent();
    opened.push(client);
    return client;
  }

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((client) => client.close()));
  });

  async function fill(oid: number, baseUnits: bigint, fillSeq: number): Promise<void> {
    const order = suite.running.gateway.order(oid)?.order;
    if (order === undefined) throw new Error(`no order ${oid}`);
    await addGeneration(suite.db, fillOf(WETH_USDC, order, baseUnits, fillSeq));
    suite.running.gateway.onGeneration();
    await until(() => (suite.running.gateway.order(oid)?.order.filledUnits ?? 0n) > 0n);
  }

  const idOf = (order: { id?: string }): string => order.id ?? '';

  for (const sandboxMode of [false, true]) {
    it(`trades over HTTP, signing as ${sandboxMode ? 'testnet' : 'mainnet'}`, async () => {
      await suite.start();
      const client = await connect(1, { sandboxMode });
      const markets = await client.loadMarkets();
      expect(Object.keys(markets)).to.include.members([SYMBOL, 'WETH/DAI']);
      expect(markets[SYMBOL]).to.include({ id: '@0', spot: true, swap: false });
      expect(markets[SYMBOL]?.precision.amount).to.equal(0.0001);
      const balance = await client.fetchBalance();
      expect([balance.WETH?.free, balance.USDC?.total]).to.deep.equal([10, 30_000]);

      const cloid = `0x${'c1'.repeat(16)}`;
      const bid = await client.createOrder(SYMBOL, 'limit', 'buy', 0.5, 2500.2, { clientOrderId: cloid });
      expect(idOf(bid)).to.equal('1');
      expect(bid.clientOrderId).to.equal(cloid);
      const asks = await client.createOrders([
        { symbol: SYMBOL, type: 'limit', side: 'sell', amount: 1, price: 2600, params: { postOnly: true } },
        { symbol: SYMBOL, type: 'limit', side: 'sell', amount: 2, price: 2700 },
      ]);
      expect(asks.map(idOf)).to.deep.equal(['2', '3']);
      const open = await client.fetchOpenOrders(SYMBOL);
      expect(open.map((order) => [order.side, order.price, order.amount, order.remaining])).to.have.deep.members([
        ['buy', 2500.2, 0.5, 0.5],
        ['sell', 2600, 1, 1],
        ['sell', 2700, 2, 2],
      ]);
      expect(open.find((order) => order.price === 2600)?.postOnly).to.equal(true);
      const book = await client.fetchOrderBook(SYMBOL);
      expect([book.bids[0], book.asks[0]]).to.deep.equal([
        [2500.2, 0.5],
        [2600, 1],
      ]);

      const edited = await client.editOrder(idOf(bid), SYMBOL, 'limit', 'buy', 0.7, 2499);
      expect(idOf(edited)).to.equal('4');
      expect((await client.fetchOrder(idOf(bid), SYMBOL)).status).to.equal('canceled');
      await fill(Number.parseInt(idOf(edited), 10), ETHER / 5n, 1);
      const part = await client.fetchOrder(idOf(edited), SYMBOL);
      expect([part.status, part.remaining, part.filled]).to.deep.equal(['open', 0.5, 0.2]);
      const [trade] = await client.fetchMyTrades(SYMBOL);
      expect(trade).to.include({ order: idOf(edited), side: 'buy', price: 2499, amount: 0.2, takerOrMaker: 'maker' });
      expect(trade?.fee?.cost).to.equal(0);
      expect(await client.fetchMyTrades(SYMBOL, 1_600_000_000_000)).to.have.length(1);
      await client.cancelOrder(idOf(edited), SYMBOL);
      const moved = await client.editOrders(
        asks.map((ask, index) => ({
          id: idOf(ask),
          symbol: SYMBOL,
          type: 'limit',
          side: 'sell',
          amount: 1.5,
          price: 2610 + index,
        })),
      );
      expect(moved.map(idOf)).to.deep.equal(['5', '6']);
      const quoted = (await client.fetchOpenOrders(SYMBOL)).map((order) => [order.id, order.price, order.amount]);
      expect(quoted).to.have.deep.members([
        ['5', 2610, 1.5],
        ['6', 2611, 1.5],
      ]);
      const both = moved.map(idOf);
      expect((await client.cancelOrders(both, SYMBOL)).map((order) => order.status)).to.deep.equal([
        'success',
        'success',
      ]);
      expect(await client.fetchOpenOrders(SYMBOL)).to.deep.equal([]);
      const history = await client.fetchOrders(SYMBOL);
      expect(history.map((order) => order.status)).to.deep.equal(Array.from({ length: 6 }, () => 'canceled'));
      expect((await client.fetchCanceledOrders(SYMBOL)).length).to.equal(6);
    });
  }

  it('sees why an order is refused', async () => {
    await suite.start();
    const client = await connect(1);
    await client.createOrder(SYMBOL, 'limit', 'sell', 1, 2600);
    const cases: [() => Promise<unknown>, new (...args: never[]) => Error][] = [
      [() => client.createOrder(SYMBOL, 'limit', 'buy', 1, 2600), ccxt.InvalidOrder],
      [() => client.createOrder(SYMBOL, 'limit', 'buy', 100, 2500), ccxt.InsufficientFunds],
      [() => client.createOrder(SYMBOL, 'market', 'buy', 1, 2600), ccxt.InvalidOrder],
      [() => client.cancelOrder('99', SYMBOL), ccxt.OrderNotFound],
      [() => client.cancelAllOrdersAfter(0), ccxt.ExchangeError],
    ];
    for (const [call, error] of cases) expect(await call().catch((thrown: unknown) => thrown)).to.be.instanceOf(error);
    await client.cancelAllOrdersAfter(60_000);
    expect(suite.running.gateway.book().armed().size).to.equal(1);
  });

  it('acts for a master by an agent, cancels by client order id', async () => {
    await suite.start();
    const { exchange } = clientOf(suite.running.url, 1);
    await exchange.approveAgent({ agentAddress: addressOf(11), agentName: 'ccxt' });
    const client = await connect(1);
    client.privateKey = keyOf(11);
    const cloid = `0x${'AB'.repeat(16)}`;
    await client.createOrder(SYMBOL, 'limit', 'buy', 1, 2500, { clientOrderId: cloid });
    expect(await client.fetchOpenOrders()).to.have.length(1);
    await client.cancelOrder('', SYMBOL, { clientOrderId: cloid });
    expect(await client.fetchOpenOrders()).to.have.length(0);
  });

  it('answers the other reads of clients', async () => {
    await suite.start();
    const client = await connect(1);
    await client.loadMarkets();
    expect((await client.fetchStatus()).status).to.equal('ok');
    expect(await client.fetchTime()).to.be.closeTo(Date.now(), 60_000);
    expect(await client.fetchOHLCV(SYMBOL, '1h')).to.deep.equal([]);
    await client.createOrder(SYMBOL, 'limit', 'sell', 1, 2600);
    await fill(1, ETHER / 2n, 1);
    const days = await client.fetchOHLCV(SYMBOL, '1d');
    expect(days.length).to.be.greaterThan(2);
    expect(days[0]!.slice(1)).to.deep.equal([2600, 2600, 2600, 2600, 0.5]);
    expect((await client.fetchTradingFee(SYMBOL)).maker).to.equal(0);
    const ticker = await client.fetchTicker(SYMBOL);
    expect(ticker.symbol).to.equal(SYMBOL);
    expect(await client.fetchClosedOrders(SYMBOL)).to.deep.equal([]);
  });

  it('trades and watches over WebSocket', async () => {
    await suite.start();
    const client = await connect(1);
    await client.loadMarkets();
    const watched: Record<string, unknown[]> = {
      orders: [],
      trades: [],
      books: [],
      tickers: [],
      public: [],
      candles: [],
    };
    let watching = true;
    const watch = (name: string, next: () => Promise<unknown>): Promise<void> =>
      (async () => {
        while (watching) watched[name]?.push(structuredClone(await next()));
      })().catch((error: unknown) => {
        if (watching) throw error;
      });
    const loops = [
      watch('orders', () => client.watchOrders(SYMBOL)),
      watch('trades', () => client.watchMyTrades(SYMBOL)),
      watch('books', async () => {
        const { bids, asks } = await client.watchOrderBook(SYMBOL);
        return { bids: bids.map((level) => [...level]), asks: asks.map((level) => [...level]) };
      }),
      watch('tickers', () => client.watchTickers([SYMBOL])),
      watch('public', () => client.watchTrades(SYMBOL)),
      watch('candles', () => client.watchOHLCV(SYMBOL, '1d')),
    ];
    await until(() => watched.books!.length > 0);

    // Another maker's quotes stay, so that both sides always have a price.
    await suite.act(2, orderAction(limit(true, '2400', '1'), limit(false, '2700', '1')));

    const bid = await client.createOrderWs(SYMBOL, 'limit', 'buy', 0.5, 2500);
    expect(idOf(bid)).to.equal('3');
    const [ask] = await client.createOrdersWs([
      { symbol: SYMBOL, type: 'limit', side: 'sell', amount: 1, price: 2600 },
    ]);
    // A book that nobody waits for may never be seen: a client gets the newest one, not all of them.
    await until(() => (watched.books as { asks: number[][] }[]).some(({ asks }) => asks[0]?.[0] === 2600));
    const edited = await client.editOrderWs(idOf(bid), SYMBOL, 'limit', 'buy', 0.6, 2501);
    await fill(Number.parseInt(idOf(edited), 10), (6n * ETHER) / 10n, 1);
    await client.cancelOrdersWs([idOf(ask!)], SYMBOL);
    const [last] = await client.createOrdersWs([
      { symbol: SYMBOL, type: 'limit', side: 'sell', amount: 1, price: 2650 },
    ]);
    await client.cancelOrderWs(idOf(last!), SYMBOL);
    expect(await client.cancelOrderWs('77', SYMBOL).catch((error: unknown) => error)).to.be.instanceOf(Error);
    const flat = () =>
      (watched.orders as { id: string; status: string }[][]).flat().map(({ id, status }) => `${id} ${status}`);
    await until(() => ['3 canceled', '5 closed', '4 canceled'].every((text) => flat().includes(text)));
    await until(() => watched.trades!.length > 0 && watched.tickers!.some((tickers) => SYMBOL in (tickers as object)));
    expect((watched.trades as { order: string; amount: number }[][]).flat()[0]).to.include({ order: '5', amount: 0.6 });
    await until(() => watched.public!.length > 0 && watched.candles!.length > 0);
    expect((watched.public as { side: string; price: number; amount: number }[][]).flat()[0]).to.include({
      ...{ side: 'sell', price: 2501, amount: 0.6 },
    });
    expect((watched.candles as number[][][])[0]!.at(-1)!.slice(1)).to.deep.equal([
      // The time of the fill lies years back: today has its price and no volume.
      ...[2501, 2501, 2501, 2501, 0],
    ]);
    watching = false;
    await client.unWatchOrderBook(SYMBOL);
    await client.unWatchOrders();
    await client.unWatchMyTrades();
    await client.unWatchTickers([SYMBOL]);
    await client.close();
    await Promise.race([Promise.allSettled(loops), delay(1_000)]);
  });
});
