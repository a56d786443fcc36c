import { expect } from 'chai';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { accountFacts } from '../../../server/orders/account-facts.js';
import { addressOf, clientOf } from '../../support/gateway.js';
import { forEachGateway, limit, orderAction, until } from '../../support/gateway-suite.js';

const arm = (time?: number) => (time === undefined ? { type: 'scheduleCancel' } : { type: 'scheduleCancel', time });

forEachGateway('scheduled cancel', (suite) => {
  const open = (index: number) => suite.running.gateway.book().openOrders(addressOf(index));
  const rows = () => readOrderRows(suite.db.knex, { after: 0, limit: 100 });

  it('closes all orders of its maker at its time, and no others', async () => {
    const { url, time } = await suite.start();
    const { exchange, info, user } = clientOf(url, 1);
    const nowMs = Date.now();
    await exchange.scheduleCancel({ time: nowMs + 60_000 });
    await suite.act(1, orderAction(limit(true, '2500', '0.1'), { ...limit(false, '2600', '0.1'), a: 10001 }));
    await suite.act(2, orderAction(limit(true, '2500', '0.1')));
    await suite.act(1, arm(nowMs + 30_000));
    time.nowMs = () => nowMs + 29_999;
    await suite.act(2, { type: 'noop' });
    expect(open(1)).to.have.length(2);
    time.nowMs = () => nowMs + 30_000;
    await until(() => open(1).length === 0);
    expect(open(2)).to.have.length(1);
    expect(await info.orderStatus({ user, oid: 1 })).to.have.nested.property('order.status', 'scheduledCancel');
    const last = (await rows()).at(-1);
    expect(last).to.deep.include({ kind: 'scheduledCancel', maker: addressOf(1), signer: null, nonce: null });
    expect(last?.effects).to.deep.equal([
      { type: 'close', oid: 1, reason: 'scheduledCancel' },
      { type: 'close', oid: 2, reason: 'scheduledCancel' },
      { type: 'trigger', timeMs: nowMs + 30_000 },
    ]);
    // It is gone with its trigger.
    time.nowMs = () => nowMs + 90_000;
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    await suite.act(2, { type: 'noop' });
    expect(open(1)).to.have.length(1);
  });

  it('is told of the account, with its approval, its agents and what came due today', async () => {
    const { gateway, time, url } = await suite.start();
    const nowMs = Date.now();
    time.nowMs = () => nowMs;
    const account = (index: number) => accountFacts(gateway, () => time.nowMs?.() ?? 0)(addressOf(index));
    const nothing = { actsFor: null, agents: [], scheduledCancelMs: null, scheduledCancelsToday: 0, openOrders: 0 };
    expect(account(9)).to.deep.equal({ approval: 'none', ...nothing });
    expect(account(1)).to.deep.equal({ approval: 'approved', ...nothing });
    await suite.act(1, arm(nowMs + 30_000));
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    await clientOf(url, 1).exchange.approveAgent({ agentAddress: addressOf(8), agentName: 'desk' });
    const armed = account(1);
    expect(armed).to.deep.include({ scheduledCancelMs: nowMs + 30_000, openOrders: 1 });
    expect(armed.agents.map(({ name, address }) => [name, address])).to.deep.equal([['desk', addressOf(8)]]);
    expect(account(8)).to.deep.include({ approval: 'none', actsFor: addressOf(1) });
    time.nowMs = () => nowMs + 30_000;
    await until(() => account(1).scheduledCancelMs === null);
    expect(account(1).openOrders).to.equal(0);
    expect(account(1).scheduledCancelsToday).to.equal(1);
  });

  it('comes due while the gateway is down', async () => {
    await suite.start();
    const nowMs = Date.now();
    await suite.act(1, arm(nowMs + 60_000));
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    const restarted = await suite.restart();
    expect([...restarted.gateway.book().armed()]).to.deep.equal([[addressOf(1), nowMs + 60_000]]);
    restarted.time.nowMs = () => nowMs + 60_000;
    await until(() => open(1).length === 0);
    expect((await rows()).at(-1)?.kind).to.equal('scheduledCancel');
  });

  it('can be armed, and actions do not expire, after the clock was ahead for an hour', async () => {
    let { time } = await suite.start();
    const nowMs = Date.now();
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    time.nowMs = () => nowMs + 3_600_000;
    await suite.act(1, { type: 'noop' });
    for (const isRestarted of [false, true]) {
      if (isRestarted) ({ time } = await suite.restart());
      time.nowMs = () => nowMs;
      const cancel = { type: 'cancel', cancels: [{ a: 10000, o: isRestarted ? 2 : 1 }] };
      expect(await suite.act(1, arm(nowMs + 30_000)), 'armed').to.have.property('status', 'ok');
      expect(await suite.act(1, cancel, { expiresAfter: nowMs + 1_000 }), 'cancelled').to.have.property('status', 'ok');
      await suite.act(1, arm());
      await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    }
    // Other readers follow the log by the times of its rows.
    const times = (await rows()).map(({ timeMs }) => timeMs);
    expect(times).to.deep.equal(times.toSorted((a, b) => a - b));
  });

  it('is carried out before anything that comes after its time', async () => {
    const { time } = await suite.start({ pollMs: 60_000 });
    const nowMs = Date.now();
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    await suite.act(1, arm(nowMs + 50_000));
    time.nowMs = () => nowMs + 50_000;
    // An ask that would have crossed the bid that should be gone.
    const reply = await suite.act(2, orderAction(limit(false, '2400', '0.1')));
    expect(reply.response.data.statuses[0]).to.have.property('resting');
    expect((await rows()).map((row) => row.kind)).to.deep.equal([
      'order',
      'scheduleCancel',
      'scheduledCancel',
      'order',
    ]);
  });

  it('must be 5 s ahead, is cleared without a time, and is shared with agents', async () => {
    const { time, url } = await suite.start();
    const nowMs = Date.now();
    time.nowMs = () => nowMs;
    await clientOf(url, 1).exchange.approveAgent({ agentAddress: addressOf(11) });
    for (const ahead of [0, 4_999, -1]) {
      expect((await suite.act(1, arm(nowMs + ahead))).response).to.equal(
        'schedule_too_soon: Scheduled cancel time must be at least 5 seconds in the future',
      );
    }
    expect(await suite.act(1, arm(nowMs + 5_000))).to.deep.equal({ status: 'ok', response: { type: 'default' } });
    await suite.act(11, arm(nowMs + 7_000));
    expect([...suite.running.gateway.book().armed()]).to.deep.equal([[addressOf(1), nowMs + 7_000]]);
    expect((await suite.act(1, arm())).status).to.equal('ok');
    expect(suite.running.gateway.book().armed().size).to.equal(0);
    time.nowMs = () => nowMs + 10_000;
    await suite.act(1, orderAction(limit(true, '2500', '0.1')));
    await suite.act(2, { type: 'noop' });
    expect(open(1)).to.have.length(1);
  });

  it('triggers ten times per UTC day; clearing always works', async () => {
    const { time } = await suite.start({ pollMs: 5 });
    const noonMs = Math.floor(Date.now() / 86_400_000) * 86_400_000 + 43_200_000;
    let nowMs = noonMs;
    time.nowMs = () => nowMs;
    const gone = () => suite.running.gateway.book().armed().size === 0;
    for (let count = 0; count < 10; count += 1) {
      expect((await suite.act(1, arm(nowMs + 5_000))).status).to.equal('ok');
      nowMs += 5_000;
      await until(gone);
    }
    expect((await suite.act(1, arm(nowMs + 5_000))).response).to.equal(
      'schedule_used_up: Too many scheduled cancels triggered today',
    );
    expect((await suite.act(1, arm())).status).to.equal('ok');
    expect((await suite.act(2, arm(nowMs + 5_000))).status).to.equal('ok');
    await suite.restart();
    suite.running.time.nowMs = () => nowMs;
    expect((await suite.act(1, arm(nowMs + 5_000))).response).to.match(/^schedule_used_up/);
    nowMs = noonMs + 43_200_000;
    expect((await suite.act(1, arm(nowMs + 5_000))).status).to.equal('ok');
  });

  it('works while the ledger is not ready', async () => {
    const { ready } = await suite.start();
    ready.reason = 'stale_ledger';
    expect((await suite.act(1, arm(Date.now() + 60_000))).status).to.equal('ok');
  });
});
