import type { Logger } from 'pino';
import type { Market } from '../../core/types.js';
import { loadLedgerHead, readMarkets } from '../../ledger/chain/ledger-log.js';
import { lastReversal } from '../../ledger/chain/reversals.js';
import { standingFindings } from '../../ledger/chain/token-findings.js';
import type { Db } from '../../ledger/types.js';
import { startLoop, type Loop } from '../loop.js';
import { readStandingHalt, CATCH_UP_BLOCKS, beforeFirstScan, type WatcherStatus } from './status.js';

interface RemoteStatusDeps {
  db: Db;
  /** Listed markets by index; grows as the ledger lists more. */
  markets: Market[];
  deploymentBlock: number;
  pollIntervalMs: number;
  logger: Logger;
  /** Called when a new generation was seen. */
  onGeneration(generation: number): void;
  /** Called once, when the ledger was reconciled: what was built on it is out of date. */
  onReversal(): void;
}

/** The watcher's state as another process sees it: from what is durable, by polling. */
export function createRemoteStatus(deps: RemoteStatusDeps): {
  status(): WatcherStatus;
  start(signal: AbortSignal): Loop;
} {
  let status: WatcherStatus = beforeFirstScan(deps.deploymentBlock);

  let reversal: number | null = null;

  async function step(): Promise<void> {
    const newest = await lastReversal(deps.db.reads);
    if (newest > (reversal ?? newest)) deps.onReversal();
    reversal = newest;
    const halt = await readStandingHalt(deps.db.reads);
    const head = await loadLedgerHead(deps.db.reads);
    if (head === null) {
      status = { ...status, halt };
      return;
    }
    for (const market of await readMarkets(deps.db.reads)) {
      if (deps.markets[market.index] === undefined) deps.markets.push(market);
    }
    const isNew = head.generation > status.inventoryRevision;
    status = {
      inventoryRevision: head.generation,
      durableInventoryRevision: head.generation,
      nextBlock: head.toBlock + 1,
      scannedBlockHash: head.blockHash,
      observedHead: head.observedHead,
      observedHeadTimestampMs: head.observedHeadTimestampMs,
      lastSuccessfulScanMs: head.lastScanMs,
      catchingUp: head.observedHead - head.toBlock > CATCH_UP_BLOCKS,
      failedWrite: false,
      solvency: [],
      findings: await standingFindings(deps.db.reads),
      halt,
    };
    if (isNew) deps.onGeneration(head.generation);
  }

  return {
    status: () => status,
    start: (signal) =>
      startLoop(step, { name: 'ledger-follower', intervalMs: deps.pollIntervalMs, signal, logger: deps.logger }),
  };
}
