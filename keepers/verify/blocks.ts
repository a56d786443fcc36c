import { createMarket } from '../../core/market.js';
import { liveRanges } from '../../ledger/chain/branches.js';
import { verifyListings } from './listings.js';
import { VerifyError, same, type Verification } from './verification.js';
import { countRows, readRows } from '../../ledger/db/rows.js';
import type { Stored } from '../../ledger/db/tables.js';
import { PLACED_TABLES, readMisplaced, type PlacedTable } from '../../ledger/views/audit.js';

const CHECK = 'blocks';
const PAGE = 5_000;

/**
 * Checks that blocks follow each other without gaps from the first scan to the last, that each block is in exactly one live generation, and
 * that rows of a block belong to that generation. Returns the number of blocks.
 */
export async function verifyBlocks(verification: Verification): Promise<number> {
  const { q, head, onProgress } = verification;
  for (const market of verification.markets) same(CHECK, `market ${market.index}`, market, createMarket(market));
  await verifyListings(verification);
  const live = readLive(verification);
  let at = await live.next();
  const total = await countRows(q, 'blocks');
  let before: Stored<'blocks'> | null = null;
  let done = 0;
  for (;;) {
    const page: Stored<'blocks'>[] = await readRows(q, 'blocks', {
      above: ['number', before?.number ?? -1],
      orderBy: ['number'],
      limit: PAGE,
    });
    for (const block of page) {
      checkLink(before, block);
      // Both rise together: a generation that was passed by had no more blocks.
      while (at.value !== undefined && at.value.generation < block.generation) at = await live.next();
      const generation = at.value;
      if (generation?.generation !== block.generation)
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
  while (at.value !== undefined) at = await live.next();
  if (before !== null) same(CHECK, 'the last block', [head.toBlock, head.blockHash], [before.number, before.hash]);
  for (const table of PLACED_TABLES) await checkPlaces(verification, table);
  return total;
}

/** The live generations in their order, read a page at a time. Each begins where the one before it ended; reversals among them are empty. */
async function* readLive({
  q,
  head,
  reversals,
  deploymentBlock,
}: Verification): AsyncGenerator<Stored<'generations'>, undefined> {
  const live = liveRanges(reversals, head.generation);
  const back = new Map(reversals.map((one) => [one.generation, one]));
  let numbered = 0;
  let next = deploymentBlock;
  let before: Stored<'generations'> | null = null;
  for (;;) {
    const rows: Stored<'generations'>[] = await readRows(q, 'generations', {
      above: ['generation', before?.generation ?? -1],
      orderBy: ['generation'],
      limit: PAGE,
    });
    for (const row of rows) {
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
      yield row;
    }
    if (rows.length < PAGE) return undefined;
  }
}

async function checkPlaces({ q }: Verification, table: PlacedTable): Promise<void> {
  const astray = await readMisplaced(q, table);
  if (astray === undefined) return;
  throw new VerifyError(
    CHECK,
    `a row of ${table} is of generation ${astray.generation}, its block ${astray.blockNumber} is not`,
  );
}

function checkLink(before: Stored<'blocks'> | null, block: Stored<'blocks'>): void {
  if (before === null) return;
  same(CHECK, `the block after ${before.number}`, block.number, before.number + 1);
  same(CHECK, `the parent of block ${block.number}`, block.parent_hash, before.hash);
}
