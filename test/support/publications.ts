/** Checks all publications of a poster: each can be rebuilt from the logs, was sent as recorded, and is on-chain as recorded. */
import { expect } from 'chai';
import { Transaction } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import type { PostRecord } from '../../core/curve/post.js';
import type { Hex, Market } from '../../core/types.js';
import { postCalldata } from '../../keepers/poster/post-call.js';
import { readPublications } from '../../ledger/publications/publication-log.js';
import { readPosted } from '../../ledger/publications/raises.js';
import { differencesFromChain, rebuildPublication, type ChainCurve } from '../../ledger/publications/rebuild.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import type { Publication } from '../../ledger/types.js';
import { CurveBook__factory } from '../../typechain-types/index.js';
import type { KeeperStack, ManualChain } from './keeper-stack.js';

/** All publications of a market. */
export const publicationsOf = (stack: KeeperStack, market = 0): Promise<Publication[]> =>
  readPublications(stack.db.knex, { market, afterSeq: 0, limit: 10_000 });

/** The live curve of a market. */
export async function chainCurve(chain: ManualChain, market: Market): Promise<ChainCurve> {
  const curveBook = CurveBook__factory.connect(chain.manifest.contracts['curveBook'], chain.provider);
  const state = await curveBook.marketState(market.id);
  const words = await curveBook.curveWords(market.id);
  return {
    seq: toSafeInt(state.seq),
    deadlineSec: toSafeInt(state.deadline),
    snapAskUnits: state.snapAsk,
    snapBidUnits: state.snapBid,
    askWords: [...words.askWords],
    bidWords: [...words.bidWords],
  };
}

/** Rebuilds every publication from the logs and compares it with the bytes that were signed; then the live ones with the chain. */
export async function expectRecordsHold(stack: KeeperStack, chain: ManualChain): Promise<void> {
  const all: Publication[] = [];
  for (const { index } of stack.markets) all.push(...(await publicationsOf(stack, index)));
  const snapshots = createSnapshotStore(stack.markets);
  const byTransaction = new Map<string, { publication: Publication; record: PostRecord }[]>();
  const inOrder = all.sort((a, b) => a.cut.generation - b.cut.generation || a.cut.orderSeq - b.cut.orderSeq);
  for (const publication of inOrder) {
    const { record } = await rebuildPublication(stack.db.knex, { markets: stack.markets, snapshots }, publication);
    const together = byTransaction.get(publication.txKey) ?? [];
    byTransaction.set(publication.txKey, [...together, { publication, record }]);
  }
  const rows = await stack.db.knex('outbox').select<{ tx_key: string; raw: Hex }[]>('tx_key', 'raw');
  for (const { tx_key: txKey, raw } of rows) {
    const records = (byTransaction.get(txKey) ?? []).sort((a, b) => a.publication.market - b.publication.market);
    if (records.length === 0) continue;
    const { blockNumber, blockHash } = records[0]!.publication;
    const data = postCalldata(
      { number: blockNumber, hash: blockHash },
      records.map(({ record }) => record),
    );
    expect(Transaction.from(raw).data, txKey).to.equal(data);
  }
  for (const market of stack.markets) {
    const live = await chainCurve(chain, market);
    const publication = all.find((one) => one.market === market.index && one.seq === live.seq);
    if (live.seq === 0) continue;
    const posted = await readPosted(stack.db.knex, market.index, live.seq);
    const isKnown = publication !== undefined && posted !== null;
    expect(isKnown ? differencesFromChain(publication, posted, live) : ['never seen']).to.deep.equal([]);
  }
}
