/** No served type answers a constant where the ledger knows better: every field that is the same in all states of this test is listed, with the reason. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { addGeneration, addressOf, clientOf, deposit, fillOf, post } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';
import { connectWs, type Frame, type WsClient } from '../../support/ws.js';
import { PLATFORM_FRAMES, SWAP_FRAMES } from '../../support/api/constant-answers.js';
import { PUSHED } from '../../../server/stream/document.js';
import { SUBSCRIPTION_TYPES } from '../../../server/stream/schemas.js';
import { CONSTANT_FIELDS } from '../../support/api/constant-fields.js';
import { constantsOf, note, type Seen } from '../../support/api/seen-fields.js';

const ETHER = 10n ** 18n;
const CLOID = `0x${'f1'.repeat(16)}`;
const OTHER_CLOID = `0x${'f2'.repeat(16)}`;
/** Frames that nothing sends so far. */
const SILENT = ['notification'];
const NOBODY = `0x${'0'.repeat(40)}`;

forEachGateway('fields that never change', (suite) => {
  const seen: Seen = new Map();
  let client: WsClient;

  const users = [1, 2, 11, 12, 77, 99].map(addressOf);

  async function ask(): Promise<void> {
    const now = Date.now();
    for (const type of INFO_TYPES) {
      for (const user of users) {
        for (const coin of ['@0', '@1']) {
          const fields = { user, coin, startTime: 0, builder: user, vaultAddress: user };
          for (const oid of type === 'orderStatus' ? [1, 2, 4, 5, CLOID] : [1]) {
            for (const nSigFigs of type === 'l2Book' ? [null, 3] : [null]) {
              const req = { coin, interval: coin === '@0' ? '1d' : '1h', startTime: now - 86_400_000, endTime: now };
              const { status, json } = await post(`${suite.running.url}/info`, { type, ...fields, oid, nSigFigs, req });
              expect(status, type).to.equal(200);
              note(seen, type, json);
            }
          }
        }
      }
    }
  }

  async function listen(): Promise<void> {
    client = await connectWs(suite.running.url);
    const subscribe = client.subscribe.bind(client);
    const asked = new Set<string>();
    client.subscribe = (subscription) => {
      asked.add((subscription as { type: string }).type);
      return subscribe(subscription);
    };
    for (const coin of ['@0', '@1'])
      for (const type of ['l2Book', 'bbo', 'trades', 'activeAssetCtx', 'candle'])
        await client.subscribe({ type, coin, ...(type === 'candle' ? { interval: coin === '@0' ? '1m' : '1d' } : {}) });
    for (const type of ['allMids', 'spotAssetCtxs']) await client.subscribe({ type });
    await client.subscribe({ type: 'webData2', user: NOBODY });
    for (const user of users.slice(0, 2))
      for (const type of ['orderUpdates', 'userFills', 'userEvents', 'userHistoricalOrders', 'openOrders', 'spotState'])
        await client.subscribe({ type, user });
    for (const type of ['userNonFundingLedgerUpdates', 'userFundings'])
      for (const user of users.slice(0, 2)) await client.subscribe({ type, user });
    await client.subscribe({ type: 'notification', user: addressOf(1) });
    expect([...asked, ...PLATFORM_FRAMES, ...SWAP_FRAMES].sort(), 'every type that may be subscribed to').to.deep.equal(
      SUBSCRIPTION_TYPES.toSorted(),
    );
  }

  async function generation(change: Parameters<typeof addGeneration>[1]): Promise<void> {
    const { gateway } = suite.running;
    const before = gateway.generation();
    await addGeneration(suite.db, change);
    gateway.onGeneration();
    await until(() => gateway.generation() > before);
  }

  /** A fill of an order at a time, by a taker. */
  async function fill(oid: number, baseUnits: bigint, fillSeq: number, timeMs: number, taker: number): Promise<void> {
    const order = suite.running.gateway.order(oid)!.order;
    const market = order.market === 0 ? WETH_USDC : WETH_DAI;
    const { fills, entries } = fillOf(market, order, baseUnits, fillSeq);
    const [one] = fills;
    // Fills of two markets are of two transactions.
    const txHash = `0x${`${order.market}${fillSeq}`.padStart(64, 'a')}` as const;
    const other = { txHash, logIndex: 10 * order.market + fillSeq };
    const terms = { timestampMs: timeMs, taker: addressOf(taker), blockNumber: fillSeq, ...other };
    await generation({ fills: [{ ...one!, fill: { ...one!.fill, ...terms } }], entries });
  }

  async function paid(user: number, kind: 'deposited' | 'executed', token: typeof WETH, units: bigint, log: number) {
    const at = suite.running.gateway.generation() + 1;
    const maker = addressOf(user);
    const row = {
      kind,
      maker,
      token: token.address,
      amountUnits: units,
      basis: null,
      readyAtSec: null,
      settlementNo: null,
      paidGas: 0n,
    };
    const txHash = `0x${`${log}`.padStart(64, 'd')}` as const;
    const entries = kind === 'deposited' ? deposit(`paid ${log}`, maker, token.address, units) : [];
    await generation({ custody: [{ ...row, blockNumber: at, txHash, logIndex: log }], entries });
  }

  it('are those that are listed, each with its reason', async function () {
    this.timeout(120_000);
    // The clock jumps ahead below, and a listener that says nothing must not look idle for it.
    const running = await suite.start({}, { idleMs: 3_600_000 });
    await ask();
    await listen();
    // What follows is of one minute.
    const sinceMinuteMs = Date.now() % 60_000;
    if (sinceMinuteMs < 3_000 || sinceMinuteMs > 40_000) await delay((63_000 - sinceMinuteMs) % 60_000);
    const nowMs = Date.now();
    await suite.act(
      1,
      orderAction(limit(false, '2600', '2', { c: CLOID }), limit(true, '2500.25', '1', { c: OTHER_CLOID })),
    );
    await suite.act(
      2,
      orderAction(limit(false, '2610.25', '1'), limit(true, '2490', '1', { t: { limit: { tif: 'Alo' } } })),
    );
    await suite.act(1, orderAction({ ...limit(false, '2450', '1'), a: 10001 }));
    await suite.act(2, orderAction({ ...limit(false, '2460', '0.5'), a: 10001 }));
    await ask();
    // A later state of a book may take the place of this one.
    const isQuoted = ({ channel, data }: Frame): boolean => channel === 'allMids' && '@0' in data.mids;
    await until(() => client.frames.some(isQuoted));
    // Long before the rest: what was paid in later has a price.
    await fill(1, ETHER / 2n, 1, 1_699_999_000_000, 77);
    await fill(2, (9n * ETHER) / 10n, 2, nowMs - 3_000_000, 99);
    // Two of the minute that is told of, the second one when the candle was seen with the first.
    const hasTrades = (count: number) => () =>
      client.frames.some(({ channel, data }: Frame) => channel === 'candle' && data.s === '@0' && data.n === count);
    await fill(3, ETHER, 3, nowMs - 2_000, 77);
    await until(hasTrades(1));
    await fill(4, ETHER / 2n, 4, nowMs - 1_000, 77);
    await until(hasTrades(2));
    await fill(5, ETHER / 8n, 1, nowMs - 40_000_000, 77);
    await fill(6, ETHER / 8n, 2, nowMs - 500, 99);
    await ask();
    await paid(1, 'deposited', USDC, 5_000_000n, 901);
    await paid(1, 'deposited', WETH, ETHER, 902);
    await paid(1, 'deposited', WETH_DAI.quote, ETHER, 905);
    await paid(2, 'deposited', USDC, 5n, 906);
    await clientOf(running.url, 1).exchange.approveAgent({ agentAddress: addressOf(11), agentName: 'bot' });
    running.time.nowMs = () => Date.now() + 60_000;
    await clientOf(running.url, 2).exchange.approveAgent({ agentAddress: addressOf(12), agentName: 'other' });
    running.time.nowMs = null;
    await paid(1, 'executed', USDC, 2_000_000n, 903);
    await paid(1, 'executed', WETH, ETHER / 2n, 904);
    await generation({
      reservations: [
        { account: addressOf(1), token: WETH.address, deltaUnits: ETHER },
        { account: addressOf(1), token: USDC.address, deltaUnits: 5n },
      ],
    });
    await suite.act(1, { type: 'cancel', cancels: [{ a: 10000, o: 2 }] });
    await suite.act(
      2,
      orderAction(limit(true, '2300', '0.7'), limit(true, '2490', '0.2'), limit(false, '2750', '0.3', { c: CLOID })),
    );
    running.ready.reason = 'scan_stale';
    await ask();
    const listed = Object.values(CONSTANT_FIELDS).flat().sort();
    /** With the frames that have arrived by now; some are pushed a second after what they tell. */
    let noted = 0;
    const constants = (): Record<string, string> => {
      for (; noted < client.frames.length; noted += 1) {
        const { channel, data } = client.frames[noted]!;
        if (channel !== 'subscriptionResponse') note(seen, `/ws ${channel}`, data);
      }
      return constantsOf(seen);
    };
    await until(() => Object.keys(constants()).sort().join() === listed.join()).catch(() => undefined);
    await client.close();
    const channels = new Set([
      ...client.frames.map(({ channel }) => channel),
      ...PLATFORM_FRAMES,
      ...SWAP_FRAMES,
      ...SILENT,
    ]);
    expect([...channels].sort(), 'every frame that is pushed').to.deep.equal(
      [...PUSHED, 'subscriptionResponse'].sort(),
    );
    expect(Object.keys(constants()).sort(), JSON.stringify(constants(), null, 1)).to.deep.equal(listed);
  });
});
