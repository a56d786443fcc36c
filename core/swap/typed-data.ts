/** What the owner of a gasless order signs: Permit2's witness transfer, as a wallet takes it. */
import type { Address, Hex } from '../types.js';
import { hasTerms, NO_HASH, NO_PARTNER, type PartnerTerms } from './partner.js';

/** Appended to Permit2's own type string; the types that it names follow in alphabetical order. */
const WITNESS_TYPE_STRING =
  'OrderWitness witness)OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)' +
  'TokenPermissions(address token,uint256 amount)';

/** The same of an order with a partner or a hash. */
const PARTNER_WITNESS_TYPE_STRING =
  'PartnerOrderWitness witness)PartnerOrderWitness(address recipient,address tokenOut,uint256 minAmountOut,' +
  'address partner,uint256 partnerBps,bytes32 appData)TokenPermissions(address token,uint256 amount)';

export const witnessTypeString = (terms: PartnerTerms): string =>
  hasTerms(terms) ? PARTNER_WITNESS_TYPE_STRING : WITNESS_TYPE_STRING;

const WITNESS_FIELDS = [
  { name: 'recipient', type: 'address' },
  { name: 'tokenOut', type: 'address' },
  { name: 'minAmountOut', type: 'uint256' },
];

const typesOf = (witness: string, fields: readonly { name: string; type: string }[]) => ({
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: witness },
  ],
  [witness]: [...fields],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
});

const TYPES = typesOf('OrderWitness', WITNESS_FIELDS);
const PARTNER_TYPES = typesOf('PartnerOrderWitness', [
  ...WITNESS_FIELDS,
  { name: 'partner', type: 'address' },
  { name: 'partnerBps', type: 'uint256' },
  { name: 'appData', type: 'bytes32' },
]);

const NOBODY: Address = `0x${'0'.repeat(40)}`;

export interface OrderTerms extends Partial<PartnerTerms> {
  sellToken: Address;
  sellUnits: bigint;
  nonce: bigint;
  validToSec: number;
  receiver: Address;
  buyToken: Address;
  minBuyUnits: bigint;
}

export interface OrderDomain {
  chainId: number;
  permit2: Address;
  /** The settler. */
  spender: Address;
}

/** Typed data as wallets take it. */
export interface TypedData {
  domain: TokenDomain;
  primaryType: string;
  types: Record<string, { name: string; type: string }[]>;
  message: object;
}

const CANCELLATION_TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'version', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  OrderCancellation: [{ name: 'orderId', type: 'string' }],
};

/** What the owner of an order signs to cancel it. Order ids are unique, so the signature is valid for this order only. */
export const cancellationTypedData = (
  orderId: string,
  { chainId, settler }: { chainId: number; settler: Address },
): TypedData => ({
  domain: { name: 'Curvebook', version: '1', chainId, verifyingContract: settler },
  primaryType: 'OrderCancellation',
  types: CANCELLATION_TYPES,
  message: { orderId },
});

/** The two forms of `permit` that tokens have: for an amount (EIP-2612), or for all or nothing (DAI). */
export type PermitStyle = 'eip2612' | 'dai';

/** The EIP-712 domain of a token; fields that it does not have are left out of the type, too. */
export interface TokenDomain {
  name?: string;
  version?: string;
  chainId?: number;
  verifyingContract?: Address;
}

const DOMAIN_FIELDS = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
] as const;

const PERMIT_FIELDS: Record<PermitStyle, { name: string; type: string }[]> = {
  eip2612: [
    { name: 'owner', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
  dai: [
    { name: 'holder', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'expiry', type: 'uint256' },
    { name: 'allowed', type: 'bool' },
  ],
};

/** The unlimited allowance that a permit gives Permit2: Permit2 itself spends only by a signature over each amount. */
export const PERMIT_VALUE = 2n ** 256n - 1n;

export interface PermitTerms {
  owner: Address;
  /** Permit2. */
  spender: Address;
  /** The token's nonce of the owner. */
  nonce: bigint;
  deadlineSec: number;
}

/** Typed data by which a wallet gives Permit2 its allowance at a token. */
export interface PermitTypedData {
  domain: TokenDomain;
  primaryType: 'Permit';
  types: Record<string, { name: string; type: string }[]>;
  message: Record<string, string | boolean>;
}

/** What an owner signs instead of sending an approval, as eth_signTypedData_v4 takes it. */
export function permitTypedData(style: PermitStyle, domain: TokenDomain, terms: PermitTerms): PermitTypedData {
  const { owner, spender } = terms;
  const [nonce, deadline] = [terms.nonce.toString(), terms.deadlineSec.toString()];
  return {
    domain,
    primaryType: 'Permit',
    types: {
      EIP712Domain: DOMAIN_FIELDS.filter(({ name }) => domain[name] !== undefined).map((field) => ({ ...field })),
      Permit: PERMIT_FIELDS[style],
    },
    message:
      style === 'eip2612'
        ? { owner, spender, value: PERMIT_VALUE.toString(), nonce, deadline }
        : { holder: owner, spender, nonce, expiry: deadline, allowed: true },
  };
}

export interface OrderTypedData {
  domain: { name: string; chainId: number; verifyingContract: Address };
  primaryType: 'PermitWitnessTransferFrom';
  types: Record<string, { name: string; type: string }[]>;
  message: {
    permitted: { token: Address; amount: string };
    spender: Address;
    nonce: string;
    deadline: string;
    witness: {
      recipient: Address;
      tokenOut: Address;
      minAmountOut: string;
      /** These three of an order with a partner or a hash only. */
      partner?: Address;
      partnerBps?: string;
      appData?: Hex;
    };
  };
}

/**
 * Typed data as eth_signTypedData_v4 takes it: `EIP712Domain` is among the types, because wallets hash an empty domain without it, and
 * integers are decimal strings, because JSON numbers lose digits.
 */
export function orderTypedData(terms: OrderTerms, domain: OrderDomain): OrderTypedData {
  const partnered = { ...NO_PARTNER, ...terms };
  return {
    domain: { name: 'Permit2', chainId: domain.chainId, verifyingContract: domain.permit2 },
    primaryType: 'PermitWitnessTransferFrom',
    types: hasTerms(partnered) ? PARTNER_TYPES : TYPES,
    message: {
      permitted: { token: terms.sellToken, amount: terms.sellUnits.toString() },
      spender: domain.spender,
      nonce: terms.nonce.toString(),
      deadline: terms.validToSec.toString(),
      witness: {
        recipient: terms.receiver,
        tokenOut: terms.buyToken,
        minAmountOut: terms.minBuyUnits.toString(),
        ...(hasTerms(partnered) ? signedTerms(partnered) : {}),
      },
    },
  };
}

/** Zero stands for none. */
export const signedTerms = ({ partner, partnerBps, appData }: PartnerTerms) => ({
  partner: partner ?? NOBODY,
  partnerBps: partnerBps.toString(),
  appData: appData ?? NO_HASH,
});
