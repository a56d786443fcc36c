import { z } from 'zod';
import { MAX_LEDGER_AGE_MS } from '../../../keepers/watcher/status.js';
import { flag, integer } from '../../settings/fields.js';
import { defineRole } from '../role.js';

/** Follows the chain. Every process follows the ledger; `ledger.ts` is what does, and writes it where this role is played. */
export const watcher = defineRole({
  name: 'watcher',
  signs: false,
  settings: {
    SCAN_MAX_BLOCKS: integer(1, 2_000, 200).describe('most blocks in one scan'),
    PROVE_BLOCKS: z
      .enum(['events', 'all'])
      .default('events')
      .describe(
        'blocks proven from their receipts: those with events of ours or in doubt, or all whose filter does not exclude our contracts',
      ),
    HALT_ON_SUSPENSE: flag('true').describe(
      'halt when something on-chain is explained by nothing stored; without it quotes and posts go on, and only the claims that it may concern wait',
    ),
  },
  problems: ({ POLL_INTERVAL_MS: pollMs }, isPlayed) =>
    isPlayed && pollMs >= MAX_LEDGER_AGE_MS
      ? [`POLL_INTERVAL_MS: must be less than ${MAX_LEDGER_AGE_MS}, the age at which the ledger is stale`]
      : [],
  status: ({ generation }) => ({ lastActMs: generation?.scannedMs ?? null }),
  start: () => Promise.resolve([]),
});

export type WatcherSettings = z.output<z.ZodObject<typeof watcher.settings>>;
