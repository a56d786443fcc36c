import { setTimeout as delay } from 'node:timers/promises';
import { SymbolConverter } from '@nktkas/hyperliquid/utils';
import { ApiRequestError, HttpTransport } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import { readOrderRows } from '../../ledger/order-log.js';
import { acquireWriter } from '../../ledger/writers.js';
import type { Db, Writer } from '../../ledger/types.js';
import {
  addGeneration,
  addressOf,
  clientOf,
  deposit,
  fillOf,
  freshDatabase,
  operate,
  post,
  seed,
  signRequest,
  startGateway,
} from '../support/gateway.js';
import type { RunningGateway } from '../support/gateway.js';
import { until } from '../support/gateway-suite.js';
import { connectWs } from '../support/ws.js';
import { USDC, WETH, WETH_USDC } from '../support/markets.js';

const CLOID = '0xabcdef0123456789abcdef0123456789';
const limit = (b: boolean, p: string, s: string, extra: object = {}) => ({
  a: 10000,
  b,
  p,
  s,
  r: false,
  t: { limit: { tif: 'Gtc' as const } },
  ...extra,
});
/** Actions that clients of this wire know and that have no meaning here. */
const UNSUPPORTED = (
  'approveBuilderFee setReferrer updateLeverage updateIsolatedMargin twapOrder twapCancel evmUserModify spotSend usdSend withdraw3 ' +
  'usdClassTransfer sendAsset vaultTransfer createSubAccount tokenDelegate multiSig convertToMultiSigUser agentEnableDexAbstraction ' +
  'userSetAbstraction userDexAbstraction reserveRequestWeight claimRewards spotDeploy'
).split(' ');
const orderAction = (...orders: object[]) => ({ type: 'order', orders, grouping: 'na' });

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

const databases: ('sqlite' | 'pg')[] = process.env.DATABASE_URL?.startsWith('postgres') ? ['sqlite', 'pg'] : ['sqlite'];

