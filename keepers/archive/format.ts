/** Format of the archive's files: their content, signature, and a reader that trusts nothing in them. */
import { createHash } from 'node:crypto';
import { deflateSync, inflateSync } from 'node:zlib';
import { SigningKey, Signature, computeAddress } from 'ethers';
import { z } from 'zod';
import { keccakText } from '../../core/hash.js';
import { decodeSnapshot, encodeSnapshot, PayloadError } from '../../core/json.js';
import { snapshotHash } from '../../core/snapshot.js';
import type { Address, Hex, MarketSnapshot } from '../../core/types.js';
import { publicationOf, publicationRow, type PublicationRow } from '../../ledger/publications/publication-log.js';
import { checkpointHeadSchema } from '../../ledger/settlements/checkpoint-log.js';
import { settlementOf, settlementRow, type SettlementRow } from '../../ledger/settlements/settlement-log.js';
import type { CheckpointHead, Publication, Settlement } from '../../ledger/types.js';

/** Highest numbers used up to a batch; after a loss numbering continues above them. */
export interface ArchiveHighs {
  /** Highest sequence number by index of the market. */
  seqs: Readonly<Record<string, number>>;
  /** Newest order row that any book was cut from, and highest order id that it knew. */
  orderSeq: number;
  oid: number;
}

/** One file: what was sent together, publications with the books behind them or settlements with their checkpoint, and where the archive stands after it. */
export interface ArchiveBatch {
  deploymentId: string;
  /** Counts from 1. */
  number: number;
  /** SHA-256 of the file before; null in the first one. */
  previous: Hex | null;
  timeMs: number;
  publications: Publication[];
  /** Books that none of the files since the beginning of the folder has. */
  snapshots: MarketSnapshot[];
  settlements: Settlement[];
  /** The checkpoint that was published with it; null in a file of publications, and where none was due. */
  checkpoint: CheckpointHead | null;
  highs: ArchiveHighs;
}

/** A batch as it was read, with who signed it and the hash that the next one names. */
export interface SignedBatch {
  batch: ArchiveBatch;
  signer: Address;
  hash: Hex;
}

/** A file of the archive is altered or missing. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';

  constructor(
    readonly code: 'ARCHIVE_DAMAGED' | 'ARCHIVE_FOREIGN' | 'ARCHIVE_UNPROVEN' | 'ARCHIVE_BUSY' | 'ARCHIVE_EMPTY',
    message: string,
  ) {
    super(message);
  }
}

export const NO_HIGHS: ArchiveHighs = { seqs: {}, orderSeq: 0, oid: 0 };

/** Most bytes that a reader decompresses from a file. */
const MAX_BYTES = 256 * 1024 * 1024;
const DOMAIN = 'curvebook archive 1\n';

const int = z.int().nonnegative();
const hex32 = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value));
const units = z.string().regex(/^\d{1,78}$/);
const text = z.string();
const address = z.custom<Address>((value) => typeof value === 'string' && /^0x[0-9a-f]{40}$/.test(value));

const rowSchema: z.ZodType<PublicationRow> = z.strictObject({
  market: int,
  seq: int.positive(),
  base_seq: int.positive(),
  kind: z.enum(['full', 'touch', 'partial']),
  block_number: int,
  block_hash: hex32,
  excluded: text,
  ask_knots: int,
  bid_knots: int,
  compression: int,
  max_error_milli_bps: int,
  exact_ask_knots: int,
  exact_bid_knots: int,
  // Rows of older versions lack them.
  ask_error_ppb: int.nullable().default(null),
  bid_error_ppb: int.nullable().default(null),
  cut_order_seq: int,
  cut_generation: int,
  cut_time_ms: int,
  fill_seq: int,
  ask_volume_units: units,
  bid_volume_units: units,
  trims: text,
  snapshot_hash: hex32,
  ask_words: text,
  bid_words: text,
  words_hash: hex32,
  deadline_sec: int,
  prepared_ms: int,
  tx_key: text,
});

