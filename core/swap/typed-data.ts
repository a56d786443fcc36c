/** What the owner of a gasless order signs: Permit2's witness transfer, as a wallet takes it. */
import type { Address } from '../types.js';

/** Continues Permit2's own stub; the types that it names follow in alphabetical order. */
export const WITNESS_TYPE_STRING =
  'OrderWitness witness)OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)' +
  'TokenPermissions(address token,uint256 amount)';

const TYPES = {
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
    { name: 'witness', type: 'OrderWitness' },
  ],
  OrderWitness: [
    { name: 'recipient', type: 'address' },
    { name: 'tokenOut', type: 'address' },
    { name: 'minAmountOut', type: 'uint256' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
};

export interface OrderTerms {
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
  domain: { name: string; version?: string; chainId: number; verifyingContract: Address };
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

/** What the owner of an order signs to take it back. An order's id is used once, so that a signature says nothing of any other. */
export const cancellationTypedData = (
  orderId: string,
  { chainId, settler }: { chainId: number; settler: Address },
): TypedData => ({
  domain: { name: 'Curvebook', version: '1', chainId, verifyingContract: settler },
  primaryType: 'OrderCancellation',
  types: CANCELLATION_TYPES,
  message: { orderId },
});

export interface OrderTypedData {
  domain: { name: string; chainId: number; verifyingContract: Address };
  primaryType: 'PermitWitnessTransferFrom';
  types: Record<string, { name: string; type: string }[]>;
  message: {
    permitted: { token: Address; amount: string };
    spender: Address;
    nonce: string;
    deadline: string;
    witness: { recipient: Address; tokenOut: Address; minAmountOut: string };
  };
}

/**
 * Typed data as eth_signTypedData_v4 wants it: `EIP712Domain` is among the types, because wallets hash an empty domain without it, and
 * integers are decimal strings, because JSON numbers lose digits.
 */
export function orderTypedData(terms: OrderTerms, domain: OrderDomain): OrderTypedData {
  return {
    domain: { name: 'Permit2', chainId: domain.chainId, verifyingContract: domain.permit2 },
    primaryType: 'PermitWitnessTransferFrom',
    types: TYPES,
    message: {
      permitted: { token: terms.sellToken, amount: terms.sellUnits.toString() },
      spender: domain.spender,
      nonce: terms.nonce.toString(),
      deadline: terms.validToSec.toString(),
      witness: {
        recipient: terms.receiver,
        tokenOut: terms.buyToken,
        minAmountOut: terms.minBuyUnits.toString(),
      },
    },
  };
}
