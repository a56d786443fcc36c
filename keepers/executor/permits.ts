/** Approvals that orders include: whether one is still needed, and how it is combined with the fill. */
import { dataSlice, dataLength } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import { isFailedCall, onOne, type EthReader } from '../../liquidity/eth.js';
import { readFunds } from '../../liquidity/funds.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

const SETTLER = OrderSettler__factory.createInterface();

/** The order without its approval, if Permit2's allowance suffices already because another party or an earlier order has submitted it. */
export async function withNeededPermit(eth: EthReader, one: PendingOrder): Promise<PendingOrder> {
  const { permit, quote } = one;
  if (permit === null) return one;
  const { owner, sellToken: token } = quote;
  try {
    const { allowanceUnits } = await onOne(eth, (node) =>
      readFunds(node, { token, owner, spender: spenderOf(permit) }),
    );
    return allowanceUnits !== null && allowanceUnits >= quote.sellUnits ? { ...one, permit: null } : one;
  } catch (error) {
    // The simulation will show whether the order fills.
    if (isFailedCall(error)) return one;
    throw error;
  }
}

/** The settler's call with the token's permit before the fill; the fill itself without a permit. */
export function withPermit(token: Address, permit: Hex | null, fill: Hex): Hex {
  return permit === null ? fill : (SETTLER.encodeFunctionData('fillWithPermit', [token, permit, fill]) as Hex);
}

/** The fill of a call of the settler, the permit that comes first, null for none, and whether conditions do, and how many. */
export function fillIn(data: Hex): { fill: Hex; permit: Hex | null; isChecked: boolean; checks: number } {
  const call = SETTLER.parseTransaction({ data });
  if (call?.name === 'fillWithPermit') {
    const [, permit, fill] = call.args as unknown as [Address, Hex, Hex];
    return { fill, permit, isChecked: false, checks: 0 };
  }
  if (call?.name !== 'fillChecked') return { fill: data, permit: null, isChecked: false, checks: 0 };
  const [checks, , permit, fill] = call.args as unknown as [readonly unknown[], bigint, Hex, Hex];
  return { fill, permit: permit === '0x' ? null : permit, isChecked: true, checks: checks.length };
}

/** The second argument of any permit. */
function spenderOf(permit: Hex): Address {
  if (dataLength(permit) < 68) throw new RangeError('a stored permit has no spender');
  return dataSlice(permit, 48, 68) as Address;
}
