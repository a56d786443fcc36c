import type { ContractName } from './abis.js';

/** Addresses of one deployment, with their EIP-55 checksums. */
export interface KnownDeployment {
  chainId: number;
  /** As `GET /v0/deployment` names it. */
  deploymentId: string;
  contracts: Readonly<Record<ContractName, `0x${string}`>>;
}

/** Deployments by name. None is public yet: a sandbox's are in its manifest and differ from start to start. */
export const KNOWN_DEPLOYMENTS = {} as const satisfies Readonly<Record<string, KnownDeployment>>;
