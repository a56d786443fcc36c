import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { orderAction, orderBodies, signedBody } from '../../bench/gateway/requests.js';
import { checkBackend, checkStored, startServer } from '../../bench/gateway/server.js';
import type { Server } from '../../bench/gateway/server.js';

const NO_NATIVE = fileURLToPath(new URL('../support/children/no-native.cjs', import.meta.url));

/** What a benchmark may not measure in silence: requests that are refused, answers without a row, and another library. */
describe('the benchmark of the gateway', () => {
  let server: Server | null = null;

  async function start(...args: Parameters<typeof startServer>): Promise<Server> {
    server = await startServer(...args);
    return server;
  }

  const failureOf = (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => 'none',
      (error: unknown) => (error as Error).message,
    );

  afterEach(() => server?.stop());

  it('fails on any answer but an acceptance, and holds for accepted and stored actions', async () => {
    const durable = await start('durable');
    checkBackend(durable);
    await durable.load(orderBodies(40, 2));
    await checkStored(durable);
    const malformed = JSON.stringify({ action: { type: 'order' }, nonce: 1 });
    expect(await failureOf(durable.load([...orderBodies(3, 1), malformed]))).to.match(/^HTTP\/1\.1 422 /);
    const builder = { ...orderAction(1), builder: { b: `0x${'1'.repeat(40)}`, f: 10 } };
    expect(await failureOf(durable.load([signedBody(builder, 0)]))).to.match(/^durable: .*builder_fee_unsupported/);
    const offTick = orderAction(2);
    offTick.orders[1]!.p = '2000.255';
    expect(await failureOf(durable.load([signedBody(offTick, 0)]))).to.match(/^durable: .*off_tick/);
  });

  it('fails when an acknowledged action has no row', async () => {
    const unstored = await start('unstored');
    await unstored.load(orderBodies(5, 1));
    expect(await failureOf(checkStored(unstored))).to.equal('5 acknowledged, but 0 rows stored');
  });

  it('fails when another library than the native one recovers signatures', async () => {
    const fallback = await start('durable', [NO_NATIVE]);
    await fallback.load(orderBodies(2, 1));
    expect(() => checkBackend(fallback)).to.throw('signatures are recovered by wasm, not by the native library');
  });
});
