/** Signed orders that the operator's executor fills from the curve. */
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import type { Measured } from './chain.js';
import { path, post, quoteUnits, DEADLINE_SEC, DIRECTIONS, ONE_BASE, type Direction, type Venue } from './curvebook.js';
import { row, type Row } from './rows.js';
import { signatureOf } from './signing.js';
import type { BenchPair } from './world.js';

/** Permit2 keeps 256 nonces in one word of storage. The first use of a word is measured as a row of its own. */
const NONCE_WORDS = { weth: 0x51a7_c0de_9f3bn << 8n, plain: 0x7b3e_91d4_c25fn << 8n };

/** A nonce in a word that is in use, and one in a fresh word, both with the operator's fee in the input. */
export async function measureGasless(venue: Venue, pair: BenchPair): Promise<Row[]> {
  const { world } = venue;
  const firstNonce = NONCE_WORDS[pair.id];
  const rows: Row[] = [];
  await world.approveAll(world.taker, PERMIT2_ADDRESS);
  await post(venue, [pair], 15);
  // Both tokens once, so that the nonce word and everything else has been written.
  for (const [i, direction] of DIRECTIONS.entries()) await fill(venue, pair, direction, firstNonce + BigInt(i));
  for (const direction of DIRECTIONS) {
    const used = await world.chain.undo(() => fill(venue, pair, direction, firstNonce + 7n));
    const fresh = await world.chain.undo(() => fill(venue, pair, direction, firstNonce + 256n));
    rows.push(
      row(`gasless.${pair.id}.${direction}`, used),
      row(`gasless.${pair.id}.${direction}.freshNonceWord`, fresh),
    );
  }
  return rows;
}

async function fill(venue: Venue, pair: BenchPair, direction: Direction, nonce: bigint): Promise<Measured> {
  const { world, settler } = venue;
  const [tokenIn, tokenOut] = path(pair, direction);
  const half = ONE_BASE / 2n;
  const amountIn = direction === 'sell' ? half : await quoteUnits(venue, pair, direction, half);
  const fee = amountIn / 1001n;
  const order = {
    owner: world.taker,
    tokenIn,
    maxAmountIn: amountIn + fee,
    nonce,
    deadline: DEADLINE_SEC,
    recipient: world.taker,
    tokenOut,
    minAmountOut: 1n,
  };
  const signature = signatureOf(venue, {
    sellToken: tokenIn as Address,
    sellUnits: order.maxAmountIn,
    nonce,
    validToSec: toSafeInt(DEADLINE_SEC),
    receiver: order.recipient as Address,
    buyToken: tokenOut as Address,
    minBuyUnits: order.minAmountOut,
  });
  return world.chain.call(world.operator, settler, 'fillOnCurve', [fee, { ...order, signature }]);
}
