import type { Migration } from './tables.js';
import { firstTables } from './0001-first-tables.js';
import { settlementTables } from './0002-settlement.js';
import { publicationRecords } from './0004-publications.js';
import { swaps } from './0005-swaps.js';
import { reversals } from './0007-reversals.js';
import { nonceOrder, advances, tradeIds, fillCloids, lowerings, listings } from './0008-0014-columns.js';
import { retention } from './0009-retention.js';
import { carry } from './0015-carry.js';
import { swapWallets } from './0016-swap-wallets.js';
import { acts, pairGains, curveError, owners, swapExecutors, seqResets } from './0017-0026-columns.js';
import { suspense } from './0020-suspense.js';
import { tokens } from './0022-tokens.js';
import { marketData } from './0027-market-data.js';
import { accounts } from './0028-accounts.js';
import { gas } from './0029-gas.js';
import { hints } from './0032-hints.js';
import { outboxBounds, swapCosts, swapCancellations } from './0035-0037-columns.js';
import {
  boundedCounts,
  compactFills,
  oneIndexLess,
  pastOrders,
  swapPermits,
  unknownCosts,
} from './0038-0044-columns.js';
import { cutGeneration, partners, postedErrors, reverts } from './0048-0051-columns.js';
import { swapFees } from './0040-swap-fees.js';
import { limitOrders, paidGas } from './0045-0046-columns.js';
import { packedBooks } from './0047-packed-books.js';

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
  swapPermits,
  pastOrders,
  swapFees,
  unknownCosts,
  compactFills,
  oneIndexLess,
  boundedCounts,
  paidGas,
  limitOrders,
  packedBooks,
  reverts,
  partners,
  postedErrors,
  cutGeneration,
];
