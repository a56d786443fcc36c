import { MOST_DEPTH, parsedError } from '../chain/reverts.js';

/** Why an order can't be executed now. `isFinal`: nor ever, whatever happens on the market. */
export interface Refusal {
  code: string;
  message: string;
  isFinal: boolean;
  /** Whether a call of the route failed, to a pool or to our own curve as a leg of a path; whatever its reason says is not about the owner. */
  isInCall?: boolean;
}

export const NONCE_USED = {
  code: 'NONCE_USED',
  message: "The order's Permit2 nonce was used or invalidated by the owner",
};

export const EXECUTOR_UNFUNDED = {
  code: 'EXECUTOR_UNFUNDED',
  message: 'The service has no ETH to send transactions with',
};

export const TOKEN_QUARANTINED = {
  code: 'TOKEN_QUARANTINED',
  message: 'One of the tokens can not be trusted for now',
};

const PRICE_MOVED = { code: 'PRICE_MOVED', message: 'The market does not give the signed amounts at the moment' };
const NO_LIQUIDITY = { code: 'INSUFFICIENT_LIQUIDITY', message: 'There is not enough liquidity at the moment' };
const FUNDS = {
  code: 'INSUFFICIENT_FUNDS',
  message: 'The sell token can not be taken: the owner lacks the balance or the allowance to Permit2',
};
const SIGNATURE = { code: 'INVALID_SIGNATURE', message: 'Permit2 does not accept the signature', isFinal: true };

/** By the name of the contract's error. */
const KNOWN: Record<string, Omit<Refusal, 'isFinal'> & { isFinal?: boolean }> = {
  InsufficientOutput: PRICE_MOVED,
  ExcessiveInput: PRICE_MOVED,
  InsufficientDepth: NO_LIQUIDITY,
  InsufficientLiquidity: NO_LIQUIDITY,
  CurveExpired: NO_LIQUIDITY,
  ZeroOutput: NO_LIQUIDITY,
  UnknownMarket: NO_LIQUIDITY,
  InvalidNonce: { code: 'NONCE_USED', message: "The order's Permit2 nonce is used up" },
  NonceUsed: { code: 'NONCE_USED', message: "The order's Permit2 nonce is used up" },
  CheckFailed: PRICE_MOVED,
  InsufficientFunds: FUNDS,
  OwnerHasCode: {
    code: 'UNPROVEN_ACCOUNT',
    message: "The owner's account has got code, and its order is sent once it has swapped by itself",
  },
  SignatureExpired: { code: 'SIGNATURE_EXPIRED', message: 'The signature is past its deadline' },
  InvalidSigner: SIGNATURE,
  InvalidSignature: SIGNATURE,
  InvalidContractSignature: SIGNATURE,
  InvalidSignatureLength: SIGNATURE,
  NotExecutor: { code: 'NOT_EXECUTOR', message: 'The settler does not know this executor' },
  ForbiddenTarget: { code: 'FORBIDDEN_TARGET', message: 'The settler may not call the external venue' },
  ForbiddenPartner: { code: 'FORBIDDEN_PARTNER', message: 'The partner can not receive tokens', isFinal: true },
  PartnerFeeTooHigh: {
    code: 'PARTNER_FEE_TOO_HIGH',
    message: "The partner's part is above what the contracts allow",
    isFinal: true,
  },
  ForbiddenRecipient: { code: 'FORBIDDEN_RECEIVER', message: 'The receiver can not receive tokens', isFinal: true },
};
/** Revert reasons of tokens and Uniswap when a transfer from the owner fails. */
const TRANSFER_FAILED = /TRANSFER_FROM_FAILED|transfer amount exceeds|STF/i;
const VENUE_PRICE = /Too little received|Too much requested/i;

/** Reads the data of a revert. */
export function refusalOf(data: string, depth = 0): Refusal {
  const parsed = parsedError(data);
  if (parsed !== null) {
    // An error inside a venue's call never ends an order.
    if (parsed.name === 'CallFailed' && depth < MOST_DEPTH)
      return { ...refusalOf(parsed.reason, depth + 1), isFinal: false, isInCall: true };
    if (parsed.name === 'Error') return textRefusal(parsed.reason);
    const known = KNOWN[parsed.name];
    if (known !== undefined) return { isFinal: false, ...known };
    return { code: 'REVERTED', message: `The contracts refuse the order: ${parsed.name}`, isFinal: false };
  }
  return { code: 'REVERTED', message: `The contracts refuse the order: ${data.slice(0, 74)}`, isFinal: false };
}

function textRefusal(text: string): Refusal {
  if (TRANSFER_FAILED.test(text)) return { ...FUNDS, isFinal: false };
  if (VENUE_PRICE.test(text)) return { ...PRICE_MOVED, isFinal: false };
  return { code: 'REVERTED', message: `The contracts refuse the order: ${text.slice(0, 120)}`, isFinal: false };
}
