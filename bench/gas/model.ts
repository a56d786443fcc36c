/** The fee model of signed orders, from measured orders. */
import type { GasModel } from '../../core/swap/pricing.js';
import { OWN } from '../../core/swap/source.js';
import type { Snapshot } from './snapshot.js';
import { KINDS, ROUTE_NAMES, ROUTES, checkedId, permitId, routeId, type RouteName } from './routes.js';
import { DIRECTIONS } from './curvebook.js';

/** Figures of the model are whole multiples of this. */
const STEP = 1_000;
/** Gas of an order that our own curve fills, beyond that of a step over the curve: the transaction itself, and its call data. */
const TRANSACTION_GAS = 21_000 + 7_000;
/** Gas of a step over our own curve that such an order does not need: its allowance, and reading what is left. */
const STEP_GAS = 12_000;
const PAIRS = ['weth', 'plain'] as const;

/**
 * The lowest model that covers the gas of every measured order, assuming that the order is the first one of its owner's nonce word, as it is for
 * owners who trade rarely. Each part of an order has the highest value that was measured for it. Rounded up.
 */
export function gasModelOf(rows: Snapshot): GasModel {
  const own = Math.max(...gasOf(rows, 'own'));
  const call = Math.max(...differences(rows, 'external2', 'external'), ...differences(rows, 'split2', 'split'));
  const ownPart = Math.max(...differences(rows, 'split', 'external'), ...differences(rows, 'split2', 'external2'));
  const routeCall = up(call);
  const routeOwn = up(ownPart);
  const base = ROUTE_NAMES.filter((route) => route !== 'own').map((route) => {
    const parts: readonly string[] = ROUTES[route];
    const hasOwn = parts.includes(OWN);
    const calls = parts.length - (hasOwn ? 1 : 0);
    return Math.max(...gasOf(rows, route)) - calls * routeCall - (hasOwn ? routeOwn : 0);
  });
  const checksPlace = up(
    Math.max(...checkedMore(rows, 'external2').map((gas, i) => gas - checkedMore(rows, 'external')[i]!)),
  );
  const checks = up(
    Math.max(
      ...ROUTE_NAMES.flatMap((route) =>
        checkedMore(rows, route).map((gas) => gas - ROUTES[route].length * checksPlace),
      ),
      ...PAIRS.map((pair) => found(rows, checkedId('permit', pair)) - found(rows, permitId(pair)) - checksPlace),
    ),
  );
  return {
    own: BigInt(up(own)),
    route: BigInt(up(Math.max(...base))),
    routeOwn: BigInt(routeOwn),
    routeCall: BigInt(routeCall),
    routeOwnCall: BigInt(up(Math.max(...gasOf(rows, 'own')) - TRANSACTION_GAS + STEP_GAS)),
    permit: BigInt(up(Math.max(...PAIRS.map((pair) => permitGas(rows, pair))))),
    checks: BigInt(checks),
    checksPlace: BigInt(checksPlace),
  };
}

const up = (gas: number): number => Math.ceil(gas / STEP) * STEP;

const found = (rows: Snapshot, id: string): number => {
  const entry = rows[id];
  if (entry === undefined) throw new Error(`nothing measured ${id}`);
  return entry.gas;
};

/** What it adds to an order to submit its owner's first approval of the token. */
const permitGas = (rows: Snapshot, pair: (typeof PAIRS)[number]): number =>
  found(rows, permitId(pair)) - found(rows, routeId('own', pair, 'buy', 'sell'));

/** What it adds to the sale of a route to be checked. */
const checkedMore = (rows: Snapshot, route: RouteName): number[] =>
  PAIRS.map((pair) => found(rows, checkedId(route, pair)) - found(rows, routeId(route, pair, 'sell', 'sell')));

/** Gas of each measured order of a route, with what the first nonce of a word adds. */
function gasOf(rows: Snapshot, route: RouteName): number[] {
  return PAIRS.flatMap((pair) => {
    const known = found(rows, routeId(route, pair, 'sell', 'sell'));
    const fresh = found(rows, `${routeId(route, pair, 'sell', 'sell')}.freshNonceWord`) - known;
    return ids(route, pair).map((id) => found(rows, id) + fresh);
  });
}

/** How much more each order costs than the same one by another route. */
function differences(rows: Snapshot, route: RouteName, other: RouteName): number[] {
  return PAIRS.flatMap((pair) => {
    const others = ids(other, pair);
    return ids(route, pair).map((id, i) => found(rows, id) - found(rows, others[i]!));
  });
}

const ids = (route: RouteName, pair: (typeof PAIRS)[number]): string[] =>
  DIRECTIONS.flatMap((direction) => KINDS.map((kind) => routeId(route, pair, direction, kind)));
