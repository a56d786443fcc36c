/** Reads from the chain which curves landed, with which words, and which were hit by fills. */
import { nameMarkets } from '../../core/token-names.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { decodeLog, parseRpcLog, type RawLog } from '../chain/logs.js';
import { RpcResponseError, toQuantity, type Rpc } from '../chain/rpc.js';
import { readHead } from '../watcher/scan/headers.js';
import { readMarket } from '../watcher/tokens/listing.js';

export interface LandedCurve {
  market: number;
  seq: number;
  /**
   * Of a touch, which carries none, those of the curve that it prolongs: null where that was posted before the blocks that were read. Null,
   * too, where endpoints disagree.
   */
  wordsHash: Hex | null;
  /** The curve that a touch prolongs; null for a post with words, and where endpoints disagree. */
  baseSeq: number | null;
  /** Null where endpoints disagree. */
  deadlineSec: number | null;
  blockNumber: number;
  /** Whether more than half of the configured endpoints name it, and all that do with the same words, base and deadline. */
  isAgreed: boolean;
}

export interface ChainRecord {
  /**
   * The newest block time that more than half of the configured endpoints have reached; when fewer answered, the lowest of their answers.
   */
  timestampSec: number;
  /** Whether more than half of the configured endpoints answered everything, so that an event that none of them names does not exist. */
  isAgreed: boolean;
  markets: Market[];
  /** By `market:seq`. */
  landed: Map<string, LandedCurve>;
  /** Curves that a fill hit, as `market:seq`. */
  hit: Set<string>;
}

export const curveKey = ({ market, seq }: { market: number; seq: number }): string => `${market}:${seq}`;

const SPAN = 2_000;

/**
 * Reads the events of a range of blocks from each endpoint and returns the union, so that an endpoint that omits an event does not make a
 * book look unneeded. A deletion requires `isAgreed`: more than half of the configured endpoints, where a silent endpoint counts against
 * it. At least one endpoint must have answered everything; rejects with the last failure otherwise.
 */
export async function readChainRecord(
  endpoints: readonly Rpc[],
  at: { contracts: { curveBook: Address; entrypoint: Address }; markets: readonly Market[]; fromBlock: number },
): Promise<ChainRecord> {
  const records: EndpointRecord[] = [];
  let failure: unknown = new Error('no endpoint is configured');
  for (const rpc of endpoints) {
    try {
      records.push(await readRecordOf(rpc, at));
    } catch (error) {
      failure = error;
    }
  }
  if (records.length === 0) throw failure;
  return together(records, endpoints.length);
}

/** Answers of one endpoint. */
interface EndpointRecord extends Pick<ChainRecord, 'markets' | 'hit' | 'timestampSec'> {
  landed: Map<string, Omit<LandedCurve, 'isAgreed'>>;
}

function together(records: readonly EndpointRecord[], configured: number): ChainRecord {
  const most = Math.floor(configured / 2) + 1;
  const landed = new Map<string, LandedCurve>();
  for (const key of new Set(records.flatMap((one) => [...one.landed.keys()]))) {
    const named = records.flatMap((one) => one.landed.get(key) ?? []);
    const last = named.at(-1)!;
    const agreed = <K extends keyof typeof last>(field: K): (typeof last)[K] | null =>
      named.every((one) => one[field] === last[field]) ? last[field] : null;
    const said = { wordsHash: agreed('wordsHash'), baseSeq: agreed('baseSeq'), deadlineSec: agreed('deadlineSec') };
    const isSame = said.wordsHash === last.wordsHash && said.baseSeq === last.baseSeq && said.deadlineSec !== null;
    landed.set(key, { ...last, ...said, isAgreed: isSame && named.length >= most });
  }
  const latestFirst = records.map(({ timestampSec }) => timestampSec).sort((a, b) => b - a);
  return {
    timestampSec: latestFirst[Math.min(most, latestFirst.length) - 1]!,
    isAgreed: records.length >= most,
    markets: records.map(({ markets }) => markets).reduce((a, b) => (a.length >= b.length ? a : b)),
    landed,
    hit: new Set(records.flatMap(({ hit }) => [...hit])),
  };
}

async function readRecordOf(
  rpc: Rpc,
  { contracts, markets, fromBlock }: Parameters<typeof readChainRecord>[1],
): Promise<EndpointRecord> {
  const head = await readHead(rpc);
  const known = [...markets];
  const landed: EndpointRecord['landed'] = new Map();
  const hit = new Set<string>();
  const indexOf = (id: Hex): number => {
    const found = known.find((market) => market.id === id);
    if (found === undefined) throw new RangeError(`${rpc.name} names market ${id}, which was never listed`);
    return found.index;
  };
  let span = SPAN;
  for (let from = fromBlock; from <= head.number;) {
    const to = Math.min(head.number, from + span - 1);
    let logs: RawLog[];
    try {
      const filter = { fromBlock: toQuantity(from), toBlock: toQuantity(to), address: Object.values(contracts) };
      logs = ((await rpc.call('eth_getLogs', [filter])) as unknown[]).map(parseRpcLog);
    } catch (error) {
      if (!(error instanceof RpcResponseError) || span === 1) throw error;
      span = Math.max(1, Math.floor(span / 4));
      continue;
    }
    for (const log of logs) {
      const event = decodeLog(log);
      if (event?.type === 'listed') {
        const { market: listed } = await readMarket(rpc, event, {
          listedBlock: log.blockNumber,
          laterBlock: head.number,
        });
        if (!known.some(({ id }) => id === listed.id)) known.push(listed);
      } else if (event?.type === 'posted' || event?.type === 'touched') {
        const curve = { market: indexOf(event.marketId), seq: event.seq };
        const isTouch = event.type === 'touched';
        const wordsHash = isTouch
          ? (landed.get(curveKey({ ...curve, seq: event.baseSeq }))?.wordsHash ?? null)
          : event.wordsHash;
        const { deadlineSec } = event;
        const baseSeq = isTouch ? event.baseSeq : null;
        landed.set(curveKey(curve), { ...curve, wordsHash, baseSeq, deadlineSec, blockNumber: log.blockNumber });
      } else if (event?.type === 'swap') {
        hit.add(curveKey({ market: indexOf(event.marketId), seq: event.curveSeq }));
      }
    }
    from = to + 1;
  }
  return { timestampSec: head.timestampSec, markets: nameMarkets(known), landed, hit };
}
