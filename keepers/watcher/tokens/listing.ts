import { createMarket } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import type { ListingRead, SaidOfToken } from '../../../ledger/types.js';
import type { ChainEvent } from '../../chain/logs.js';
import { surveyOf, type Endpoints } from '../../chain/quorum.js';
import { toQuantity, type Rpc, type Vote } from '../../chain/rpc.js';
import { NoMajorityError, majorityOf } from '../scan/majority.js';
import { StateMissingError, readSaid, tokenOf } from './tokens.js';

type Listed = Extract<ChainEvent, { type: 'listed' }>;
type SaidOfBoth = [base: SaidOfToken, quote: SaidOfToken];

/** A market with what its tokens said when they were asked. */
interface ReadMarket {
  market: Market;
  read: ListingRead;
}

/**
 * Completes a MarketListed event with what the tokens said of themselves at the block of the listing; `nameMarkets` gives them the names that others
 * see. Where too few endpoints have the state of that block any more, or too few to decide between those that contradict each other, they
 * are asked at `laterBlock`, or at the newest one. It is kept for good and orders are read by it, so a majority of all endpoints must say the
 * same; of two, one that does not answer leaves the other one alone. Throws NoMajorityError, and RpcUnavailableError when nobody answers.
 */
export async function readMarket(
  rpc: Endpoints,
  event: Listed,
  { listedBlock, laterBlock }: { listedBlock: number; laterBlock: number },
): Promise<ReadMarket> {
  const { said, readBlock } = await readAgreed(rpc, event, [listedBlock, laterBlock, 'latest']);
  const [base, quote] = said;
  const market = createMarket({
    index: event.index,
    base: tokenOf(event.base, base),
    quote: tokenOf(event.quote, quote),
    lotUnits: event.lotUnits,
    tickLotUnits: event.tickLotUnits,
    maxTtlSec: event.maxTtlSec,
  });
  return { market, read: { market: event.index, base, quote, readBlock: readBlock ?? laterBlock } };
}

/** What a majority says at the first of these blocks whose state as many have; `readBlock` is null for the newest block. */
async function readAgreed(
  rpc: Endpoints,
  event: Listed,
  [block = 'latest', ...others]: readonly (number | 'latest')[],
): Promise<{ said: SaidOfBoth; readBlock: number | null }> {
  const total = rpc.endpoints?.length ?? 1;
  const needed = majorityOf(total);
  const at = block === 'latest' ? block : toQuantity(block);
  // Once for all time: two of three that take their time must not hold a listing up for ever.
  const asked = await surveyOf(rpc, (one) => readBoth(one, event, at), undefined, true);
  const votes = asked.filter((vote): vote is Vote<SaidOfBoth> => vote.answer !== null);
  const agreed = votes.find((vote) => agreeWith(vote, votes).length >= needed);
  const isLast = others.length === 0;
  const readBlock = block === 'latest' ? null : block;
  if (agreed !== undefined) {
    // At the newest block each endpoint answers of its own head.
    if (!isLast) convictOthers(agreed, votes, event);
    return { said: agreed.answer, readBlock };
  }
  // Those that have no state of this block would decide it with those that agree: at a later one they can.
  const most = Math.max(0, ...votes.map((vote) => agreeWith(vote, votes).length));
  const isOpen = votes.length < needed || most + asked.length - votes.length >= needed;
  if (isOpen && !isLast) return readAgreed(rpc, event, others);
  if (total === 2 && votes.length === 1) return { said: votes[0]!.answer, readBlock };
  throw new NoMajorityError(
    `${votes.length} of ${total} endpoints say what the tokens of market ${event.index} call themselves at ${at}, and no ${needed} the same`,
  );
}

/** Null where the endpoint has no state of the block. */
async function readBoth(rpc: Rpc, { base, quote }: Listed, at: string): Promise<SaidOfBoth | null> {
  try {
    return await Promise.all([readSaid(rpc, base, at), readSaid(rpc, quote, at)]);
  } catch (error) {
    if (error instanceof StateMissingError) return null;
    throw error;
  }
}

const textOf = ({ answer }: Vote<SaidOfBoth>): string =>
  JSON.stringify(answer.map(({ symbol, decimals }) => [symbol, decimals]));

const agreeWith = (one: Vote<SaidOfBoth>, votes: readonly Vote<SaidOfBoth>[]): Vote<SaidOfBoth>[] =>
  votes.filter((vote) => textOf(vote) === textOf(one));

function convictOthers(agreed: Vote<SaidOfBoth>, votes: readonly Vote<SaidOfBoth>[], { index }: Listed): void {
  for (const vote of votes) {
    if (textOf(vote) === textOf(agreed)) continue;
    vote.convict(`${vote.endpoint.name} answers otherwise than most for the tokens of market ${index}`);
  }
}
