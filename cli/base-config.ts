/** Configuration that all roles share: the common settings and the deployment manifest. */
import { z } from 'zod';
import type { Address, Hex } from '../core/types.js';
import type { Role } from '../ledger/roles.js';
import { tokenListSchema } from '../server/swap/tokens.js';
import type { CommonSettings } from './settings/common.js';
import { address, httpUrl, privateKey } from './settings/fields.js';
import { swapManifest, type SwapConfig } from './settings/swap.js';

export const manifestSchema = z.object({
  chainId: z.number().int().positive(),
  deploymentId: z.string().regex(/^[0-9a-f]{16}$/, 'must be 16 hex digits'),
  rpcUrl: httpUrl.optional(),
  deploymentBlock: z.number().int().nonnegative(),
  contracts: z.looseObject({
    custodian: address,
    curveBook: address,
    entrypoint: address,
    ...swapManifest,
  }),
  accounts: z.array(z.object({ role: z.string(), address, privateKey })).default([]),
  tokens: z.array(z.object({ symbol: z.string(), address, decimals: z.number().int().min(0) })).default([]),
  tokenList: tokenListSchema.optional(),
});

export type Manifest = z.output<typeof manifestSchema>;

export interface BaseConfig extends Omit<
  CommonSettings,
  'RPC_URL' | 'HEADS_URL' | 'OPERATOR_ADDRESS' | 'SIGNATURE_CHAIN_IDS' | 'WRAPPED_NATIVE'
> {
  /** Null accepts any chain. */
  signatureChainIds: readonly bigint[] | null;
  /** The preferred endpoint, and all of them. */
  rpcUrl: string;
  rpcUrls: readonly string[];
  /** WebSocket endpoints that push new heads. */
  headsUrls: readonly string[];
  manifest: Manifest;
  operator: Address;
  /** Of the roles that sign transactions and whose key is known here. */
  keys: Readonly<Partial<Record<Role, Hex>>>;
  /** Null for a deployment without a settler. */
  swap: SwapConfig | null;
  /** The token in which gas is priced. */
  wrappedNative: Address;
}
