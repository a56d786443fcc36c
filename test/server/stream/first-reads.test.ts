/** What subscriptions begin with is read in turns, and not for those that nobody waits for. */
import { expect } from 'chai';
import { createFirstReads } from '../../../server/stream/first-reads.js';
import { addressOf, post, signRequest } from '../../support/gateway.js';
import { limit, orderAction, until, withGateway } from '../../support/gateway-suite.js';
import { ETHER, socketsOf } from '../../support/api/stream-clients.js';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('first reads', () => {
  function setUp() {
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const reads = createFirstReads(2);
    const connections = new Map<string, object>();
    const subscriptions = new Map<string, object>();
    const of = (map: Map<string, object>, name: string): object => {
      const known = map.get(name) ?? {};
      map.set(name, known);
      return known;
    };
    /** Named by a letter for the connection and a number. */
    const add = (name: string): void =>
      reads.add(of(connections, name[0]!), of(subscriptions, name), async () => {
        begun.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
      });
    const drop = (name: string): void => reads.drop(of(connections, name[0]!), of(subscriptions, name));
    const end = async (name: string): Promise<void> => {
      ends.get(name)!();
      await settled();
    };
    return { begun, add, drop, end };
  }

  it('begin at once while few run, two at a time, and one of each connection', async () => {
    const { begun, add, end } = setUp();
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'd1']) add(name);
    expect(begun).to.deep.equal(['a1', 'b1']);
    await end('a1');
    expect(begun).to.deep.equal(['a1', 'b1', 'c1']);
    await end('b1');
    await end('c1');
    await end('d1');
    expect(begun).to.deep.equal(['a1', 'b1', 'c1', 'd1', 'a2']);
    await end('a2');
    await end('a3');
    add('a4');
    expect(begun.slice(5)).to.deep.equal(['a3', 'a4']);
  });

  it('do not run once nobody waits for them', async () => {
    const { begun, add, drop, end } = setUp();
    for (const name of ['a1', 'b1', 'c1', 'c2', 'd1', 'a2']) add(name);
    for (const name of ['c1', 'd1', 'a2', 'b1']) drop(name);
    await end('a1');
    await end('b1');
    expect(begun).to.deep.equal(['a1', 'b1', 'c2']);
    // A connection of which all were dropped may come again.
    add('d2');
    add('a3');
    await end('c2');
    expect(begun).to.deep.equal(['a1', 'b1', 'c2', 'd2', 'a3']);
  });
});

withGateway('A subscription', (suite) => {
  const { connect, on, place, fill } = socketsOf(suite);
  const TYPES = ['userFills', 'userHistoricalOrders', 'userNonFundingLedgerUpdates'];
  const READS = /from (custody_events|order_fills)/;

  it('that ends before its turn is not read', async () => {
    await suite.start();
    await place(1, limit(true, '2500', '1'));
    await fill(1, ETHER, 1);
    await until(() => suite.running.gateway.order(1)?.state === 'filled');
    let reads = 0;
    for (const knex of new Set([suite.db.knex, suite.db.reads]))
      knex.on('query', ({ sql }: { sql: string }) => void (READS.test(sql) && (reads += 1)));
    const client = await connect();
    const user = addressOf(1);
    const pairs = 50;
    for (let i = 0; i < pairs; i++)
      for (const type of TYPES)
        for (const method of ['subscribe', 'unsubscribe']) client.send({ method, subscription: { type, user } });
    await client.subscribe({ type: 'userNonFundingLedgerUpdates', user });
    await client.take(on('userNonFundingLedgerUpdates'));
    expect(reads).to.be.within(1, pairs);
  });

  it('costs the rows that it begins with, too', async () => {
    const budget = 60;
    const { url } = await suite.start({}, {}, undefined, budget);
    const orders = Array.from({ length: 100 }, (_, i) => limit(true, `${2400 - i}`, '0.01'));
    await post(`${url}/exchange`, signRequest(orderAction(...orders), 1, suite.nextNonce()));
    const client = await connect();
    await client.subscribe({ type: 'userHistoricalOrders', user: addressOf(1) });
    expect((await client.take(on('userHistoricalOrders'))).data.orderHistory).to.have.length(100);
    let pongs = 0;
    for (;;) {
      client.send({ method: 'ping' });
      const frame = await client.take((one) => on('pong')(one) || on('error')(one));
      if (frame.channel === 'error') break;
      pongs += 1;
    }
    // Twenty, and one for each full twenty rows.
    expect(pongs).to.equal(budget - 20 - 5);
  });
});
