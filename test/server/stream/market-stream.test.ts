import { expect } from 'chai';
import { INTERVALS } from '../../../core/market-data/intervals.js';
import type { Address } from '../../../core/types.js';
import type { CustodyKind } from '../../../ledger/types.js';
import { addGeneration, addressOf, fillOf, post } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import { connectWs, type WsClient } from '../../support/ws.js';

const ETHER = 10n ** 18n;
const DAY_MS = 86_400_000;

forEachGateway('market data', (suite) => {
  let client: WsClient;

  afterEach(() => client?.close());

  const info = async (type: string, fields: object = {}) =>
    (await post(`${suite.running.url}/info`, { type, ...fields })).json;

  /** Fills an order at a time of the chain, and waits until the gateway knows. */
  async function fill(oid: number, baseUnits: bigint, fillSeq: number, timeMs: number): Promise<void> {
    const order = suite.running.gateway.order(oid)!.order;
    const { fills, entries } = fillOf(WETH_USDC, order, baseUnits, fillSeq);
    const [one] = fills;
    // A gateway that the database tells of commits may know it before this process goes on.
    const before = suite.running.gateway.generation();
    await addGeneration(suite.db, {
      fills: [{ ...one!, fill: { ...one!.fill, timestampMs: timeMs, blockNumber: fillSeq } }],
      entries,
    });
    suite.running.gateway.onGeneration();
    await until(() => suite.running.gateway.generation() > before);
  }

  /** Two asks and two bids of the first maker, oids 1 to 4. */
  const quote = () =>
    suite.act(
      1,
      orderAction(
        limit(false, '2600', '2'),
        limit(false, '2610.25', '1'),
        limit(true, '2500.25', '1'),
        limit(true, '2490', '1'),
      ),
    );

  const on = (channel: string) => (frame: { channel: string }) => frame.channel === channel;

  it('begins with the present state, and pushes every trade, candle, best price and ticker', async () => {
    const nowMs = Math.floor(Date.now() / 60_000) * 60_000 + 30_000;
    const running = await suite.start();
    running.time.nowMs = () => nowMs;
    await quote();
    await fill(1, ETHER / 2n, 1, nowMs - 20_000);
    client = await connectWs(running.url);
    for (const subscription of [
      { type: 'trades', coin: '@0' },
      { type: 'candle', coin: '@0', interval: '1m' },
      { type: 'bbo', coin: '@0' },
      { type: 'activeAssetCtx', coin: '@0' },
      { type: 'spotAssetCtxs' },
      { type: 'webData2', user: `0x${'0'.repeat(40)}` },
      { type: 'userEvents', user: addressOf(1) },
      { type: 'l2Book', coin: '@0', nSigFigs: 4, mantissa: null },
    ])
      expect((await client.subscribe(subscription)).channel).to.equal('subscriptionResponse');
    const [trade] = (await client.take(on('trades'))).data;
    expect(trade).to.include({ coin: '@0', side: 'B', px: '2600.0', sz: '0.5', time: nowMs - 20_000 });
    expect(trade.users).to.deep.equal([addressOf(77), addressOf(1)]);
    const open = nowMs - 30_000;
    const candle = { t: open, T: open + 59_999, s: '@0', i: '1m', o: '2600.0', c: '2600.0', h: '2600.0', l: '2600.0' };
    expect((await client.take(on('candle'))).data).to.deep.equal({ ...candle, v: '0.5', n: 1 });
    expect((await client.take(on('bbo'))).data.bbo).to.deep.equal([
      { px: '2500.25', sz: '1.0', n: 1 },
      { px: '2600.0', sz: '1.5', n: 1 },
    ]);
    const { ctx } = (await client.take(on('activeSpotAssetCtx'))).data;
    expect(ctx).to.include({ prevDayPx: '2600.0', dayNtlVlm: '1300.0', dayBaseVlm: '0.5', midPx: '2550.125' });
    expect((await client.take(on('spotAssetCtxs'))).data[0]).to.deep.equal(ctx);
    expect((await client.take(on('webData2'))).data.spotAssetCtxs[0]).to.deep.equal(ctx);
    const book = (await client.take(on('l2Book'))).data.levels;
    expect(book.map((side: { px: string }[]) => side.map(({ px }) => px))).to.deep.equal([
      ['2500.0', '2490.0'],
      ['2600.0', '2611.0'],
    ]);

    await fill(3, ETHER / 4n, 2, nowMs - 10_000);
    const [sold] = (await client.take(on('trades'))).data;
    expect(sold).to.include({ side: 'A', px: '2500.25', sz: '0.25' });
    const event = (await client.take(on('user'))).data;
    // A quarter of what was sold short at 2600 was bought back at 2500.25.
    expect(event.fills).to.have.length(1);
    expect(event.fills[0]).to.include({ oid: 3, dir: 'Buy', closedPnl: '24.9375' });
    const next = await client.take((frame) => frame.channel === 'candle' && frame.data.n === 2);
    expect(next.data).to.deep.equal({ ...candle, c: '2500.25', l: '2500.25', v: '0.75', n: 2 });
    // Less than the minute after which a silent connection is closed.
    running.time.nowMs = () => nowMs + 31_000;
    const flat = await client.take((frame) => frame.channel === 'candle' && frame.data.t > open);
    expect(flat.data).to.include({ t: open + 60_000, o: '2500.25', c: '2500.25', v: '0.0', n: 0 });
    // A block is applied a while after its time, and its trades belong to a candle that has ended meanwhile.
    await fill(2, ETHER / 2n, 3, nowMs + 29_000);
    const ended = await client.take((frame) => frame.channel === 'candle' && frame.data.n === 3);
    expect(ended.data).to.deep.equal({ ...candle, c: '2610.25', h: '2610.25', l: '2500.25', v: '1.25', n: 3 });
    const after = await client.take((frame) => frame.channel === 'candle' && frame.data.o === '2610.25');
    expect(after.data).to.include({ t: open + 60_000, c: '2610.25', v: '0.0', n: 0 });
    const canceled = await suite.act(1, {
      type: 'cancel',
      cancels: [
        { a: 10000, o: 3 },
        { a: 10000, o: 4 },
      ],
    });
    expect(canceled.response.data.statuses).to.deep.equal(['success', 'success']);
    expect(
      (await client.take((frame) => frame.channel === 'bbo' && frame.data.bbo[0] === null)).data.bbo[1].px,
    ).to.equal('2600.0');
  });

  it('answers candles, tickers and merged fills to the unit', async () => {
    const nowMs = Math.floor(Date.now() / 60_000) * 60_000 + 30_000;
    const running = await suite.start();
    running.time.nowMs = () => nowMs;
    const request = { coin: '@0', interval: '1h', startTime: 0 };
    expect(await info('candleSnapshot', { req: request })).to.deep.equal([]);
    await quote();
    await fill(1, ETHER, 1, nowMs - DAY_MS - 60_000);
    await fill(2, ETHER / 2n, 2, nowMs - DAY_MS / 2);
    await fill(3, ETHER / 8n, 3, nowMs - 1_000);
    await fill(3, ETHER / 8n, 4, nowMs - 1_000);
    const candles = await info('candleSnapshot', { req: request });
    expect(candles).to.have.length.within(25, 26);
    expect(candles.map((one: { n: number }) => one.n).reduce((a: number, b: number) => a + b)).to.equal(4);
    expect(candles.at(-1)).to.include({ o: '2500.25', v: '0.25', n: 2 });
    const last = await info('candleSnapshot', { req: { ...request, startTime: nowMs - 1, endTime: nowMs } });
    expect(last).to.deep.equal(candles.slice(-1));
    const [, [ctx]] = await info('spotMetaAndAssetCtxs');
    expect(ctx).to.include({ prevDayPx: '2600.0', dayBaseVlm: '0.75', dayNtlVlm: '1930.1875' });
    const user = addressOf(1);
    const made = await info('userRateLimit', { user });
    expect(made.cumVlm, '1 x 2600 + 0.5 x 2610.25 + 0.25 x 2500.25').to.equal('4530.1875');
    const all = await info('userFillsByTime', { user, startTime: 0 });
    expect(all.map((one: { time: number }) => one.time)).to.deep.equal([
      nowMs - DAY_MS - 60_000,
      nowMs - DAY_MS / 2,
      nowMs - 1_000,
      nowMs - 1_000,
    ]);
    const bought = await info('userFills', { user, aggregateByTime: true });
    expect(bought, 'parts of one order in two blocks').to.have.length(4);
    expect(await info('userFillsByTime', { user, startTime: nowMs - 1_000, endTime: nowMs })).to.have.length(2);
    for (const interval of INTERVALS) {
      const ask = (startTime: number, endTime: number) =>
        info('candleSnapshot', { req: { coin: '@0', interval, startTime, endTime } });
      expect(await ask(nowMs, nowMs - 100 * DAY_MS), `${interval}, backwards`).to.deep.equal([]);
      expect(await ask(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), `${interval}, never`).to.deep.equal([]);
      expect(await ask(nowMs, Number.MAX_SAFE_INTEGER), `${interval}, to the end of time`).to.have.length(1);
    }
    for (const req of [{ ...request, interval: '6h' }, { ...request, startTime: -1 }, 5])
      expect((await post(`${running.url}/info`, { type: 'candleSnapshot', req })).status).to.equal(422);
    expect(await info('candleSnapshot', { req: { ...request, coin: '@9' } })).to.deep.equal([]);
  });

  it('lists what an account paid in and was paid out, oldest first, and of nobody else', async () => {
    const nowMs = Math.floor(Date.now() / 60_000) * 60_000 + 30_000;
    await suite.start();
    await quote();
    await fill(1, ETHER, 1, nowMs - 60_000);
    const { knex } = suite.db;
    const [user, zero] = [addressOf(1), `0x${'0'.repeat(40)}`];
    const { base, quote: usdc } = WETH_USDC;
    const times = [-30, -20, -10].map((seconds) => Math.floor(nowMs / 1_000) + seconds);
    for (const [i, timestampSec] of times.entries()) {
      const block = { number: 9_000_000 + i, hash: `0xb${i}` as const, parent_hash: '0xb' as const, generation: 1 };
      await knex('blocks').insert({ ...block, timestamp_sec: timestampSec });
    }
    const hash = (log: number) => `0x${`${log}`.padStart(64, 'e')}` as const;
    const add = async (log: number, row: { kind: CustodyKind; maker: Address; token: Address; amount_units: string }) =>
      knex('custody_events').insert({
        ...{ ...row, basis: null, ready_at_sec: null, settlement_no: null, generation: 1 },
        ...{ block_number: 9_000_000 + (log % 3), log_index: log, tx_hash: hash(log) },
      });
    await add(1, { kind: 'executed', maker: user, token: usdc.address, amount_units: '1500000' });
    await add(2, { kind: 'deposited', maker: user, token: usdc.address, amount_units: '7' });
    await add(3, { kind: 'deposited', maker: user, token: base.address, amount_units: '500000000000000000' });
    await add(4, { kind: 'requested', maker: user, token: usdc.address, amount_units: '9' });
    await add(5, { kind: 'deposited', maker: addressOf(2), token: usdc.address, amount_units: '9' });
    const ask = (fields: object) => info('userNonFundingLedgerUpdates', { user, ...fields });
    const rows = await ask({ startTime: nowMs - 45_000, endTime: null });
    const [first, second, third] = times.map((seconds) => seconds * 1_000);
    const transfer = { user: zero, destination: user, fee: '0.0', nativeTokenFee: '0.0', nonce: null, feeToken: '' };
    expect(rows).to.deep.equal([
      {
        ...{ time: first, hash: hash(3) },
        // Half an ether at the trade before, of 2600.
        delta: { type: 'spotTransfer', token: 'WETH', amount: '0.5', usdcValue: '1300.0', ...transfer },
      },
      { time: second, hash: hash(1), delta: { type: 'withdraw', usdc: '1.5', nonce: second, fee: '0.0' } },
      { time: third, hash: hash(2), delta: { type: 'deposit', usdc: '0.000007' } },
    ]);
    expect(await ask({ startTime: second, endTime: second })).to.deep.equal([rows[1]]);
    expect(await ask({ startTime: third! + 1 })).to.deep.equal([]);
  });
});
