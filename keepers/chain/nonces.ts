import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import { provenNonce, type ProvenBlock } from './account-proof.js';
import { surveyOf } from './quorum.js';
import { RpcContradictionError, toQuantity, type Rpc, type Vote } from './rpc.js';

/** Nonces of a signer from the database. */
interface SignedNonces {
  /** Highest nonce that was signed, null before the first. */
  last: number | null;
  /** Highest nonce that the chain was seen to have used, null before the first. */
  lastFinished: number | null;
}

export interface UsedNonces {
  /** The first unused nonce, according to a majority of the endpoints or to a proof of one. Rows below it are finished. */
  agreed: number;
  /** The same according to the endpoint in use, limited to the plausible: at least `agreed`, and not beyond what was signed. */
  claimed: number;
}

/**
 * How many nonces of a signer the chain has used. One endpoint's answer is accepted only if it fits what the signer has stored; else all
 * endpoints are asked.
 */
export interface NonceWatch {
  /**
   * At the newest block. With `isDoubtful` all endpoints are asked even if the one in use repeats the known number, and those behind the
   * majority, or behind the proof for the ledger's newest block, are penalised. Throws RpcContradictionError while the number can't be
   * determined.
   */
  used(signed: SignedNonces, isDoubtful?: boolean): Promise<UsedNonces>;
  /** At the end of a block, according to most of the endpoints that have the block, or to a proof of one; optionally of another account. */
  usedAt(block: number, account?: Address): Promise<number>;
  /** Answers since the start that were rejected. */
  doubts(): number;
}

/** A single endpoint's number beyond everything that was signed is accepted only after it has stayed the same for so long. */
const STANDS_MS = 30_000;
/** How long nonces on whose use endpoints differ are left alone. */
const SPLIT_MS = 10_000;

