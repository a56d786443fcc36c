import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { NO_CLAIM, longestWaitMs, neededGas, settlesFromMs, type ClaimState } from '../../../core/claim-state.js';
import { requestsShort } from '../../../core/settle-gas.js';
import { formatUnits } from '../../../core/amounts.js';
import type { Address, Token } from '../../../core/types.js';
import { claimKey } from '../../../ledger/settlements/settlement-log.js';
import type { ReadDeps, WithdrawalState } from '../deps.js';
import { servedTokens } from '../limits.js';
import { addressOf } from '../params.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema } from '../schemas.js';

/** Newest custody events that one answer holds. */
export const CUSTODY_EVENTS_LIMIT = 100;

export const withdrawalsSchema = z.strictObject({
  maker: addressSchema,
  withdrawals: z.array(
    z.strictObject({
      token: z.string(),
      /** `requested`: no claim yet. `settled`: a claim can be executed from `ready_at_sec` on; more may be pending on top of it. */
      state: z.enum(['none', 'requested', 'settled']),
      /** Requested and neither paid nor dropped; reserved out of inventory. */
      outstanding: decimalSchema,
      claim: decimalSchema,
      ready_at_sec: integerSchema.nullable(),
      /** Whether a request waits for its settlement, and the block of the oldest. */
      pending: z.boolean(),
      pending_since_block: integerSchema.nullable(),
      /** Earliest settlement of the pending request, when its claim was settled a short time ago; null when it need not wait for that. */
      settles_from_ms: integerSchema.nullable(),
      /**
       * How many more requests, each in a transaction of its own, would have the request that waits settled by itself. Until then it is settled
       * beside another settlement that it pays its part of, or once the claim that stands was executed. 0 when it need not wait for that.
       */
      requests_short: integerSchema,
    }),
  ),
  /** The custodian's events of this address in served tokens, newest last. */
  events: z
    .array(
      z.strictObject({
        event: z.enum(['deposited', 'requested', 'settled', 'executed']),
        token: z.string(),
        amount: decimalSchema,
        ready_at_sec: integerSchema.nullable(),
        block_number: integerSchema,
        tx_hash: hashSchema,
      }),
    )
    .max(CUSTODY_EVENTS_LIMIT),
});

type Withdrawals = z.infer<typeof withdrawalsSchema>;

/** GET /v0/makers/{maker}/withdrawals: the state of an address's withdrawals, and its latest custody events. */
export function withdrawalsHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const maker = addressOf(ctx.params.maker ?? '');
    const state = await deps.store.withdrawals(
      maker,
      CUSTODY_EVENTS_LIMIT,
      deps.nowMs() - longestWaitMs(deps.settlePace),
    );
    const tokens = servedTokens(deps.markets());
    const body: Withdrawals = {
      maker,
      withdrawals: tokens.map((token) => {
        const claim = state.claims.find((one) => one.token === token.address);
        const waits = { settlesFromMs: settlesFrom(deps, state, token), requestsShort: shortOf(state, token) };
        return withdrawalOf(token, claim ?? NO_CLAIM, waits);
      }),
      events: eventsOf(tokens, state),
    };
    ctx.body = body;
  };
}

/** Null once the time has passed: a settlement's other conditions have no known time. */
function settlesFrom({ settlePace, nowMs }: ReadDeps, state: WithdrawalState, { address }: Token): number | null {
  const claim = state.claims.find(({ token }) => token === address);
  if (claim === undefined || claim.pendingSinceBlock === null) return null;
  const balanceUnits = state.balances.find(({ token }) => token === address)?.balanceUnits ?? 0n;
  const fromMs = settlesFromMs({ ...claim, balanceUnits }, state.settledMs.get(claimKey(claim)) ?? null, settlePace);
  return fromMs > nowMs() ? fromMs : null;
}

/** 0 unless a request waits that is not paid for. */
function shortOf(state: WithdrawalState, { address }: Token): number {
  const claim = state.claims.find(({ token }) => token === address);
  if (claim === undefined || claim.pendingSinceBlock === null) return 0;
  const balanceUnits = state.balances.find(({ token }) => token === address)?.balanceUnits ?? 0n;
  return requestsShort(neededGas({ ...claim, balanceUnits }), claim.paidGas);
}

function withdrawalOf(
  token: Token,
  claim: ClaimState,
  waits: { settlesFromMs: number | null; requestsShort: number },
): Withdrawals['withdrawals'][number] {
  const settledOrNone = claim.claimUnits > 0n ? 'settled' : 'none';
  return {
    token: token.symbol,
    state: claim.claimUnits === 0n && claim.outstandingUnits > 0n ? 'requested' : settledOrNone,
    outstanding: formatUnits(claim.outstandingUnits, token.decimals),
    claim: formatUnits(claim.claimUnits, token.decimals),
    ready_at_sec: claim.readyAtSec,
    pending: claim.pendingSinceBlock !== null,
    pending_since_block: claim.pendingSinceBlock,
    settles_from_ms: waits.settlesFromMs,
    requests_short: waits.requestsShort,
  };
}

function eventsOf(tokens: readonly Token[], { events }: WithdrawalState): Withdrawals['events'] {
  const byAddress = new Map<Address, Token>(tokens.map((token) => [token.address, token]));
  return events.flatMap((event) => {
    const token = byAddress.get(event.token);
    if (token === undefined) return [];
    return [
      {
        event: event.kind,
        token: token.symbol,
        amount: formatUnits(event.amountUnits, token.decimals),
        ready_at_sec: event.readyAtSec,
        block_number: event.blockNumber,
        tx_hash: event.txHash,
      },
    ];
  });
}
