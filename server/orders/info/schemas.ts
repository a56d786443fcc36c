/** The shapes of rows and replies of the order interface. The OpenAPI and the AsyncAPI document show them; tests hold every answer against them. */
import { z } from 'zod';
import { INTERVALS } from '../../../core/market-data/intervals.js';

const decimal = z.string().regex(/^-?\d+\.\d+$/);
export const time = z.int().nonnegative().meta({ description: 'Unix milliseconds' });
export const address = z.string().regex(/^0x[0-9a-f]{40}$/);
const cloid = z.string().regex(/^0x[0-9a-fA-F]{32}$/);
const side = z.enum(['B', 'A']).meta({ description: 'bid or ask' });
const hash = z.string().regex(/^0x[0-9a-f]{64}$/);
const zero = z.literal('0.0');
const index = z.int().nonnegative();
const none = z.array(z.never());

export const orderSchema = z
  .strictObject({
    coin: z.string(),
    side,
    limitPx: decimal,
    sz: decimal.meta({ description: 'what remains' }),
    oid: z.int().positive(),
    timestamp: time,
    origSz: decimal,
    cloid: cloid.optional(),
  })
  .meta({ id: 'OrderRow' });

export const frontendOrderSchema = z
  .strictObject({
    ...orderSchema.shape,
    cloid: cloid.nullable(),
    triggerCondition: z.literal('N/A'),
    isTrigger: z.literal(false),
    triggerPx: zero,
    children: none,
    isPositionTpsl: z.literal(false),
    reduceOnly: z.literal(false),
    orderType: z.literal('Limit'),
    tif: z.enum(['Gtc', 'Alo']),
  })
  .meta({ id: 'FrontendOrderRow' });

export const orderStateSchema = z
  .strictObject({
    order: frontendOrderSchema,
    status: z.enum(['open', 'filled', 'canceled', 'scheduledCancel', 'delistedCanceled']),
    statusTimestamp: time,
  })
  .meta({ id: 'OrderState' });

export const fillSchema = z
  .strictObject({
    coin: z.string(),
    px: decimal,
    sz: decimal,
    side,
    time,
    startPosition: decimal,
    dir: z.enum(['Buy', 'Sell']),
    closedPnl: decimal,
    hash,
    oid: z.int().positive(),
    crossed: z.literal(false),
    fee: decimal,
    feeToken: z.string(),
    tid: z.int().nonnegative().meta({ description: 'deduplicate by user and tid' }),
    cloid: cloid.optional(),
    twapId: z.null(),
  })
  .meta({ id: 'UserFill' });

const levelSchema = z.strictObject({ px: decimal, sz: decimal, n: z.int().positive() });

export const bboSchema = z.strictObject({
  coin: z.string(),
  time,
  bbo: z.tuple([levelSchema.nullable(), levelSchema.nullable()]).meta({ description: 'the best bid and ask' }),
});

const levelsSchema = z.array(levelSchema).max(20).meta({ description: 'best first' });

export const bookSchema = z
  .strictObject({
    coin: z.string(),
    time,
    levels: z.tuple([levelsSchema, levelsSchema]).meta({ description: 'bids, then asks' }),
  })
  .meta({ id: 'L2Book' });

export const midsSchema = z.record(z.string(), decimal).meta({ description: 'middle price by coin' });

export const tradeSchema = z
  .strictObject({
    coin: z.string(),
    side: z.enum(['B', 'A']).meta({ description: "the taker's: B bought" }),
    px: decimal,
    sz: decimal,
    time,
    hash,
    tid: z.int().nonnegative(),
    users: z.tuple([address, address]).meta({ description: 'buyer, seller' }),
  })
  .meta({ id: 'Trade' });

export const candleSchema = z
  .strictObject({
    t: time.meta({ description: 'when it begins' }),
    T: time.meta({ description: 'its last millisecond' }),
    s: z.string().meta({ description: 'the coin' }),
    i: z.enum(INTERVALS),
    o: decimal,
    c: decimal,
    h: decimal,
    l: decimal,
    v: decimal.meta({ description: 'volume in the base token' }),
    n: z.int().nonnegative().meta({ description: 'trades' }),
  })
  .meta({ id: 'Candle' });

const spotMetaSchema = z
  .strictObject({
    universe: z.array(
      z.strictObject({ tokens: z.tuple([index, index]), name: z.string(), index, isCanonical: z.literal(false) }),
    ),
    tokens: z.array(
      z.strictObject({
        name: z.string(),
        szDecimals: index,
        weiDecimals: index,
        index,
        tokenId: z.string(),
        isCanonical: z.literal(true),
        evmContract: z.strictObject({ address, evm_extra_wei_decimals: z.literal(0) }),
        fullName: z.null(),
        deployerTradingFeeShare: zero,
      }),
    ),
  })
  .meta({ id: 'SpotMeta' });

export const spotContextSchema = z.strictObject({
  coin: z.string(),
  prevDayPx: decimal,
  dayNtlVlm: decimal.meta({ description: 'traded in 24 hours, in the quote token' }),
  dayBaseVlm: decimal.meta({ description: 'traded in 24 hours, in the base token' }),
  markPx: decimal,
  midPx: decimal.nullable(),
  circulatingSupply: zero,
  totalSupply: zero,
});

