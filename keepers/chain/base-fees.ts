import type { Hex } from '../../core/types.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import { surveyOf } from './quorum.js';
import type { Rpc } from './rpc.js';

/** The base fee of the newest block, in wei per gas. */
interface BaseFees {
  /**
   * Reads the base fee from one endpoint. All endpoints are asked at least every half minute, when it differs by more than a factor of two
   * from their last answer, and when it is above `mostWei`, at which something would stop.
   */
  read(mostWei?: bigint): Promise<bigint>;
}

const SURVEY_INTERVAL_MS = 30_000;

/** Follows the base fee. `monotonicMs` measures intervals. */
export function createBaseFees(rpc: Rpc, monotonicMs: () => number): BaseFees {
  /** The last median of all endpoints. Never updated from one endpoint, which could otherwise move it step by step. */
  let agreed: { wei: bigint; atMs: number } | null = null;

  async function ask(one: EthReader): Promise<bigint> {
    const block = (await one.call('eth_getBlockByNumber', ['latest', false])) as { number?: Hex; baseFeePerGas?: Hex };
    // A chain may have no base fee; the number is read so that an answer that is no block throws.
    return block.baseFeePerGas === undefined ? 0n * BigInt(block.number!) : BigInt(block.baseFeePerGas);
  }

  return {
    async read(mostWei) {
      const saidWei = await onOne(rpc, ask);
      const isLikely =
        agreed !== null &&
        (mostWei === undefined || saidWei <= mostWei) &&
        monotonicMs() - agreed.atMs < SURVEY_INTERVAL_MS &&
        saidWei <= 2n * agreed.wei &&
        agreed.wei <= 2n * saidWei;
      if (isLikely) return saidWei;
      const wei = median((await surveyOf(rpc, ask, saidWei)).map(({ answer }) => answer));
      agreed = { wei, atMs: monotonicMs() };
      return wei;
    },
  };
}

/** Of two values the lower one: a bid that is too low is raised soon, but one above the ceiling is not sent at all. */
function median(values: readonly bigint[]): bigint {
  return [...values].sort((a, b) => (a < b ? -1 : 1))[Math.floor((values.length - 1) / 2)]!;
}
