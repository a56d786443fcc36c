import { toSafeInt } from '../../../core/amounts.js';
import type { Hex } from '../../../core/types.js';
import type { RpcPool } from '../../chain/pool.js';
import { RpcContradictionError, RpcUnavailableError, type Rpc } from '../../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { majorityOf } from './majority.js';
import { readHead, type Header } from './headers.js';
import { checkHeaders, type ScanContext } from './proof.js';

/** The endpoint is behind the scanned blocks, or does not advance while others do; another one may be used. */
export class OlderHeadError extends RpcUnavailableError {}

/** The reported head of the chain, and its proven age. */
export interface Observed {
  number: number;
  /** Of the newest proven block; null when this scan proved none. */
  timestampSec: number | null;
}

/** With a head this old other endpoints are asked, since several blocks should have come since. */
const OLD_HEAD_MS = 5_000;
/** How long an answer to how far the others are is used. */
const SURVEY_INTERVAL_MS = 1_000;
/** A head no further than this beyond the ledger is what each new block looks like, and needs no question of its own. */
const FEW_BLOCKS = 2;

/** Reads the chain's head from one endpoint, and asks others before it accepts that the chain has stopped. */
export function createHeads(deps: {
  rpc: Pick<RpcPool, 'endpoints' | 'survey'>;
  nowMs(): number;
  monotonicMs(): number;
}) {
  const { rpc, nowMs, monotonicMs } = deps;
  let surveyed: { height: number; reached: number; own: Map<Rpc, number>; atMs: number } | null = null;

  /**
   * `height` is what most of the endpoints that answer have reached; of two, the one further ahead, for its blocks are proven before they are believed.
   * `reached` is what as many say as it takes to confirm a block, or all that answer.
   */
  async function survey(): Promise<NonNullable<typeof surveyed>> {
    if (surveyed !== null && monotonicMs() - surveyed.atMs < SURVEY_INTERVAL_MS) return surveyed;
    const votes = await rpc.survey(async (one) => toSafeInt(BigInt((await one.call('eth_blockNumber')) as Hex)));
    const falling = votes.map(({ answer }) => answer).sort((a, b) => b - a);
    const height = falling[falling.length < 3 ? 0 : Math.floor(falling.length / 2)]!;
    const reached = falling[Math.min(majorityOf(rpc.endpoints.length), falling.length) - 1]!;
    surveyed = {
      height,
      reached,
      own: new Map(votes.map(({ endpoint, answer }) => [endpoint, answer])),
      atMs: monotonicMs(),
    };
    return surveyed;
  }

  return {
    /** The endpoint's newest block. Throws OlderHeadError when the ledger has a newer one. */
    async read(one: Rpc, last: KnownBlock | null): Promise<Header> {
      const head = await readHead(one);
      if (last !== null && head.number < last.number)
        throw new OlderHeadError(`its head is ${head.number}, and block ${last.number} is scanned already`);
      return head;
    },

    /**
     * How far the chain is, given an endpoint's head: no further than a majority says, or one endpoint could show blocks of its own making for ever, all
     * of which would have to be read, and to which the ledger never comes.
     */
    async believed(head: KnownBlock, last: KnownBlock | null): Promise<number> {
      const scanned = last?.number ?? 0;
      if (head.number <= scanned + FEW_BLOCKS || rpc.endpoints.length < 2) return head.number;
      if (surveyed !== null && surveyed.reached < head.number) surveyed = null;
      const { reached } = await survey();
      return Math.min(head.number, Math.max(reached, scanned));
    },

    /**
     * The timestamp of a head that is the ledger's own last block: proven by the header's hash. Throws RpcContradictionError when it is
     * another one than the hash is of, or when the endpoint itself counts more blocks than it shows; OlderHeadError when the head is old
     * and others are further.
     */
    async confirm(
      one: Rpc,
      head: Header,
      { last, context }: { last: (KnownBlock & { timestampSec?: number }) | null; context: ScanContext },
    ): Promise<number> {
      const known = last?.hash === head.hash ? last.timestampSec : undefined;
      if (known === undefined) await checkHeaders(one, [head], context);
      else if (known !== head.timestampSec)
        throw new RpcContradictionError(
          `${one.name} has another timestamp of block ${head.number} than was proven`,
          one,
        );
      if (nowMs() - head.timestampSec * 1_000 <= OLD_HEAD_MS || rpc.endpoints.length < 2) return head.timestampSec;
      const { height, own } = await survey();
      if (height <= head.number) return head.timestampSec;
      const problem = `its newest block is ${head.number}, others are at ${height}`;
      if ((own.get(one) ?? 0) > head.number) throw new RpcContradictionError(`${one.name}: ${problem}`, one);
      throw new OlderHeadError(problem);
    },
  };
}
