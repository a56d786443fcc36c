import { z } from 'zod';
import type Router from '@koa/router';
import type { Middleware } from 'koa';
import { notKept, routesOf, type Parameter, type RequestLimit, type ServedEndpoint } from '../openapi/endpoint.js';
import { COSTS, costsOf, priceOf, type Cost } from './costs.js';
import type { ReadDeps } from './deps.js';
import { accountHandler, accountSchema } from './accounts/account.js';
import { bookSchema, bookHandler } from './book.js';
import { checkpointSchema, proofSchema, checkpointHandler, proofHandler } from './checkpoint.js';
import { curveSchema, curveHandler } from './curve.js';
import { decompositionSchema, decompositionHandler } from './decomposition.js';
import { feesSchema, feesHandler } from './fees.js';
import { deploymentSchema, deploymentHandler } from './deployment.js';
import { CANDLES_LIMIT, candlesHandler, candlesSchema } from './candles.js';
import { FILLS_DEFAULT, FILLS_LIMIT, fillsHandler, fillsSchema } from './fills.js';
import { PAGE_LIMIT, makerFillsHandler, makerFillsSchema } from './accounts/maker-fills.js';
import { FORMATS, rowStreamsOf } from './row-stream.js';
import { takerSwapsHandler, takerSwapsSchema } from './accounts/taker-swaps.js';
import { INTERVALS } from '../../core/market-data/intervals.js';
import { healthSchema, healthHandler } from './health.js';
import { limitsSchema, limitsHandler } from './limits.js';
import { performanceHandler, performanceSchema } from './accounts/performance.js';
import { PERIODS, SPAN_LIMITS } from './span.js';
import { takerSummaryHandler, takerSummarySchema } from './accounts/taker-summary.js';
import { operatorHaltsHandler, operatorHaltsSchema } from './accounts/operator-halts.js';
import { operatorSummaryHandler, operatorSummarySchema } from './accounts/operator-summary.js';
import { pairsSchema, pairsHandler } from './pairs.js';
import { statusHandler, statusReader, statusSchema } from './status.js';
import { addressParameter, pairSchema, sequenceParameter } from './schemas.js';
import { CUSTODY_EVENTS_LIMIT, withdrawalsSchema, withdrawalsHandler } from './accounts/withdrawals.js';

const pair: Parameter = { schema: pairSchema, description: 'base and quote symbol', example: 'WETH-USDC' };

/** Of the query. */
const optionalPair: Parameter = { ...pair, description: 'base and quote symbol; optional while one market is served' };

const maker: Parameter = { schema: addressParameter, description: 'an address, in any letter case' };

const UNKNOWN_PAIR = 'NOT_FOUND: no such pair';
const limitParameter = z.int().min(1).max(FILLS_LIMIT);

const timeParameter = z.int().nonnegative();
const pageLimit: Parameter = {
  schema: z.int().min(1).max(PAGE_LIMIT),
  description: `how many, from 1 to ${PAGE_LIMIT}, and 100 when it is left out; of a download any number, and all when it is left out`,
  example: 2,
};
const before: Parameter = { schema: z.string(), description: 'the `next` of an earlier page' };
const format: Parameter = {
  schema: z.enum(FORMATS),
  description: 'ndjson or csv are downloads of all rows; the Accept header may say it, too',
};

/** Of a summary. */
const period: Parameter = {
  schema: z.enum(PERIODS),
  description: 'length of its intervals; a day when it is left out',
};
const from: Parameter = {
  schema: timeParameter,
  description: 'Unix milliseconds in the first interval; 30 intervals back when it is left out',
};
const to: Parameter = {
  schema: timeParameter,
  description: 'Unix milliseconds in the last interval; now when it is left out',
};

