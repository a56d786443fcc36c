import { toSafeInt, wordOf } from '../../../core/amounts.js';
import type { Address, Hex } from '../../../core/types.js';
import { parseRpcLog } from '../../chain/logs.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../../chain/rpc.js';

/** Transfer(address,address,uint256) */
const TRANSFER_TOPIC: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** Blocks asked for at a time at most; fewer while an endpoint refuses as many. */
const SPAN = 2_000;
/** Spans that an endpoint is asked for in one go, two requests each. */
const SPANS = 4;
const WORD = /^0x[0-9a-f]{64}$/i;

interface TransferRange {
  token: Address;
  from: number;
  to: number;
}

/** How far an endpoint has told the transfers of a token, from a block on. */
interface Told {
  from: number;
  /** The first block that is not part of `net`. */
  next: number;
  net: bigint;
  span: number;
}

interface TransferSums {
  /**
   * What transfers of a token put into the vault in blocks `from..to`, less what they took out, as the token's own events say; the least that any
   * endpoint says, so that one that knows of a transfer suffices. Null while none has told all of them. Each call takes at most `SPANS` spans from each
   * endpoint, and goes on where the one before stopped, however often `to` moves. Never throws.
   */
  net(range: TransferRange): Promise<bigint | null>;
  /** Forgets what was told: blocks may have been replaced. */
  clear(): void;
}

/** Sums of transfers that are read piece by piece. */
export function createTransferSums(
  { endpoints, vault }: { endpoints(): readonly Rpc[]; vault: Address },
  spans = SPANS,
): TransferSums {
  const told = new Map<string, Told>();

  async function ask(rpc: Rpc, range: TransferRange): Promise<bigint | null> {
    const { token, from, to } = range;
    const key = `${token}:${rpc.name}`;
    const known = told.get(key);
    const state = known?.from === from && known.next <= to + 1 ? known : { from, next: from, net: 0n, span: SPAN };
    told.set(key, state);
    for (let asked = 0; asked < spans; asked += 1) {
      if (state.next > to) return state.net;
      const last = Math.min(state.next + state.span - 1, to);
      try {
        const net = await netTransfers(rpc, { token, vault, from: state.next, to: last });
        // The newest span is asked for anew: an endpoint may be without its last blocks yet.
        if (last === to) return state.net + net;
        state.net += net;
        state.next = last + 1;
        state.span = Math.min(state.span * 2, SPAN);
      } catch (error) {
        state.span = Math.max(1, Math.floor((last - state.next + 1) / 2));
        // An endpoint that does not answer at all is not asked again in this call.
        if (!(error instanceof RefusedError)) return null;
      }
    }
    return null;
  }

  return {
    async net(range) {
      const answers = await Promise.all(endpoints().map((rpc) => ask(rpc, range)));
      const nets = answers.filter((net): net is bigint => net !== null);
      return nets.length === 0 ? null : nets.reduce((a, b) => (a < b ? a : b));
    },
    clear: () => told.clear(),
  };
}

/** The endpoint refused the range: too many logs, or pruned blocks. */
class RefusedError extends RpcUnavailableError {}

async function netTransfers(rpc: Rpc, { token, vault, from, to }: TransferRange & { vault: Address }): Promise<bigint> {
  const party: Hex = `0x${wordOf(vault)}`;
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to), address: token };
  const [into, outOf] = await Promise.all([
    readLogs(rpc, { ...range, topics: [TRANSFER_TOPIC, null, party] }),
    readLogs(rpc, { ...range, topics: [TRANSFER_TOPIC, party] }),
  ]);
  return sumOf(into, { token, party, index: 2, from, to }) - sumOf(outOf, { token, party, index: 1, from, to });
}

async function readLogs(rpc: Rpc, filter: object): Promise<unknown[]> {
  try {
    const answer = await rpc.call('eth_getLogs', [filter]);
    if (Array.isArray(answer)) return answer as unknown[];
    throw new RpcUnavailableError(`${rpc.name} answers no logs`);
  } catch (error) {
    if (error instanceof RpcResponseError) throw new RefusedError(`${rpc.name} refused logs: ${error.message}`, error);
    throw error;
  }
}

/** Only requested logs count; a log of another shape has no amount. */
function sumOf(
  logs: readonly unknown[],
  { token, party, index, from, to }: TransferRange & { party: Hex; index: number },
): bigint {
  let sum = 0n;
  for (const raw of logs) {
    const log = parseRpcLog(raw);
    const number = toSafeInt(BigInt(log.blockNumber));
    const isAsked = log.address === token && log.topics[0] === TRANSFER_TOPIC && log.topics[index] === party;
    if (isAsked && number >= from && number <= to && WORD.test(log.data)) sum += BigInt(log.data);
  }
  return sum;
}
