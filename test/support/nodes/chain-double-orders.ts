/** The settler of signed orders in the chain double: fills by our own curve, paid through Permit2. */
import { Interface } from 'ethers';
import { toSafeInt } from '../../../core/amounts.js';
import { hexToBytes } from '../../../core/hash.js';
import { orderTypedData } from '../../../core/swap/typed-data.js';
import type { Address, Hex } from '../../../core/types.js';
import { recoverAddress } from '../../../core/wire/recover.js';
import { digestOf } from '../../../server/swap/signature.js';
import { OrderSettler__factory } from '../../../typechain-types/index.js';
import { event, lower, parse, parsed, require, swapOnCurve, type DoubleOrders } from './chain-double-contracts.js';

const SETTLER = new Interface(OrderSettler__factory.abi);
const PERMIT2 = new Interface([
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error SignatureExpired(uint256 signatureDeadline)',
  'function nonceBitmap(address, uint256) view returns (uint256)',
]);
const WORD_BITS = 256n;

/** As the contract's struct comes out of the call data. */
interface SignedOrder {
  owner: string;
  tokenIn: string;
  maxAmountIn: bigint;
  nonce: bigint;
  deadline: bigint;
  recipient: string;
  tokenOut: string;
  minAmountOut: bigint;
  signature: Hex;
}

/** The settler and Permit2 at these places, with one executor. */
export function createOrders(at: {
  settler: Address;
  permit2: Address;
  executor: Address;
  chainId: number;
}): DoubleOrders {
  const { settler, permit2, executor, chainId } = at;
  /** Recovered signers, by what is signed and the signature. */
  const signers = new Map<string, Address | null>();

  function signerOf(order: SignedOrder): Address | null {
    const terms = {
      sellToken: lower(order.tokenIn),
      sellUnits: order.maxAmountIn,
      nonce: order.nonce,
      validToSec: toSafeInt(order.deadline),
      receiver: lower(order.recipient),
      buyToken: lower(order.tokenOut),
      minBuyUnits: order.minAmountOut,
    };
    const key = [...Object.values(terms), order.signature].join();
    const known = signers.get(key);
    if (known !== undefined) return known;
    const digest = digestOf(orderTypedData(terms, { chainId, permit2, spender: settler }));
    const bytes = hexToBytes(order.signature);
    const part = (from: number, to: number): Hex => `0x${order.signature.slice(2 + 2 * from, 2 + 2 * to)}`;
    const signature = { r: part(0, 32), s: part(32, 64), v: bytes[64] === 28 ? 28 : 27 } as const;
    const signer = bytes.length === 65 ? recoverAddress(hexToBytes(digest), signature) : null;
    signers.set(key, signer);
    return signer;
  }

  return {
    settler,
    permit2,
    abis: [SETTLER, PERMIT2],
    fill(machine, data) {
      const { state, from, logs } = machine;
      require(from === executor, 'NotExecutor');
      const { name, args } = parse(SETTLER, data);
      require(name === 'fillOnCurve' || name === 'fillOnCurveExactOut', 'ForbiddenTarget');
      const [feeUnits, order] = args as [bigint, SignedOrder];
      require(feeUnits <= order.maxAmountIn, 'FeeTooHigh');
      const [owner, recipient] = [lower(order.owner), lower(order.recipient)];
      const key = `${owner}:${order.nonce}`;
      require(BigInt(machine.at.timestampSec) <= order.deadline, 'SignatureExpired');
      require(!state.usedOrders.has(key), 'InvalidNonce');
      require(signerOf(order) === owner, 'InvalidSigner');
      state.usedOrders.add(key);
      const exactOut = name === 'fillOnCurveExactOut';
      const tradable = order.maxAmountIn - feeUnits;
      const [amount, limit] = exactOut ? [order.minAmountOut, tradable] : [tradable, order.minAmountOut];
      const [tokenIn, tokenOut] = [lower(order.tokenIn), lower(order.tokenOut)];
      const { inUnits, outUnits } = swapOnCurve(machine, {
        ...{ taker: owner, recipient, tokenIn, tokenOut, exactOut, amount, limit },
        ratePpm: 0n,
        inputFee: feeUnits,
      });
      const total = inUnits + feeUnits;
      const told = [owner, order.nonce, recipient, tokenIn, tokenOut, total, outUnits, feeUnits, true];
      logs.push(event(SETTLER, settler, 'OrderFilled', told));
      return SETTLER.encodeFunctionResult(name, [total, outUnits]) as Hex;
    },
    permit2Answer(state, data) {
      const call = parsed(PERMIT2, data);
      if (call?.name !== 'nonceBitmap') return undefined;
      const [owner, word] = [lower(call.args[0]), call.args[1] as bigint];
      let bits = 0n;
      for (const key of state.usedOrders) {
        const [who, nonce = '0'] = key.split(':');
        if (who === owner && BigInt(nonce) / WORD_BITS === word) bits |= 1n << (BigInt(nonce) % WORD_BITS);
      }
      return PERMIT2.encodeFunctionResult('nonceBitmap', [bits]) as Hex;
    },
  };
}
