/** Settings of the curve book's owner that decide whether a post lands: events show when to read them, and the contract has the values. */
import { toSafeInt } from '../../core/amounts.js';
import { keccakText } from '../../core/hash.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { chunks } from '../../ledger/db/columns.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { parseRpcLog } from '../chain/logs.js';
import { mayPost } from '../chain/quorum.js';
import { toQuantity, type Rpc } from '../chain/rpc.js';
import { onOne } from '../../liquidity/eth.js';
import { MAX_REORG_BLOCKS } from '../watcher/reconcile.js';

export interface OwnerState {
  /** Whether the signer may post. */
  isPoster: boolean;
  /** Longest time from a post to its deadline, by index of the market. */
  maxTtlSec: ReadonlyMap<number, number>;
  /** Sequence number of the newest record on the chain when it was last looked at, by index of the market. */
  seqs: ReadonlyMap<number, number>;
}

interface OwnerWatch {
  /**
   * State as of the newest block. Reads the events since the last call, and the values only when there are new events. With `seqs` also
   * reads the sequence numbers, which posters change, too.
   */
  read(headBlock: number, markets: readonly Market[], options?: { seqs?: boolean }): Promise<OwnerState>;
}

const BOOK = CurveBook__factory.createInterface();
const TOPICS: readonly Hex[] = [
  keccakText('PosterSet(address,bool)'),
  keccakText('MaxTtlSet(bytes32,uint256)'),
  keccakText('SeqSet(bytes32,uint32)'),
];
/** Calls in one round trip. */
const CALLS_PER_BATCH = 100;

/** Throws for what is no answer of the contract. */
function stateIn(answer: Hex): { maxTtlSec: bigint; seq: bigint } {
  const [state] = BOOK.decodeFunctionResult('marketState', answer) as unknown as [{ maxTtlSec: bigint; seq: bigint }];
  return state;
}

/** Follows the owner of one curve book for one signer. */
export function createOwnerWatch(deps: { rpc: Rpc; curveBook: Address; signer: Address }): OwnerWatch {
  const { rpc, curveBook, signer } = deps;
  let known: { state: OwnerState; events: string; headBlock: number; marketCount: number } | null = null;

  /** Key of the events in the last blocks; it changes when an event is added, or removed with its block. */
  async function eventsIn(fromBlock: number, toBlock: number): Promise<string> {
    const range = { fromBlock: toQuantity(fromBlock), toBlock: toQuantity(toBlock) };
    const filter = { address: [curveBook], topics: [TOPICS], ...range };
    const logs = await onOne(rpc, async (one) =>
      ((await one.call('eth_getLogs', [filter])) as unknown[]).map(parseRpcLog),
    );
    return logs
      .filter(({ topics }) => TOPICS.includes(topics[0]!))
      .map(({ blockHash, logIndex }) => `${blockHash}:${logIndex}`)
      .join();
  }

  async function load(markets: readonly Market[]): Promise<OwnerState> {
    const call = (data: string) => ({ method: 'eth_call', params: [{ to: curveBook, data }, 'latest'] });
    const isPoster = await mayPost(rpc, curveBook, signer);
    const maxTtlSec = new Map<number, number>();
    const seqs = new Map<number, number>();
    for (const part of chunks(markets, CALLS_PER_BATCH)) {
      const states = await onOne(rpc, async (one) => {
        const answers = await one.batch(part.map(({ id }) => call(BOOK.encodeFunctionData('marketState', [id]))));
        return answers.map((answer) => stateIn(answer as Hex));
      });
      for (const [i, state] of states.entries()) {
        maxTtlSec.set(part[i]!.index, toSafeInt(state.maxTtlSec));
        seqs.set(part[i]!.index, toSafeInt(state.seq));
      }
    }
    return { isPoster, maxTtlSec, seqs };
  }

  return {
    async read(headBlock, markets, { seqs = false } = {}) {
      // Dropped blocks lose their events, so the events of the last blocks are read each time.
      const fromBlock = Math.max(0, Math.min(known?.headBlock ?? headBlock, headBlock) - MAX_REORG_BLOCKS);
      const events = await eventsIn(fromBlock, headBlock);
      const marketCount = markets.length;
      // A no is read again each time: it may have come from a lagging node, and posting stops until it is a yes.
      const isKnown =
        known !== null && known.state.isPoster && known.events === events && known.marketCount === marketCount;
      const before = known?.state;
      const loaded = isKnown && !seqs ? null : await load(markets);
      const state = isKnown ? { ...before!, seqs: (loaded ?? before!).seqs } : loaded!;
      known = { state, events, headBlock, marketCount };
      return state;
    },
  };
}
