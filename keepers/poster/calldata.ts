import { encodePost, type BlockRef, type PostRecord } from '../../core/curve/post.js';
import { keccakText } from '../../core/hash.js';
import type { Hex } from '../../core/types.js';

const POST = keccakText('post(bytes)').slice(0, 10);
const POST_BATCH = keccakText('postBatch(bytes)').slice(0, 10);

/** The call that publishes the records: `post` for one, which reverts when it is stale, `postBatch` for several. */
export function postCalldata(block: BlockRef, records: readonly PostRecord[]): Hex {
  const payload = encodePost(block, records).slice(2);
  const word = (value: number): string => value.toString(16).padStart(64, '0');
  const padded = payload.padEnd(Math.ceil(payload.length / 64) * 64, '0');
  return `${records.length === 1 ? POST : POST_BATCH}${word(32)}${word(payload.length / 2)}${padded}` as Hex;
}
