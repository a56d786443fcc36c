/**
 * What a list of RLP is made of: data as hex of whole bytes with 0x in front, or another list. A quantity is data without leading zero
 * bytes (`scalar`).
 */
export type RlpItem = string | readonly RlpItem[];

/**
 * RLP (yellow paper, appendix B) as hex without 0x, in the letter case of the data: RPC answers are hex, and the hex of a whole tree is
 * converted to bytes once. Throws RangeError for data that isn't hex of whole bytes as far as its length shows; other characters are found
 * by `hexBytes`.
 */
export function rlp(item: RlpItem): string {
  if (typeof item !== 'string') return rlpList(item.map(rlp));
  if (!item.startsWith('0x') || item.length % 2 !== 0) throw new RangeError(`not data: ${item.slice(0, 40)}`);
  const data = item.slice(2);
  return data.length === 2 && data < '80' ? data : prefix(0x80, data.length / 2) + data;
}

/** A list of items that are RLP already, each as hex without 0x. */
export function rlpList(encoded: readonly string[]): string {
  const payload = encoded.join('');
  return prefix(0xc0, payload.length / 2) + payload;
}

function prefix(base: number, length: number): string {
  if (length < 56) return hexOf(base + length);
  const size = hexOf(length);
  return hexOf(base + 55 + size.length / 2) + size;
}

function hexOf(value: number): string {
  const text = value.toString(16);
  return text.length % 2 === 0 ? text : `0${text}`;
}

/** A JSON-RPC quantity as data without leading zeros, zero as no byte at all. */
export function scalar(quantity: string): string {
  if (!/^0x[0-9a-fA-F]+$/.test(quantity)) throw new RangeError(`not a quantity: ${quantity.slice(0, 40)}`);
  const digits = quantity.slice(2).replace(/^0+/, '');
  return digits.length % 2 === 0 ? `0x${digits}` : `0x0${digits}`;
}

/** Bytes of hex without 0x. Throws RangeError when it holds anything else. */
export function hexBytes(hex: string): Uint8Array {
  const bytes = Buffer.from(hex, 'hex');
  if (bytes.length * 2 !== hex.length) throw new RangeError('not hex of whole bytes');
  return bytes;
}