const MALFORMED = 'BAD_REQUEST: a parameter is missing or malformed';
const NO_CHECKPOINT = 'NOT_READY: no checkpoint has been published yet';
const RATE_LIMITED = 'RATE_LIMITED: come back after retry-after seconds';
const POINTS_SPENT = 'RATE_LIMITED: too many requests, or too many points; come back after retry-after seconds';

const setting = 'READ_REQUESTS_PER_MINUTE';
/** `cost` in points, which are counted beside the request. */
type ReadLimit = RequestLimit<ReadDeps> & { cost?: Cost };
const readLimit: ReadLimit = { setting, count: ({ limits }) => limits.read };
const healthLimit: ReadLimit = { setting, count: ({ limits }) => limits.health };

const costs = (cost: Cost): ReadLimit => ({
  setting,
  cost,
  count: (deps) => async (ctx, next) => {
    await deps.limits.read(ctx, async () => {
      costsOf(deps).take(ctx, cost);
      await next();
    });
  },
});

const TABLE: readonly (ServedEndpoint<ReadDeps> & { limit: ReadLimit })[] = [
  {
    method: 'get',
    path: '/health',
    limit: healthLimit,
    handler: healthHandler,
    group: 'Platform',
    summary: 'The process answers',
    description: 'It is no readiness check: whether inventory is safe to quote against is in the limits of a maker.',
    answer: healthSchema,
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/deployment',
    limit: readLimit,
    handler: deploymentHandler,
    group: 'Platform',
    summary: 'Chain, contracts with their ABIs, tokens and markets',
    description:
      'All that a client needs to begin with nothing but this URL. A server can name any address: hold it against one from another source before you allow it tokens.',
    answer: deploymentSchema,
    tagged: true,
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/status',
    limit: readLimit,
    handler: (deps) => statusHandler(statusReader(deps)),
    group: 'Platform',
    summary: 'Where ledger, curves and keepers stand',
    description:
      'It answers whether or not the platform is ready, and says why not. It also lists what the newest reorganisation of the chain took back, and which makers had been told of it.',
    answer: statusSchema,
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/pairs',
    limit: readLimit,
    handler: pairsHandler,
    group: 'Markets',
    summary: 'Listed markets and their grids',
    description:
      'Every market that was ever listed; asset ids on the wire are 10000 plus the place in this list. A delisted one takes no orders.',
    answer: pairsSchema,
    tagged: true,
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/book/{pair}',
    limit: readLimit,
    handler: bookHandler,
    group: 'Markets',
    summary: 'The merged book of a market',
    description: 'All acknowledged orders by price, best first, as [ticks, lots]; it names no maker.',
    params: { pair },
    answer: bookSchema,
    tagged: true,
    refusals: { 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/curves/{pair}/{curve_seq}',
    limit: costs(COSTS.curve),
    handler: curveHandler,
    group: 'Markets',
    summary: 'One posted curve',
    description:
      'Its words, the pieces that they say, what became of it, and, once it can not be executed any more, the book behind it if a fill hit it: with the fills on it, anyone can derive their decompositions again.',
    params: {
      pair,
      curve_seq: { schema: sequenceParameter, description: 'number of the curve in its market', example: 1 },
    },
    answer: curveSchema,
    refusals: {
      400: MALFORMED,
      404: 'NOT_FOUND: no such pair, or no scanned block has such a curve',
      429: RATE_LIMITED,
    },
  },
  {
    method: 'get',
    path: '/v0/makers/{maker}/account',
    limit: readLimit,
    handler: accountHandler,
    group: 'Makers',
    summary: 'Approval, agents and scheduled cancel of an account',
    description:
      'What the gateway judges actions of the account by. It answers for every address; whose key it is, it does not say.',
    params: { maker },
    answer: accountSchema,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/makers/{maker}/limits',
    limit: readLimit,
    handler: limitsHandler,
    group: 'Makers',
    summary: 'What an address may quote against, and whether the ledger is ready',
    description: 'Balances are those of one durable generation. An unknown address has zero rows.',
    params: { maker },
    answer: limitsSchema,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/candles/{pair}',
    limit: costs(COSTS.candles),
    handler: candlesHandler,
    group: 'Markets',
    summary: `Candles of a market, at most ${CANDLES_LIMIT}`,
    description:
      'Oldest first, from the one that contains `from` to the one that contains `to`. There is one for every interval since the first trade; one without a trade has the last price before it. Weeks begin on Mondays, and all intervals in UTC.',
    params: { pair },
    query: {
      interval: { schema: z.enum(INTERVALS), description: 'length of a candle', required: true, example: '1h' },
      from: {
        schema: timeParameter,
        description: 'Unix milliseconds; as many candles as there may be when it is left out',
      },
      to: { schema: timeParameter, description: 'Unix milliseconds; now when it is left out' },
    },
    answer: candlesSchema,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/fills',
    limit: costs(COSTS.fills),
    handler: (deps) => fillsHandler(deps, rowStreamsOf(deps)),
    group: 'Fills',
    summary: `Fills of a market, newest last, at most ${FILLS_LIMIT}`,
    description:
      'The newest ones, or those before one of them: the lowest fill_seq of an answer is the `before` of the next. As NDJSON or CSV, newest first, there are as many as there are, or as `limit` says.',
    query: {
      pair: optionalPair,
      limit: {
        schema: limitParameter,
        description: `how many, from 1 to ${FILLS_LIMIT}, and ${FILLS_DEFAULT} when it is left out; of a download any number, and all when it is left out`,
        example: 2,
      },
      before: { schema: sequenceParameter, description: 'only fills with a lower fill_seq' },
      maker: { ...maker, description: 'only fills that an order of this address had a part in' },
      taker: { ...maker, description: 'only fills whose swap this address sent' },
      format,
    },
    answer: fillsSchema,
    downloads: true,
    tagged: true,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/makers/{maker}/fills',
    limit: costs(COSTS.makerFills),
    handler: (deps) => makerFillsHandler(deps, rowStreamsOf(deps)),
    group: 'Makers',
    summary: `What the orders of an address were filled with, at most ${PAGE_LIMIT}`,
    description:
      'Newest first; `next` is the `before` of the page after it. As NDJSON or CSV there are as many as there are, or as `limit` says.',
    params: { maker },
    query: { pair: { ...pair, description: 'of this pair only' }, limit: pageLimit, before, format },
    answer: makerFillsSchema,
    downloads: true,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/takers/{address}/swaps',
    limit: costs(COSTS.takerSwaps),
    handler: (deps) => takerSwapsHandler(deps, rowStreamsOf(deps)),
    group: 'Fills',
    summary: `Swaps that an address sent or signed, at most ${PAGE_LIMIT}`,
    description:
      'Newest first; `next` is the `before` of the page after it. As NDJSON or CSV there are as many as there are, or as `limit` says.',
    params: { address: maker },
    query: { limit: pageLimit, before, format },
    answer: takerSwapsSchema,
    downloads: true,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/makers/{maker}/performance',
    limit: costs(COSTS.performance),
    handler: performanceHandler,
    group: 'Makers',
    summary: 'Volume, profit, markouts and shares of an address, per pair',
    description: `Sums over at most ${SPAN_LIMITS}, exact in the quote token. The guide for makers says how each is computed.`,
    params: { maker },
    query: { pair: { ...pair, description: 'of this pair only' }, interval: period, from, to },
    answer: performanceSchema,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/operator/summary',
    limit: costs(COSTS.operatorSummary),
    handler: operatorSummaryHandler,
    group: 'Platform',
    summary: 'What the platform earned and what its transactions cost, per pair and day',
    description:
      "Residuals and input fees of fills, gas of posts and of signed orders' transactions, by day in UTC, at most 400 days. Gas counts on the day when its receipt was read.",
    query: { pair: { ...pair, description: 'of this pair only' }, from, to },
    answer: operatorSummarySchema,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/operator/halts',
    limit: costs(COSTS.operatorHalts),
    handler: operatorHaltsHandler,
    group: 'Platform',
    summary: 'What stopped the platform, when it went on, and what the chain took back',
    description:
      'The 20 newest halts, and the 5 newest reversals with the fills that they took back and the makers who had been told of them.',
    answer: operatorHaltsSchema,
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/takers/{address}/summary',
    limit: costs(COSTS.takerSummary),
    handler: takerSummaryHandler,
    group: 'Fills',
    summary: 'Volume, fees and slippage of an address, per pair',
    description:
      'Of the swaps through our curves that it sent, and of signed orders that were executed for it on them.',
    params: { address: maker },
    query: { from, to },
    answer: takerSummarySchema,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/fills/{fill_seq}/decomposition',
    limit: costs(COSTS.decomposition),
    handler: decompositionHandler,
    group: 'Fills',
    summary: 'Who was paid what in a fill',
    description:
      'Quote amounts of the legs plus the residual are the curve amount, to the unit. A number that is not attributed, or unknown, is pending.',
    params: { fill_seq: { schema: sequenceParameter, description: 'number of the fill in its market', example: 1 } },
    query: { pair: optionalPair },
    answer: decompositionSchema,
    refusals: { 400: MALFORMED, 404: UNKNOWN_PAIR, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/makers/{maker}/withdrawals',
    limit: costs(COSTS.withdrawals),
    handler: withdrawalsHandler,
    group: 'Makers',
    summary: `Where withdrawals of an address stand, and its ${CUSTODY_EVENTS_LIMIT} newest custody events`,
    description: 'One row per served token. An amount that was requested is reserved until it is paid or dropped.',
    params: { maker },
    answer: withdrawalsSchema,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/v0/checkpoints/latest',
    limit: readLimit,
    handler: checkpointHandler,
    group: 'Ledger',
    summary: 'The newest published state of the ledger',
    description:
      'Every address with a balance, under one Merkle root: the root of a StandardMerkleTree of @openzeppelin/merkle-tree over the leaves (address maker, address token, uint256 max(balance, 0)).',
    answer: checkpointSchema,
    tagged: true,
    refusals: { 429: RATE_LIMITED, 503: NO_CHECKPOINT },
  },
  {
    method: 'get',
    path: '/v0/checkpoints/latest/proof',
    limit: readLimit,
    handler: proofHandler,
    group: 'Ledger',
    summary: 'The balances of one address in the newest checkpoint, with Merkle proofs',
    query: { maker: { ...maker, required: true } },
    answer: proofSchema,
    refusals: { 400: MALFORMED, 429: RATE_LIMITED, 503: NO_CHECKPOINT },
  },
  {
    method: 'get',
    path: '/v0/fees',
    limit: readLimit,
    handler: feesHandler,
    group: 'Ledger',
    summary: 'Fees credited to takers',
    description: 'Accrued fees only grow; the balance is whatever the address has in that token.',
    answer: feesSchema,
    refusals: { 429: RATE_LIMITED },
  },
];

/** The read API: routes and the OpenAPI document come from this table. */
export const READ_ENDPOINTS: readonly ServedEndpoint<ReadDeps>[] = TABLE.map((endpoint) => {
  const { limit, description, refusals } = endpoint;
  if (limit.cost === undefined) return endpoint;
  const price = priceOf(limit.cost);
  return {
    ...endpoint,
    description: description === undefined ? price : `${description} ${price}`,
    refusals: { ...refusals, 429: POINTS_SPENT },
  };
});

/**
 * The public read API. Answers are true when they are sent: balances must not be cached, and public answers have an ETag by which a client
 * can revalidate its copy.
 */
export const readRoutes = (deps: ReadDeps, guard: Middleware | null = null): Router =>
  routesOf(READ_ENDPOINTS, deps, [notKept], guard);
