/** Signed transactions as a node reads them, by the native library: chains in memory take thousands. */
import { decodeRlp, encodeRlp } from 'ethers';
import { toSafeInt } from '../../../core/amounts.js';
import { hexToBytes, keccak256, keccak256Bytes } from '../../../core/hash.js';
import type { Address, Hex } from '../../../core/types.js';
import { recoverAddress } from '../../../core/wire/recover.js';

export interface SignedCall {
  hash: Hex;
  from: Address;
  nonce: number;
  to: Address;
  data: Hex;
  maxFeeWei: bigint;
}

/** Fields of an EIP-1559 transaction that are signed, in their order: chain, nonce, two fees, gas, to, value, data, access list. */
const SIGNED_FIELDS = 9;
const number = (field: Hex): bigint => (field === '0x' ? 0n : BigInt(field));

/** A transaction of type 2. Throws RangeError for another type, and for a signature that names nobody. */
export function readSigned(raw: Hex): SignedCall {
  if (!raw.startsWith('0x02')) throw new RangeError(`not a transaction of type 2: ${raw.slice(0, 10)}`);
  const fields = decodeRlp(`0x${raw.slice(4)}`) as Hex[];
  const [, nonce, , maxFeeWei, , to, , data] = fields as [Hex, Hex, Hex, Hex, Hex, Hex, Hex, Hex];
  const [parity, r, s] = fields.slice(SIGNED_FIELDS) as [Hex, Hex, Hex];
  const digest = keccak256Bytes(hexToBytes(`0x02${encodeRlp(fields.slice(0, SIGNED_FIELDS)).slice(2)}`));
  const from = recoverAddress(digest, { r, s, v: number(parity) === 0n ? 27 : 28 });
  if (from === null) throw new RangeError('nobody signed the transaction');
  return {
    hash: keccak256(hexToBytes(raw)),
    from,
    nonce: toSafeInt(number(nonce)),
    to: to.toLowerCase() as Address,
    data,
    maxFeeWei: number(maxFeeWei),
  };
}
