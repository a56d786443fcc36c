/** What a subscriber is told of orders and fills, in order and once, after it is durable. */
import { expect } from 'chai';
import { addGeneration, addressOf, fillOf } from '../../support/gateway.js';
import { forEachGateway, limit, until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';
import type { WsClient } from '../../support/ws.js';
import { ETHER, socketsOf } from '../../support/api/stream-clients.js';

forEachGateway('WebSocket updates', (suite) => {
  const { connect, on, place, fill } = socketsOf(suite);

  it('tells what becomes of orders, in order, after it is durable', async () => {
    await suite.start();
    const client = await connect();
    await client.subscribe({ type: 'orderUpdates', user: addressOf(1) });
    const cloid = `0x${'5a'.repeat(16)}`;
    await place(1, limit(true, '2500', '1', { c: cloid }), limit(true, '2499', '1'), limit(true, '2600.005', '1'));
    await place(2, limit(true, '2500', '1'));
    await fill(1, ETHER / 2n, 1);
    await until(() => suite.running.gateway.order(1)?.order.filledUnits === ETHER / 2n);
    await suite.act(1, { type: 'modify', oid: 1, order: limit(true, '2501', '2', { c: cloid }) });
    await fill(2, ETHER, 2);
    await until(() => suite.running.gateway.order(2)?.state === 'filled');
    // A late fill of the curve that still had the replaced order: nothing becomes of the order by it.
    await fill(1, ETHER / 2n, 3);
    await suite.act(1, { type: 'cancel', cancels: [{ a: 10000, o: 4 }] });
    const seen: [number, string, string][] = [];
    while (seen.length < 7) {
      const frame = await client.take(on('orderUpdates'));
      for (const { order, status, statusTimestamp } of frame.data) {
        expect(statusTimestamp).to.satisfy(Number.isSafeInteger);
        expect(order).to.have.all.keys(
          ...['coin', 'side', 'limitPx', 'sz', 'oid', 'timestamp', 'origSz', ...(order.oid === 2 ? [] : ['cloid'])],
        );
        seen.push([order.oid, status, order.sz]);
      }
    }
    expect(seen).to.deep.equal([
      [1, 'open', '1.0'],
      [2, 'open', '1.0'],
      [1, 'open', '0.5'],
      [1, 'canceled', '0.5'],
      [4, 'open', '2.0'],
      [2, 'filled', '0.0'],
      [4, 'canceled', '2.0'],
    ]);
  });

  it('begins with the newest 2,000 fills, newest first, and goes on with the next one', async () => {
    await suite.start();
    await place(1, limit(true, '2500', '10'));
    const order = suite.running.gateway.order(1)!.order;
    for (let fillSeq = 1; fillSeq <= 2_003; fillSeq += 1_000) {
      const count = Math.min(1_000, 2_004 - fillSeq);
      const parts = Array.from({ length: count }, (_, index) =>
        fillOf(WETH_USDC, order, ETHER / 1_000n, fillSeq + index),
      );
      const [fills, entries] = [parts.flatMap((part) => part.fills), parts.flatMap((part) => part.entries)];
      await addGeneration(suite.db, { fills, entries });
    }
    suite.running.gateway.onGeneration();
    await until(() => suite.running.gateway.generation() === 4);
    const timeOf = (fillSeq: number): number => 1_700_000_000_000 + fillSeq;
    const newest = Array.from({ length: 2_000 }, (_, index) => timeOf(2_003 - index));
    const client = await connect();
    await client.subscribe({ type: 'userFills', user: addressOf(1) });
    const { data } = await client.take(on('userFills'));
    expect(data.isSnapshot).to.equal(true);
    expect(data.fills.map(({ time }: { time: number }) => time)).to.deep.equal(newest);
    const { payload } = await client.post('info', { type: 'userFills', user: addressOf(1) });
    expect((payload as { data: { time: number }[] }).data.map(({ time }) => time)).to.deep.equal(newest);
    await fill(1, ETHER / 1_000n, 2_004);
    const live = await client.take(on('userFills'));
    expect(live.data).to.have.all.keys('user', 'fills');
    expect(live.data.fills.map(({ time }: { time: number }) => time)).to.deep.equal([timeOf(2_004)]);
  });

  it('sends fills as a snapshot and then live, each once, whenever the subscription comes', async () => {
    await suite.start();
    await place(1, limit(true, '2500', '10'));
    const early = await connect();
    await early.subscribe({ type: 'userFills', user: addressOf(1) });
    const late: WsClient[] = [];
    for (let fillSeq = 1; fillSeq <= 12; fillSeq += 1) {
      const filling = fill(1, ETHER / 10n + BigInt(fillSeq), fillSeq);
      const client = await connect();
      late.push(client);
      const subscribed = client.subscribe({ type: 'userFills', user: addressOf(1) });
      await Promise.all([filling, subscribed]);
    }
    await until(() => suite.running.gateway.generation() === 13);
    for (const client of [early, ...late]) {
      const tids: number[] = [];
      const snapshot = await client.take(on('userFills'));
      expect(snapshot.data.isSnapshot).to.equal(true);
      tids.push(...snapshot.data.fills.map((one: { tid: number }) => one.tid).reverse());
      while (tids.length < 12) {
        const { data } = await client.take(on('userFills'));
        expect(data).to.have.all.keys('user', 'fills');
        tids.push(...data.fills.map((one: { tid: number }) => one.tid));
      }
      expect(new Set(tids).size).to.equal(12);
      expect(client.frames.filter(on('userFills')).flatMap((frame) => frame.data.fills)).to.have.length(12);
    }
  });
});
