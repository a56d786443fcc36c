import { liveRanges } from '../../ledger/branches.js';
import type { StoredGeneration } from '../../ledger/generations.js';
import { VerifyError, same, type Verification } from './verify.js';

const CHECK = 'blocks';
const PAGE = 5_000;

interface StoredBlock {
  number: number;
  hash: string;
  parent_hash: string;
  timestamp_sec: number;
  generation: number;
}

/** Blocks follow each other without gaps from the first scan to the last, and each live generation ends at one of them. Returns their number. */
export async function verifyBlocks({ q, head, reversals, onProgress }: Verification): Promise<number> {
  const live = liveRanges(reversals, head.generation);
  const isLive = (generation: number): boolean => live.some(({ from, to }) => from <= generation && generation <= to);
  const generations = new Map<number, StoredGeneration>();
  let numbered = 0;
  for (const row of (await q('generations').orderBy('generation').select()) as StoredGeneration[]) {
    same(CHECK, 'the number of a generation', row.generation, ++numbered);
    if (isLive(row.generation)) generations.set(row.generation, row);
  }
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
  if (before !== null) same(CHECK, 'the last block', head.blockHash, before.hash);
  return total;
}

function checkLink(before: StoredBlock | null, block: StoredBlock): void {
  if (before === null) return;
  same(CHECK, `the block after ${before.number}`, block.number, before.number + 1);
  same(CHECK, `the parent of block ${block.number}`, block.parent_hash, before.hash);
}
