import type { Logger } from 'pino';
import type { Address } from '../../../core/types.js';
import { RpcContradictionError, type Rpc } from '../../chain/rpc.js';
import { MissingEventError, type ProveEvents } from '../scan/event-proof.js';
import type { Scan } from '../scan/scan.js';

/** Blocks that are proven in one scan, for all tokens together. */
const PROVE_SPAN = 256;
/** Ranges of proven blocks that are remembered. */
const PROVEN_RANGES = 64;

interface BlockRange {
  from: number;
  to: number;
}

interface ProvenBlocks {
  /** A scan begins, with its own share of blocks. */
  begin(): void;
  /** Proves a part of the range, each block once for all tokens; true once all of it is. */
  covers(range: BlockRange, of: { token: Address; scan: Scan; rpc: Rpc }): Promise<boolean>;
  /** Forgets what is proven: blocks may have been replaced. */
  clear(): void;
}

/** Blocks that hold no event that the ledger lacks, whichever token they were proven for. */
export function createProvenBlocks({ prove, logger }: { prove: ProveEvents; logger: Logger }): ProvenBlocks {
  let proven: BlockRange[] = [];
  let left = PROVE_SPAN;

  /** The first block from `from` on that is not proven. */
  function firstUnproven(from: number): number {
    let first = from;
    for (;;) {
      const known = proven.find((range) => range.from <= first && first <= range.to);
      if (known === undefined) return first;
      first = known.to + 1;
    }
  }

  return {
    begin() {
      left = PROVE_SPAN;
    },
    async covers(range, { token, scan, rpc }) {
      const from = firstUnproven(range.from);
      if (from > range.to) return true;
      if (left <= 0) return false;
      const next = Math.min(range.to + 1, ...proven.filter((one) => one.from > from).map((one) => one.from));
      const to = Math.min(next - 1, from + left - 1);
      try {
        await prove({ from, to }, scan, rpc);
      } catch (error) {
        // That nothing can be proven at the moment must not keep anything else from being scanned, nor be tried for each token.
        if (error instanceof MissingEventError || error instanceof RpcContradictionError) throw error;
        logger.warn({ token, from, to, err: error }, 'blocks could not be proven; a difference waits');
        left = 0;
        return false;
      }
      left -= to - from + 1;
      const before = proven.find((one) => one.to === from - 1);
      if (before === undefined) proven = [...proven, { from, to }].slice(-PROVEN_RANGES);
      else before.to = to;
      return firstUnproven(from) > range.to;
    },
    clear() {
      proven = [];
    },
  };
}