/** Follows one signer. `monotonicMs` measures intervals. */
export function createNonceWatch(deps: {
  rpc: Rpc;
  signer: Address;
  /** The newest block whose hash is proven; null when there is none. */
  provenBlock(): Promise<ProvenBlock | null>;
  monotonicMs(): number;
  logger: Logger;
}): NonceWatch {
  const { rpc, signer, provenBlock, monotonicMs, logger } = deps;
  let known: number | null = null;
  let doubts = 0;
  /** An unconfirmed number, and since when it is reported. */
  let claim: { nonce: number; sinceMs: number } | null = null;
  let splitSinceMs: number | null = null;

  async function countOf(one: EthReader, block: string, account = signer): Promise<number> {
    return toSafeInt(BigInt((await one.call('eth_getTransactionCount', [account, block])) as Hex));
  }

  /** Throws unless a single endpoint's number beyond everything that was signed has stayed the same for STANDS_MS. */
  function requireStanding(nonce: number, ceiling: number): void {
    if (claim?.nonce !== nonce) claim = { nonce, sinceMs: monotonicMs() };
    if (monotonicMs() - claim.sinceMs >= STANDS_MS) return;
    doubts += 1;
    throw new RpcContradictionError(
      `${rpc.name} says that ${signer} has used ${nonce} nonces, and only ${ceiling} were signed`,
    );
  }

  function doubt(votes: readonly Vote<number>[], ceiling: number): void {
    for (const { endpoint, answer, convict } of votes) {
      if (answer <= ceiling) continue;
      doubts += 1;
      const problem = `it says that ${signer} has used ${answer} nonces, and only ${ceiling} were signed`;
      logger.warn({ signer, rpc: endpoint.name, nonce: answer, ceiling }, 'a nonce beyond what was signed');
      convict(problem);
    }
  }

  /**
   * Penalises endpoints that report an old number, which would make the same nonce be signed for ever. Of two endpoints, a proof decides
   * which one is behind.
   */
  function convictBehind(votes: readonly Vote<number>[], agreed: number, proven: number | null): void {
    const isMost = 2 * votes.filter(({ answer }) => answer >= agreed).length > votes.length;
    const least = Math.max(isMost ? agreed : 0, proven ?? 0);
    for (const { endpoint, answer, convict } of votes) {
      if (answer >= least) continue;
      doubts += 1;
      logger.warn(
        { signer, rpc: endpoint.name, nonce: answer, least },
        'a nonce behind what most endpoints say, or one proves',
      );
      convict(`it says that ${signer} has used ${answer} nonces, and they are ${least}`);
    }
  }

  /** The nonce that an endpoint proves for the newest proven block; null when none does, or when another block is asked for. */
  async function prove(
    votes: readonly Vote<number>[],
    asked: { account: Address; block: number } | null = null,
  ): Promise<number | null> {
    const block = await provenBlock();
    if (block === null || (asked !== null && asked.block !== block.number)) return null;
    // The endpoint with the highest number is asked first: one that is behind may lack the block.
    for (const { endpoint } of [...votes].sort((a, b) => b.answer - a.answer)) {
      try {
        return await provenNonce(endpoint, asked?.account ?? signer, block);
      } catch {
        // Not every endpoint serves proofs or has the block; that is no fault.
      }
    }
    return null;
  }

  /** While endpoints differ, the nonces between their numbers count as used, for at most SPLIT_MS, because one endpoint may lie. */
  function claimedOf(first: number, agreed: number, ceiling: number): number {
    if (first <= agreed || first > ceiling) {
      splitSinceMs = null;
      return agreed;
    }
    splitSinceMs ??= monotonicMs();
    return monotonicMs() - splitSinceMs < SPLIT_MS ? first : agreed;
  }

  return {
    async used({ last, lastFinished }, isDoubtful = false) {
      const before = known ?? (lastFinished === null ? null : lastFinished + 1);
      const first = await onOne(rpc, (one) => countOf(one, 'latest'));
      if (first === before && !isDoubtful) {
        [known, claim, splitSinceMs] = [first, null, null];
        return { agreed: first, claimed: first };
      }
      const votes = await surveyOf(rpc, (one) => countOf(one, 'latest'), first);
      const said = reached(
        votes.map(({ answer }) => answer),
        before,
      );
      const isBehind = isDoubtful || first < (before ?? 0);
      const proven = isBehind && votes.some(({ answer }) => answer !== first) ? await prove(votes) : null;
      const agreed = said === null ? proven : Math.max(said, proven ?? 0);
      if (agreed === null) throw new RpcContradictionError(`nobody says how many nonces ${signer} has used`);
      // Before anything was ever signed there is no ceiling.
      const ceiling = before === null && last === null ? Infinity : Math.max((last ?? -1) + 1, before ?? 0);
      if (agreed > ceiling && votes.length === 1) requireStanding(agreed, ceiling);
      if (agreed <= ceiling) {
        claim = null;
        if (votes.length > 1) doubt(votes, ceiling);
      }
      if (isBehind) convictBehind(votes, isDoubtful ? agreed : 0, proven);
      known = agreed;
      return { agreed, claimed: claimedOf(first, agreed, Math.max(ceiling, agreed)) };
    },
    async usedAt(block, account = signer) {
      const votes = await surveyOf(rpc, (one) => countOf(one, toQuantity(block), account));
      const answers = votes.map(({ answer }) => answer);
      const proven = answers.some((answer) => answer !== answers[0]) ? await prove(votes, { account, block }) : null;
      if (proven !== null) {
        for (const { answer, convict } of votes) {
          if (answer === proven) continue;
          doubts += 1;
          convict(`it says that ${account} used ${answer} nonces up to block ${block}, and they are ${proven}`);
        }
        return proven;
      }
      const agreed = reached(answers, null);
      if (agreed === null)
        throw new RpcContradictionError(`nobody says how many nonces ${account} used up to ${block}`);
      return agreed;
    },
    doubts: () => doubts,
  };
}

/**
 * The number that most of the answers have reached, or, when most of them are below what is known, the highest of those; what is known
 * when neither holds. Null without any.
 */
function reached(answers: readonly number[], known: number | null): number | null {
  const falling = [...answers].sort((a, b) => b - a);
  const middle = Math.floor(falling.length / 2);
  const up = falling[middle];
  const down = falling.at(-1 - middle);
  if (up === undefined || down === undefined) return known;
  if (known === null || up > known) return up;
  return down < known ? down : known;
}
