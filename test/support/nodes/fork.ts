/** Takes a local chain back, lets it grow otherwise, and has the ledger follow, as an operator would. */
import { pino } from 'pino';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { planReconcile, type ReconcilePlan } from '../../../keepers/watcher/reconcile.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import type { KeeperStack, ManualChain } from '../keeper-stack.js';

export interface Forks {
  /** Where the chain can be taken back to, once. */
  mark(): Promise<string>;
  /** Takes the chain back to a mark and mines other blocks, each what `sends` puts into the pool; one at least. */
  fork(mark: string, ...sends: (() => Promise<unknown>)[]): Promise<void>;
  plan(): Promise<ReconcilePlan | null>;
  /** Has the watcher find the fork, asks for the reversal, and reads the chain anew. Returns what was taken back. */
  reconcile(): Promise<ReconcilePlan>;
}

export function forksOf(chain: ManualChain, stack: KeeperStack): Forks {
  const { provider } = chain;
  const logger = pino({ level: 'silent' });
  const rpc = createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger });
  const plan = (): Promise<ReconcilePlan | null> =>
    planReconcile(stack.db, rpc, { deploymentBlock: chain.manifest.deploymentBlock });

  async function catchUp(): Promise<void> {
    do await stack.watcher.scan();
    while (stack.watcher.status().catchingUp && stack.watcher.status().halt === null);
  }

  return {
    plan,
    mark: async () => (await provider.send('evm_snapshot', [])) as string,
    async fork(mark, ...sends) {
      const height = await provider.getBlockNumber();
      await provider.send('evm_revert', [mark]);
      // Without another time, an empty block could have the same hash as the one that was removed.
      await provider.send('evm_increaseTime', [1]);
      await chain.mine();
      for (const send of sends) {
        await send();
        await chain.mine();
      }
      while ((await provider.getBlockNumber()) <= height) await chain.mine();
    },
    async reconcile() {
      await stack.watcher.scan();
      const found = await plan();
      if (found === null) throw new Error('the chain has every block of the ledger');
      await requestReconcile(stack.db, { reversal: found.reversal, capitalOrigin: false }, 1);
      await catchUp();
      return found;
    },
  };
}
