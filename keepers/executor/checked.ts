/** Transactions that look first whether what they rely on is as it was, so that they burn little where it is not. */
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
 * not hold any more.
 */
export async function checkedCalldata(
  { quote }: Pick<PendingOrder, 'quote'>,
  { data, parts, inUnits }: Plain,
  marketData: MarketData,
  head: Head,
  atSec: number,
): Promise<Hex | null> {
  const { mostUnits, takenUnits } = takenBy(fillIn(data).fill, inUnits);
  const { kind, sellToken, buyToken, feeUnits, minBuyUnits } = quote;
  const boundUnits = kind === 'sell' ? minBuyUnits : mostUnits - feeUnits;
  const checks = await routeChecks(marketData, { kind, sellToken, buyToken, parts, boundUnits }, head, atSec);
  return checks === null ? null : withChecks(data, takenUnits, checks);
}

/** A call of the settler with conditions before all that it does. */
export function withChecks(data: Hex, takenUnits: bigint, checks: readonly StateCheck[]): Hex {
  const { fill, permit } = fillIn(data);
  return SETTLER.encodeFunctionData('fillChecked', [checks.map(encoded), takenUnits, permit ?? '0x', fill]) as Hex;
}

/** What a fill takes of its owner, which has to be there, and the most that it may. */
function takenBy(fill: Hex, inUnits: bigint): { takenUnits: bigint; mostUnits: bigint } {
  const call = SETTLER.parseTransaction({ data: fill });
  if (call?.name === 'fillRoute') {
    const { amountIn } = call.args[1] as { amountIn: bigint };
    return { takenUnits: amountIn, mostUnits: amountIn };
  }
  const { maxAmountIn } = call?.args[1] as { maxAmountIn: bigint };
  return { takenUnits: call?.name === 'fillOnCurve' ? maxAmountIn : inUnits, mostUnits: maxAmountIn };
}

/** A maximum below the minimum is none. */
const encoded = ({ target, word, minimum, maximum, data }: StateCheck) => ({
  ...{ target, word, minimum, data },
  maximum: maximum ?? 0n,
});
