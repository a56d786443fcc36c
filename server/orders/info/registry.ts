import { WireError } from '../../../core/wire/errors.js';
import { asObject, asText } from '../../../core/wire/shape.js';
import { l2Book } from './books.js';
import { candleSnapshot, recentTrades, spotMetaAndAssetCtxs } from './market-data.js';
import { allMids, spotMeta } from './markets.js';
import {
  clearinghouseState,
  extraAgents,
  spotClearinghouseState,
  userFees,
  userRateLimit,
  userRole,
} from './account.js';
import {
  exchangeStatus,
  maxBuilderFee,
  metaAndAssetCtxs,
  meta,
  emptyList,
  nothing,
  outcomeMeta,
  perpDexs,
  userAbstraction,
} from './constants.js';
import { userNonFundingLedgerUpdates } from './ledger-updates.js';
import { frontendOpenOrders, historicalOrders, openOrders, orderStatus } from './orders.js';
import type { InfoDeps, InfoHandler } from './types.js';
import { userFillsByTime, userFills } from './fills.js';

const HANDLERS: ReadonlyMap<string, InfoHandler> = new Map<string, InfoHandler>([
  ['allMids', allMids],
  ['candleSnapshot', candleSnapshot],
  ['clearinghouseState', clearinghouseState],
  ['exchangeStatus', exchangeStatus],
  ['extraAgents', extraAgents],
  ['frontendOpenOrders', frontendOpenOrders],
  ['historicalOrders', historicalOrders],
  ['l2Book', l2Book],
  ['maxBuilderFee', maxBuilderFee],
  ['meta', meta],
  ['metaAndAssetCtxs', metaAndAssetCtxs],
  ['openOrders', openOrders],
  ['orderStatus', orderStatus],
  ['outcomeMeta', outcomeMeta],
  ['perpDexs', perpDexs],
  ['recentTrades', recentTrades],
  ['spotClearinghouseState', spotClearinghouseState],
  ['spotMeta', spotMeta],
  ['spotMetaAndAssetCtxs', spotMetaAndAssetCtxs],
  ['userAbstraction', userAbstraction],
  ['userFees', userFees],
  ['userFills', userFills],
  ['userFillsByTime', userFillsByTime],
  ['userRateLimit', userRateLimit],
  ['userRole', userRole],
  ['userNonFundingLedgerUpdates', userNonFundingLedgerUpdates],
  ...['fundingHistory', 'twapHistory', 'userFunding'].map((type) => [type, emptyList] as const),
  ...['userTwapSliceFills', 'userVaultEquities'].map((type) => [type, emptyList] as const),
  ...['subAccounts', 'vaultDetails'].map((type) => [type, nothing] as const),
]);

/** Types of the wire that are known, and refused with what is asked instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  [
    'portfolio',
    'is not served: what an account was worth at past times is not kept; ask /v0/makers/{maker}/performance',
  ],
]);

/** Every type that is answered. */
export const INFO_TYPES: readonly string[] = [...HANDLERS.keys()];

/** Answers the body of POST /info. Fields that the type does not know are ignored. Throws WireError for a type that is unknown or not served. */
export async function answerInfo(body: unknown, deps: InfoDeps): Promise<unknown> {
  const request = asObject(body, 'body');
  const type = asText(request.type, 'type', 64);
  const handler = HANDLERS.get(type);
  if (handler === undefined) throw new WireError('type', REFUSED.get(type) ?? 'is not a known query');
  return await handler(request, deps);
}
