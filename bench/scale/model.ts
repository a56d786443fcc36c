/**
 * What a deployment of so many makers and markets costs, from measured figures. Pure: the same figures give the same answer. CPU is of one
 * core at the speed at which the figures were measured, and numbers are plain, since none of them is money.
 */

/** Measured figures; `bench/scale/figures.ts` says where each is from. */
export interface Figures {
  /** CPU milliseconds of the gateway for a batch of 50 modified orders over HTTP, and of the database for it. */
  modify50Ms: number;
  modify50DatabaseMs: number;
  limitsMs: number;
  limitsDatabaseMs: number;
  /** CPU milliseconds of the watcher for a fill of five makers, four per scan, and of the database. */
  fillMs: number;
  fillDatabaseMs: number;
  /** CPU milliseconds of the watcher for a scan that finds nothing, its questions to the node included. */
  scanMs: number;
  /** CPU milliseconds of the database for it, all that follow it included. */
  quietScanDatabaseMs: number;
  /** CPU milliseconds of the poster for one side of a curve of many levels: compressing it and checking it. */
  curveSideMs: number;
  /** CPU milliseconds of the poster, and of the database, in each block: for every listed market, for a round that posts, and for each market of it. */
  listedMarketMs: number;
  listedMarketDatabaseMs: number;
  postRoundMs: number;
  postRoundDatabaseMs: number;
  postMarketMs: number;
  postMarketDatabaseMs: number;
  /** Bytes of the database, with indexes. */
  batchBytes: number;
  fillBytes: number;
  scanBytes: number;
  publicationBytes: number;
  /** Bytes of the gateway's heap for one open order. */
  heapPerOrderBytes: number;
  /** Gas of a transaction that posts one market of 15 knots, of each further market in it, and of each market that is only prolonged. */
  postGas: number;
  postPerMarketGas: number;
  touchPerMarketGas: number;
  /** Bytes of call data of a post of one market, and of each further one. */
  postBytes: number;
  postPerMarketBytes: number;
}

/** How busy everybody is. */
export interface Load {
  makers: number;
  markets: number;
  /** Makers that replace a batch of 50 orders this often; all others do at `quietPerSec`. */
  busyMakers: number;
  busyPerSec: number;
  quietPerSec: number;
  /** Requests for limits of each maker. */
  limitsPerSec: number;
  /** Seconds between two blocks. */
  blockSec: number;
  /** Fills a day of each of the busiest markets, and of each other one. */
  busyMarkets: number;
  busyFillsPerDay: number;
  quietFillsPerDay: number;
  /** Share of the other markets whose book changes enough in a block to be posted anew; those that do not are prolonged once a minute. */
  quietPostShare: number;
  retentionHours: number;
  /** Most order rows that each gateway's log keeps. */
  retentionRows: number;
}

/** What the issue counts as today's load: every maker replaces 50 orders five times a second. */
export const TODAY: Load = {
  makers: 100,
  markets: 4,
  busyMakers: 100,
  busyPerSec: 5,
  quietPerSec: 0.1,
  limitsPerSec: 1,
  blockSec: 2,
  busyMarkets: 4,
  busyFillsPerDay: 5_000,
  quietFillsPerDay: 200,
  quietPostShare: 0.1,
  retentionHours: 72,
  retentionRows: 2_000_000,
};

/** Orders of a batch, which is also how many orders a maker has open. */
export const BATCH = 50;
/** Share of a core beyond which waiting grows out of proportion. */
export const MOST_USE = 0.7;
const DAY_SEC = 86_400;
/** A record that prolongs a curve: kind, market, number, deadline, and the number that it prolongs. */
const TOUCH_BYTES = 1 + 32 + 4 + 4 + 4;

