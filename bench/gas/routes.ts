/**
 * Signed orders by route: our own curve, pools of Uniswap v3 and v4, and splits, with the same call data that the executor sends. Uniswap's own
 * router is measured first, in the same pools and in the same state.
 */
import { Interface } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import { NO_PARTNER, netUnits, type PartnerTerms } from '../../core/swap/partner.js';
import { OWN } from '../../core/swap/source.js';
import type { Part, SplitKind } from '../../core/swap/split.js';
import { permitTypedData } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import { SANDBOX_CHAIN_ID } from '../../deploy/sandbox/accounts.js';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { withChecks } from '../../keepers/executor/checked.js';
import { orderCalldata } from '../../keepers/executor/transaction.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { permitCall } from '../../liquidity/permits.js';
import { digestOf } from '../../server/swap/signature.js';
import { createOwnVenue } from '../../liquidity/curve.js';
import { createUniswapV3, poolRule } from '../../liquidity/uniswap-v3.js';
import { createUniswapV4 } from '../../liquidity/uniswap-v4.js';
import type { StateCheck } from '../../liquidity/venue.js';
import { UniswapV4Router__factory } from '../../typechain-types/factories/periphery/UniswapV4Router__factory.js';
import type { Measured } from './chain.js';
import { path, post, DEADLINE_SEC, DIRECTIONS, ONE_BASE, type Direction, type Venue } from './curvebook.js';
import { row, type Row } from './rows.js';
import { signatureOf, signedByTaker, takerKey } from './signing.js';
import {
  addFullRangePool,
  addManagedPool,
  deployV3,
  deployV4,
  measureV3Pool,
  FEE_PPM,
  ROUTER_PATH,
} from './uniswap.js';
import { DEPLOYER, PRICE, publishedArtifact, type BenchPair } from './world.js';

/** A second pool of the pair, for routes of two calls. */
const OTHER_TIER = { feePpm: 3000, spacing: 60 };
const POOL = `uniswap-v3:${FEE_PPM}`;
const OTHER_POOL = `uniswap-v3:${OTHER_TIER.feePpm}`;
const MANAGED_POOL = `uniswap-v4:${FEE_PPM}`;

/** Parts of each route, each trading as much as the others. */
export const ROUTES = {
  own: [OWN],
  external: [POOL],
  external2: [POOL, OTHER_POOL],
  split: [OWN, POOL],
  split2: [OWN, POOL, OTHER_POOL],
  managed: [MANAGED_POOL],
  managedSplit: [OWN, MANAGED_POOL],
} as const satisfies Record<string, readonly string[]>;

export type RouteName = keyof typeof ROUTES;
export const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];
export const KINDS: readonly SplitKind[] = ['sell', 'buy'];

/** The owner's nonces, in words that no other measurement uses. */
const NONCE_WORDS = { weth: 0x2d9a_41e6_73c5n << 8n, plain: 0x6c18_b7f2_a94dn << 8n };
const VIEWS = new Interface(['function slot0()', 'function liquidity()']);
/** How much more input is signed than the expected cost; what is not needed is returned. */
const SLIPPAGE_BPS = 50n;

/** Id of a measured order: route, pair, direction of the base token, and what the order fixes. */
export const routeId = (route: RouteName, pair: BenchPair['id'], direction: Direction, kind: SplitKind): string =>
  `order.${route}.${pair}.${direction}.${kind === 'sell' ? 'exactIn' : 'exactOut'}`;

/** Id of the measured order by our own curve that sells the quote token and submits the owner's first approval of it. */
export const permitId = (pair: BenchPair['id']): string => `order.permit.${pair}.buy.exactIn`;

/** Id of the same measured order with a partner that has nothing of the token yet. */
const partnerId = (route: RouteName, pair: BenchPair['id'], direction: Direction, kind: SplitKind): string =>
  `${routeId(route, pair, direction, kind)}.partner`;

const PARTNERED: PartnerTerms = {
  partner: '0x00000000000000000000000000000000009a47e4',
  partnerBps: 50,
  appData: `0x${'a9'.repeat(32)}`,
};

/** Id of the measured sale of a route that is sent checked, with the owner's first approval or without. */
export const checkedId = (route: RouteName | 'permit', pair: BenchPair['id']): string =>
  `order.checked.${route}.${pair}.${route === 'permit' ? 'buy' : 'sell'}.exactIn`;