for (const kind of databases) {
  describe(`order gateway on ${kind}`, () => {
    let database: Awaited<ReturnType<typeof freshDatabase>>;
    let db: Db;
    let running: RunningGateway | null = null;
    let nonce = Date.now();

    async function start(
      wrap?: (writer: Writer) => Writer,
      limits: Parameters<typeof startGateway>[3] = {},
    ): Promise<RunningGateway> {
      running = await startGateway(db, wrap, {}, limits);
      return running;
    }

    async function restart(): Promise<RunningGateway> {
      await running?.stop();
      await db.close();
      db = await database.open();
      return start();
    }

    /** Sends an action signed by a key and returns the JSON reply. */
    async function act(
      index: number,
      action: object,
      options: Parameters<typeof signRequest>[3] & { nonce?: number } = {},
    ) {
      nonce += 1;
      const request = signRequest(action, index, options.nonce ?? nonce, options);
      return (await post(`${running?.url}/exchange`, request)).json;
    }

    beforeEach(async () => {
      database = await freshDatabase(kind);
      db = await database.open();
      await seed(db);
    });

    afterEach(async () => {
      await running?.stop();
      running = null;
      await db.close();
      await database.dispose();
    });

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
        [
          '/exchange',
          { ...good, action: orderAction(limit(true, '1e3', '1')) },
          'application/json',
          422,
          'orders[0].p',
        ],
        ['/exchange', ' '.repeat(1024 * 1024 + 1), 'application/json', 413, '1048576'],
        ['/info', { type: 'candles' }, 'application/json', 422, shape],
        ['/info', { type: 'l2Book', coin: '@0', nSigFigs: 5 }, 'application/json', 422, 'nSigFigs'],
        ['/info', { type: 'openOrders', user: '0x1' }, 'application/json', 422, 'user'],
        [
          '/info',
          { type: 'userFills', user: addressOf(1), aggregateByTime: true },
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
      expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.deep.equal([]);
    });

    it('takes user addresses in any case, with or without 0x', async () => {
      const { url } = await start();
      await act(1, orderAction(limit(true, '2500', '1')));
      for (const user of [addressOf(1).toUpperCase().replace('0X', '0x'), addressOf(1).slice(2)]) {
        expect((await post(`${url}/info`, { type: 'openOrders', user })).json).to.have.length(1);
      }
    });

    it('tells unknown, never approved and suspended signers apart, and stores nothing of theirs', async () => {
      await start();
      const action = orderAction(limit(true, '2500', '1'));
      expect(await act(40, action)).to.deep.equal({
        status: 'err',
        response: `unknown_signer: User or API Wallet ${addressOf(40)} does not exist.`,
      });
      expect((await act(3, action)).response).to.equal(`maker_not_approved: Maker ${addressOf(3)} is not approved`);
      await operate(db, 'suspend', addressOf(2));
      expect((await act(2, action)).response).to.equal(`maker_suspended: Maker ${addressOf(2)} is suspended`);
      expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.deep.equal([]);
      await operate(db, 'approve', addressOf(3));
      expect((await act(3, action)).status).to.equal('ok');
    });

    it('closes the orders of a maker that is suspended', async () => {
      const { gateway } = await start();
      await act(1, orderAction(limit(true, '2500', '1'), limit(true, '2400', '1')));
      await act(2, orderAction(limit(true, '2300', '1')));
      await operate(db, 'suspend', addressOf(1));
      await until(() => gateway.book().openOrders(addressOf(1)).length === 0);
      expect(gateway.book().openOrders(addressOf(2))).to.have.length(1);
      const row = (await readOrderRows(db.knex, { after: 2, limit: 10 }))[0];
      expect(row).to.deep.include({ maker: addressOf(1), signer: null, nonce: null, kind: 'close' });
      expect(row?.effects.map((effect) => effect.type === 'close' && effect.reason)).to.deep.equal([
        'suspended',
        'suspended',
      ]);
    });

    it('recovers signers of padded decimals, shuffled keys and upper-case client order ids', async () => {
      await start();
      const place = (c: string) => orderAction(limit(true, '2500.25', '0.5', { c }));
      const signed = signRequest(place(CLOID), 1, (nonce += 1), { source: 'b' }) as { action: object };
      const wire = {
        ...signed,
        action: {
          grouping: 'na',
          orders: [limit(true, '2500.250', '0.50', { c: CLOID.toUpperCase().replace('0X', '0x') })],
          type: 'order',
        },
      };
      const reply = (await post(`${running?.url}/exchange`, wire)).json;
      expect(reply.response.data.statuses).to.deep.equal([{ resting: { oid: 1, cloid: CLOID } }]);
      const upper = await act(1, {
        type: 'cancelByCloid',
        cancels: [{ asset: 10000, cloid: `0x${CLOID.slice(2).toUpperCase()}` }],
      });
      expect(upper.response).to.deep.equal({ type: 'cancel', data: { statuses: ['success'] } });
    });

    it('admits a nonce once, also after a restart, also when the action was refused', async () => {
      await start();
      const nowMs = Date.now();
      const place = orderAction(limit(true, '2500', '0.1'));
      expect((await act(1, place, { nonce: nowMs })).status).to.equal('ok');
      expect((await act(1, place, { nonce: nowMs - 5 })).status).to.equal('ok');
      expect((await act(2, place, { nonce: nowMs })).status).to.equal('ok');
      const refused = await act(1, { ...place, grouping: 'normalTpsl' }, { nonce: nowMs + 1 });
      expect(refused.response).to.match(/^grouping_unsupported: /);
      const expired = await act(1, place, { nonce: nowMs + 2, expiresAfter: nowMs - 1 });
      expect(expired.response).to.equal('action_expired: Action already expired');
      const alive = await act(1, place, { nonce: nowMs + 3, expiresAfter: nowMs + 60_000 });
      expect(alive.status).to.equal('ok');
      for (const restarted of [false, true]) {
        if (restarted) await restart();
        for (const used of [nowMs, nowMs - 5, nowMs + 1, nowMs + 2, nowMs + 3]) {
          expect((await act(1, place, { nonce: used })).response).to.equal(
            `duplicate_nonce: Invalid nonce: duplicate nonce ${used}`,
          );
        }
      }
      expect((await act(1, place, { nonce: nowMs - 3 * 86_400_000 })).response).to.match(/^nonce_too_low/);
      expect((await act(1, place, { nonce: nowMs + 2 * 86_400_000 })).response).to.match(/^nonce_too_high/);
      expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.have.length(6);
    });

    it('refuses vaults, altered signatures and actions of other venues', async () => {
      await start();
      const place = orderAction(limit(true, '2500', '0.1'));
      expect((await act(1, place, { vaultAddress: addressOf(9) })).response).to.equal(
        `vault_unsupported: Vault not registered: ${addressOf(9)}`,
      );
      const signed = signRequest(place, 1, nonce) as { signature: { s: string; v: number } };
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
      const high = { r: '0x1', ...signed.signature, s: `0x${(order - BigInt(signed.signature.s)).toString(16)}` };
      const flipped = { ...signed, signature: { ...high, v: 55 - signed.signature.v } };
      expect((await post(`${running?.url}/exchange`, flipped)).json.response).to.equal(
        'bad_signature: Unable to recover signer.',
      );
      const changed = { ...signed, action: orderAction(limit(true, '2500', '9')) };
      expect((await post(`${running?.url}/exchange`, changed)).json.response).to.match(
        /^unknown_signer: User or API Wallet 0x/,
      );
      for (const type of UNSUPPORTED) {
        expect((await act(1, { type, anything: 1 })).response).to.equal(`unsupported_action: ${type} is not supported`);
      }
    });

    it('refuses new orders while the ledger is not ready, and cancels', async () => {
      const { ready } = await start();
      await act(1, orderAction(limit(true, '2500', '0.1')));
      ready.reason = 'ledger_stale';
      const reply = await act(1, orderAction(limit(true, '2500', '0.1')));
      expect(reply.response.data.statuses).to.deep.equal([
        { error: 'not_ready: The ledger is not ready: ledger_stale' },
      ]);
      const canceled = await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
      expect(canceled.response.data.statuses).to.deep.equal(['success']);
    });

    it('follows deposits, reservations and fills of durable generations', async () => {
      const { gateway, url } = await start();
      const { info, user } = clientOf(url, 1);
      const ask = limit(false, '2600', '10.5', { c: CLOID });
      expect((await act(1, orderAction(ask))).response.data.statuses[0].error).to.match(/^inventory_exceeded/);
      await addGeneration(db, { entries: deposit('more', addressOf(1), WETH.address, 10n ** 18n) });
      gateway.onGeneration();
      await until(() => gateway.generation() === 2);
      expect((await act(1, orderAction(ask))).response.data.statuses).to.deep.equal([
        { resting: { oid: 1, cloid: CLOID } },
      ]);

      const order = gateway.book().order(1);
      if (order === undefined) throw new Error('no order');
      await addGeneration(db, fillOf(WETH_USDC, order, 4n * 10n ** 18n + 5n, 1));
      await until(() => gateway.generation() === 3);
      expect((await info.openOrders({ user }))[0]).to.deep.include({ sz: '6.499999999999999995', origSz: '10.5' });
      expect((await info.l2Book({ coin: '@0' }))?.levels[1]).to.deep.equal([{ px: '2600.0', sz: '6.4999', n: 1 }]);
      expect((await act(1, orderAction(limit(false, '2600', '0.5001')))).response.data.statuses[0].error).to.match(
        /^inventory/,
      );
      expect((await act(1, orderAction(limit(false, '2600', '0.4999')))).status).to.equal('ok');
      const [fill] = await info.userFills({ user });
      expect(fill).to.deep.include({
        coin: '@0',
        px: '2600.0',
        sz: '4.000000000000000005',
        side: 'A',
        startPosition: '11.0',
        dir: 'Sell',
        oid: 1,
        crossed: false,
        fee: '0.0',
        feeToken: 'USDC',
        cloid: CLOID,
      });
      expect(fill?.tid).to.satisfy(Number.isSafeInteger);

      await addGeneration(db, fillOf(WETH_USDC, order, 65n * 10n ** 17n - 5n, 2));
      await until(() => gateway.generation() === 4);
      const status = await info.orderStatus({ user, oid: 1 });
      expect(status).to.have.nested.property('order.status', 'filled');
      expect(status).to.have.nested.property('order.statusTimestamp', 1_700_000_000_002);
      expect(status).to.have.nested.property('order.order.sz', '0.0');
      await addGeneration(db, {
        reservations: [{ account: addressOf(1), token: USDC.address, deltaUnits: 29_000n * 10n ** 6n }],
      });
      await until(() => gateway.generation() === 5);
      expect((await info.spotClearinghouseState({ user })).balances[1]).to.deep.include({
        total: '57299.999999',
        hold: '29000.0',
      });
      expect((await act(1, orderAction(limit(true, '2500', '11.32')))).response.data.statuses[0].error).to.match(
        /^inventory/,
      );
      expect((await act(1, orderAction(limit(true, '2500', '11.3199')))).response.data.statuses[0]).to.have.property(
        'resting',
      );
    });

    it('closes the worst orders that the inventory no longer backs, and reduces the last one', async () => {
      const { gateway, url } = await start();
      const dear = { ...limit(false, '2600', '2'), a: 10001 };
      await act(1, orderAction(limit(false, '2600', '3'), limit(false, '2700', '4'), dear, limit(true, '2500', '1')));
      await act(2, orderAction(limit(false, '2600', '9')));
      const reserve = (weth: bigint) =>
        addGeneration(db, {
          reservations: [{ account: addressOf(1), token: WETH.address, deltaUnits: weth * 10n ** 18n }],
        });
      await reserve(1n);
      await until(() => gateway.generation() === 2);
      await gateway.idle();
      expect(gateway.book().openOrders(addressOf(1))).to.have.length(4);
      const left = () =>
        gateway
          .book()
          .openOrders(addressOf(1))
          .map((order) => [order.oid, order.sizeLots]);
      await reserve(3n);
      await until(() => gateway.book().order(2)?.sizeLots === 10_000n);
      expect(left()).to.deep.equal([
        [1, 30_000n],
        [2, 10_000n],
        [3, 20_000n],
        [4, 10_000n],
      ]);
      await reserve(5n);
      await until(() => gateway.book().openOrders(addressOf(1)).length === 2);
      expect(left()).to.deep.equal([
        [1, 10_000n],
        [4, 10_000n],
      ]);
      expect(gateway.book().openOrders(addressOf(2))).to.have.length(1);
      const { info, user } = clientOf(url, 1);
      expect(await info.orderStatus({ user, oid: 2 })).to.have.nested.property('order.status', 'canceled');
      const rows = await readOrderRows(db.knex, { after: 2, limit: 10 });
      expect(rows.map((row) => [row.kind, row.signer, row.nonce])).to.deep.equal([
        ['close', null, null],
        ['close', null, null],
      ]);
    });

    it('folds to the same state after a restart', async () => {
      const { gateway } = await start();
      await act(
        1,
        orderAction(limit(true, '2500', '1', { c: CLOID }), limit(false, '2600', '2'), limit(true, '2400', '0.5')),
      );
      await act(2, orderAction(limit(true, '2500', '0.7'), { ...limit(true, '2300', '1'), a: 10001 }));
      await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 3 }] });
      const order = gateway.book().order(2);
      if (order === undefined) throw new Error('no order');
      await addGeneration(db, fillOf(WETH_USDC, order, 10n ** 18n + 1n, 1));
      await until(() => gateway.generation() === 2);
      const view = ({ gateway: one }: RunningGateway) => ({
        orders: [1, 2].map((index) => one.book().openOrders(addressOf(index))),
        levels: [0, 1].flatMap((market) => [one.book().levels(market, 'bid'), one.book().levels(market, 'ask')]),
        exposure: [1, 2].map((index) => [...one.book().exposureUnits(addressOf(index))].sort()),
        nonces: [1, 2].map((index) => [...one.book().nonces(addressOf(index))].sort()),
        oid: one.book().lastOid(),
        seq: one.book().lastOrderSeq(),
        statuses: [1, 2, 3, 4].map((oid) => one.order(oid)),
        lastActionMs: one.lastActionMs(addressOf(2)),
      });
      const before = view(running as RunningGateway);
      expect(before.orders[0]).to.have.length(2);
      expect(before.levels[0]).to.deep.equal([{ priceTicks: 250_000n, lots: 17_000n, orders: 2 }]);
      expect(view(await restart())).to.deep.equal(before);
      expect((await act(1, orderAction(limit(true, '2400', '0.5')))).response.data.statuses).to.deep.equal([
        { resting: { oid: before.oid + 1 } },
      ]);
    });

    it('acknowledges after the commit and shows nothing before', async () => {
      let commit: () => void = () => undefined;
      let arrived = 0;
      const held = (writer: Writer): Writer => ({
        ...writer,
        tx: (write) =>
          writer.tx(async (tx) => {
            const result = await write(tx);
            arrived += 1;
            await new Promise<void>((resolve) => {
              commit = resolve;
            });
            return result;
          }),
      });
      // Books that did not change are not pushed again meanwhile, however long this takes.
      const { gateway, url } = await start(held, { repeatMs: 600_000 });
      const client = await connectWs(url);
      for (const type of ['orderUpdates', 'l2Book']) await client.subscribe({ type, coin: '@0', user: addressOf(1) });
      await client.take(({ channel }) => channel === 'l2Book');
      let answered = false;
      const reply = act(1, orderAction(limit(true, '2500', '1'))).then((json) => {
        answered = true;
        return json;
      });
      await until(() => arrived === 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(answered).to.equal(false);
      const pushed = () => client.frames.map(({ channel }) => channel).filter((one) => one !== 'subscriptionResponse');
      expect(pushed()).to.deep.equal(['l2Book']);
      expect((await post(`${url}/info`, { type: 'openOrders', user: addressOf(1) })).json).to.deep.equal([]);
      expect(gateway.book().levels(0, 'bid')).to.deep.equal([]);
      commit();
      expect((await reply).status).to.equal('ok');
      expect(gateway.book().openOrders(addressOf(1))).to.have.length(1);
      await until(() => pushed().length === 3);
      expect(pushed()).to.deep.equal(['l2Book', 'orderUpdates', 'l2Book']);
      await client.close();
    });

    it('acknowledges nothing that a failed commit lost, and goes on', async () => {
      let failures = 0;
      await start((writer) => ({
        ...writer,
        tx: (write) =>
          writer.tx(async (tx) => {
            const result = await write(tx);
            if (failures-- > 0) throw new Error('disk full');
            return result;
          }),
      }));
      await act(1, orderAction(limit(true, '2500', '1')));
      failures = 1;
      const request = signRequest(orderAction(limit(false, '2600', '1')), 1, (nonce += 1));
      const failed = await post(`${running?.url}/exchange`, request);
      expect([failed.status, failed.text]).to.deep.equal([503, 'write_failed: Nothing of the action was stored']);
      expect(running?.gateway.book().openOrders(addressOf(1))).to.have.length(1);
      expect((await post(`${running?.url}/exchange`, request)).json.response.data.statuses).to.deep.equal([
        { resting: { oid: 2 } },
      ]);
      failures = 1;
      const replies = await Promise.all([1, 2, 3].map(() => act(1, orderAction(limit(false, '2700', '0.1')))));
      expect(replies.filter((reply) => reply?.status === 'ok').length).to.be.greaterThan(1);
      const rows = await readOrderRows(db.knex, { after: 0, limit: 100 });
      expect(rows.map((row) => row.orderSeq)).to.deep.equal(rows.map((_, index) => index + 1));
      expect(running?.gateway.book().lastOrderSeq()).to.equal(rows.length);
    });

    it('gives concurrent requests distinct ids in the order of the log', async () => {
      await start();
      const replies = await Promise.all(
        Array.from({ length: 60 }, (_, index) => act(1 + (index % 2), orderAction(limit(true, '2500', '0.01')))),
      );
      const oids = replies.map((reply) => reply.response.data.statuses[0].resting.oid as number);
      expect([...oids].sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 60 }, (_, index) => index + 1));
      const rows = await readOrderRows(db.knex, { after: 0, limit: 100 });
      expect(rows.flatMap((row) => row.effects.map((effect) => effect.type === 'open' && effect.oid))).to.deep.equal(
        [...oids].sort((a, b) => a - b),
      );
    });

    it('serves what another process accepts while on standby, and sends actions away', async () => {
      await start();
      const own = await database.open();
      const standby = await startGateway(own, null);
      try {
        const url = `${standby.url}/info`;
        const ask = async () => (await post(url, { type: 'openOrders', user: addressOf(1) })).json as { oid: number }[];
        expect(await ask()).to.deep.equal([]);
        await act(1, orderAction(limit(true, '2500', '1')));
        const deadlineMs = performance.now() + 20_000;
        while ((await ask()).length === 0 && performance.now() < deadlineMs) await delay(10);
        expect((await ask()).map(({ oid }) => oid)).to.deep.equal([1]);
        const order = signRequest(orderAction(limit(true, '2500', '1')), 1, (nonce += 1));
        const answer = await post(`${standby.url}/exchange`, order);
        expect([answer.status, answer.text.split(':')[0]]).to.deep.equal([503, 'standby']);
        expect(standby.gateway.isActive()).to.equal(false);
        expect((await post(`${standby.url}/exchange`, { action: 1 })).status).to.equal(422);
        expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.have.length(1);
        await act(1, { type: 'cancel', cancels: [{ a: 10000, o: 1 }] });
        while ((await ask()).length > 0 && performance.now() < deadlineMs) await delay(10);
        expect(await ask()).to.deep.equal([]);
      } finally {
        await standby.stop();
        await own.close();
      }
    });

    it('accepts nothing once another process owns the log', async function () {
      const { gateway, url } = await start();
      await act(1, orderAction(limit(true, '2500', '1')));
      if (kind === 'pg') {
        await db.knex('writers').where({ log: 'order' }).increment('epoch', 1);
      } else {
        const other = await database.open();
        await acquireWriter(other, 'order');
        await other.close();
      }
      const answer = await post(`${url}/exchange`, signRequest(orderAction(limit(true, '2500', '1')), 1, (nonce += 1)));
      expect([answer.status, answer.text.split(':')[0]]).to.deep.equal([503, 'standby']);
      expect(gateway.isActive()).to.equal(false);
      expect(await readOrderRows(db.knex, { after: 0, limit: 10 })).to.have.length(1);
    });
  });
}
