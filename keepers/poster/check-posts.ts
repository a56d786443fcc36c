/** Checks stored transactions before they leave the database: that they are what was signed, and that posts carried the publications of their key. */
import { Transaction } from 'ethers';
import { hexToBytes, keccak256 } from '../../core/hash.js';
import type { Market } from '../../core/types.js';
import { readPublicationsOf } from '../../ledger/publications/publication-log.js';
import { RecordFaultError, recordSent } from '../../ledger/publications/rebuild.js';
import type { Stored } from '../../ledger/db/tables.js';
import { PartitionError } from '../../ledger/transactions/partition-locks.js';
import type { Queryable } from '../../ledger/types.js';
import { postCalldata } from './post-call.js';

/**
 * Throws PartitionError `NOT_VERIFIED` for the first transaction whose bytes have another hash, nonce or receiver than its row says, or that posted
 * something else than the publications of its key. Of posts that nothing prepared here explains only the former is checked.
 */
export async function checkPosts(
  q: Queryable,
  markets: readonly Market[],
  rows: readonly Stored<'outbox'>[],
): Promise<void> {
  for (const row of rows) {
    const fault = await faultOf(q, markets, row);
    if (fault !== null) throw new PartitionError('NOT_VERIFIED', `transaction ${row.hash} (${row.tx_key}): ${fault}`);
  }
}

async function faultOf(q: Queryable, markets: readonly Market[], row: Stored<'outbox'>): Promise<string | null> {
  const hash = keccak256(hexToBytes(row.raw));
  if (hash !== row.hash) return `its bytes hash to ${hash}`;
  const { nonce, to, data } = Transaction.from(row.raw);
  if (nonce !== row.nonce || to?.toLowerCase() !== row.to_address) return `it has nonce ${nonce} and calls ${to}`;
  const sent = await postOf(q, markets, row.tx_key);
  return sent === null || sent === data ? null : 'it posted something else than its publications';
}

/** The call that a key stands for; null for what is no post, or one whose publications are not stored. */
async function postOf(q: Queryable, markets: readonly Market[], txKey: string): Promise<string | null> {
  if (!txKey.startsWith('post:')) return null;
  const publications = await readPublicationsOf(q, txKey);
  const [first] = publications;
  if (first === undefined) return null;
  // Records are in the order of the key.
  const places = txKey.slice('post:'.length).split(',');
  const placeOf = (one: { market: number; seq: number }): number => places.indexOf(`${one.market}.${one.seq}`);
  const records = [];
  for (const one of publications.toSorted((a, b) => placeOf(a) - placeOf(b))) {
    const market = markets.find(({ index }) => index === one.market);
    if (market === undefined) return `of market ${one.market}, which is not listed`;
    try {
      records.push(await recordSent(q, market, one));
    } catch (error) {
      if (error instanceof RecordFaultError) return error.message;
      throw error;
    }
  }
  return postCalldata({ number: first.blockNumber, hash: first.blockHash }, records);
}
