import type { Hex } from '../../core/types.js';
import { surveyOf } from './quorum.js';
import type { Rpc } from './rpc.js';

/** The base fee of the newest block, in wei per gas. */
export interface BaseFees {
  /** One that differs by more than a factor of two from the one before is asked of all endpoints. */
  read(): Promise<bigint>;
}

/** Follows the base fee. */
export function createBaseFees(rpc: Rpc): BaseFees {
  let lastWei: bigint | null = null;

  async function ask(one: Rpc): Promise<bigint> {
    const block = (await one.call('eth_getBlockByNumber', ['latest', false])) as { baseFeePerGas?: Hex };
    return BigInt(block.baseFeePerGas ?? '0x0');
  }

  return {
    async read() {
      const saidWei = await ask(rpc);
      const isLikely = lastWei !== null && saidWei <= 2n * lastWei && lastWei <= 2n * saidWei;
      lastWei = isLikely ? saidWei : median((await surveyOf(rpc, ask, saidWei)).map(({ answer }) => answer));
      return lastWei;
    },
  };
}

/** Of two, the lower one: a bid that is too low is raised soon, and one beyond the ceiling is none. */
function median(values: readonly bigint[]): bigint {
  return [...values].sort((a, b) => (a < b ? -1 : 1))[Math.floor((values.length - 1) / 2)]!;
}