export interface Cost {
  batchesPerSec: number;
  /** Cores that each part needs. The gateway is one thread: beyond `MOST_USE` it is divided, by edges or by shards. */
  gatewayCores: number;
  watcherCores: number;
  posterCores: number;
  databaseCores: number;
  /** Gateways that are needed when nothing but sharding divides them. */
  gateways: number;
  heapBytes: number;
  /** Bytes of order rows that retention keeps, and bytes that every day adds for good. */
  orderLogBytes: number;
  keptPerDayBytes: number;
  gasPerBlock: number;
  gasPerDay: number;
  /** Bytes of call data a day, before the chain compresses them. */
  l1BytesPerDay: number;
}

/** Throws RangeError for a load without makers or markets, or with more busy ones than there are. */
export function costOf(load: Load, figures: Figures): Cost {
  const { makers, markets, busyMakers, blockSec } = load;
  const isWhole = (count: number): boolean => Number.isInteger(count) && count >= 0;
  if (![makers, markets, busyMakers].every(isWhole) || makers < 1 || markets < 1 || busyMakers > makers)
    throw new RangeError('a load has whole numbers of makers and markets, and no more busy makers than makers');
  const batchesPerSec = busyMakers * load.busyPerSec + (makers - busyMakers) * load.quietPerSec;
  const limitsPerSec = makers * load.limitsPerSec;
  const busyMarkets = Math.min(load.busyMarkets, markets);
  const quietMarkets = markets - busyMarkets;
  const fillsPerDay = busyMarkets * load.busyFillsPerDay + quietMarkets * load.quietFillsPerDay;
  const fillsPerSec = fillsPerDay / DAY_SEC;
  const blocksPerDay = DAY_SEC / blockSec;
  const posted = busyMarkets + quietMarkets * load.quietPostShare;
  const touched = ((quietMarkets - quietMarkets * load.quietPostShare) * blockSec) / 60;
  const gasPerBlock = figures.postGas + (posted - 1) * figures.postPerMarketGas + touched * figures.touchPerMarketGas;
  const bytesPerBlock = figures.postBytes + (posted - 1) * figures.postPerMarketBytes + touched * TOUCH_BYTES;
  const perSec = (ms: number, count: number): number => (ms * count) / 1_000;
  const gatewayCores = perSec(figures.modify50Ms, batchesPerSec) + perSec(figures.limitsMs, limitsPerSec);
  const gateways = Math.ceil(gatewayCores / MOST_USE);
  const orderRows = Math.min(batchesPerSec * load.retentionHours * 3_600, gateways * load.retentionRows);
  return {
    batchesPerSec,
    gatewayCores,
    watcherCores: perSec(figures.fillMs, fillsPerSec) + perSec(figures.scanMs, 1 / blockSec),
    posterCores:
      perSec(figures.listedMarketMs, markets / blockSec) +
      perSec(figures.postRoundMs, 1 / blockSec) +
      perSec(2 * figures.curveSideMs + figures.postMarketMs, posted / blockSec),
    databaseCores:
      perSec(figures.modify50DatabaseMs, batchesPerSec) +
      perSec(figures.limitsDatabaseMs, limitsPerSec) +
      perSec(figures.fillDatabaseMs, fillsPerSec) +
      perSec(figures.quietScanDatabaseMs + figures.postRoundDatabaseMs, 1 / blockSec) +
      perSec(figures.listedMarketDatabaseMs, markets / blockSec) +
      perSec(figures.postMarketDatabaseMs, posted / blockSec),
    gateways,
    heapBytes: makers * BATCH * figures.heapPerOrderBytes,
    orderLogBytes: orderRows * figures.batchBytes,
    keptPerDayBytes:
      fillsPerDay * figures.fillBytes +
      blocksPerDay * (figures.scanBytes + (posted + touched) * figures.publicationBytes),
    gasPerBlock,
    gasPerDay: gasPerBlock * blocksPerDay,
    l1BytesPerDay: bytesPerBlock * blocksPerDay,
  };
}

