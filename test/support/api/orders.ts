/** Signed orders as a wallet makes them: Permit2's typed data with the witness of OrderSettler. */
import { TypedDataEncoder, randomBytes, toBigInt } from 'ethers';
import type { Wallet } from 'ethers';
import type { IOrderSettler } from '../../../typechain-types/OrderSettler.js';

export const ORDER_TYPES = {
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

/** What an owner signs for the spender. */
export type OrderTerms = Omit<IOrderSettler.OrderStruct, 'signature'>;

export interface OrderDomain {
  chainId: number;
  permit2: string;
  spender: string;
}

export const randomNonce = (): bigint => toBigInt(randomBytes(32));

const domainOf = ({ chainId, permit2 }: OrderDomain) => ({ name: 'Permit2', chainId, verifyingContract: permit2 });

const messageOf = (terms: OrderTerms, { spender }: OrderDomain) => ({
  permitted: { token: terms.tokenIn, amount: terms.maxAmountIn },
  spender,
  nonce: terms.nonce,
  deadline: terms.deadline,
  witness: { recipient: terms.recipient, tokenOut: terms.tokenOut, minAmountOut: terms.minAmountOut },
});

/** The digest that the owner's signature is over. */
export function orderDigest(terms: OrderTerms, domain: OrderDomain): string {
  return TypedDataEncoder.hash(domainOf(domain), ORDER_TYPES, messageOf(terms, domain));
}

/** The terms with the signature of `owner`, who need not be the owner that they name. */
export async function signOrder(
  owner: Wallet,
  terms: OrderTerms,
  domain: OrderDomain,
): Promise<IOrderSettler.OrderStruct> {
  const signature = await owner.signTypedData(domainOf(domain), ORDER_TYPES, messageOf(terms, domain));
  return { ...terms, signature };
}
