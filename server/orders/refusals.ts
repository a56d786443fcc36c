import type { Address } from '../../core/types.js';
import type { ExchangeReply } from './types.js';

/** Refusals are `<stable code>: <the wording that clients of this wire match on>`. */
const refusal =
  <A extends unknown[]>(code: string, wording: (...args: A) => string) =>
  (...args: A): string =>
    `${code}: ${wording(...args)}`;

export const REFUSALS = {
  // The request as a whole.
  badSignature: refusal('bad_signature', () => 'Unable to recover signer.'),
  unknownSigner: refusal('unknown_signer', (signer: Address) => `User or API Wallet ${signer} does not exist.`),
  makerNotApproved: refusal('maker_not_approved', (maker: Address) => `Maker ${maker} is not approved`),
  makerSuspended: refusal('maker_suspended', (maker: Address) => `Maker ${maker} is suspended`),
  vault: refusal('vault_unsupported', (vault: Address) => `Vault not registered: ${vault}`),
  unsupportedAction: refusal('unsupported_action', (type: string) => `${type} is not supported`),
  duplicateNonce: refusal('duplicate_nonce', (nonce: number) => `Invalid nonce: duplicate nonce ${nonce}`),
  refusedBefore: refusal('refused_before', () => 'Refused when it came first. Why is not stored.'),
  nonceTooLow: refusal(
    'nonce_too_low',
    (nonce: number, bound: number) => `Invalid nonce: nonce too low ${nonce} < ${bound}`,
  ),
  nonceTooHigh: refusal(
    'nonce_too_high',
    (nonce: number, bound: number) => `Invalid nonce: nonce too high ${nonce} > ${bound}`,
  ),
  expired: refusal('action_expired', () => 'Action already expired'),
  emptyBatch: refusal('empty_batch', () => 'Orders are empty.'),
  batchTooLarge: refusal('batch_too_large', () => 'Too many orders in batch'),
  builderFee: refusal('builder_fee_unsupported', () => 'Builder fee has not been approved.'),
  grouping: refusal('grouping_unsupported', () => 'Grouped orders are not supported'),
  nonceMismatch: refusal('nonce_mismatch', () => 'Nonce mismatch.'),
  wrongNetwork: refusal('wrong_network', () => 'Mainnet and testnet require different signature.'),
  wrongChain: refusal(
    'signature_chain_refused',
    (chainId: bigint) => `Signatures for chain 0x${chainId.toString(16)} are not accepted`,
  ),
  mustDeposit: refusal(
    'unknown_account',
    (account: Address) => `Must deposit before performing actions. User: ${account}`,
  ),
  agentName: refusal('agent_name', () => 'Extra agent name must be between 1 and 16 characters long'),
  agentUsed: refusal('agent_used', () => 'Extra agent already used.'),
  agentExpiry: refusal('agent_expiry', () => 'Agent valid_until already expired.'),
  agentSlots: refusal(
    'agent_slots',
    (limit: number) => `Too many extra agents for cumulative volume traded. Current limit is ${limit}`,
  ),
  agentNotFound: refusal('agent_not_found', () => 'User has no agent of that name'),
  scheduleTooSoon: refusal('schedule_too_soon', () => 'Scheduled cancel time must be at least 5 seconds in the future'),
  scheduleUsedUp: refusal('schedule_used_up', () => 'Too many scheduled cancels triggered today'),
  rateLimited: refusal(
    'rate_limited',
    (retryAfterSec: number) => `Too many failed signature recoveries, try again in ${retryAfterSec} s`,
  ),
  // One entry of a batch.
  notReady: refusal('not_ready', (reason: string) => `The ledger is not ready: ${reason}`),
  unknownAsset: refusal('unknown_asset', (asset: number) => `Unknown asset. asset=${asset}`),
  delisted: refusal('market_delisted', (asset: number) => `Asset is delisted. asset=${asset}`),
  quarantined: refusal('market_quarantined', (asset: number) => `Asset is in quarantine. asset=${asset}`),
  offTick: refusal('off_tick', (asset: number) => `Price must be divisible by tick size. asset=${asset}`),
  badPrice: refusal('bad_price', () => 'Order has invalid price.'),
  offLot: refusal('off_lot', () => 'Order has invalid size.'),
  zeroSize: refusal('zero_size', () => 'Order has zero size.'),
  belowMinValue: refusal(
    'below_min_value',
    (amount: string, token: string, asset: number) =>
      `Order must have minimum value of ${amount} ${token}. asset=${asset}`,
  ),
  postOnly: refusal(
    'post_only',
    (bbo: string, asset: number) => `Post only order would have immediately matched, bbo was ${bbo}. asset=${asset}`,
  ),
  immediate: refusal(
    'ioc_unsupported',
    (asset: number) => `Order could not immediately match against any resting orders. asset=${asset}`,
  ),
  trigger: refusal('trigger_unsupported', (asset: number) => `Trigger orders are not supported. asset=${asset}`),
  reduceOnly: refusal('reduce_only_unsupported', () => 'Reduce-only is invalid for spot trading.'),
  duplicateCloid: refusal('duplicate_cloid', (asset: number) => `Client order id is already in use. asset=${asset}`),
  tooManyOpenOrders: refusal('too_many_open_orders', (asset: number) => `Too many open orders. asset=${asset}`),
  inventory: refusal('inventory_exceeded', (asset: number) => `Insufficient spot balance asset=${asset}`),
  notModifiable: refusal('order_not_open', (asset: number) => `Cannot modify canceled or filled order. asset=${asset}`),
  orderNotFound: refusal(
    'order_not_found',
    (asset: number) => `Order was never placed, already canceled, or filled. asset=${asset}`,
  ),
} as const;

/** Reply to a request that is refused as a whole. */
export const refuse = (response: string): ExchangeReply => ({ status: 'err', response });

const MAY_HIDE_REPEAT =
  /^(?:duplicate_nonce|nonce_too_low|unknown_signer|unknown_account|maker_not_approved|maker_suspended):/;

/**
 * Whether the action may have been carried out before it was refused: its nonce was used, or is below those that are remembered, or its signer
 * may act no more, which is judged before the nonce.
 */
export const mayHideRepeat = (reply: ExchangeReply): boolean =>
  reply.status === 'err' && MAY_HIDE_REPEAT.test(reply.response);

/** The same code for unsigned requests. */
export const tooManyQueries = refusal(
  'rate_limited',
  (retryAfterSec: number) => `Too many queries or messages, try again in ${retryAfterSec} s`,
);

/**
 * Too many signatures of unknown accounts came from one address, this one among them; or too many requests wait. Answered with HTTP 429 and
 * the body `null`.
 */
export class RateLimitedError extends Error {
  override readonly name = 'RateLimitedError';

  constructor(
    readonly retryAfterSec: number,
    message = REFUSALS.rateLimited(retryAfterSec),
  ) {
    super(message);
  }
}

/** The request could not be served; the message says whether anything of it is stored. Answered with HTTP 503. */
export class GatewayUnavailableError extends Error {
  override readonly name = 'GatewayUnavailableError';

  constructor(
    readonly code: 'standby' | 'write_failed' | 'outcome_unknown',
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${message}`, options);
  }
}