const marginSchema = z.strictObject({
  accountValue: zero,
  totalNtlPos: zero,
  totalRawUsd: zero,
  totalMarginUsed: zero,
});
const metaSchema = z.strictObject({ universe: none, marginTables: none, collateralToken: z.literal(0) });

export const ledgerUpdateSchema = z
  .strictObject({
    time,
    hash,
    delta: z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('deposit'), usdc: decimal }),
      z.strictObject({ type: z.literal('withdraw'), usdc: decimal, nonce: time, fee: zero }),
      z.strictObject({
        type: z.literal('spotTransfer'),
        token: z.string(),
        amount: decimal,
        usdcValue: decimal.meta({ description: 'at the last trade before; zero without one' }),
        user: address,
        destination: address,
        fee: zero,
        nativeTokenFee: zero,
        nonce: z.null(),
        feeToken: z.literal(''),
      }),
    ]),
  })
  .meta({ id: 'LedgerUpdate' });

export const spotStateSchema = z.strictObject({
  balances: z.array(
    z.strictObject({
      coin: z.string(),
      token: index,
      total: decimal,
      hold: decimal.meta({ description: 'what withdrawals have reserved' }),
      entryNtl: decimal.meta({ description: 'what was bought in fills and is held did cost' }),
    }),
  ),
});

const emptyList = none.meta({ description: 'there is none here' });
const nothing = z.null().meta({ description: 'there is none here' });

/** What each type of query is answered with. */
export const INFO_REPLIES = {
  allMids: midsSchema,
  candleSnapshot: z.array(candleSchema),
  clearinghouseState: z.strictObject({
    marginSummary: marginSchema,
    crossMarginSummary: marginSchema,
    crossMaintenanceMarginUsed: zero,
    withdrawable: zero,
    assetPositions: none,
    time,
  }),
  exchangeStatus: z.strictObject({
    time,
    specialStatuses: z.string().nullable().meta({ description: 'why no new orders are taken' }),
  }),
  extraAgents: z.array(z.strictObject({ name: z.string(), address, validUntil: time })),
  frontendOpenOrders: z.array(frontendOrderSchema),
  historicalOrders: z.array(orderStateSchema),
  l2Book: bookSchema.nullable(),
  maxBuilderFee: z.literal(0),
  meta: metaSchema,
  metaAndAssetCtxs: z.tuple([metaSchema, none]),
  openOrders: z.array(orderSchema),
  orderStatus: z.union([
    z.strictObject({ status: z.literal('order'), order: orderStateSchema }),
    z.strictObject({ status: z.literal('unknownOid') }),
  ]),
  outcomeMeta: z.strictObject({ outcomes: none, questions: none }),
  perpDexs: z.tuple([z.null()]),
  recentTrades: z.array(tradeSchema),
  spotClearinghouseState: spotStateSchema,
  spotMeta: spotMetaSchema,
  spotMetaAndAssetCtxs: z.tuple([spotMetaSchema, z.array(spotContextSchema)]),
  userAbstraction: z.literal('default'),
  userFees: z.strictObject({
    dailyUserVlm: z
      .array(
        z.strictObject({
          date: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
          userCross: decimal,
          userAdd: decimal,
          exchange: decimal,
        }),
      )
      .meta({ description: "by day in UTC, in the first market's quote token: taken, made, and traded by all" }),
    feeSchedule: z.strictObject({
      cross: zero,
      add: zero,
      spotCross: zero,
      spotAdd: zero,
      tiers: z.strictObject({ vip: none, mm: none }),
      referralDiscount: zero,
      stakingDiscountTiers: none,
    }),
    userCrossRate: zero,
    userAddRate: zero,
    userSpotCrossRate: zero,
    userSpotAddRate: zero,
    activeReferralDiscount: zero,
    trial: z.null(),
    feeTrialEscrow: zero,
    nextTrialAvailableTimestamp: z.null(),
    stakingLink: z.null(),
    activeStakingDiscount: z.strictObject({ bpsOfMaxSupply: zero, discount: zero }),
  }),
  userFills: z.array(fillSchema),
  userFillsByTime: z.array(fillSchema),
  userRateLimit: z.strictObject({
    cumVlm: decimal.meta({ description: "made and taken, in the first market's quote token" }),
    nRequestsUsed: z.literal(0),
    nRequestsCap: index,
    nRequestsSurplus: z.literal(0),
  }),
  userRole: z.discriminatedUnion('role', [
    z.strictObject({ role: z.literal('missing') }),
    z.strictObject({ role: z.literal('user') }),
    z.strictObject({ role: z.literal('agent'), data: z.strictObject({ user: address }) }),
  ]),
  fundingHistory: emptyList,
  subAccounts: nothing,
  twapHistory: emptyList,
  userFunding: emptyList,
  userNonFundingLedgerUpdates: z.array(ledgerUpdateSchema),
  userTwapSliceFills: emptyList,
  userVaultEquities: emptyList,
  vaultDetails: nothing,
} as const satisfies Record<string, z.ZodType>;

export type InfoType = keyof typeof INFO_REPLIES;
