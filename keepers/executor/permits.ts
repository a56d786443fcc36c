/** Approvals that orders include: whether one is still needed, and how it is combined with the fill. */
import { Interface, dataSlice, dataLength, toQuantity } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import { bytesOf, isFailedCall, onOne, type EthReader } from '../../liquidity/eth.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

const SETTLER = OrderSettler__factory.createInterface();
/** Most gas of a call to a token. */
const CALL_GAS = 300_000n;
const TOKEN = new Interface(['function allowance(address, address) view returns (uint256)']);

/** The order without its approval, if Permit2's allowance suffices already because another party or an earlier order has submitted it. */
export async function withNeededPermit(eth: EthReader, one: PendingOrder): Promise<PendingOrder> {
  const { permit, quote } = one;
  if (permit === null) return one;
  const data = TOKEN.encodeFunctionData('allowance', [quote.owner, spenderOf(permit)]);
  const call = { to: quote.sellToken, data, gas: toQuantity(CALL_GAS) };
  try {
    const answer = await onOne(eth, async (node) => bytesOf(await node.call('eth_call', [call, 'latest'])));
    return answer !== '0x' && BigInt(answer) >= quote.sellUnits ? { ...one, permit: null } : one;
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

/** The fill of a call of the settler, the permit that comes first, null for none, and whether conditions do. */
export function fillIn(data: Hex): { fill: Hex; permit: Hex | null; isChecked: boolean } {
  const call = SETTLER.parseTransaction({ data });
  if (call?.name === 'fillWithPermit') {
    const [, permit, fill] = call.args as unknown as [Address, Hex, Hex];
    return { fill, permit, isChecked: false };
  }
  if (call?.name !== 'fillChecked') return { fill: data, permit: null, isChecked: false };
  const [, , permit, fill] = call.args as unknown as [unknown, bigint, Hex, Hex];
  return { fill, permit: permit === '0x' ? null : permit, isChecked: true };
}

/** The second argument of any permit. */
function spenderOf(permit: Hex): Address {
  if (dataLength(permit) < 68) throw new RangeError('a stored permit has no spender');
  return dataSlice(permit, 48, 68) as Address;
}
