import { keccak256 } from '../../core/hash.js';
import type { Hex } from '../../core/types.js';
import { hexBytes, rlp, scalar } from './rlp.js';

type Field = readonly [name: string, encode: (value: string) => string];

const data: Field[1] = (value) => value;

/** Every header has them, in this order. */
const FIELDS: readonly Field[] = [
  ['parentHash', data],
  ['sha3Uncles', data],
  ['miner', data],
  ['stateRoot', data],
  ['transactionsRoot', data],
  ['receiptsRoot', data],
  ['logsBloom', data],
  ['difficulty', scalar],
  ['number', scalar],
  ['gasLimit', scalar],
  ['gasUsed', scalar],
  ['timestamp', scalar],
  ['extraData', data],
  ['mixHash', data],
  ['nonce', data],
];

/**
 * Fields that forks appended, oldest first: London, Shanghai (the same place holds a storage root on rollups since Isthmus), Cancun,
 * Prague, and the two of Amsterdam. Each is present only with all before it, so the fork need not be known: a wrong guess gives another
 * hash.
 */
const APPENDED: readonly Field[] = [
  ['baseFeePerGas', scalar],
  ['withdrawalsRoot', data],
  ['blobGasUsed', scalar],
  ['excessBlobGas', scalar],
  ['parentBeaconBlockRoot', data],
  ['requestsHash', data],
  ['blockAccessListHash', data],
  ['slotNumber', scalar],
];

/**
 * The hash of a block's header, computed from what an RPC answers of it. Throws RangeError or TypeError when it holds no readable header.
 */
export function headerHash(block: Readonly<Record<string, unknown>>): Hex {
  const items: string[] = [];
  for (const [name, encode] of FIELDS) items.push(encode(text(block, name)));
  for (const [name, encode] of APPENDED) {
    if (block[name] === undefined || block[name] === null) break;
    items.push(encode(text(block, name)));
  }
  return keccak256(hexBytes(rlp(items)));
}

function text(block: Readonly<Record<string, unknown>>, name: string): string {
  const value = block[name];
  if (typeof value !== 'string') throw new RangeError(`a header without ${name}`);
  return value;
}
