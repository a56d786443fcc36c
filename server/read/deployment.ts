import type { RouterMiddleware } from '@koa/router';
import { id } from 'ethers';
import { z } from 'zod';
import { CONTRACT_ABIS } from '../../contracts-package/src/abis.js';
import type { ContractName } from '../../contracts-package/src/abis.js';
import type { Market } from '../../core/types.js';
import { SPOT_ASSET_BASE } from '../orders/limits.js';
import type { DeploymentFacts, ReadDeps } from './deps.js';
import { servedTokens } from './limits.js';
import { render, sendRendered } from '../rendered.js';
import type { Rendered } from '../rendered.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema } from './schemas.js';

const contractSchema = z
  .strictObject({
    address: addressSchema,
    /** keccak256 of the compact JSON of `abi`, with the keys in the order in which they stand here. */
    abi_hash: hashSchema,
    abi: z.array(z.looseObject({ type: z.string() })),
  })
  .meta({ id: 'Contract' });

export const deploymentSchema = z
  .strictObject({
    /** Of the server's release. */
    version: z.string(),
    chain_id: integerSchema,
    deployment_id: z.string(),
    /** No event of the contracts is before this block. */
    deployment_block: integerSchema,
    sandbox: z.boolean(),
    /** JSON-RPC endpoint for clients, and explorer of the chain; null where the operator names none. */
    rpc_url: z.string().nullable(),
    explorer_url: z.string().nullable(),
    /** `custodian`, `curveBook` and `entrypoint` always; `orderSettler`, `lens`, `adapter` and `permit2` where the deployment has them. */
    contracts: z.record(z.string(), contractSchema),
    wrapped_native: addressSchema,
    tokens: z.array(z.strictObject({ symbol: z.string(), address: addressSchema, decimals: z.int().nonnegative() })),
    /** In listing order. `asset` is what orders name on the wire. */
    markets: z.array(
      z.strictObject({
        pair: pairSchema,
        asset: integerSchema,
        base: addressSchema,
        quote: addressSchema,
        tick_size: decimalSchema,
        lot_size: decimalSchema,
        delisted: z.boolean(),
      }),
    ),
    order_sources: z.array(z.string()),
  })
  .meta({ id: 'Deployment' });

type Deployment = z.infer<typeof deploymentSchema>;

/** Hash of an ABI, by which a client can tell whether it was built with the same one. */
export const abiHash = (abi: readonly object[]): string => id(JSON.stringify(abi));

/** GET /v0/deployment: all that a client needs to start with only this URL. Serialised once per listing or delisting. */
export function deploymentHandler(deps: ReadDeps): RouterMiddleware {
  let written: { markets: readonly Market[]; name: string; answer: Rendered } | null = null;
  let contracts: Deployment['contracts'] | null = null;
  return (ctx) => {
    const markets = deps.markets();
    const delisted = deps.delisted();
    // The array grows in place; its elements never change.
    const name = `${markets.length}:${[...delisted].sort((a, b) => a - b).join()}`;
    contracts ??= contractsOf(deps.deployment.contracts);
    if (written?.markets !== markets || written.name !== name) {
      written = { markets, name, answer: render(deploymentBody(deps, contracts)) };
    }
    sendRendered(ctx, written.answer);
  };
}

function contractsOf(addresses: DeploymentFacts['contracts']): Deployment['contracts'] {
  const names = Object.keys(CONTRACT_ABIS) as ContractName[];
  return Object.fromEntries(
    names.flatMap((name) => {
      const address = addresses[name];
      const abi = CONTRACT_ABIS[name] as unknown as Deployment['contracts'][string]['abi'];
      return address === undefined ? [] : [[name, { address, abi_hash: abiHash(abi), abi }]];
    }),
  );
}

function deploymentBody(deps: ReadDeps, contracts: Deployment['contracts']): Deployment {
  const { deployment } = deps;
  const markets = deps.markets();
  return {
    version: deps.version,
    chain_id: deps.chainId,
    deployment_id: deps.deploymentId,
    deployment_block: deps.capitalFlowStartBlock,
    sandbox: deployment.isSandbox,
    rpc_url: deployment.publicRpcUrl,
    explorer_url: deployment.explorerUrl,
    contracts,
    wrapped_native: deployment.wrappedNative,
    tokens: servedTokens(markets).map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
    markets: markets.map((market) => ({
      pair: market.pair,
      asset: SPOT_ASSET_BASE + market.index,
      base: market.base.address,
      quote: market.quote.address,
      tick_size: market.tickSize,
      lot_size: market.lotSize,
      delisted: deps.delisted().has(market.index),
    })),
    order_sources: [...deployment.orderSources],
  };
}
