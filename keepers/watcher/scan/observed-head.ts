import { toSafeInt } from '../../../core/amounts.js';
import type { Hex } from '../../../core/types.js';
import type { RpcPool } from '../../chain/pool.js';
import { RpcContradictionError, RpcUnavailableError, type Rpc } from '../../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { readHead, type Header } from './headers.js';
import { checkHeaders, type ScanContext } from './proof.js';

/** The endpoint is behind what was scanned, or stands still while others go on; another one may not be. */
export class OlderHeadError extends RpcUnavailableError {}

/** How far the chain is said to be, and how old it is as far as that is proven. */
export interface Observed {
  number: number;
  /** Of the newest proven block; null when this scan proved none. */
  timestampSec: number | null;
}

/** A head this old is no reason to ask nobody else: several blocks must have come since. */
const OLD_HEAD_MS = 5_000;
/** How long an answer to how far the others are is used. */
const SURVEY_INTERVAL_MS = 1_000;

/** Reads the chain's head from single endpoints, none of which is believed to stand still on its word alone. */
export function createHeads(deps: {
  rpc: Pick<RpcPool, 'endpoints' | 'survey'>;
  nowMs(): number;
  monotonicMs(): number;
}) {
  const { rpc, nowMs, monotonicMs } = deps;
  let surveyed: { height: number; own: Map<Rpc, number>; atMs: number } | null = null;

  /** The height that most of the endpoints have reached; of two, the one further ahead, for its blocks are proven before they are believed. */
  async function survey(): Promise<NonNullable<typeof surveyed>> {
    if (surveyed !== null && monotonicMs() - surveyed.atMs < SURVEY_INTERVAL_MS) return surveyed;
    const votes = await rpc.survey(async (one) => toSafeInt(BigInt((await one.call('eth_blockNumber')) as Hex)));
    const falling = votes.map(({ answer }) => answer).sort((a, b) => b - a);
    const height = falling[falling.length < 3 ? 0 : Math.floor(falling.length / 2)]!;
    surveyed = { height, own: new Map(votes.map(({ endpoint, answer }) => [endpoint, answer])), atMs: monotonicMs() };
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
