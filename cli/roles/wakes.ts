/** Wakes the watcher by new heads, and followers of logs by commits of other processes. */
import { startHeadFeed } from '../../keepers/chain/head-feed.js';
import { createWakeLimit } from '../../keepers/wake-limit.js';
import { createHeadWakes } from '../../keepers/watcher/wakes.js';
import type { HintTopic } from '../../ledger/db/hints.js';
import type { RoleContext } from './context.js';

/** Commits that come faster are followed together. */
const SPACING_MS = 50;

/** Wakes a follower by what other processes commit, for as long as the signal lets it. */
export function wakeByHints(
  { hints, monotonicMs }: Pick<RoleContext, 'hints' | 'monotonicMs'>,
  topics: readonly HintTopic[],
  wake: () => void,
  signal: AbortSignal,
): void {
  const limit = createWakeLimit({ wake, spacingMs: SPACING_MS, signal, monotonicMs });
  for (const topic of topics) {
    const off = hints.on(topic, limit.hint);
    signal.addEventListener('abort', off, { once: true });
  }
}

/** Wakes the watcher of this process by heads. Resolves when nothing is listened to any more. */
export function wakeByHeads(
  { config, keepers, logger, monotonicMs }: RoleContext,
  watcher: { wake(): void; nextBlock(): number },
  signal: AbortSignal,
): Promise<void> {
  if (!config.WAKE || config.headsUrls.length === 0) return Promise.resolve();
  const wakes = createHeadWakes({ ...watcher, intervalMs: config.POLL_INTERVAL_MS, signal, monotonicMs });
  const feed = startHeadFeed({ urls: config.headsUrls, onHead: wakes.onHead, signal, logger });
  keepers.heads = () => ({ wakes: wakes.count(), endpoints: feed.facts() });
  return feed.done;
}