/** The call of the quote token that the taker signed. */
function permitOf({ quote, id }: BenchPair): Hex {
  const named = id === 'weth' ? { name: 'USD Coin', version: '2' } : { name: quote.symbol, version: '1' };
  const verifyingContract = quote.address.toLowerCase() as Address;
  const terms = {
    owner: takerKey().address.toLowerCase() as Address,
    spender: PERMIT2_ADDRESS.toLowerCase() as Address,
    nonce: 0n,
    deadlineSec: toSafeInt(DEADLINE_SEC),
  };
  const typed = permitTypedData('eip2612', { ...named, chainId: SANDBOX_CHAIN_ID, verifyingContract }, terms);
  return permitCall('eip2612', terms, signedByTaker(digestOf(typed)));
}

/** Every route of a pair, both ways, both kinds, with the operator's fee, in a nonce word that is in use; and the first of a word. */
export async function measureRoutes(venue: Venue, pair: BenchPair): Promise<Row[]> {
  const { world } = venue;
  const { chain } = world;
  const v3 = await deployV3(world);
  await measureV3Pool(world, v3, pair);
  await addFullRangePool(world, v3, pair, OTHER_TIER);
  const v4 = await deployV4(world);
  await addManagedPool(world, v4, pair);
  const { abi, bytecode } = UniswapV4Router__factory;
  const managedRouter = await chain.deploy(chain.signers[DEPLOYER]!, abi, bytecode, [v4.manager.address]);
  for (const { address } of [v3.router, managedRouter])
    await chain.call(world.operator, venue.settler, 'setTarget', [address, true]);
  await world.approveAll(world.taker, PERMIT2_ADDRESS);
  const lower = (address: string) => address.toLowerCase() as Address;
  const routerCode = publishedArtifact(ROUTER_PATH).bytecode as Hex;
  // Nothing but a router's code is read.
  const readerOf = (code: Hex) => ({ call: async () => code, batch: () => Promise.reject(new Error('offline')) });
  const managed = createUniswapV4(
    {
      call: async () => bytecode,
      batch: (requests) => Promise.all(requests.map(({ method, params }) => chain.provider.send(method, params))),
    },
    { poolManager: lower(v4.manager.address), router: lower(managedRouter.address) },
  );
  const venues = [
    managed,
    createUniswapV3(readerOf(routerCode), {
      factory: lower(v3.factory.address),
      router: lower(v3.router.address),
      quoter: lower(v3.router.address),
    }),
  ];
  const venueOf = (id: string) => venues.find(({ name }) => id.startsWith(name))!;
  await post(venue, [pair], 15);

  const fill = async (
    route: RouteName,
    direction: Direction,
    kind: SplitKind,
    nonce: bigint,
    {
      permit = null,
      isChecked = false,
      terms = NO_PARTNER,
    }: { permit?: Hex | null; isChecked?: boolean; terms?: PartnerTerms } = {},
  ): Promise<Measured> => {
    const { quote, parts } = orderOf(venue, pair, ROUTES[route], { direction, kind, nonce, terms });
    const order = { id: '', quoteId: '', owner: quote.owner, clientOrderId: null, createdMs: 0 };
    const signature = signatureOf(venue, quote);
    const data = await orderCalldata(
      { order: { ...order, signature }, quote, permit },
      parts,
      lower(venue.settler.address),
      venueOf,
    );
    const checks = isChecked ? await Promise.all(parts.map((part) => checksOf(part, quote))) : null;
    const sent = checks === null ? data : withChecks(data, quote.sellUnits, checks.flat());
    return chain.send(world.operator, venue.settler.address, sent);
  };

  /** What a venue would check of a part, as long, with the bounds of a round figure. */
  async function checksOf(part: Part, { kind, sellToken, buyToken }: SwapQuote): Promise<StateCheck[]> {
    const trade = { ...part, kind, sellToken, buyToken };
    if (part.id === OWN) {
      const own = createOwnVenue({
        entrypoint: lower(venue.entrypoint.address),
        curveBook: lower(venue.curveBook.address),
      });
      return (await own.checks(trade, 1n, { number: 0, hash: '0x', timestampSec: 0, baseFeeWei: 0n }))!;
    }
    if (part.id === MANAGED_POOL) {
      const number = await chain.provider.getBlockNumber();
      return (await managed.checks(trade, 1n, { number, hash: '0x', timestampSec: 0, baseFeeWei: 0n }))!;
    }
    const feePpm = BigInt(part.id === POOL ? FEE_PPM : OTHER_TIER.feePpm);
    const target = poolRule(lower(v3.factory.address)).addressOf([sellToken, buyToken], feePpm);
    const check = (view: string, bound: bigint): StateCheck => ({
      ...{ target, word: 0, minimum: bound, maximum: null },
      data: VIEWS.encodeFunctionData(view) as Hex,
    });
    return [check('slot0', 0x123456789abcdn), check('liquidity', 0x123456789abcdn)];
  }

  const firstNonce = NONCE_WORDS[pair.id];
  let used = 0n;
  // Every route each way once, so that all storage has been written and the settler has held every token.
  for (const direction of DIRECTIONS) {
    for (const route of ROUTE_NAMES) await fill(route, direction, 'sell', firstNonce + used++);
  }
  const rows: Row[] = [];
  for (const route of ROUTE_NAMES) {
    for (const direction of DIRECTIONS) {
      for (const kind of KINDS) {
        const measured = await chain.undo(() => fill(route, direction, kind, firstNonce + used));
        rows.push(row(routeId(route, pair.id, direction, kind), measured));
        const partnered = await chain.undo(() => fill(route, direction, kind, firstNonce + used, { terms: PARTNERED }));
        rows.push(row(partnerId(route, pair.id, direction, kind), partnered));
      }
    }
    const fresh = await chain.undo(() => fill(route, 'sell', 'sell', firstNonce + 256n));
    rows.push(row(`${routeId(route, pair.id, 'sell', 'sell')}.freshNonceWord`, fresh));
  }
  const byPermit = await chain.undo(async () => {
    await chain.call(world.taker, pair.quote, 'approve', [PERMIT2_ADDRESS, 0n]);
    return fill('own', 'buy', 'sell', firstNonce + used, { permit: permitOf(pair) });
  });
  rows.push(row(permitId(pair.id), byPermit));
  for (const route of ROUTE_NAMES) {
    const checked = await chain.undo(() => fill(route, 'sell', 'sell', firstNonce + used, { isChecked: true }));
    rows.push(row(checkedId(route, pair.id), checked));
  }
  const checkedPermit = await chain.undo(async () => {
    await chain.call(world.taker, pair.quote, 'approve', [PERMIT2_ADDRESS, 0n]);
    return fill('own', 'buy', 'sell', firstNonce + used, { permit: permitOf(pair), isChecked: true });
  });
  rows.push(row(checkedId('permit', pair.id), checkedPermit));
  return rows;
}

