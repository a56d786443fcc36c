/** Posts that were mined and reverted, and what is not sent because it would revert, too. */
import type { Logger } from 'pino';
import type { Address } from '../../core/types.js';
import type { TransactionCost } from '../../ledger/transactions/costs.js';
import type { Rpc } from '../chain/rpc.js';
import { OUT_OF_DATE, UNKNOWN, wouldRevert } from './post-call.js';
import type { Due } from './prepare.js';
import type { PosterView } from './view.js';

/** Reverts in a row after which nothing is sent for a while, even if a check says that it would land. */
const MAX_REVERTS = 2;
const RETRY_MS = 60_000;

interface RevertWatchDeps {
  rpc: Rpc;
  curveBook: Address;
  signer: Address;
  /** For intervals; monotonic. */
  nowMs(): number;
  /** Called for each record that is left out. */
  onLeftOut(): void;
  logger: Logger;
}

interface RevertWatch {
  /** A post landed. */
  landed(): void;
  /** A post was mined and reverted. */
  note(cost: TransactionCost): void;
  /** The contract's error of the newest one; null before the first. */
  last(): string | null;
  /** What of `due` may be sent: all of it, until a post has reverted; then what a call at the view's block says would land. */
  without(view: PosterView, due: readonly Due[]): Promise<readonly Due[]>;
}

export function createRevertWatch(deps: RevertWatchDeps): RevertWatch {
  const { logger, nowMs } = deps;
  /** Since the last that landed. */
  let inARow = 0;
  /** After a revert, due records are tried by a call before they are sent, until all of them would land. */
  let isCareful = false;
  let revertedMs = Number.NEGATIVE_INFINITY;
  let last: string | null = null;

  return {
    last: () => last,
    landed() {
      inARow = 0;
    },
    note({ hash, txKey, revertReason = UNKNOWN, gasUsed }) {
      last = revertReason;
      // The next posts are tried before they are sent, unless this one was only too late.
      isCareful = true;
      if (!OUT_OF_DATE.includes(last)) {
        inARow += 1;
        revertedMs = nowMs();
      }
      logger.warn({ hash, txKey, reason: last, gasUsed, inARow }, 'a post was mined and reverted');
    },
    async without(view, due) {
      if (!isCareful) return due;
      // Reverts that no check foresees then cost one transaction per pause, not one per block.
      if (inARow >= MAX_REVERTS && nowMs() - revertedMs < RETRY_MS) return [];
      const head = { number: view.head.toBlock, hash: view.head.blockHash };
      const failing = await wouldRevert(
        deps.rpc,
        { from: deps.signer, to: deps.curveBook, head },
        due.map(({ record }) => record),
      );
      for (const [i, reason] of failing) {
        deps.onLeftOut();
        logger.warn({ pair: due[i]!.market.pair, reason }, 'left out of the posts: it would revert');
      }
      if (failing.size === 0 && inARow === 0) isCareful = false;
      return due.filter((_, i) => !failing.has(i));
    },
  };
}
