import { formatUnits } from '../../../core/amounts.js';
import { bytesToHex, hexToBytes, keccak256Bytes } from '../../../core/hash.js';
import { leafHash } from '../../../core/merkle.js';
import type { Address, Hex } from '../../../core/types.js';
import { tokenOf } from '../deployment.js';
import type { Deployment } from '../deployment.js';
import { CurvebookError } from '../errors.js';
import type { Answer } from '../read/client.js';

export interface ProvenBalance {
  token: string;
  /** Exact decimal in tokens. */
  balance: string;
  units: bigint;
}

/** Siblings of a tree of 2^64 leaves: no proof is longer. */
const MAX_PROOF = 64;

/**
 * The balances of a proof, each hashed up to the root. It shows that a balance is in the checkpoint with this root (ask others whether they see the
 * same root), not that the vault holds as much. Throws CurvebookError `BAD_PROOF`.
 */
export function verifyProof(
  deployment: Deployment,
  maker: Address,
  { root, balances, maker: named }: Answer<'/v0/checkpoints/latest/proof'>,
): ProvenBalance[] {
  const fail = (why: string): CurvebookError => new CurvebookError('BAD_PROOF', why);
  if (named !== maker) throw fail(`the proof is of ${named}, not ${maker}`);
  return balances.map(({ token: symbol, balance, leaf, proof }) => {
    const [leafMaker, leafToken, amount] = leaf;
    const token = tokenOf(deployment, leafToken);
    if (leafMaker !== maker || token.symbol !== symbol || !/^\d{1,78}$/.test(amount)) {
      throw fail(`a leaf of ${symbol} says something else`);
    }
    const units = BigInt(amount);
    const isDebt = balance.startsWith('-') && units === 0n;
    if (!isDebt && formatUnits(units, token.decimals) !== balance)
      throw fail(`${symbol}: the leaf says ${amount} units`);
    if (proof.length > MAX_PROOF || rootOf(leafHash(maker, token.address, units), proof as Hex[]) !== root) {
      throw fail(`${symbol}: the leaf is not under the root`);
    }
    return { token: symbol, balance, units };
  });
}

/** The root above a leaf: at each step the lower of two hashes comes first. */
export function rootOf(leaf: Uint8Array, proof: readonly Hex[]): Hex {
  let node = bytesToHex(leaf);
  for (const sibling of proof) {
    const [low, high] = node < sibling ? [node, sibling] : [sibling, node];
    node = bytesToHex(keccak256Bytes(hexToBytes(`${low}${high.slice(2)}`)));
  }
  return node;
}
