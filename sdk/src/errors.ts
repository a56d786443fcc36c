/** How a signed order that may have been submitted is found again, among the orders of its owner. */
export interface SubmittedOrder {
  clientOrderId: string;
  /** Null where no answer has named it. */
  orderId: string | null;
  /** Last second at which it may be executed. */
  validToSec: number;
}

/** What went wrong, by a stable code, and what to do about it. */
export class CurvebookError extends Error {
  override readonly name = 'CurvebookError';
  /** HTTP status, null when there was no answer. */
  readonly status: number | null;
  /** Seconds to wait before the next request, if the server named them. */
  readonly retryAfterSec: number | null;
  readonly remedy: string | null;
  /** The order that may still be executed in spite of the error. */
  readonly order: SubmittedOrder | null;

  constructor(
    readonly code: string,
    message: string,
    more: {
      status?: number;
      retryAfterSec?: number | null;
      remedy?: string;
      order?: SubmittedOrder;
      cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.status = more.status ?? null;
    this.retryAfterSec = more.retryAfterSec ?? null;
    this.remedy = more.remedy ?? REMEDIES[code] ?? null;
    this.order = more.order ?? null;
  }
}

/** What to do about a code, where the server's text does not say it. */
const REMEDIES: Readonly<Record<string, string>> = {
  RATE_LIMITED: 'come back after retryAfterSec seconds',
  NOT_READY: 'the server starts or its ledger catches up: ask again in a few seconds',
  NO_ANSWER: 'the server is down or out of reach; what was sent may have been stored: look before sending it again',
  not_ready: 'wait until the ledger is ready; cancels work meanwhile',
  unknown_signer: 'sign by an approved maker, or by an agent that is still valid',
  maker_not_approved: 'ask the operator for approval',
  duplicate_nonce: 'look by client order id whether the action was stored',
  refused_before: 'look at your orders and sign it anew',
  off_tick: 'take a price that is a multiple of the tick',
  off_lot: 'take a size that is a multiple of the lot',
  inventory_exceeded: 'cancel something or deposit more',
  BAD_QUOTE: 'ask for another quote; a server that goes on like this is not to be trusted',
  FEE_TOO_HIGH: 'swap more at once, swap directly, or raise maxFee',
  APPROVAL_NEEDED: 'send the approval once (allowGasless), and swap again',
  ORDER_UNKNOWN: 'look at the orders of your address for its client order id before you swap again',
  WAIT_ABORTED: 'look at the order before you swap again; cancelGasless takes it back while nothing was sent for it',
  NO_MINIMUM: 'say the least that you take (minBuy), or wait for a curve',
  NOTHING_QUOTED: 'wait for the next curve, take a smaller amount, or swap gasless, which has pools too',
  BELOW_MINIMUM: 'lower minBuy, or wait for a better price',
  NO_GASLESS: 'swap directly: this deployment has no gasless swaps',
  INSUFFICIENT_LIQUIDITY: 'take a smaller amount, or come back in a few seconds',
  UNPROVEN_ACCOUNT:
    'swap directly first, an account with code twice, take a smaller amount, or wait until the time in the message where there is one',
  TOO_MANY_REVERTS: 'swap directly; signed orders are taken again after that',
  INSUFFICIENT_FUNDS: 'bring back balance and allowance, or start again with what is there',
  TOO_MANY_ORDERS: 'try again in a minute, or swap directly',
  TOO_MANY_LIMIT_ORDERS: 'try again later, or swap now',
  LIMIT_NOT_REACHED: 'wait for the price, or cancel the order',
  TOKEN_QUARANTINED: 'wait until the operator has cleared the token; others go on',
  CHAIN_UNAVAILABLE: 'wait a few seconds and ask again',
  EXECUTOR_UNFUNDED: 'swap directly meanwhile; the operator is told',
  GAS_TOO_DEAR: 'wait for cheaper gas, swap more at once, or swap directly',
  PRICE_MOVED: 'ask for another quote, or allow more slippage',
  EXPIRED: 'ask for another quote',
  WRONG_CHAIN: 'switch the chain in the wallet; nothing was sent',
  NOT_MINED: 'look for it by the hash in the message before you send it again',
  REVERTED: 'the state changed meanwhile: try again',
  REPLACED:
    'look in the wallet, by the hash in the message, whether it was sped up or cancelled, before you send it again',
  outcome_unknown: 'look by client order id before sending it again',
};
