/** What the chain says of curves that an archive knows: which landed, with which words, and which were hit. */
import { nameMarkets } from '../../core/token-names.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { decodeLog, parseRpcLog, type RawLog } from '../chain/logs.js';
import { RpcResponseError, toQuantity, type Rpc } from '../chain/rpc.js';
import { readHead } from '../watcher/scan/headers.js';
import { readMarket } from '../watcher/tokens/tokens.js';

export interface LandedCurve {
  market: number;
  seq: number;
  /** Null of a touch, which carries no words. */
  wordsHash: Hex | null;
  blockNumber: number;
}

export interface ChainRecord {
  head: { number: number; timestampSec: number };
  markets: Market[];
  /** By `market:seq`. */
  landed: Map<string, LandedCurve>;
  /** Curves that a fill hit, as `market:seq`. */
  hit: Set<string>;
}

export const curveKey = ({ market, seq }: { market: number; seq: number }): string => `${market}:${seq}`;

const SPAN = 2_000;

/**
 * Reads the events of a range of blocks from each endpoint and takes all that any of them names together: one that leaves an event out must not
 * make a book look as if nobody needed it. At least one endpoint must have answered everything; rejects with the last failure otherwise.
 */
export async function readChainRecord(
  endpoints: readonly Rpc[],
  at: { contracts: { curveBook: Address; entrypoint: Address }; markets: readonly Market[]; fromBlock: number },
): Promise<ChainRecord> {
  let record: ChainRecord | null = null;
  let failure: unknown = new Error('no endpoint is configured');
  for (const rpc of endpoints) {
    try {
      const one = await readRecordOf(rpc, at);
      record = record === null ? one : together(record, one);
    } catch (error) {
      failure = error;
    }
  }
  if (record === null) throw failure;
  return record;
}

function together(a: ChainRecord, b: ChainRecord): ChainRecord {
  return {
    head: a.head.number > b.head.number ? a.head : b.head,
    markets: a.markets.length >= b.markets.length ? a.markets : b.markets,
    landed: new Map([...a.landed, ...b.landed]),
    hit: new Set([...a.hit, ...b.hit]),
  };
}

async function readRecordOf(
  rpc: Rpc,
  { contracts, markets, fromBlock }: Parameters<typeof readChainRecord>[1],
): Promise<ChainRecord> {
  const head = await readHead(rpc);
  const known = [...markets];
  const landed = new Map<string, LandedCurve>();
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
        const wordsHash = event.type === 'posted' ? event.wordsHash : null;
        landed.set(curveKey(curve), { ...curve, wordsHash, blockNumber: log.blockNumber });
      } else if (event?.type === 'swap') {
        hit.add(curveKey({ market: indexOf(event.marketId), seq: event.curveSeq }));
      }
    }
    from = to + 1;
  }
  return { head, markets: nameMarkets(known), landed, hit };
}
