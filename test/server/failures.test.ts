import { expect } from 'chai';
import { createFailureLimit } from '../../server/orders/failures.js';
import { post, signRequest } from '../support/gateway.js';
import { forEachGateway, limit, orderAction } from '../support/gateway-suite.js';

describe('limit of failed recoveries', () => {
  it('counts per address and minute', () => {
    let nowMs = 0;
    const failures = createFailureLimit(2, () => nowMs);
    failures.count('1.1.1.1');
    expect(failures.blockedSec('1.1.1.1')).to.equal(0);
    nowMs = 30_000;
    failures.count('1.1.1.1');
    failures.count('2.2.2.2');
    expect(failures.blockedSec('1.1.1.1')).to.equal(30);
    expect(failures.blockedSec('2.2.2.2')).to.equal(0);
    nowMs = 59_999;
    expect(failures.blockedSec('1.1.1.1')).to.equal(1);
    nowMs = 60_000;
    expect(failures.blockedSec('1.1.1.1')).to.equal(0);
  });

  it('remembers the newest 50,000 addresses, however many there are', () => {
    const failures = createFailureLimit(1, () => 0);
    const before = 50_000;
    for (let index = 0; index <= before; index += 1) failures.count(`address ${index}`);
    expect(failures.blockedSec('address 0')).to.equal(0);
    expect(failures.blockedSec('address 1')).to.equal(60);
    expect(failures.blockedSec(`address ${before}`)).to.equal(60);
  });
});

forEachGateway('failed recoveries', (suite) => {
  it('stop an address for a while, with everything but cancels', async () => {
    const { url, time } = await suite.start({ failuresPerMinute: 3 });
    const nowMs = Date.now();
    time.nowMs = () => nowMs;
    const place = orderAction(limit(true, '2500', '0.1'));
    await suite.act(1, place);
    for (let count = 0; count < 3; count += 1) {
      expect((await suite.act(40, place)).response).to.match(/^unknown_signer/);
    }
    const answer = await post(`${url}/exchange`, signRequest(place, 1, suite.nextNonce()));
    expect([answer.status, answer.text]).to.deep.equal([429, 'null']);
    const cancel = { type: 'cancel', cancels: [{ a: 10000, o: 1 }] };
    expect((await suite.act(1, cancel)).response.data.statuses).to.deep.equal(['success']);
    const byCloid = { type: 'cancelByCloid', cancels: [{ asset: 10000, cloid: `0x${'1'.repeat(32)}` }] };
    expect((await suite.act(1, byCloid)).response.data.statuses[0].error).to.match(/^order_not_found/);
    expect((await suite.act(1, { type: 'scheduleCancel' })).status).to.equal('ok');
    expect((await post(`${url}/info`, { type: 'meta' })).status).to.equal(200);
    time.nowMs = () => nowMs + 60_000;
    expect((await suite.act(1, place)).status).to.equal('ok');
  });
});
