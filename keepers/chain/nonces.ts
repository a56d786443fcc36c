import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import { provenNonce, type ProvenBlock } from './account-proof.js';
import { surveyOf } from './quorum.js';
import { RpcContradictionError, toQuantity, type Rpc, type Vote } from './rpc.js';

/** What a signer has stored of itself. */
interface SignedNonces {
  /** Highest nonce that was signed, null before the first. */
  last: number | null;
  /** Highest nonce that the chain was seen to have used, null before the first. */
  lastFinished: number | null;
}

export interface UsedNonces {
  /** The first nonce that the chain has not used, as a majority of the endpoints has it or one of them proves. Rows below it are done with. */
  agreed: number;
  /** The same as the endpoint in use has it, as far as that can be: no less than `agreed`, and not beyond what was signed. */
  claimed: number;
}

/** How many nonces of a signer the chain has used: believed only within what the signer knows of itself, else asked of all endpoints. */
export interface NonceWatch {
  /**
   * At the newest block. With `isDoubtful` all endpoints are asked even if the one in use says what was known before, and those that are
   * behind the most, or behind what is proven of the ledger's newest block, are penalised. Throws RpcContradictionError while it can't be told.
   */
  used(signed: SignedNonces, isDoubtful?: boolean): Promise<UsedNonces>;
  /** Up to the end of a block, as the most of the endpoints that know the block have it, or as one proves; of another account, too. */
  usedAt(block: number, account?: Address): Promise<number>;
  /** Answers since the start that were not believed. */
  doubts(): number;
}

/** A number beyond everything that was signed is believed of a single endpoint only when it stands for so long. */
const STANDS_MS = 30_000;
/** How long a number that another endpoint does not confirm keeps what it concerns from being looked after. */
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
  /** What nobody could confirm, and since when it is said. */
  let claim: { nonce: number; sinceMs: number } | null = null;
  let splitSinceMs: number | null = null;

  async function countOf(one: EthReader, block: string, account = signer): Promise<number> {
    return toSafeInt(BigInt((await one.call('eth_getTransactionCount', [account, block])) as Hex));
  }

  /** Throws unless what only one endpoint says, beyond everything that was signed, has stood for a while. */
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

  /** An endpoint that repeats an old number would have the same nonce signed for ever. Of two, a proof says which one is behind. */
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

  /** What any of the endpoints proves of the newest block that is proven; null when none does, or that is another one than is asked for. */
  async function prove(
    votes: readonly Vote<number>[],
    asked: { account: Address; block: number } | null = null,
  ): Promise<number | null> {
    const block = await provenBlock();
    if (block === null || (asked !== null && asked.block !== block.number)) return null;
    // Who says most is asked first: who is behind may have no newer block.
    for (const { endpoint } of [...votes].sort((a, b) => b.answer - a.answer)) {
      try {
        return await provenNonce(endpoint, asked?.account ?? signer, block);
      } catch {
        // Not every endpoint serves proofs, or has the block; none is at fault for that.
      }
    }
    return null;
  }

  /** While endpoints differ, nothing is known of the nonces between what they say; not for ever, for one of them may lie. */
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
      // Before anything was ever signed nothing is known.
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
