/** Approvals that orders brought along: whether one is needed still, and how it goes with a fill. */
import { Interface, dataSlice, dataLength } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { EthReader } from '../../liquidity/eth.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

const SETTLER = OrderSettler__factory.createInterface();
const TOKEN = new Interface(['function allowance(address, address) view returns (uint256)']);

/**
 * The order without the approval that it brought, where Permit2 may take enough of its owner already: somebody else submitted it, or an earlier order
 * did.
 */
export async function withNeededPermit(eth: Pick<EthReader, 'call'>, one: PendingOrder): Promise<PendingOrder> {
  const { permit, quote } = one;
  if (permit === null) return one;
  const data = TOKEN.encodeFunctionData('allowance', [quote.owner, spenderOf(permit)]);
  const answer = (await eth.call('eth_call', [{ to: quote.sellToken, data }, 'latest'])) as Hex;
  return BigInt(answer) >= quote.sellUnits ? { ...one, permit: null } : one;
}

/** A fill of the settler's that has the token's permit come first; the fill itself without one. */
export function withPermit(token: Address, permit: Hex | null, fill: Hex): Hex {
  return permit === null ? fill : (SETTLER.encodeFunctionData('fillWithPermit', [token, permit, fill]) as Hex);
}

/** The fill of a call that `withPermit` made, and whether a permit comes first. */
export function fillIn(data: Hex): { fill: Hex; hasPermit: boolean } {
  const call = SETTLER.parseTransaction({ data });
  if (call?.name !== 'fillWithPermit') return { fill: data, hasPermit: false };
  return { fill: call.args[2] as Hex, hasPermit: true };
}

/** The second argument of any permit. */
function spenderOf(permit: Hex): Address {
  if (dataLength(permit) < 68) throw new RangeError('a stored permit has no spender');
  return dataSlice(permit, 48, 68) as Address;
}