const settlementSchema: z.ZodType<SettlementRow> = z.strictObject({
  settlement_no: int.positive(),
  maker: address,
  token: address,
  amount_units: units,
  basis: units,
  previous_units: units,
  cut_generation: int,
  cut_block: int,
  checkpoint_seq: int,
  prepared_ms: int,
  prepared_by: z.enum(['settler', 'operator']),
  operator_seq: int.nullable(),
  tx_key: text,
});

/** Version 1 had publications alone. */
const bodySchema = z.strictObject({
  version: z.union([z.literal(1), z.literal(2)]),
  deploymentId: text,
  number: int.positive(),
  previous: hex32.nullable(),
  timeMs: int,
  publications: z.array(rowSchema),
  snapshots: z.array(text),
  settlements: z.array(settlementSchema).default([]),
  checkpoint: checkpointHeadSchema.nullable().default(null),
  highs: z.strictObject({ seqs: z.record(z.string().regex(/^\d{1,9}$/), int), orderSeq: int, oid: int }),
});

const fileSchema = z.strictObject({ body: text, signature: z.string().regex(/^0x[0-9a-f]{130}$/) });

/** The bytes of a batch's file, signed. */
export function encodeBatch(batch: ArchiveBatch, privateKey: Hex): Buffer {
  const { publications, snapshots, settlements, ...rest } = batch;
  const body = JSON.stringify({
    version: 2,
    ...rest,
    publications: publications.map(publicationRow),
    snapshots: snapshots.map(encodeSnapshot),
    settlements: settlements.map(settlementRow),
  });
  const signature = new SigningKey(privateKey).sign(keccakText(DOMAIN + body)).serialized;
  return deflateSync(JSON.stringify({ body, signature }));
}

/** Hash by which the next file refers to this one. */
export function fileHash(bytes: Uint8Array): Hex {
  return `0x${createHash('sha256').update(bytes).digest('hex')}`;
}

/** Reads a file. Its content is only proven to be signed by `signer`; each book matches its hash. Throws ArchiveError `ARCHIVE_DAMAGED`. */
export function decodeBatch(bytes: Uint8Array, name: string): SignedBatch {
  try {
    const json: unknown = JSON.parse(inflateSync(bytes, { maxOutputLength: MAX_BYTES }).toString('utf8'));
    const { body, signature } = fileSchema.parse(json);
    const key = SigningKey.recoverPublicKey(keccakText(DOMAIN + body), Signature.from(signature));
    const {
      version: _,
      publications,
      snapshots,
      settlements,
      checkpoint,
      previous,
      ...rest
    } = bodySchema.parse(JSON.parse(body));
    return {
      batch: {
        ...rest,
        previous: previous,
        publications: publications.map(publicationOf),
        snapshots: snapshots.map(decodeSnapshot),
        settlements: settlements.map(settlementOf),
        checkpoint,
      },
      signer: computeAddress(key).toLowerCase() as Address,
      hash: fileHash(bytes),
    };
  } catch (error) {
    const reason = error instanceof PayloadError || error instanceof Error ? error.message : String(error);
    throw new ArchiveError('ARCHIVE_DAMAGED', `${name} can't be read: ${reason.slice(0, 300)}`);
  }
}

/** The highest numbers after one more batch. */
export function highsAfter(
  highs: ArchiveHighs,
  publications: readonly Publication[],
  book: { orderSeq: number; oid: number },
): ArchiveHighs {
  const seqs = { ...highs.seqs };
  for (const { market, seq } of publications) seqs[market] = Math.max(seqs[market] ?? 0, seq);
  return { seqs, orderSeq: Math.max(highs.orderSeq, book.orderSeq), oid: Math.max(highs.oid, book.oid) };
}

/** Books by the hash that publications name them by. */
export function booksByHash(snapshots: readonly MarketSnapshot[]): Map<Hex, MarketSnapshot> {
  return new Map(snapshots.map((snapshot) => [snapshotHash(snapshot), snapshot]));
}
