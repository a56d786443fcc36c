import { AmountError, formatUnits, parseUnits } from '../../../core/amounts.js';
import { bytesToHex, hexToBytes, keccak256Bytes } from '../../../core/hash.js';
import { leafHash } from '../../../core/merkle.js';
import type { Address, Hex } from '../../../core/types.js';
import { tokenOf } from '../deployment.js';
import type { Deployment } from '../deployment.js';
import { CurvebookError } from '../errors.js';
import type { Answer } from '../read/client.js';
import { readAs } from './told.js';

export interface ProvenBalance {
  token: string;
  /** Exact decimal in tokens. A debt is negative, and in the tree a leaf of zero: how high it is is not proven. */
  balance: string;
  units: bigint;
}

/** Siblings of a tree of 2^64 leaves: no proof is longer. */
const MAX_PROOF = 64;

/**
 * The balances of a proof, each hashed up to the root. It shows that a balance is in the checkpoint with this root (ask others whether they see the
 * same root), not that the vault holds as much. Each token is listed once. Throws CurvebookError `BAD_PROOF`, also for what can't be read as a proof.
 */
export const verifyProof = (deployment: Deployment, maker: Address, proof: Proof): ProvenBalance[] =>
  readAs('BAD_PROOF', () => provenOf(deployment, maker, proof));

type Proof = Answer<'/v0/checkpoints/latest/proof'>;

function provenOf(deployment: Deployment, maker: Address, { root, balances, maker: named }: Proof): ProvenBalance[] {
  const fail = (why: string): CurvebookError => new CurvebookError('BAD_PROOF', why);
  if (named !== maker) throw fail(`the proof is of ${named}, not ${maker}`);
  const listed = new Set<Address>();
  return balances.map(({ token: symbol, balance, leaf, proof }) => {
    const [leafMaker, leafToken, amount] = leaf;
    const token = tokenOf(deployment, leafToken);
    if (leafMaker !== maker || token.symbol !== symbol || !/^\d{1,78}$/.test(amount)) {
      throw fail(`a leaf of ${symbol} says something else`);
    }
    if (listed.has(token.address)) throw fail(`${symbol} is listed twice`);
    listed.add(token.address);
    const units = BigInt(amount);
    const isDebt = units === 0n && debtOf(balance, token.decimals) > 0n;
    if (!isDebt && formatUnits(units, token.decimals) !== balance)
      throw fail(`${symbol}: the leaf says ${amount} units`);
    if (
      proof.length > MAX_PROOF ||
      !proof.every(isHash) ||
      rootOf(leafHash(maker, token.address, units), proof as Hex[]) !== root
    ) {
      throw fail(`${symbol}: the leaf is not under the root`);
    }
    return { token: symbol, balance, units };
  });
}

const isHash = (text: string): boolean => /^0x[0-9a-f]{64}$/.test(text);

/** Units of a negative balance; zero for what is none. */
function debtOf(balance: string, decimals: number): bigint {
  try {
    return balance.startsWith('-') ? parseUnits(balance.slice(1), decimals) : 0n;
  } catch (error) {
    if (error instanceof AmountError) return 0n;
    throw error;
  }
}

/** The root above a leaf: at each step the lower of two hashes comes first. Throws CurvebookError `BAD_PROOF` for a sibling that is no hash. */
export const rootOf = (leaf: Uint8Array, proof: readonly Hex[]): Hex =>
  readAs('BAD_PROOF', () => foldedUp(leaf, proof));

function foldedUp(leaf: Uint8Array, proof: readonly Hex[]): Hex {
  let node = bytesToHex(leaf);
  for (const sibling of proof) {
    if (!isHash(sibling)) throw new RangeError('a sibling is no hash');
    const [low, high] = node < sibling ? [node, sibling] : [sibling, node];
    node = bytesToHex(keccak256Bytes(hexToBytes(`${low}${high.slice(2)}`)));
  }
  return node;
}