/** Half a base token in all, and a fee of about a thousandth. */
function orderOf(
  { world }: Venue,
  pair: BenchPair,
  ids: readonly string[],
  { direction, kind, nonce, terms }: { direction: Direction; kind: SplitKind; nonce: bigint; terms: PartnerTerms },
): { quote: SwapQuote; parts: Part[] } {
  const [sellToken, buyToken] = path(pair, direction).map((address) => address.toLowerCase() as Address) as [
    Address,
    Address,
  ];
  const half = ONE_BASE / 2n;
  const worth = (half * PRICE) / 10n ** 12n;
  const [input, output] = direction === 'sell' ? [half, worth] : [worth, half];
  const count = BigInt(ids.length);
  // A purchase is for a little less than the input is worth, since every place takes a fee or quotes a spread.
  const [inUnits, outUnits] = [input / count, ((output / count) * 98n) / 100n];
  const parts = ids.map((id) => ({ id, inUnits, outUnits }));
  const feeUnits = input / 1_001n;
  const expected = inUnits * count + feeUnits;
  const sellUnits = kind === 'sell' ? expected : (expected * (10_000n + SLIPPAGE_BPS)) / 10_000n;
  const net = netUnits(outUnits * count, terms);
  const owner = world.taker.toLowerCase() as Address;
  const quote: SwapQuote = {
    id: '',
    owner,
    receiver: owner,
    sellToken,
    buyToken,
    kind,
    preference: 'auto',
    slippageBps: 50,
    sellUnits,
    expectedSellUnits: expected,
    isLimit: false,
    buyUnits: net,
    minBuyUnits: kind === 'sell' ? (net * 99n) / 100n : net,
    feeUnits,
    nonce,
    validToSec: toSafeInt(DEADLINE_SEC),
    createdMs: 0,
    expiresMs: 0,
    route: '',
    typedData: '',
    ...terms,
  };
  return { quote, parts };
}
