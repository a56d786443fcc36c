import type { JsonRpcProvider } from 'ethers';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';

/** Blocks from..to. */
export interface BlockRange {
  from: number;
  to: number;
}

/** In how many blocks a curve landed, and in which none did. */
export async function blocksWithoutPost(
  provider: JsonRpcProvider,
  curveBook: string,
  { from, to }: BlockRange,
): Promise<{ count: number; posts: number; missed: number[] }> {
  const contract = CurveBook__factory.connect(curveBook, provider);
  const posted = new Set<number>();
  let posts = 0;
  for (const filter of [contract.filters.CurvePosted(), contract.filters.CurveTouched()]) {
    for (const { blockNumber } of await contract.queryFilter(filter, from, to)) {
      posted.add(blockNumber);
      posts += 1;
    }
  }
  const blocks = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  return { count: blocks.length, posts, missed: blocks.filter((number) => !posted.has(number)) };
}
