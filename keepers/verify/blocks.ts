import { createMarket } from '../../core/market.js';
import { liveRanges } from '../../ledger/chain/branches.js';
import type { StoredGeneration } from '../../ledger/chain/generations.js';
import { verifyListings } from './listings.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'blocks';
const PAGE = 5_000;

interface StoredBlock {
  number: number;
  hash: string;
  parent_hash: string;
  timestamp_sec: number;
  generation: number;
}

/** Tables whose rows name the block that they come from. */
const PLACED = ['custody_events', 'posts_seen', 'seq_resets', 'fills', 'settled_orders'] as const;

/**
 * Blocks follow each other without gaps from the first scan to the last, the live generations part them among themselves, and what was
 * seen in a block belongs to the block's generation. Returns the number of blocks.
 */
export async function verifyBlocks(verification: Verification): Promise<number> {
  const { q, head, onProgress } = verification;
  for (const market of verification.markets) same(CHECK, `market ${market.index}`, market, createMarket(market));
  await verifyListings(verification);
  const generations = await readLive(verification);
  const total = ((await q('blocks').count({ count: '*' }).first()) as { count: number }).count;
  let before: StoredBlock | null = null;
  let done = 0;
  for (;;) {
    const page = (await q('blocks')
      .where('number', '>', before?.number ?? -1)
      .orderBy('number')
      .limit(PAGE)
      .select()) as StoredBlock[];
    for (const block of page) {
      checkLink(before, block);
      const generation = generations.get(block.generation);
      if (generation === undefined)
        throw new VerifyError(CHECK, `block ${block.number} belongs to no generation that stands`);
      if (block.number < generation.from_block || block.number > generation.to_block)
        throw new VerifyError(CHECK, `block ${block.number} is outside of its generation ${block.generation}`);
      if (block.number === generation.to_block) {
        same(CHECK, `the hash of generation ${block.generation}`, generation.block_hash, block.hash);
        same(
          CHECK,
          `the time of generation ${block.generation}`,
          generation.block_timestamp_ms,
          block.timestamp_sec * 1_000,
        );
      }
      before = block;
    }
    done += page.length;
    onProgress({ check: CHECK, done, total });
    if (page.length < PAGE) break;
  }
  if (before !== null) same(CHECK, 'the last block', [head.toBlock, head.blockHash], [before.number, before.hash]);
  for (const table of PLACED) await checkPlaces(verification, table);
  return total;
}

/** The generations that stand. Each begins where the one before it ended; reversals among them are empty. */
async function readLive({ q, head, reversals, deploymentBlock }: Verification): Promise<Map<number, StoredGeneration>> {
  const live = liveRanges(reversals, head.generation);
  const back = new Map(reversals.map((one) => [one.generation, one]));
  const generations = new Map<number, StoredGeneration>();
  let numbered = 0;
  let next = deploymentBlock;
  let before: StoredGeneration | null = null;
  for (const row of (await q('generations').orderBy('generation').select()) as StoredGeneration[]) {
    same(CHECK, 'the number of a generation', row.generation, ++numbered);
    const reversal = back.get(row.generation);
    if (reversal !== undefined) {
      const span = [reversal.fromBlock, reversal.toBlock];
      same(CHECK, `the blocks that generation ${row.generation} took back`, span, [row.from_block, before?.to_block]);
    }
    before = row;
    if (!live.some(({ from, to }) => from <= row.generation && row.generation <= to)) continue;
    same(CHECK, `the first block of generation ${row.generation}`, row.from_block, next);
    next = row.to_block + 1;
    generations.set(row.generation, row);
  }
  return generations;
}

async function checkPlaces({ q }: Verification, table: (typeof PLACED)[number]): Promise<void> {
  const astray = await q(`${table} as row`)
    .leftJoin('blocks as block', 'block.number', 'row.block_number')
    .where((any) => void any.whereNull('block.number').orWhereRaw('block.generation <> row.generation'))
    .first<{ block_number: number; generation: number } | undefined>('row.block_number', 'row.generation');
  if (astray === undefined) return;
  throw new VerifyError(
    CHECK,
    `a row of ${table} is of generation ${astray.generation}, its block ${astray.block_number} is not`,
  );
}

function checkLink(before: StoredBlock | null, block: StoredBlock): void {
  if (before === null) return;
  same(CHECK, `the block after ${before.number}`, block.number, before.number + 1);
  same(CHECK, `the parent of block ${block.number}`, block.parent_hash, before.hash);
}
