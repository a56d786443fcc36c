/** What a row tells of its action's reply: whatever a gateway answered is told again, and nothing is told of another action. */
import { expect } from 'chai';
import { readAction } from '../../../core/wire/action.js';
import { storedReply } from '../../../server/orders/stored-outcome.js';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';

const CLOID = `0x${'c'.repeat(32)}`;
const REFUSED = 'refused_before: Refused when it came first. Why is not stored.';

withGateway('What a row of the order log tells', (suite) => {
  /** The reply of a gateway, and what the row that it made tells of an action. */
  async function acted(action: object) {
    const reply: unknown = await suite.act(1, action);
    const row = (await readOrderRows(suite.db.knex, { after: 0, limit: 1_000 })).at(-1)!;
    const { gateway } = suite.running;
    const told = (of: object): unknown =>
      storedReply(readAction({ type: '', ...of }), row, {
        markets: gateway.markets(),
        cloidOf: (oid) => gateway.order(oid)?.order.cloid,
      });
    return { reply, told };
  }

  const order = (price: string, extra: object = {}) => limit(true, price, '0.1', extra);

  it('is the reply, where nothing was refused', async () => {
    await suite.start();
    const actions = [
      orderAction(order('1000'), order('1001', { c: CLOID }), order('1000')),
      { type: 'modify', oid: 1, order: order('1002') },
      { type: 'batchModify', modifies: [{ oid: 3, order: order('1003') }] },
      { type: 'cancelByCloid', cancels: [{ asset: 10_000, cloid: CLOID }] },
      { type: 'cancel', cancels: [{ a: 10_000, o: 4 }] },
      { type: 'scheduleCancel', time: Date.now() + 60_000 },
      { type: 'noop' },
    ];
    for (const action of actions) {
      const { reply, told } = await acted(action);
      expect(reply, action.type).to.have.property('status', 'ok');
      expect(told(action), action.type).to.deep.equal(reply);
    }
  });

  it('is refused_before for what was refused, and the rest of a batch as it was', async () => {
    await suite.start();
    const mixed = orderAction(order('1000'), limit(true, '1000', '0'), order('1001'));
    const { reply, told } = await acted(mixed);
    const { statuses } = (told(mixed) as { response: { data: { statuses: unknown[] } } }).response.data;
    const original = (reply as { response: { data: { statuses: unknown[] } } }).response.data.statuses;
    expect(statuses).to.deep.equal([original[0], { error: REFUSED }, original[2]]);
    const nothing = orderAction(limit(true, '1000', '0'));
    expect((await acted(nothing)).told(nothing)).to.deep.equal({ status: 'err', response: REFUSED });
    const half = {
      type: 'cancel',
      cancels: [
        { a: 10_000, o: 1 },
        { a: 10_000, o: 77 },
      ],
    };
    expect((await acted(half)).told(half))
      .to.have.nested.property('response.data.statuses')
      .that.deep.equals(['success', { error: REFUSED }]);
  });

  it('says of each replacement whether it was that one', async () => {
    await suite.start();
    await acted(orderAction(order('1000'), order('1001')));
    const same = order('1002');
    const replaced = {
      type: 'batchModify',
      modifies: [
        { oid: 77, order: same },
        { oid: 2, order: same },
        { oid: 1, order: same },
      ],
    };
    const { reply, told } = await acted(replaced);
    const { statuses } = (reply as { response: { data: { statuses: unknown[] } } }).response.data;
    expect(statuses[0]).to.have.property('error');
    expect(told(replaced))
      .to.have.nested.property('response.data.statuses')
      .that.deep.equals([{ error: REFUSED }, statuses[1], statuses[2]]);
    expect(
      told({
        type: 'batchModify',
        modifies: [
          { oid: 1, order: same },
          { oid: 2, order: same },
        ],
      }),
    ).to.equal(null);
  });

  it('is no order for an entry that no order can come of', async () => {
    await suite.start();
    const immediate = order('1000', { t: { limit: { tif: 'Ioc' } } });
    const mixed = orderAction(immediate, order('1000'));
    const { reply, told } = await acted(mixed);
    const { statuses } = (reply as { response: { data: { statuses: unknown[] } } }).response.data;
    expect(told(mixed))
      .to.have.nested.property('response.data.statuses')
      .that.deep.equals([{ error: REFUSED }, statuses[1]]);
  });

  it('is nothing where the row does not tell which of two entries placed an order', async () => {
    await suite.start();
    await acted(orderAction(order('1000')));
    const same = order('1002');
    const either = {
      type: 'batchModify',
      modifies: [
        { oid: 77, order: same },
        { oid: 78, order: same },
      ],
      a: true,
    };
    const one = { type: 'batchModify', modifies: [{ oid: 77, order: same }], a: true };
    const { reply, told } = await acted(one);
    expect(told(one)).to.deep.equal(reply);
    expect(told(either)).to.equal(null);
  });

  it('is nothing for another action', async () => {
    await suite.start();
    const placing = await acted(orderAction(order('1000')));
    for (const other of [
      orderAction(order('1001')),
      orderAction(limit(true, '1000', '0.2')),
      orderAction(order('1000', { c: CLOID })),
      orderAction(limit(false, '1000', '0.1')),
      { type: 'noop' },
    ])
      expect(placing.told(other), JSON.stringify(other)).to.equal(null);
    const { told } = await acted({ type: 'cancel', cancels: [{ a: 10_000, o: 1 }] });
    expect(told({ type: 'cancel', cancels: [{ a: 10_000, o: 2 }] })).to.equal(null);
    const timed = await acted({ type: 'scheduleCancel', time: Date.now() + 60_000 });
    expect(timed.told({ type: 'scheduleCancel', time: Date.now() + 90_000 })).to.equal(null);
  });
});
