/** A reversal that takes the listing of a market back, in which there are orders: no process ends, and all goes on once the listing is read again. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { balanceOf, limitsAt, micros } from '../../support/audit.js';
import { startFaultProxy, type FaultProxy } from '../../support/nodes/fault-proxy.js';
import { accountOf, exchangeClient, forEachDatabaseUrl, startStack, until } from '../../support/stack.js';
import type { Stack, TestDatabase } from '../../support/stack.js';
import { place, swap } from '../../support/trading.js';

/** So long nothing more can be read of the chain. */
const SILENCE_MS = 4_000;

forEachDatabaseUrl((name, open) => {
  describe(`A listing that is read again, on ${name}`, function () {
    this.timeout(240_000);
    let database: TestDatabase;
    let stack: Stack;
    let proxy: FaultProxy;
    const roles = ['gateway', 'watcher', 'poster', 'settler', 'executor'];

    before(async () => {
      database = await open();
      const processes = name === 'PostgreSQL' ? roles : [roles.join(',')];
      const env = async (rpcUrl: string) => {
        proxy = await startFaultProxy(rpcUrl);
        return { RPC_URL: proxy.url };
      };
      stack = await startStack({ databaseUrl: database.url, processes, env });
    });

    after(async () => {
      await stack?.close();
      await proxy?.close();
      await database?.drop();
    });

    it('ends no process, and its orders are quoted again', async () => {
      const maker = accountOf(stack, 'maker1').address;
      const limits = () => limitsAt(stack, maker);
      const untilReady = (): Promise<void> =>
        until(
          'the ledger to be ready',
          async () => {
            const now = await limits().catch(() => null);
            return now !== null && now.ledger.ready && balanceOf(stack, now, 'WETH') > 0n;
          },
          60_000,
        );
      await stack.operate('maker', 'approve', maker);
      await untilReady();
      const [oid] = await place(stack, 'maker1', [{ isBuy: false, price: '2501', size: '10' }]);
      await swap(stack, 'taker1', 'USDC', 'WETH', micros('100'));
      const { next_block: nextBlock } = (await limits()).ledger;
      await until('the fill to be booked', async () => (await limits()).ledger.next_block > nextBlock + 4);

      proxy.fault = ({ method }) => (method === 'eth_getLogs' ? { error: { code: -32_000, message: 'busy' } } : 'pass');
      const from = String(stack.manifest.deploymentBlock);
      const printed = await stack.operate('reconcile', '--from', from, '--yes', '--json');
      expect(JSON.parse(printed.split('\n').at(-1)!)).to.include({ ok: true });
      await delay(SILENCE_MS);
      proxy.fault = null;

      await untilReady();
      const open = await exchangeClient(stack, 'maker1').info.openOrders({ user: maker });
      expect(open.map((one) => one.oid)).to.deep.equal([oid]);
      // The curve from before the silence may end while the swap is under way.
      const swapped = () =>
        swap(stack, 'taker1', 'USDC', 'WETH', micros('100')).then(
          () => true,
          () => false,
        );
      await until('a swap', swapped, 60_000);
      const verified = await stack.operate('verify', '--json', '--rpc', stack.manifest.rpcUrl);
      expect(JSON.parse(verified.split('\n').at(-1)!)).to.include({ ok: true });
    });

    if (name === 'PostgreSQL')
      it('is read by a process whose gateway waits for it, once the log falls free that another one had', async () => {
        const both = 'gateway,watcher';
        const url = stack.manifest.serverUrl;
        const isReady = async (): Promise<boolean> => (await fetch(`${url}/v0/status`).catch(() => null))?.ok === true;
        await stack.kill('gateway');
        proxy.fault = ({ method }) =>
          method === 'eth_getLogs' ? { error: { code: -32_000, message: 'busy' } } : 'pass';
        await stack.operate('reconcile', '--from', String(stack.manifest.deploymentBlock), '--yes', '--json');
        const revived = stack.revive(both);
        const waits = (): boolean =>
          stack
            .logLines()
            .some((line) => line.includes('waits for the listing of a market') && line.includes('"level":40'));
        await until('the gateway to wait', () => Promise.resolve(waits()));
        await stack.kill('watcher');
        proxy.fault = null;
        await revived;
        await until('it to serve', isReady, 60_000);
      });
  });
});