/** Makers and markets of the guide's loads. Of more makers than 100 these are busy, and all others send now and then. */
const MAKERS = [10, 100, 10_000];
const MARKETS = [4, 200, 1_000];
const whole = (count: number): string => count.toLocaleString('en-US');

/** The loads of the guide, by name. */
export const SCENARIOS: readonly [name: string, load: Load][] = [
  ...MAKERS.flatMap((makers) =>
    MARKETS.map((markets): [string, Load] => {
      const busyMakers = Math.min(makers, TODAY.busyMakers);
      const rest = busyMakers < makers ? `, ${whole(busyMakers)} busy` : '';
      const load = { ...TODAY, makers, busyMakers, markets };
      const isToday = makers === TODAY.makers && markets === TODAY.markets;
      return [`${whole(makers)} makers${rest}, ${whole(markets)} markets${isToday ? ' (today)' : ''}`, load];
    }),
  ),
  ['10,000 makers, all busy, 1,000 markets', { ...TODAY, makers: 10_000, busyMakers: 10_000, markets: 1_000 }],
];

/** Where each part ends on one core or one thread of its own. */
interface Limits {
  /** Batches of 50 per second of one gateway, and makers that send five of them a second. */
  batchesPerSec: number;
  busyMakers: number;
  limitsPerSec: number;
  fillsPerSec: number;
  /** Markets posted in each block by one poster's CPU time, and by so much gas in a block. */
  marketsByCpu: number;
  marketsByGas: number;
}

/** `blockGas` is how much of a block posts may take. */
export function limitsOf(figures: Figures, blockGas: number, { busyPerSec, blockSec } = TODAY): Limits {
  const perSec = (ms: number): number => (MOST_USE * 1_000) / ms;
  const batchesPerSec = perSec(figures.modify50Ms);
  return {
    batchesPerSec,
    busyMakers: batchesPerSec / busyPerSec,
    limitsPerSec: perSec(figures.limitsMs),
    fillsPerSec: perSec(figures.fillMs),
    marketsByCpu: perSec(2 * figures.curveSideMs + figures.postMarketMs + figures.listedMarketMs) * blockSec,
    marketsByGas: Math.max(0, (blockGas - figures.postGas) / figures.postPerMarketGas + 1),
  };
}

/**
 * Markets that share a token, directly or over others, share a ledger: a maker's balance of a token backs its orders in all of them. Returns
 * the groups, each with its markets in their order, by their first one. `sharded` are tokens that are held in every group by itself, such as the quote
 * currency of nearly all markets: they join nothing.
 */
export function tokenGroups<T extends string>(
  markets: readonly (readonly [base: T, quote: T])[],
  sharded: ReadonlySet<T> = new Set(),
): number[][] {
  const parent = new Map<T, T>();
  const rootOf = (token: T): T => {
    let root = token;
    for (let next = parent.get(root); next !== undefined; next = parent.get(root)) root = next;
    return root;
  };
  const keyOf = ([base, quote]: readonly [T, T], index: number): string => {
    const token = [base, quote].find((one) => !sharded.has(one));
    return token === undefined ? `#${index}` : rootOf(token);
  };
  for (const tokens of markets) {
    const [first, second] = tokens.filter((one) => !sharded.has(one));
    if (first === undefined || second === undefined) continue;
    const [a, b] = [rootOf(first), rootOf(second)];
    if (a !== b) parent.set(b, a);
  }
  const groups = new Map<string, number[]>();
  for (const [index, tokens] of markets.entries()) {
    const key = keyOf(tokens, index);
    groups.set(key, [...(groups.get(key) ?? []), index]);
  }
  return [...groups.values()];
}

/**
 * How much more of a token a maker holds when it is divided over so many shards of equal, independent flow, for the same chance of running
 * out: what flows in and out until it is balanced again grows with the root of the flow, so that shards need the root of their number
 * more than one ledger does.
 */
export const inventoryFactor = (shards: number): number => Math.sqrt(shards);
