import { Interface } from 'ethers';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

/** Why an order can't be executed now. `isFinal`: nor ever, whatever happens on the market. */
export interface Refusal {
  code: string;
  message: string;
  isFinal: boolean;
}

export const NONCE_USED = {
  code: 'NONCE_USED',
  message: "The order's Permit2 nonce was used or invalidated by the owner",
};

export const EXECUTOR_UNFUNDED = {
  code: 'EXECUTOR_UNFUNDED',
  message: 'The service has no ETH to send transactions with',
};

const PERMIT2 = new Interface([
  'error SignatureExpired(uint256 signatureDeadline)',
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error InvalidSignature()',
  'error InvalidContractSignature()',
  'error InvalidSignatureLength()',
  'error InvalidAmount(uint256 maxAmount)',
]);
const STRINGS = new Interface(['error Error(string reason)', 'error Panic(uint256 code)']);
const INTERFACES = [
  OrderSettler__factory.createInterface(),
  Entrypoint__factory.createInterface(),
  CurveBook__factory.createInterface(),
  Custodian__factory.createInterface(),
  PERMIT2,
  STRINGS,
];

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
  SignatureExpired: { code: 'SIGNATURE_EXPIRED', message: 'The signature is past its deadline' },
  InvalidSigner: SIGNATURE,
  InvalidSignature: SIGNATURE,
  InvalidContractSignature: SIGNATURE,
  InvalidSignatureLength: SIGNATURE,
  NotExecutor: { code: 'NOT_EXECUTOR', message: 'The settler does not know this executor' },
  ForbiddenTarget: { code: 'FORBIDDEN_TARGET', message: 'The settler may not call the external venue' },
  ForbiddenRecipient: { code: 'FORBIDDEN_RECEIVER', message: 'The receiver can not receive tokens', isFinal: true },
};
/** Revert reasons of tokens and Uniswap when a transfer from the owner fails. */
const TRANSFER_FAILED = /TRANSFER_FROM_FAILED|transfer amount exceeds|STF/i;
const VENUE_PRICE = /Too little received|Too much requested/i;

/** Reads the data of a revert. */
export function refusalOf(data: string): Refusal {
  for (const abi of INTERFACES) {
    const parsed = data.length < 10 ? null : abi.parseError(data);
    if (parsed === null) continue;
    // An error inside a venue's call never ends an order.
    if (parsed.name === 'CallFailed') return { ...refusalOf(String(parsed.args['reason'])), isFinal: false };
    if (parsed.name === 'Error') return textRefusal(String(parsed.args[0]));
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
