import type { Migration } from './tables.js';
import { firstTables } from './0001-first-tables.js';
import { settlementTables } from './0002-settlement.js';
import { publicationRecords } from './0004-publications.js';
import { swaps } from './0005-swaps.js';
import { reversals } from './0007-reversals.js';
import { nonceOrder } from './0008-nonce-order.js';
import { retention } from './0009-retention.js';
import { advances } from './0010-advances.js';
import { tradeIds } from './0011-trade-ids.js';
import { fillCloids } from './0012-fill-cloids.js';
import { lowerings } from './0013-lowerings.js';
import { listings } from './0014-listings.js';
import { carry } from './0015-carry.js';
import { swapWallets } from './0016-swap-wallets.js';
import { acts } from './0017-acts.js';
import { pairGains } from './0018-pair-gains.js';
import { curveError } from './0019-curve-error.js';
import { suspense } from './0020-suspense.js';
import { tokens } from './0022-tokens.js';
import { owners } from './0024-owners.js';
import { swapExecutors } from './0025-swap-executors.js';
import { seqResets } from './0026-seq-resets.js';
import { marketData } from './0027-market-data.js';
import { accounts } from './0028-accounts.js';
import { gas } from './0029-gas.js';
import { hints } from './0032-hints.js';
import { outboxBounds } from './0035-outbox-bounds.js';
import { swapCosts } from './0036-swap-costs.js';
import { swapCancellations } from './0037-swap-cancellations.js';

/** All steps, oldest first. */
export const migrations: readonly Migration[] = [
  firstTables,
  settlementTables,
  publicationRecords,
  swaps,
  reversals,
  nonceOrder,
  retention,
  advances,
  tradeIds,
  fillCloids,
  lowerings,
  listings,
  carry,
  swapWallets,
  acts,
  pairGains,
  curveError,
  suspense,
  tokens,
  owners,
  swapExecutors,
  seqResets,
  marketData,
  accounts,
  gas,
  hints,
  outboxBounds,
  swapCosts,
  swapCancellations,
];
