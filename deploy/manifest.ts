/** The manifest of a deployment: addresses, tokens and markets, as a file for the server and other programs. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { solidityPackedKeccak256 } from 'ethers';

export interface ManifestToken {
  symbol: string;
  /** With its EIP-55 checksum. */
  address: string;
  decimals: number;
}

export interface ManifestMarket {
  /** `<BASE>-<QUOTE>` */
  pair: string;
  /** Exact decimals in token units. */
  tickSize: string;
  lotSize: string;
}

export interface ManifestAccount {
  role: string;
  address: string;
  privateKey: string;
}

/** The part that the manifests of sandbox and real deployments share. `deploymentBlock` is before every event of the contracts. */
export interface DeploymentManifest {
  chainId: number;
  deploymentId: string;
  contracts: { custodian: string; curveBook: string; entrypoint: string; [name: string]: string };
  deploymentBlock: number;
  tokens: ManifestToken[];
  markets: ManifestMarket[];
}

/** A token list in the Uniswap format, as far as the sandbox needs it. */
export interface TokenList {
  name: string;
  timestamp: string;
  version: { major: number; minor: number; patch: number };
  tokens: { chainId: number; address: string; symbol: string; name: string; decimals: number; logoURI: string }[];
}

/** The sandbox adds where it listens and the development keys of its accounts. */
export interface SandboxManifest extends DeploymentManifest {
  rpcUrl: string;
  serverUrl: string;
  accounts: ManifestAccount[];
  /** What the swap API lists. */
  tokenList: TokenList;
}

/** First 16 hex digits of keccak256(chain id, custodian, hash of the deployment block): names this deployment and no other. */
export function deploymentIdOf(chainId: number, custodian: string, deploymentBlockHash: string): string {
  return solidityPackedKeccak256(['uint256', 'address', 'bytes32'], [chainId, custodian, deploymentBlockHash]).slice(
    2,
    18,
  );
}

/** Writes the file atomically, so that a process that waits for it never reads a part. */
export function writeManifest(path: string, manifest: DeploymentManifest): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.partial`, `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(`${path}.partial`, path);
}
