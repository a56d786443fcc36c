/**
 * A simple model of the ledger: it computes everything again each time, from the events that the chain has now and from the orders behind each curve,
 * without any of the ledger's code, state or tables.
 */
import { Interface } from 'ethers';
import type { Address, Hex, Market, MarketSnapshot, Side, SnapshotOrder } from '../../../core/types.js';
import type { Rpc } from '../../../keepers/chain/rpc.js';
import { Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';

/** An event of the chain. */
interface Fact {
  address: Address;
  block: number;
  txHash: Hex;
  name: string;
  args: Record<string, unknown>;
}

/** An order as its maker gave it. */
export interface ModelOrder {
  oid: number;
  maker: Address;
  market: number;
  side: Side;
  priceTicks: bigint;
  sizeLots: bigint;
  open: boolean;
}

/** What one order got of a fill. */
interface Part {
  oid: number;
  maker: Address;
  units: bigint;
}

interface Fill {
  market: number;
  side: Side;
  curveSeq: number;
  fillSeq: number;
  parts: Part[];
}

/** Where everything stands after the events of the chain. */
export interface Standing {
  /** By `account:token`; zeros are left out. */
  balances: Map<string, bigint>;
  /** Requested and neither paid nor dropped, by `maker:token`; zeros are left out. */
  reserved: Map<string, bigint>;
  /** Deposits less executed withdrawals, by `account:token`; zeros are left out. */
  netCapital: Map<string, bigint>;
  claims: Map<string, bigint>;
  fills: Fill[];
  /** Filled base units, by order. */
  filled: Map<number, bigint>;
  /** By book and side; a touch has the book of the curve that it prolongs. */
  curves: Map<MarketSnapshot, Record<Side, CurveSide>>;
}

/** What the fills of one side of a curve and of its touches did together. */
interface CurveSide {
  gainUnits: bigint;
  legs: bigint;
  /** By how much the first fill found the side consumed beyond what had been taken since the cut. */
  raisedUnits: bigint | null;
}

const SATURATED = 2n ** 128n - 1n;
const EVENTS = new Interface([
  ...Custodian__factory.abi.filter((one) => one.type === 'event'),
  ...Entrypoint__factory.abi.filter((one) => one.type === 'event'),
  'event Transfer(address indexed from, address indexed to, uint256 value)',
]);

interface RpcLog {
  address: string;
  topics: string[];
  data: string;
  blockNumber: string;
  blockHash: string;
  logIndex: string;
  transactionHash: string;
}

/** Reads events of these contracts, each once per block hash. */
export function createFactReader(rpc: Rpc, addresses: readonly Address[], fromBlock: number) {
  const read = new Map<string, Fact | null>();
  return async (toBlock: number): Promise<Fact[]> => {
    const range = {
      fromBlock: `0x${fromBlock.toString(16)}`,
      toBlock: `0x${toBlock.toString(16)}`,
      address: addresses,
    };
    const logs = (await rpc.call('eth_getLogs', [range])) as RpcLog[];
    return logs.flatMap((log) => {
      const key = `${log.blockHash}:${log.logIndex}`;
      const fact = read.has(key) ? read.get(key)! : factOf(log);
      read.set(key, fact);
      return fact === null ? [] : [fact];
    });
  };
}

function factOf(log: RpcLog): Fact | null {
  const parsed = EVENTS.parseLog(log);
  if (parsed === null) return null;
  const args = parsed.args.toObject() as Record<string, unknown>;
  for (const [name, value] of Object.entries(args)) if (typeof value === 'string') args[name] = value.toLowerCase();
  return {
    address: log.address.toLowerCase() as Address,
    block: Number.parseInt(log.blockNumber, 16),
    txHash: log.transactionHash as Hex,
    name: parsed.name,
    args,
  };
}

/** The last block that a settlement looked at, and whether the chain has taken it back since. */
export interface SettlementCut {
  block: number;
  lost: boolean;
}

interface ModelWorld {
  markets: readonly Market[];
  custodian: Address;
  operator: Address;
  /** The book behind each curve, by `market:seq`. */
  snapshots: ReadonlyMap<string, MarketSnapshot>;
  /** What each settlement looked at, by the hash of its transaction or by what it says. */
  settlementCut(txHash: Hex, says: string): SettlementCut;
}

/** Everything that the events say, from the first one on. */
export function standingAfter(world: ModelWorld, facts: readonly Fact[]): Standing {
  const standing: Standing = {
    balances: new Map(),
    reserved: new Map(),
    netCapital: new Map(),
    claims: new Map(),
    fills: [],
    filled: new Map(),
    curves: new Map(),
  };
  const explained = new Set(facts.filter(({ name }) => name !== 'Transfer').map(({ txHash }) => txHash));
  const requests: { key: string; units: bigint; block: number }[] = [];
  /** Claims beyond what was asked for on this chain, which the next requests are covered by. */
  const ahead = new Map<string, bigint>();
  for (const { address, name, args, block, txHash } of facts) {
    const { maker, token, amount } = args as { maker: Address; token: Address; amount: bigint };
    const key = `${maker}:${token}`;
    if (name === 'Deposited') {
      add(standing.balances, key, amount);
      add(standing.netCapital, key, amount);
    } else if (name === 'WithdrawRequested') {
      requests.push({ key, units: amount, block });
      const covered = least(ahead.get(key) ?? 0n, amount);
      add(ahead, key, -covered);
      set(standing.reserved, key, least((standing.reserved.get(key) ?? 0n) + amount - covered, SATURATED));
    } else if (name === 'WithdrawSettled') {
      const cut = world.settlementCut(txHash, `${key}:${amount}:${String(args['basis'])}`);
      const later = requests.filter((one) => one.key === key && one.block > cut.block);
      set(standing.claims, key, amount);
      const asked = (standing.reserved.get(key) ?? 0n) - (ahead.get(key) ?? 0n);
      if (cut.lost) {
        set(standing.reserved, key, asked > amount ? asked : amount);
        set(ahead, key, asked > amount ? 0n : amount - asked);
      } else {
        const since = later.reduce((sum, { units }) => least(sum + units, SATURATED), 0n);
        const earlier = asked > since ? asked - since : 0n;
        const over = (ahead.get(key) ?? 0n) > 0n && amount > earlier ? amount - earlier : 0n;
        set(standing.reserved, key, least(amount + since - least(over, since), SATURATED));
        set(ahead, key, over - least(over, since));
      }
    } else if (name === 'WithdrawExecuted') {
      add(standing.balances, key, -amount);
      add(standing.netCapital, key, -amount);
      set(standing.claims, key, 0n);
      set(ahead, key, 0n);
      const left = (standing.reserved.get(key) ?? 0n) - amount;
      set(standing.reserved, key, left < 0n ? 0n : left);
    } else if (name === 'Swap') {
      bookFill(world, standing, args);
    } else if (name === 'Transfer' && args['to'] === world.custodian && !explained.has(txHash)) {
      // A plain transfer to the vault, without `deposit`, belongs to nobody.
      add(standing.balances, `unattributed:${address}`, args['value'] as bigint);
    }
  }
  return standing;
}

function bookFill(world: ModelWorld, standing: Standing, args: Record<string, unknown>): void {
  const market = world.markets.find(({ id }) => id === args['market'])!;
  const side: Side = args['isBuy'] === true ? 'ask' : 'bid';
  const [baseUnits, quoteUnits, fee] = [args['baseAmount'], args['quoteAmount'], args['fee']] as [
    bigint,
    bigint,
    bigint,
  ];
  const [curveSeq, fillSeq] = [Number(args['curveSeq']), Number(args['fillSeq'])];
  const snapshot = world.snapshots.get(`${market.index}:${curveSeq}`);
  if (snapshot === undefined) throw new Error(`no curve ${market.index}:${curveSeq}`);
  const orders = leftBefore(standing, market, snapshot, side, curveSeq);
  const curve = enter(standing, market, snapshot, side, args['consumedBefore'] as bigint);
  const sign = side === 'ask' ? 1n : -1n;
  const parts: Part[] = [];
  let [need, legsQuote] = [baseUnits, 0n];
  while (need > 0n && orders.length > 0) {
    const level = orders.filter(({ priceTicks }) => priceTicks === orders[0]!.priceTicks);
    orders.splice(0, level.length);
    for (const { maker, units } of shareOut(least(need, sumOf(level)), level)) {
      const price = level[0]!.priceTicks;
      const quote = (price * market.tickLotUnits * units) / market.lotUnits;
      legsQuote += quote;
      curve.legs += 1n;
      add(standing.balances, `${maker}:${market.base.address}`, -sign * units);
      add(standing.balances, `${maker}:${market.quote.address}`, sign * quote);
      let rest = units;
      for (const order of level.filter((one) => one.maker === maker)) {
        const taken = least(rest, order.units);
        rest -= taken;
        if (taken > 0n) parts.push({ oid: order.oid, maker, units: taken });
      }
      need -= units;
    }
  }
  if (need !== 0n) throw new Error(`no order explains ${need} units of fill ${fillSeq}`);
  add(standing.balances, `${world.operator}:${market.quote.address}`, sign * (quoteUnits - legsQuote));
  curve.gainUnits += sign * (quoteUnits - legsQuote);
  // Buyers never cost the operator anything over a curve, sellers less than a unit per leg.
  if (curve.gainUnits < (side === 'ask' ? 0n : 1n - curve.legs)) {
    throw new Error(`the ${curve.legs} legs up to fill ${fillSeq} cost the operator ${-curve.gainUnits} units`);
  }
  const feeToken = side === 'ask' ? market.base.address : market.quote.address;
  add(standing.balances, `${String(args['taker'])}:${feeToken}`, fee);
  for (const { oid, units } of parts) standing.filled.set(oid, (standing.filled.get(oid) ?? 0n) + units);
  standing.fills.push({ market: market.index, side, curveSeq, fillSeq, parts });
}

/** A fill finds consumed what was taken since the cut, and the same raise as the fills of the curve before it. */
function enter(
  { fills, curves }: Standing,
  market: Market,
  snapshot: MarketSnapshot,
  side: Side,
  consumedBefore: bigint,
): CurveSide {
  const none = (): CurveSide => ({ gainUnits: 0n, legs: 0n, raisedUnits: null });
  const sides = curves.get(snapshot) ?? { ask: none(), bid: none() };
  curves.set(snapshot, sides);
  const since = fills.filter(
    (fill) => fill.market === market.index && fill.side === side && fill.fillSeq > snapshot.fillSeq,
  );
  const raised = consumedBefore - sumOf(since.flatMap(({ parts }) => parts));
  const curve = sides[side];
  if (raised < 0n || raised !== (curve.raisedUnits ?? raised)) throw new Error(`a curve is raised by ${raised} units`);
  curve.raisedUnits = raised;
  return curve;
}

interface Left {
  oid: number;
  maker: Address;
  priceTicks: bigint;
  units: bigint;
}

/** A curve's orders before its next fill: less what older curves sold of them too late for it to know, less what it sold itself. */
function leftBefore(
  standing: Standing,
  market: Market,
  snapshot: MarketSnapshot,
  side: Side,
  curveSeq: number,
): Left[] {
  const resting: readonly SnapshotOrder[] = side === 'ask' ? snapshot.asks : snapshot.bids;
  const orders = resting.map(({ sizeLots, ...order }): Left => ({ ...order, units: sizeLots * market.lotUnits }));
  const here = standing.fills.filter((fill) => fill.market === market.index && fill.side === side);
  const late = here.filter((fill) => fill.fillSeq > snapshot.fillSeq && fill.curveSeq < curveSeq);
  const own = here.filter((fill) => fill.curveSeq === curveSeq);
  const owed = new Map<Address, bigint>();
  for (const { oid, maker, units } of late.flatMap(({ parts }) => parts)) {
    const order = orders.find((one) => one.oid === oid);
    const direct = least(units, order?.units ?? 0n);
    if (order !== undefined) order.units -= direct;
    owed.set(maker, (owed.get(maker) ?? 0n) + units - direct);
  }
  for (const order of orders) {
    const taken = least(owed.get(order.maker) ?? 0n, order.units);
    order.units -= taken;
    owed.set(order.maker, (owed.get(order.maker) ?? 0n) - taken);
  }
  for (const { oid, units } of own.flatMap(({ parts }) => parts)) orders.find((one) => one.oid === oid)!.units -= units;
  return orders.filter(({ units }) => units > 0n);
}

/** Pro rata per maker, floored; what is left goes unit by unit to the largest remainders, ties to the lower address. */
function shareOut(take: bigint, level: readonly Left[]): { maker: Address; units: bigint }[] {
  const total = sumOf(level);
  const makers = [...new Set(level.map(({ maker }) => maker))].sort();
  const shares = makers.map((maker) => {
    const has = sumOf(level.filter((one) => one.maker === maker));
    return { maker, units: (take * has) / total, remainder: (take * has) % total };
  });
  const order = [...shares].sort((a, b) => (a.remainder === b.remainder ? 0 : a.remainder > b.remainder ? -1 : 1));
  let rest = take - shares.reduce((sum, { units }) => sum + units, 0n);
  for (const share of order) {
    if (rest === 0n) break;
    share.units += 1n;
    rest -= 1n;
  }
  return shares.filter(({ units }) => units > 0n);
}

/** The book that a curve must stand for, when the last event seen is the last of `standing`. */
export function bookOf(
  market: Market,
  standing: Standing,
  orders: readonly ModelOrder[],
  trims: readonly { oid: number; lots: bigint }[],
): MarketSnapshot {
  const side = (name: Side): SnapshotOrder[] =>
    orders
      .filter((order) => order.open && order.market === market.index && order.side === name)
      .map(({ oid, maker, priceTicks, sizeLots }) => {
        const left = sizeLots * market.lotUnits - (standing.filled.get(oid) ?? 0n);
        const trimmed = trims.find((trim) => trim.oid === oid)?.lots ?? 0n;
        return { oid, maker, priceTicks, sizeLots: (left > 0n ? left / market.lotUnits : 0n) - trimmed };
      })
      .filter(({ sizeLots }) => sizeLots > 0n)
      .sort((a, b) => byPrice(name, a, b) || (a.maker < b.maker ? -1 : a.maker > b.maker ? 1 : a.oid - b.oid));
  const fills = standing.fills.filter((fill) => fill.market === market.index);
  const volume = (name: Side): bigint =>
    fills.filter((fill) => fill.side === name).reduce((sum, { parts }) => sum + sumOf(parts), 0n);
  return {
    market: market.index,
    fillSeq: fills.at(-1)?.fillSeq ?? 0,
    askVolumeUnits: volume('ask'),
    bidVolumeUnits: volume('bid'),
    asks: side('ask'),
    bids: side('bid'),
  };
}

function byPrice(side: Side, a: SnapshotOrder, b: SnapshotOrder): number {
  if (a.priceTicks === b.priceTicks) return 0;
  return a.priceTicks < b.priceTicks === (side === 'ask') ? -1 : 1;
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const sumOf = (items: readonly { units: bigint }[]): bigint => items.reduce((sum, { units }) => sum + units, 0n);

function set(map: Map<string, bigint>, key: string, units: bigint): void {
  if (units === 0n) map.delete(key);
  else map.set(key, units);
}

function add(map: Map<string, bigint>, key: string, units: bigint): void {
  set(map, key, (map.get(key) ?? 0n) + units);
}
