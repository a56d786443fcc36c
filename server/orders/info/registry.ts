import { WireError } from '../../../core/wire/errors.js';
import { asObject, asText } from '../../../core/wire/shape.js';
import { allMids } from './all-mids.js';
import { clearinghouseState } from './clearinghouse-state.js';
import { exchangeStatus } from './exchange-status.js';
import { extraAgents } from './extra-agents.js';
import { frontendOpenOrders } from './frontend-open-orders.js';
import { historicalOrders } from './historical-orders.js';
import { l2Book } from './l2-book.js';
import { maxBuilderFee } from './max-builder-fee.js';
import { metaAndAssetCtxs } from './meta-and-asset-ctxs.js';
import { meta } from './meta.js';
import { emptyList, nothing } from './nothing.js';
import { openOrders } from './open-orders.js';
import { orderStatus } from './order-status.js';
import { outcomeMeta } from './outcome-meta.js';
import { perpDexs } from './perp-dexs.js';
import { recentTrades } from './recent-trades.js';
import { spotClearinghouseState } from './spot-clearinghouse-state.js';
import { spotMetaAndAssetCtxs } from './spot-meta-and-asset-ctxs.js';
import { spotMeta } from './spot-meta.js';
import type { InfoDeps, InfoHandler } from './types.js';
import { userAbstraction } from './user-abstraction.js';
import { userFees } from './user-fees.js';
import { userFillsByTime } from './user-fills-by-time.js';
import { userFills } from './user-fills.js';
import { userRateLimit } from './user-rate-limit.js';
import { userRole } from './user-role.js';

const HANDLERS: ReadonlyMap<string, InfoHandler> = new Map<string, InfoHandler>([
  ['allMids', allMids],
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
  ...['candleSnapshot', 'fundingHistory', 'twapHistory', 'userFunding', 'userNonFundingLedgerUpdates'].map(
    (type) => [type, emptyList] as const,
  ),
  ...['userTwapSliceFills', 'userVaultEquities'].map((type) => [type, emptyList] as const),
  ...['subAccounts', 'vaultDetails'].map((type) => [type, nothing] as const),
]);

/** Every type that is answered. */
export const INFO_TYPES: readonly string[] = [...HANDLERS.keys()];

/** Answers the body of POST /info. Fields that the type does not know are ignored. Throws WireError for an unknown type. */
export async function answerInfo(body: unknown, deps: InfoDeps): Promise<unknown> {
  const request = asObject(body, 'body');
  const handler = HANDLERS.get(asText(request.type, 'type', 64));
  if (handler === undefined) throw new WireError('type', 'is not a known query');
  return await handler(request, deps);
}
