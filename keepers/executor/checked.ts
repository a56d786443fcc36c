/** Transactions that look first whether what they rely on is as it was, so that they burn little where it is not. */
import { MaxUint256 } from 'ethers';
import { grossUnits } from '../../core/swap/partner.js';
import type { Part } from '../../core/swap/split.js';
import type { Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import { routeChecks } from '../../liquidity/checks.js';
import type { Head } from '../../liquidity/eth.js';
import type { MarketData } from '../../liquidity/market-data.js';
import type { StateCheck } from '../../liquidity/venue.js';
import { fillIn } from './permits.js';
import { SETTLER } from './transaction.js';

/** A transaction as it was simulated. */
interface Plain {
  data: Hex;
  parts: readonly Part[];
  /** What it takes, fee included. */
  inUnits: bigint;
}

/**
 * The same with everything that it relies on checked first; null where its venues can't say in few conditions what that is, or where it does
 * not hold any more. The owner must have as much as the checks let the fill take, or its funds could fall short behind them, where that is
 * dear: all that it may take (`whole`), or what it took when it was simulated and no more (`exact`), for an owner who does not have the rest.
 */
export async function checkedCalldata(
  { quote }: Pick<PendingOrder, 'quote'>,
  { data, parts, inUnits }: Plain,
  marketData: MarketData,
  { head, atSec, pull }: { head: Head; atSec: number; pull: 'whole' | 'exact' },
): Promise<Hex | null> {
  const takenUnits = takenBy(fillIn(data).fill, pull === 'exact' ? inUnits : null);
  const { kind, sellToken, buyToken, feeUnits, minBuyUnits } = quote;
  const boundUnits = kind === 'sell' ? grossUnits(minBuyUnits, quote) : takenUnits - feeUnits;
  const checks = await routeChecks(marketData, { kind, sellToken, buyToken, parts, boundUnits }, head, atSec);
  return checks === null ? null : withChecks(data, takenUnits, checks);
}

/** A call of the settler with conditions before all that it does. */
export function withChecks(data: Hex, takenUnits: bigint, checks: readonly StateCheck[]): Hex {
  const { fill, permit } = fillIn(data);
  return SETTLER.encodeFunctionData('fillChecked', [checks.map(encoded), takenUnits, permit ?? '0x', fill]) as Hex;
}

/** The most that a fill takes of its owner: what it pulls, or for a purchase by our curve alone, which pulls its price, what is signed. */
function takenBy(fill: Hex, exactUnits: bigint | null): bigint {
  const call = SETTLER.parseTransaction({ data: fill });
  if (call?.name === 'fillRoute' || call?.name === 'fillPartnerRoute')
    return (call.args.at(-1) as { amountIn: bigint }).amountIn;
  const { maxAmountIn } = call?.args[1] as { maxAmountIn: bigint };
  return call?.name === 'fillOnCurveExactOut' && exactUnits !== null ? exactUnits : maxAmountIn;
}

/** A maximum below the minimum is none, and costs less as data than the highest word, which a minimum of zero needs. */
const encoded = ({ target, word, minimum, maximum, data }: StateCheck) => ({
  ...{ target, word, minimum, data },
  maximum: maximum ?? (minimum > 0n ? 0n : MaxUint256),
});
