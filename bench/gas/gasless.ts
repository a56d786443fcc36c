/** Signed orders that the operator's executor fills from the curve. */
import { HDNodeWallet, Mnemonic, TypedDataEncoder } from 'ethers';
import { PERMIT2_ADDRESS } from '../../deploy/canonical.js';
import { SANDBOX_CHAIN_ID, SANDBOX_MNEMONIC } from '../../deploy/chain-options.js';
import type { Measured } from './chain.js';
import { path, post, quoteUnits, DEADLINE_SEC, DIRECTIONS, ONE_BASE, type Direction, type Venue } from './curvebook.js';
import { row, type Row } from './rows.js';
import { TAKER, type BenchPair } from './world.js';

const TYPES = {
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: 'OrderWitness' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
  OrderWitness: [
    { name: 'recipient', type: 'address' },
    { name: 'tokenOut', type: 'address' },
    { name: 'minAmountOut', type: 'uint256' },
  ],
};

/** Permit2 keeps 256 nonces in a word. The first use of a word is measured apart. */
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
  const domain = { name: 'Permit2', chainId: SANDBOX_CHAIN_ID, verifyingContract: PERMIT2_ADDRESS };
  const digest = TypedDataEncoder.hash(domain, TYPES, {
    permitted: { token: tokenIn, amount: order.maxAmountIn },
    spender: settler.address,
    nonce,
    deadline: DEADLINE_SEC,
    witness: { recipient: order.recipient, tokenOut, minAmountOut: order.minAmountOut },
  });
  const { serialized: signature } = takerKey().sign(digest);
  return world.chain.call(world.operator, settler, 'fillOnCurve', [fee, { ...order, signature }]);
}

function takerKey() {
  const parent = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(SANDBOX_MNEMONIC), "m/44'/60'/0'/0");
  return parent.deriveChild(TAKER).signingKey;
}
