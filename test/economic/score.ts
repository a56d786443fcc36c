/**
 * What a strategy brought in, and to whose cost.
 *
 * The victims are the operator, whose row takes what the curve gained or lost against the book; honest makers, as far as they got less,
 * or gave more, than their own orders say for each of their legs; and the vault, which owes what rows below zero lack. What honest
 * makers and takers gain or lose at prices that they asked for is their own will and counts for nothing.
 */
import { maxBig } from '../../core/amounts.js';
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, Side } from '../../core/types.js';
import { addressOf, COLLUDERS, HONEST, HONEST_TAKER, OPERATOR, roleOf, type Setting } from './setting.js';
import type { World } from './world.js';

export interface Score {
  /**
   * Wallets and rows of the colluders at the end less at the start, at fair prices; rows below zero are left behind. What the honest taker
   * paid above the fair price of its own will is taken off.
   */
  profit: bigint;
  /** What the victims lost together, what the operator gained on other curves taken off. */
  loss: bigint;
  /** What they lost beyond the bounds, curve by curve, gains on other curves left out. */
  taken: bigint;
  operatorLoss: bigint;
  makersLoss: bigint;
  vaultLoss: bigint;
  /** The most of it that rounding explains: see `boundUnits`. */
  bound: bigint;
  /** What the operator lost beyond the bound of a curve, on the curve where that is most; below zero within it, null without a fill. */
  excess: bigint | null;
  /** What must never come about, in words; empty when everything held. */
  violations: readonly string[];
}

/** What the operator gained on all fills of one side of one curve, its touches included. */
interface CurveGain {
  market: number;
  baseSeq: number;
  side: Side;
  fills: number;
  legs: number;
  gainUnits: bigint;
}

/**
 * The most that the operator may lose on one side of one curve, in quote units. Buyers pay rounded up and makers get rounded down, so nothing
 * on asks. On bids each leg is rounded down, by less than a unit, and so is what the taker gets: less than a unit per leg altogether.
 */
function boundUnits({ side, legs }: Pick<CurveGain, 'side' | 'legs'>): bigint {
  return side === 'ask' ? 0n : maxBig(BigInt(legs) - 1n, 0n);
}

export function curveGains({ ledger }: Pick<World, 'ledger'>): CurveGain[] {
  const gains = new Map<string, CurveGain>();
  for (const { fill, decomposition } of ledger.fills) {
    const { market, side } = fill;
    const rootSeq = rootOf(ledger, market, fill.curveSeq);
    const key = `${market}:${rootSeq}:${side}`;
    const gain = gains.get(key) ?? { market, baseSeq: rootSeq, side, fills: 0, legs: 0, gainUnits: 0n };
    gain.fills += 1;
    gain.legs += decomposition.legs.length;
    gain.gainUnits += decomposition.operatorGainUnits;
    gains.set(key, gain);
  }
  return [...gains.values()];
}

/** The post whose words a curve has: a partial post is a curve of its own, and touches, of touches, too, go on with the words of the first. */
function rootOf(ledger: World['ledger'], market: number, seq: number): number {
  const publication = ledger.curve(market, seq)?.publication;
  return publication?.kind === 'touch' ? rootOf(ledger, market, publication.baseSeq) : seq;
}

const valued = (setting: Setting, token: Address, units: bigint): bigint => units * setting.unitValue.get(token)!;

