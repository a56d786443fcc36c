import { executablePublication, worstPayments, type ExecutablePublication } from '../../core/exposure.js';
import { payToken } from '../../core/market.js';
import type { Address, Market, MarketSnapshot } from '../../core/types.js';
import { accountKey } from '../chain/invariants.js';
import { readFillsAfter } from '../chain/past-fills.js';
import { allOrFirstError } from '../db/dialects.js';
import { executablePublications, landedSeq } from './publication-log.js';
import type { SnapshotStore } from '../orders/snapshots.js';
import type { GenerationRow, Queryable } from '../types.js';

/** A publication that takers may still execute, and the block time until which they may. */
interface Executable extends ExecutablePublication {
  deadlineSec: number;
}

/** What executable curves can still make a maker pay of a token. */
interface Exposure {
  /** The most that it may come to. */
  worstUnits: bigint;
  /** Block time after which none of these curves can be executed. */
  untilSec: number;
}

/** What all executable curves can still make these makers pay, per token. Balances that it is held against are read with it, or after it. */
export async function readExposure(
  q: Queryable,
  { markets, snapshots }: { markets: readonly Market[]; snapshots: SnapshotStore },
  head: Pick<GenerationRow, 'blockTimestampMs'>,
  makers: ReadonlySet<Address>,
): Promise<ReadonlyMap<Address, ReadonlyMap<Address, Exposure>>> {
  const theirs = ({ asks, bids, ...publication }: Executable): Executable => ({
    ...publication,
    asks: asks.filter(({ maker }) => makers.has(maker)),
    bids: bids.filter(({ maker }) => makers.has(maker)),
  });
  const exposed = await allOrFirstError(
    markets.map(async (market) => {
      snapshots.forget(market.index, await landedSeq(q, market.index));
      const older = (await readExecutable(q, snapshots, market, head)).map(theirs);
      return { market, older, candidate: null };
    }),
  );
  const until = deadlinesOf(exposed);
  const result = new Map<Address, Map<Address, Exposure>>();
  for (const [maker, byToken] of worstPayments(exposed)) {
    const exposures = [...byToken].map(([token, worstUnits]): [Address, Exposure] => [
      token,
      { worstUnits, untilSec: until.get(accountKey({ account: maker, token })) ?? 0 },
    ]);
    result.set(maker, new Map(exposures));
  }
  return result;
}

/** The last deadline of a curve with an order of the maker that pays the token, by `accountKey`. */
function deadlinesOf(exposed: readonly { market: Market; older: readonly Executable[] }[]): Map<string, number> {
  const until = new Map<string, number>();
  for (const { market, older } of exposed) {
    for (const { deadlineSec, asks, bids } of older) {
      const note = (token: Address) => (order: { maker: Address }) => {
        const key = accountKey({ account: order.maker, token });
        until.set(key, Math.max(until.get(key) ?? 0, deadlineSec));
      };
      asks.forEach(note(payToken(market, 'ask')));
      bids.forEach(note(payToken(market, 'bid')));
    }
  }
  return until;
}

/**
 * Publications of a market that takers may still execute as of a scanned block, each less what its fills took, lowest seq first. Call it
 * within `readTx` together with the reading of `head`.
 */
export async function readExecutable(
  q: Queryable,
  snapshots: SnapshotStore,
  market: Market,
  head: Pick<GenerationRow, 'blockTimestampMs'>,
): Promise<Executable[]> {
  const executable = await executablePublications(q, { market: market.index, atSec: head.blockTimestampMs / 1_000 });
  const books: { seq: number; deadlineSec: number; snapshot: MarketSnapshot }[] = [];
  for (const publication of executable) {
    const { seq, deadlineSec } = publication;
    books.push({ seq, deadlineSec, snapshot: await snapshots.get(q, publication) });
  }
  const earliest = books.reduce((least, { snapshot }) => Math.min(least, snapshot.fillSeq), Number.MAX_SAFE_INTEGER);
  const fills = books.length === 0 ? [] : await readFillsAfter(q, market.index, earliest);
  return books.map(({ seq, deadlineSec, snapshot }) => {
    const since = fills.filter((fill) => fill.fillSeq > snapshot.fillSeq).flatMap((fill) => fill.orderFills);
    return { ...executablePublication(market, seq, snapshot, since), deadlineSec };
  });
}
