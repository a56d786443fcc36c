/** The drill of RpcNoneHealthy: the only endpoint is gone, and the operator names another one. */
import { expect } from 'chai';
import { startFaultProxy, type FaultProxy } from '../support/nodes/fault-proxy.js';
import { accountOf, forEachDatabaseUrl, startStack, until, type Stack, type TestDatabase } from '../support/stack.js';
import { limitsAt } from '../support/audit.js';
import { place } from '../support/trading.js';

forEachDatabaseUrl((name, open) =>
  describe(`A change of endpoints, ${name}`, function () {
    this.timeout(300_000);
    let database: TestDatabase;
    let stack: Stack;
    let proxy: FaultProxy;
    /** What the next start of the server is given. */
    const env: Record<string, string> = {};

    before(async () => {
      database = await open();
      stack = await startStack({
        databaseUrl: database.url,
        env: async (rpcUrl) => {
          proxy = await startFaultProxy(rpcUrl);
          env['RPC_URL'] = proxy.url;
          return env;
        },
      });
    });
    after(async () => {
      await stack?.close();
      await proxy?.close();
      await database?.drop();
    });

    const ledger = async () => (await limitsAt(stack, accountOf(stack, 'maker1').address)).ledger;

    it('goes on from the stored state with an endpoint that takes the place of one that is gone', async () => {
      await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
      await until('the ledger to be ready', async () => (await ledger()).ready);
      const [oid] = await place(stack, 'maker1', [{ isBuy: false, price: '2600', size: '1' }]);
      const before = await ledger();

      await proxy.close();
      await until('the ledger to be stale', async () => (await ledger()).reason === 'stale_ledger');
      await stack.endServer('SIGTERM');
      env['RPC_URL'] = stack.manifest.rpcUrl;
      await stack.startServer();
      await until('the ledger to be ready again', async () => (await ledger()).ready);
      const after = await ledger();
      expect(after.next_block).to.be.greaterThan(before.next_block);
      expect(after.balances).to.deep.equal(before.balances);
      const [next] = await place(stack, 'maker1', [{ isBuy: false, price: '2601', size: '1' }]);
      expect(next).to.equal(oid! + 1);
      await stack.operate('verify', '--rpc', stack.manifest.rpcUrl);
    });
  }),
);
