/** What the swap page knows of signed orders that may still be executed, so that no token is sold twice unasked. */
import { expect } from 'chai';
import { CurvebookError } from '../../sdk/src/index.js';
import { createUnsureOrders, keepUnsure, waitingOrder } from '../../web/src/swap/waiting-orders.js';
import type { UnsureOrder } from '../../web/src/swap/waiting-orders.js';
import { drawn } from '../support/console/drawn.js';

const ACCOUNT = `0x${'44'.repeat(20)}`;
const [WETH, USDC] = [`0x42${'0'.repeat(37)}6`, `0x${'43'.repeat(20)}`];
const selling = { account: ACCOUNT, deployment: 'one', token: WETH };
const NOW_MS = 1_900_000_000_000;
const END_SEC = NOW_MS / 1_000 + 60;
const order = { clientOrderId: 'c-1', orderId: null, validToSec: END_SEC };

function storage(text: string | null = null) {
  const held = { text };
  const setItem = (_name: string, value: string): void => void (held.text = value);
  return { held, area: () => ({ getItem: () => held.text, setItem, removeItem: () => void (held.text = null) }) };
}

const row = (change: object = {}) => ({
  ...{ orderId: 'o-1', clientOrderId: 'c-1', status: 'pending', sellToken: WETH, sellAmount: '7', validTo: END_SEC },
  ...change,
});

/** The id of the order that is found to wait, and the client order ids that are remembered after that. */
async function found({
  rows = [] as object[],
  next = null as string | null,
  atMs = NOW_MS,
  kept = [] as UnsureOrder[],
  change = {},
}) {
  const asked: unknown[] = [];
  const read = {
    get: async (path: string, { query }: { query: unknown }) => (asked.push(path, query), { orders: rows, next }),
  };
  const unsure = createUnsureOrders(storage(JSON.stringify(kept)).area);
  const waiting = await waitingOrder(read as never, unsure, { ...selling, ...change }, () => atMs);
  expect(asked).to.deep.equal(['/api/v1/orders', { owner: ACCOUNT, limit: '50' }]);
  return { waiting, id: waiting?.id ?? null, kept: unsure.all().map(({ clientOrderId }) => clientOrderId) };
}

const one: UnsureOrder = { ...selling, clientOrderId: 'c-1', validToSec: END_SEC, sinceMs: NOW_MS };

describe('a signed order that may still be executed', () => {
  it('is one that the server lists as pending, of the token that is sold', async () => {
    const { waiting } = await found({ rows: [row({ status: 'filled' }), row({ orderId: 'o-2' })] });
    expect(waiting).to.deep.equal({ id: 'o-2', sellUnits: 7n, untilSec: END_SEC });
    const checksummed = `0x${WETH.slice(2).toUpperCase()}`;
    expect((await found({ rows: [row({ sellToken: checksummed })] })).id).to.equal('o-1');
    for (const rows of [[], [row({ sellToken: USDC })], [row({ status: 'expired' })], [row({ status: 'failed' })]])
      expect((await found({ rows })).id).to.equal(null);
  });

  it('is kept where no answer said what became of it, and where the waiting was left', () => {
    for (const code of ['ORDER_UNKNOWN', 'WAIT_ABORTED']) {
      const { held, area } = storage();
      keepUnsure(createUnsureOrders(area), new CurvebookError(code, 'x', { order }), selling, NOW_MS);
      expect(JSON.parse(held.text ?? ''), code).to.deep.equal([one]);
      // Over a reload.
      expect(createUnsureOrders(area).all()).to.deep.equal([one]);
    }
    for (const error of [new CurvebookError('PRICE_MOVED', 'x'), new Error('x'), null]) {
      const { held, area } = storage();
      keepUnsure(createUnsureOrders(area), error, selling, NOW_MS);
      expect(held.text).to.equal(null);
    }
  });

  it('waits until its end and somewhat longer, of its own account, deployment and token alone', async () => {
    const waits = await found({ kept: [one] });
    expect(waits.waiting).to.deep.equal({ id: 'c-1', sellUnits: null, untilSec: END_SEC + 120 });
    expect((await found({ kept: [one], atMs: (END_SEC + 119) * 1_000 })).id).to.equal('c-1');
    expect(await found({ kept: [one], atMs: (END_SEC + 121) * 1_000 })).to.deep.include({ id: null, kept: [] });
    for (const change of [{ deployment: 'two' }, { token: USDC }])
      expect(await found({ kept: [one], change }), JSON.stringify(change)).to.deep.include({ id: null, kept: ['c-1'] });
    const other = { ...one, account: `0x${'55'.repeat(20)}` };
    expect(await found({ kept: [other] })).to.deep.include({ id: null, kept: ['c-1'] });
  });

  it('is forgotten once the server tells what became of it, or that there is none', async () => {
    const later = { ...one, validToSec: END_SEC + 86_400 };
    for (const status of ['filled', 'failed', 'expired'])
      expect(await found({ kept: [later], rows: [row({ status })] }), status).to.deep.include({ id: null, kept: [] });
    expect(await found({ kept: [later], rows: [row()] })).to.deep.include({ id: 'o-1', kept: [] });
    const atMs = NOW_MS + 600_000;
    expect((await found({ kept: [later], atMs: atMs - 1 })).id).to.equal('c-1');
    expect((await found({ kept: [later], atMs, next: 'more' })).id, 'it may be among the older ones').to.equal('c-1');
    expect(await found({ kept: [later], atMs })).to.deep.include({ id: null, kept: [] });
  });

  it('is read as something that anybody may have written', () => {
    const read = (value: unknown) => createUnsureOrders(storage(JSON.stringify([value])).area).all();
    expect(read(one)).to.deep.equal([one]);
    expect(read({ ...one, html: '<b>' })).to.deep.equal([one]);
    for (const value of [null, 1, 'x', []]) expect(read(value)).to.deep.equal([]);
    const bad = { clientOrderId: ['', 'a b', 5], account: ['0x1'], token: ['WETH'], deployment: [5, ''] };
    for (const [field, values] of Object.entries({ ...bad, validToSec: ['1', -1, 1.5], sinceMs: [null, 1e300] }))
      for (const value of values)
        expect(read({ ...one, [field]: value }), `${field} ${String(value)}`).to.deep.equal([]);
  });

  it('is named before the same is signed beside it', async () => {
    const token = { symbol: 'WETH', address: WETH, decimals: 18 };
    const answers: boolean[] = [];
    const question = (found: object) =>
      drawn('swap/order-question.tsx', 'OrderQuestion', {
        found: { token, order: null, error: null, ...found },
        onAnswer: (isYes: boolean) => answers.push(isYes),
      });
    const waiting = { id: 'o-1', sellUnits: 31n * 10n ** 16n, untilSec: Math.floor(Date.now() / 1_000) + 30 * 60 };
    const { text, all } = await question({ order: waiting });
    expect(text).to.contain('Order o-1, which sells 0.31 WETH, still waits').and.contain('min left');
    for (const { onClick } of all('button')) (onClick as () => void)();
    expect(answers).to.deep.equal([true, false]);
    const unknown = await question({ order: { ...waiting, sellUnits: null } });
    expect(unknown.text).to.contain('What became of order o-1, which sells WETH, is not known');
    expect((await question({ error: 'no answer (NO_ANSWER).' })).text).to.contain('is not known: no answer');
  });
});