/** `world` is finished. */
export function scoreOf(world: World): Score {
  const { setting, chain, ledger } = world;
  const violations = world.faults.map((what) => `fault: ${what}`);
  let profit = 0n;
  for (const account of [...COLLUDERS, addressOf(HONEST_TAKER)]) {
    for (const [token, startUnits] of setting.endowment) {
      const row = maxBig(ledger.rowOf(account, token), 0n);
      profit += valued(setting, token, chain.walletOf(account, token) + row - startUnits);
    }
  }

  let operatorLoss = 0n;
  let vaultLoss = 0n;
  for (const token of setting.unitValue.keys()) operatorLoss -= valued(setting, token, ledger.rowOf(OPERATOR, token));
  for (const [key, units] of ledger.rows()) {
    const [account, token] = key.split(':') as [Address, Address];
    if (account.startsWith('0x') && account !== OPERATOR && units < 0n) {
      vaultLoss += valued(setting, token, -units);
      violations.push(`the row of ${roleOf(account)} is ${units} units`);
    }
  }
  for (const [maker, token, claim] of ledger.claims()) {
    const { units } = chain.claimOf(maker, token);
    if (units !== claim.claimUnits)
      violations.push(`the claim of ${roleOf(maker)} is ${units}, not ${claim.claimUnits}`);
  }

  for (const [owner, { spent, lost }] of world.gasless.gas()) {
    if (lost > spent)
      violations.push(
        `orders of ${roleOf(owner)} that reverted cost the operator ${lost} gas, and their owner ${spent}`,
      );
  }

  let bound = 0n;
  let excess: bigint | null = null;
  let taken = 0n;
  for (const gain of curveGains(world)) {
    const quote = setting.markets[gain.market]!.quote.address;
    bound += valued(setting, quote, boundUnits(gain));
    const beyond = valued(setting, quote, -gain.gainUnits - boundUnits(gain));
    taken += maxBig(beyond, 0n);
    if (excess === null || beyond > excess) excess = beyond;
    if (gain.gainUnits < -boundUnits(gain)) {
      violations.push(
        `the operator lost ${-gain.gainUnits} quote units on the ${gain.side}s of curve ${gain.baseSeq} of market ${gain.market}, ` +
          `more than ${boundUnits(gain)} (${gain.legs} legs of ${gain.fills} fills)`,
      );
    }
  }
  const makersLoss = honestLoss(world, violations);
  return {
    profit,
    loss: operatorLoss + makersLoss + vaultLoss,
    taken: taken + makersLoss + vaultLoss,
    operatorLoss,
    makersLoss,
    vaultLoss,
    bound,
    excess,
    violations,
  };
}

/** What honest makers' rows lack against their own orders, leg by leg. */
function honestLoss({ setting, gateway, ledger }: World, violations: string[]): bigint {
  const expected = new Map<string, bigint>();
  const filled = new Map<number, bigint>();
  const add = (maker: Address, token: Address, units: bigint): void => {
    const key = `${maker}:${token}`;
    expected.set(key, (expected.get(key) ?? 0n) + units);
  };
  for (const { fill, orderFills } of ledger.fills) {
    const market = setting.markets[fill.market]!;
    const legs = new Map<string, { maker: Address; priceTicks: bigint; units: bigint }>();
    for (const { oid, baseUnits } of orderFills) {
      const order = gateway.accepted.get(oid);
      if (order === undefined || order.side !== fill.side || order.market !== fill.market) {
        violations.push(`a fill names order ${oid}, which is none of that side`);
        continue;
      }
      filled.set(oid, (filled.get(oid) ?? 0n) + baseUnits);
      if (!HONEST.has(order.maker)) continue;
      const key = `${order.maker}:${order.priceTicks}`;
      const leg = legs.get(key) ?? { maker: order.maker, priceTicks: order.priceTicks, units: 0n };
      leg.units += baseUnits;
      legs.set(key, leg);
    }
    const sign = fill.side === 'ask' ? 1n : -1n;
    for (const { maker, priceTicks, units } of legs.values()) {
      add(maker, market.base.address, -sign * units);
      add(maker, market.quote.address, sign * quoteUnitsFloor(market, priceTicks, units));
    }
  }
  for (const [oid, units] of filled) {
    const order = gateway.accepted.get(oid);
    if (order !== undefined && units > order.sizeLots * setting.markets[order.market]!.lotUnits)
      violations.push(`order ${oid} of ${roleOf(order.maker)} was filled beyond its size`);
  }
  let loss = 0n;
  for (const maker of HONEST) {
    for (const [token, endowed] of setting.endowment) {
      const lacking = endowed / 2n + (expected.get(`${maker}:${token}`) ?? 0n) - ledger.rowOf(maker, token);
      if (lacking <= 0n) continue;
      loss += valued(setting, token, lacking);
      violations.push(`${roleOf(maker)} lacks ${lacking} units of what its orders say`);
    }
  }
  return loss;
}
