import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import newest from 'ccxt';
import older from 'ccxt-4.4.50';
import { expect } from 'chai';
import { expectDocumented, noCalls, recording } from '../../support/api/client-calls.js';
import { addGeneration, addressOf, clientOf, fillOf, keyOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

const SYMBOL = 'WETH/USDC';
const ETHER = 10n ** 18n;
type Client = InstanceType<typeof newest.pro.hyperliquid>;

/** The newest one, and the last that signs a broker's code; what it lacks is guarded by `isOld`. */
const VERSIONS: readonly [name: string, module: typeof newest, isOld: boolean][] = [
  ['`ccxt` 4.5.84', newest, false],
  ['`ccxt` 4.4.50', older as unknown as typeof newest, true],
];

for (const [name, ccxt, isOld] of VERSIONS)
  forEachGateway(name, (suite) => {
    const opened: Client[] = [];
    const calls = noCalls();

    it('is of the version that the guide names', () => {
      const folder = isOld ? 'ccxt-4.4.50' : 'ccxt';
      const { version } = JSON.parse(readFileSync(`node_modules/${folder}/package.json`, 'utf8')) as {
        version: string;
      };
      expect(name).to.equal(`\`ccxt\` ${version}`);
    });

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
      // Plain http is what a test has; the older one would ask it over its agent for https.
      const agent: unknown = await client.loadHttpProxyAgent();
      if (isOld) Object.assign(client, { agent });
      opened.push(client);
      return recording(client, calls);
    }

    after(() => expectDocumented(name, calls));

    afterEach(async () => {
      await Promise.all(opened.splice(0).map((client) => client.close()));
    });

    async function fill(oid: number, baseUnits: bigint, fillSeq: number): Promise<void> {
      const order = suite.running.gateway.order(oid)?.order;
      if (order === undefined) throw new Error(`no order ${oid}`);
      const before = suite.running.gateway.generation();
      await addGeneration(suite.db, fillOf(WETH_USDC, order, baseUnits, fillSeq));
      suite.running.gateway.onGeneration();
      await until(() => suite.running.gateway.generation() > before);
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
        const { action } = JSON.parse(client.last_request_body as string) as { action: object };
        // Signed at its place, and of no effect: without it another address would be recovered.
        expect(Object.entries(action).at(-1)).to.deep.equal(isOld ? ['brokerCode', 1] : ['grouping', 'na']);
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
        // The older one does not read how long an order is good.
        expect(open.find((order) => order.price === 2600)?.postOnly).to.equal(!isOld);
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
        expect(trade).to.include({
          order: idOf(edited),
          side: 'buy',
          price: 2499,
          amount: 0.2,
          ...(isOld ? {} : { takerOrMaker: 'maker' }),
        });
        expect(trade?.fee?.cost).to.equal(0);
        expect(await client.fetchMyTrades(SYMBOL, 1_600_000_000_000)).to.have.length(1);
        await client.cancelOrder(idOf(edited), SYMBOL);
        const prices = [2610, 2611];
        const changes = asks.map((ask, index) => ({ id: idOf(ask), price: prices[index] ?? 0 }));
        const common = [SYMBOL, 'limit', 'sell', 1.5] as const;
        const moved: { id?: string }[] = [];
        if (isOld) for (const { id, price } of changes) moved.push(await client.editOrder(id, ...common, price));
        else {
          const [symbol, type, side, amount] = common;
          moved.push(...(await client.editOrders(changes.map((one) => ({ ...one, symbol, type, side, amount })))));
        }
        expect(moved.map(idOf)).to.deep.equal(['5', '6']);
        const quoted = (await client.fetchOpenOrders(SYMBOL)).map((order) => [order.id, order.price, order.amount]);
        expect(quoted).to.have.deep.members([
          ['5', 2610, 1.5],
          ['6', 2611, 1.5],
        ]);
        const both = moved.map(idOf);
        expect((await client.cancelOrders(both, SYMBOL)).length).to.equal(2);
        expect(await client.fetchOpenOrders(SYMBOL)).to.deep.equal([]);
        const history = await client.fetchOrders(SYMBOL);
        expect(history.map((order) => order.status)).to.deep.equal(Array.from({ length: 6 }, () => 'canceled'));
        expect((await client.fetchCanceledOrders(SYMBOL)).length).to.equal(6);
        expect((await client.fetchCanceledAndClosedOrders(SYMBOL)).length).to.equal(6);
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
      for (const [call, error] of cases)
        expect(await call().catch((thrown: unknown) => thrown)).to.be.instanceOf(error);
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
      const running = await suite.start();
      const client = await connect(1);
      await client.loadMarkets();
      if (!isOld) {
        expect((await client.fetchStatus()).status).to.equal('ok');
        running.ready.reason = 'scan_stale';
        expect((await client.fetchStatus()).status).to.equal('maintenance');
        running.ready.reason = null;
        expect(await client.fetchTime()).to.be.closeTo(Date.now(), 60_000);
      }
      expect((await client.fetchMarkets()).map((one) => one?.id)).to.include.members(['@0', '@1']);
      await client.fetchCurrencies();
      expect(await client.fetchOHLCV(SYMBOL, '1h')).to.deep.equal([]);
      await client.createOrder(SYMBOL, 'limit', 'sell', 1, 2600);
      await client.createOrder(SYMBOL, 'limit', 'buy', 1, 2500);
      await fill(1, ETHER / 2n, 1);
      const days = await client.fetchOHLCV(SYMBOL, '1d');
      expect(days.length).to.be.greaterThan(2);
      expect(days[0]!.slice(1)).to.deep.equal([2600, 2600, 2600, 2600, 0.5]);
      expect((await client.fetchTradingFee(SYMBOL)).maker).to.equal(0);
      const ticker = await client.fetchTicker(SYMBOL);
      expect([ticker.symbol, ticker.close]).to.deep.equal([SYMBOL, 2550]);
      expect(Object.keys(await client.fetchTickers([SYMBOL]))).to.deep.equal([SYMBOL]);
      // This client asks for its own trades where others ask for everybody's.
      const [trade] = await client.fetchTrades(SYMBOL);
      expect(trade).to.include({ price: 2600, amount: 0.5, side: 'sell' });
      expect(await client.fetchClosedOrders(SYMBOL)).to.deep.equal([]);
      await fill(1, ETHER / 2n, 2);
      expect((await client.fetchClosedOrders(SYMBOL)).map(idOf)).to.deep.equal(['1']);
      expect(await client.fetchLedger()).to.deep.equal([]);
      expect(await client.fetchDeposits()).to.deep.equal([]);
      expect(await client.fetchWithdrawals()).to.deep.equal([]);
      expect(await client.fetchPositions()).to.deep.equal([]);
      await client.cancelOrdersForSymbols([{ id: '2', symbol: SYMBOL }]);
      expect(await client.fetchOpenOrders()).to.deep.equal([]);
    });

    it('refuses by name what this venue does not have', async () => {
      await suite.start();
      const client = await connect(1);
      await client.loadMarkets();
      const refused: (() => Promise<unknown>)[] = [
        () => client.transfer('USDC', 1, 'spot', 'swap'),
        () => client.withdraw('USDC', 1, addressOf(2)),
      ];
      if (!isOld) {
        refused.push(
          () => client.reserveRequestWeight(1),
          () => client.createSubAccount('mine'),
          () => client.createVault('mine', 'a vault of mine', 100),
          () => client.createTwapOrder(SYMBOL, 'buy', 1, 3_600_000),
        );
      }
      for (const call of refused) {
        const error: unknown = await call().catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(ccxt.ExchangeError);
      }
    });

    it('trades and watches over WebSocket', async () => {
      await suite.start();
      const client = await connect(1);
      await client.loadMarkets();
      const watched: Record<string, unknown[]> = {};
      let watching = true;
      const watch = (what: string, next: () => Promise<unknown>): Promise<void> => {
        const seen: unknown[] = [];
        watched[what] = seen;
        return (async () => {
          while (watching) seen.push(structuredClone(await next()));
        })().catch((error: unknown) => {
          if (watching) throw error;
        });
      };
      const loops = [
        watch('orders', () => client.watchOrders(SYMBOL)),
        watch('trades', () => client.watchMyTrades(SYMBOL)),
        watch('books', async () => {
          const { bids, asks } = await client.watchOrderBook(SYMBOL);
          return { bids: bids.map((level) => [...level]), asks: asks.map((level) => [...level]) };
        }),
        watch('tickers', () => client.watchTickers([SYMBOL])),
        watch('ticker', () => client.watchTicker(SYMBOL)),
        watch('public', () => client.watchTrades(SYMBOL)),
        watch('candles', () => client.watchOHLCV(SYMBOL, '1d')),
      ];
      if (!isOld) loops.push(watch('balances', () => client.watchBalance()));
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
      if (isOld) await client.cancelOrder(idOf(ask!), SYMBOL);
      else {
        await client.cancelOrdersWs([idOf(ask!)], SYMBOL);
        const [last] = await client.createOrdersWs([
          { symbol: SYMBOL, type: 'limit', side: 'sell', amount: 1, price: 2650 },
        ]);
        await client.cancelOrderWs(idOf(last!), SYMBOL);
        expect(await client.cancelOrderWs('77', SYMBOL).catch((error: unknown) => error)).to.be.instanceOf(Error);
      }
      const flat = () =>
        (watched.orders as { id: string; status: string }[][]).flat().map(({ id, status }) => `${id} ${status}`);
      await until(() => ['3 canceled', '5 closed', '4 canceled'].every((text) => flat().includes(text)));
      await until(
        () => watched.trades!.length > 0 && watched.tickers!.some((tickers) => SYMBOL in (tickers as object)),
      );
      expect((watched.trades as { order: string; amount: number }[][]).flat()[0]).to.include({
        ...(isOld ? {} : { order: '5' }),
        amount: 0.6,
      });
      await until(() => watched.public!.length > 0 && watched.candles!.length > 0 && watched.ticker!.length > 0);
      expect((watched.ticker as { symbol: string }[])[0]!.symbol).to.equal(SYMBOL);
      expect((watched.public as { side: string; price: number; amount: number }[][]).flat()[0]).to.include({
        ...{ side: 'sell', price: 2501, amount: 0.6 },
      });
      expect((watched.candles as number[][][])[0]!.at(-1)!.slice(1)).to.deep.equal([
        // The time of the fill lies years back: today has its price and no volume.
        ...[2501, 2501, 2501, 2501, 0],
      ]);
      if (!isOld) {
        const balances = watched.balances as { WETH: { total: number } }[];
        await until(() => balances.at(-1)?.WETH.total === 10.6);
      }
      watching = false;
      await client.unWatchOrderBook(SYMBOL);
      await client.unWatchTickers([SYMBOL]);
      await client.unWatchTrades(SYMBOL);
      await client.unWatchOHLCV(SYMBOL, '1d');
      if (!isOld) {
        await client.unWatchOrders();
        await client.unWatchMyTrades();
        await client.unWatchBalance();
      }
      await client.close();
      await Promise.race([Promise.allSettled(loops), delay(1_000)]);
    });
  });
