/**
 * MessagePack of what signed actions are made of: text, booleans, non-negative integers, lists and maps. A general encoder takes
 * several times as long, and an action of many orders is hashed far faster than that encoder writes it.
 */

/** One scratch buffer for the process: encoding is synchronous, so no two uses overlap. It grows and never shrinks. */
let bytes = Buffer.allocUnsafe(64 * 1024);

/** Longest header of a value: one byte of type and eight of value. */
const HEADER_BYTES = 9;

/**
 * The value's bytes, in a copy of their own. Maps keep the order of their keys, and every length and number takes its shortest form.
 * Throws RangeError for a value that no action can hold: undefined, a negative number, a fraction, a bigint.
 */
export function encodeMsgpack(value: unknown): Uint8Array {
  const length = write(value, 0);
  return Buffer.from(bytes.subarray(0, length));
}

/** Writes a value at an offset and returns where the next one begins. */
function write(value: unknown, at: number): number {
  if (typeof value === 'string') return writeText(value, at);
  if (at + HEADER_BYTES > bytes.length) grow(at + HEADER_BYTES);
  if (typeof value === 'number') return writeUint(value, at);
  if (typeof value === 'boolean') return writeByte(value ? 0xc3 : 0xc2, at);
  if (value === null) return writeByte(0xc0, at);
  if (typeof value !== 'object') throw new RangeError(`an action holds no ${typeof value}`);
  if (Array.isArray(value)) {
    let end = writeLength(value.length, 0x90, 0xdc, at);
    for (const item of value) end = write(item, end);
    return end;
  }
  const keys = Object.keys(value);
  let end = writeLength(keys.length, 0x80, 0xde, at);
  for (const key of keys) end = write((value as Record<string, unknown>)[key], writeText(key, end));
  return end;
}

function writeByte(byte: number, at: number): number {
  bytes[at] = byte;
  return at + 1;
}

function writeUint(value: number, at: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`an action holds no ${value}`);
  if (value < 0x80) return writeByte(value, at);
  if (value < 0x100) return bytes.writeUInt8(value, writeByte(0xcc, at));
  if (value < 0x10000) return bytes.writeUInt16BE(value, writeByte(0xcd, at));
  if (value < 0x100000000) return bytes.writeUInt32BE(value, writeByte(0xce, at));
  return bytes.writeBigUInt64BE(BigInt(value), writeByte(0xcf, at));
}

/** Header of a list or a map: its length inside the first byte below 16, else 2 or 4 bytes of it. */
function writeLength(length: number, short: number, long: number, at: number): number {
  if (length < 16) return writeByte(short | length, at);
  if (length < 0x10000) return bytes.writeUInt16BE(length, writeByte(long, at));
  return bytes.writeUInt32BE(length, writeByte(long + 1, at));
}

function writeText(text: string, at: number): number {
  const most = at + HEADER_BYTES + 3 * text.length;
  if (most > bytes.length) grow(most);
  const { length } = text;
  if (length >= 32) return writeLongText(text, at);
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) return writeLongText(text, at);
    bytes[at + 1 + index] = code;
  }
  bytes[at] = 0xa0 | length;
  return at + 1 + length;
}

function writeLongText(text: string, at: number): number {
  const length = Buffer.byteLength(text);
  let start: number;
  if (length < 32) start = writeByte(0xa0 | length, at);
  else if (length < 0x100) start = bytes.writeUInt8(length, writeByte(0xd9, at));
  else if (length < 0x10000) start = bytes.writeUInt16BE(length, writeByte(0xda, at));
  else start = bytes.writeUInt32BE(length, writeByte(0xdb, at));
  return start + bytes.write(text, start);
}

function grow(least: number): void {
  const larger = Buffer.allocUnsafe(Math.max(least, 2 * bytes.length));
  bytes.copy(larger);
  bytes = larger;
}
