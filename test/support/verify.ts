/** What `verifyLedger` needs of a test's stack, but for an endpoint. */
import pino from 'pino';
import type { Address } from '../../core/types.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import type { VerifyDeps } from '../../keepers/verify/verification.js';
import type { Db } from '../../ledger/types.js';
import type { ManualChain } from './keeper-stack.js';

export function verifyDeps(db: Db, chain: ManualChain): VerifyDeps {
  const { deploymentId, deploymentBlock, contracts } = chain.manifest;
  const lower = (name: string) => contracts[name]!.toLowerCase() as Address;
  return {
    db,
    deploymentId,
    deploymentBlock,
    operator: chain.address('owner'),
    contracts: {
      custodian: lower('custodian'),
      curveBook: lower('curveBook'),
      entrypoint: lower('entrypoint'),
      orderSettler: lower('orderSettler'),
    },
    rpc: null,
    onProgress: () => undefined,
  };
}

/** A pool of the chain's one endpoint, for a verification that asks the chain. */
export function verifyRpc(chain: ManualChain): RpcPool {
  return createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger: pino({ level: 'silent' }) });
}
