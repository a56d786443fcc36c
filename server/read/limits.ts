import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits, maxBig } from '../../core/amounts.js';
import type { Market, Token } from '../../core/types.js';
import type { BalanceRow } from '../../ledger/types.js';
import type { AccountState, ReadDeps, ScanStatus } from './deps.js';
import { addressOf } from './params.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema, signedDecimalSchema } from './schemas.js';

const balanceSchema = z.strictObject({
  token: z.string(),
  balance: signedDecimalSchema,
  reserved: decimalSchema,
  available: decimalSchema,
  net_capital: signedDecimalSchema,
});

export const watcherSchema = z
  .strictObject({
    target_block: integerSchema.nullable(),
    head: integerSchema.nullable(),
    next_block: integerSchema,
    lag_blocks: integerSchema.nullable(),
  })
  .meta({ id: 'Watcher' });

export const limitsSchema = z
  .strictObject({
    maker: addressSchema,
    ledger: z.strictObject({
      ready: z.boolean(),
      reason: z.string().nullable(),
      deployment_id: z.string(),
      capital_flow_start_block: integerSchema,
      inventory_revision: integerSchema,
      durable_inventory_revision: integerSchema,
      next_block: integerSchema,
      /** Null before the first scan, like the three that follow. */
      scanned_block_hash: hashSchema.nullable(),
      observed_head: integerSchema.nullable(),
      observed_head_timestamp_ms: integerSchema.nullable(),
      /** Of the newest successful scan, also of one that found no new block; `ready` is judged by its age. */
      last_successful_scan_ms: integerSchema.nullable(),
      fill_seqs: z.record(pairSchema, integerSchema),
      balances: z.array(balanceSchema),
    }),
    watcher: watcherSchema,
  })
  .meta({ id: 'Limits' });

type Limits = z.infer<typeof limitsSchema>;

/**
 * GET /v0/makers/{maker}/limits. It answers while the ledger is not ready, and says why; an unknown address has zero rows. Whoever has read of a deposit
 * here may quote against it: the answer waits for the gateway to judge by the generation that it is of.
 */
export function limitsHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const maker = addressOf(ctx.params.maker ?? '');
    const state = await deps.store.accountState(maker);
    await deps.untilApplied(state.generation?.generation ?? 0);
    const body: Limits = { maker, ledger: ledgerOf(deps, state), watcher: watcherBody(deps.watcher()) };
    ctx.body = body;
  };
}

function ledgerOf(deps: ReadDeps, state: AccountState): Limits['ledger'] {
  const { generation } = state;
  const markets = deps.markets();
  const { ready, reason } = deps.readiness();
  return {
    ready,
    reason,
    deployment_id: deps.deploymentId,
    capital_flow_start_block: state.capitalOrigin ?? deps.capitalFlowStartBlock,
    inventory_revision: deps.inventoryRevision(),
    durable_inventory_revision: generation?.generation ?? 0,
    next_block: generation === null ? deps.capitalFlowStartBlock : generation.toBlock + 1,
    scanned_block_hash: generation?.blockHash ?? null,
    observed_head: generation?.observedHead ?? null,
    observed_head_timestamp_ms: generation?.observedHeadTimestampMs ?? null,
    last_successful_scan_ms: deps.watcher().lastScanMs,
    fill_seqs: Object.fromEntries(markets.map((market) => [market.pair, state.fillSeqs.get(market.index) ?? 0])),
    balances: servedTokens(markets).map((token) => balanceOf(token, state.balances)),
  };
}

/** Every token of a listed market once, in listing order. */
export function servedTokens(markets: readonly Market[]): Token[] {
  const tokens = markets.flatMap((market) => [market.base, market.quote]);
  return [...new Map(tokens.map((token) => [token.address, token])).values()];
}

function balanceOf(token: Token, rows: readonly BalanceRow[]): Limits['ledger']['balances'][number] {
  const row = rows.find((candidate) => candidate.token === token.address);
  const balance = row?.balanceUnits ?? 0n;
  const reserved = row?.reservedUnits ?? 0n;
  return {
    token: token.symbol,
    balance: formatUnits(balance, token.decimals),
    reserved: formatUnits(reserved, token.decimals),
    available: formatUnits(maxBig(balance - reserved, 0n), token.decimals),
    net_capital: formatUnits(row?.netCapitalUnits ?? 0n, token.decimals),
  };
}

/** The wire form of where the scan stands. */
export function watcherBody(status: ScanStatus): z.infer<typeof watcherSchema> {
  return {
    target_block: status.targetBlock,
    head: status.head,
    next_block: status.nextBlock,
    lag_blocks: status.head === null ? null : Math.max(status.head - status.nextBlock + 1, 0),
  };
}
