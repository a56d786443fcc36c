import { expect } from 'chai';
import { pino } from 'pino';
import { depthUnits } from '../../../core/curve/walk.js';
import { decodeSide } from '../../../core/curve/words.js';
import type { Address, Market } from '../../../core/types.js';
import { createPosterMemory, startWarming } from '../../../keepers/poster/memory.js';
import { readTx } from '../../../ledger/db/db.js';
import { allOrFirstError } from '../../../ledger/db/dialects.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { lastOrderSeq } from '../../../ledger/orders/order-log.js';
import { createSnapshotStore } from '../../../ledger/orders/snapshots.js';
import { forOneDatabase } from '../../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../../support/keeper-stack.js';
import { until } from '../../support/stack.js';
import { chainCurve, expectRecordsHold, publicationsOf } from '../../support/publications.js';

forOneDatabase((name, open) =>
  describe(`what a poster cuts and how it sends it, ${name}`, function () {
    this.timeout(60_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    let maker1: Address;
    let maker2: Address;
    /** Time of the newest block, and of the poster: a second later with each block, however long that takes. */
    let nowSec: number;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(2);
      maker1 = chain.address('maker1');
      maker2 = chain.address('maker2');
    });

    after(() => chain.close());

    beforeEach(async () => {
      await chain.reset();
      nowSec = (await chain.provider.getBlock('latest'))!.timestamp;
      stack = await startKeepers(await open(), chain, { nowMs });
      await land();
    });

    afterEach(async () => {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      await expectRecordsHold(stack, chain);
      await stack.stop();
    });

    const nowMs = (): number => nowSec * 1_000;
    const headSec = async (): Promise<number> => (await chain.provider.getBlock('latest'))!.timestamp;
    const live = (market = 0) => chainCurve(chain, stack.markets[market]!);
    const asks = async (): Promise<number> => (await publicationsOf(stack)).at(-1)!.askWords.length;

    async function land(seconds = 1): Promise<void> {
      nowSec += seconds;
      await chain.provider.send('evm_setNextBlockTimestamp', [nowSec]);
      await chain.mine();
      await stack.watcher.scan();
    }

    async function round(): Promise<string[]> {
      const done = await stack.poster.round();
      await land();
      return (done?.publications ?? []).map(({ pair, seq, kind }) => `${pair} ${seq} ${kind}`);
    }

    const ask = (priceTicks: bigint, market = 0) => ({ side: 'ask' as const, priceTicks, sizeLots: 1_000n, market });
    const bid = (priceTicks: bigint, market = 0) => ({ side: 'bid' as const, priceTicks, sizeLots: 1_000n, market });

    it('goes on from what it followed on standby: no row and no book is read again, and nothing that came since is missed', async () => {
      await stack.order(maker1, [ask(300_000n), bid(299_000n)]);
      expect(await round()).to.have.length(1);
      await stack.order(maker2, [ask(300_100n)]);
      expect(await round()).to.have.length(1);
      const { db } = stack;
      const markets: Market[] = [];
      const memory = createPosterMemory(markets);
      const stop = new AbortController();
      const logger = pino({ level: 'silent' });
      const warming = startWarming({ db, markets, memory, pollIntervalMs: 10, nowMs, logger }, stop.signal);
      const end = await lastOrderSeq(db.knex);
      await until('the standby to follow', () => Promise.resolve(memory.follower.position().orderSeq === end));
      await stack.order(maker1, [ask(300_050n)]);
      await land();
      await until('the next generation', () => Promise.resolve(memory.follower.position().orderSeq === end + 1));
      stop.abort();
      await warming.done;
      await stack.stop();
      stack = await startKeepers(db, chain, { nowMs, poster: { memory } });
      await stack.order(maker2, [bid(298_000n)]);
      await land();
      const readAfter: number[] = [];
      const note = ({ sql, bindings }: { sql: string; bindings: number[] }): void => {
        if (/from .?order_log.? where/.test(sql)) readAfter.push(bindings[0]!);
      };
      // On SQLite rounds read over a connection of their own.
      const connections = new Set([db.knex, db.reads]);
      for (const one of connections) one.on('query', note);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 3 full`]);
      for (const one of connections) one.off('query', note);
      expect(readAfter).to.not.have.length(0);
      expect(Math.min(...readAfter)).to.equal(end + 1);
      // The same book that a poster without a past makes of the logs is checked after each test.
      const book = (await publicationsOf(stack)).at(-1)!;
      expect(book.cut.orderSeq).to.equal(end + 2);
    });

    it('rebuilds the books of several cuts and markets that are asked for at once', async () => {
      for (const step of [0n, 100n, 200n]) {
        await stack.order(maker1, [ask(300_000n + step), bid(299_000n - step)]);
        await round();
        await stack.order(maker2, [ask(300_000n + step, 1), bid(299_000n - step, 1)]);
        await round();
      }
      const publications = [...(await publicationsOf(stack, 1)), ...(await publicationsOf(stack, 0))];
      expect(publications.length).to.be.greaterThan(5);
      // A book whose hash is not the prepared one is an error.
      const store = createSnapshotStore(stack.markets);
      const books = await readTx(stack.db, (q) => allOrFirstError(publications.map((one) => store.get(q, one))));
      expect(books.map(({ market }) => market)).to.deep.equal(publications.map(({ market }) => market));
      expect(books.at(-1)!.asks).to.have.length(3);
    });

    it('posts all markets in one transaction, and only those that changed', async () => {
      await stack.order(maker1, [ask(300_000n), ask(300_000n, 1), bid(299_000n)]);
      expect(await round()).to.have.length(2);
      const [first] = await publicationsOf(stack, 0);
      const [second] = await publicationsOf(stack, 1);
      expect(first!.txKey).to.equal(second!.txKey);
      expect(await round()).to.deep.equal([]);
      await stack.order(maker1, [ask(300_100n, 1)]);
      expect(await round()).to.deep.equal([`${stack.markets[1]!.pair} 2 full`]);
    });

    it('leaves out what crosses, the smaller of two orders each time, and the logs alone give the same book again', async () => {
      const [large] = await stack.order(maker1, [ask(300_000n), bid(299_000n)]);
      // Below the others' asks when it was placed, and nearly all of it filled since: replaying judges no row again.
      const small = { ...bid(303_000n), sizeLots: 1n };
      const [left] = await stack.order(maker2, [small, { ...small, priceTicks: 302_000n }]);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 1 full`]);
      expect(stack.poster.status().crossing).to.deep.include({ pair: stack.markets[0]!.pair, orders: 2 });
      const published = async (): Promise<number[][]> => {
        const publication = (await publicationsOf(stack)).at(-1)!;
        const { asks, bids } = await createSnapshotStore(stack.markets, { rebuildAlways: true }).get(
          stack.db.knex,
          publication,
        );
        return [asks, bids].map((side) => side.map(({ oid }) => oid));
      };
      expect(await published()).to.deep.equal([[large], [large! + 1]]);
      // Without the order that displaced them they are offered again.
      await stack.order(maker1, [], [large!]);
      expect(await round()).to.have.length(1);
      expect(await published()).to.deep.equal([[], [left, left! + 1, large! + 1]]);
      expect(stack.poster.status().crossing).to.deep.include({ pair: stack.markets[0]!.pair, orders: 0 });
    });

    it('caps the deadline by the armed times of the makers in the cut', async () => {
      const armedMs = nowMs() + 20_500;
      await stack.arm(maker1, armedMs);
      await stack.order(maker1, [ask(300_000n)]);
      await stack.order(maker2, [ask(300_000n, 1)]);
      await round();
      expect((await live(0)).deadlineSec).to.equal(Math.floor(armedMs / 1_000));
      expect((await live(1)).deadlineSec).to.be.greaterThan(Math.floor(armedMs / 1_000));
    });

    it('leaves out a maker whose cancel is near, and keeps quoting the others', async () => {
      await stack.order(maker1, [ask(300_000n)]);
      await stack.order(maker2, [ask(300_500n)]);
      await stack.arm(maker1, nowMs() + 3_000);
      await round();
      const [publication] = await publicationsOf(stack);
      expect(publication!.excluded).to.deep.equal([maker1]);
      const { deadlineSec, askWords } = await live();
      expect(deadlineSec - (await headSec())).to.be.greaterThan(30);
      expect(askWords).to.have.length(1);
    });

    it('drops the maker when the cancel is due though no gateway has written it', async () => {
      await stack.arm(maker1, nowMs() + 8_000);
      await stack.order(maker1, [ask(300_000n)]);
      await stack.order(maker2, [ask(300_500n)]);
      await round();
      const capped = await live();
      expect(capped.deadlineSec - (await headSec())).to.be.within(4, 8);
      // Nobody triggers it. Curves after it are neither born expired nor do they offer the maker's orders.
      for (let blocks = 0; blocks < 4; blocks++) {
        await land(10);
        await round();
        const { deadlineSec } = await live();
        expect(deadlineSec).to.be.greaterThan(await headSec());
      }
      const last = (await publicationsOf(stack)).at(-1)!;
      expect(last.excluded).to.deep.equal([maker1]);
      expect(last.deadlineSec - capped.deadlineSec).to.be.greaterThan(30);
    });

    it('shortens no curve below 4 s for a maker that re-arms every 5 s', async () => {
      await stack.order(maker1, [ask(300_000n)]);
      await stack.order(maker2, [ask(300_500n)]);
      let quoted = 0;
      for (let second = 0; second < 12; second += 2) {
        if (second % 4 === 0) await stack.arm(maker1, nowMs() + 5_000);
        await land(2);
        const before = await headSec();
        await round();
        const { deadlineSec } = await live();
        const { excluded } = (await publicationsOf(stack)).at(-1)!;
        const lifeSec = deadlineSec - before;
        expect(lifeSec, `excluded ${excluded.length}`).to.be.at.least(excluded.length === 0 ? 3 : 1);
        if (lifeSec > 3) quoted += 1;
      }
      expect(quoted).to.be.at.least(3);
    });

    it('lets a maker of little make a post in three blocks at most, and posts at once what must not wait', async () => {
      await stack.stop();
      // Changes of less than 100 lots at 3,000 may wait for 6 s.
      const small = { quoteUnits: () => 30_000_000n, intervalMs: 6_000 };
      const poster = { small, curveTtlSec: 12, touchBeforeSec: 6 };
      stack = await startKeepers(stack.db, chain, { nowMs, poster });
      await stack.watcher.scan();
      const tiny = (priceTicks: bigint) => ({ ...ask(priceTicks), sizeLots: 90n });
      await stack.order(maker1, [ask(300_000n)]);
      let [resting] = await stack.order(maker2, [tiny(300_500n)]);
      const kinds: string[] = [];
      const next = async (seconds = 1): Promise<string> => {
        const [kind = 'none'] = (await round()).map((one) => one.split(' ')[2]!);
        if (seconds > 1) await land(seconds - 1);
        return kind;
      };
      kinds.push(await next(2));
      for (let block = 1; block < 10; block++) {
        [resting] = await stack.order(maker2, [tiny(300_500n + BigInt(block))], [resting!]);
        kinds.push(await next(2));
      }
      expect(kinds.map((kind) => (kind === 'none' || kind === 'touch' ? kind : 'post'))).to.deep.equal([
        ...['post', 'none', 'none', 'post', 'none', 'none', 'post', 'none', 'none', 'post'],
      ]);
      // With a deadline that is nearer than the interval the curve is touched as it was cut, though its book is another one by now.
      await stack.arm(maker1, nowMs() + 9_500);
      await stack.order(maker1, [ask(301_000n)]);
      expect(await next()).to.equal('full');
      await stack.arm(maker1, nowMs() + 60_000);
      await land(3);
      await stack.order(maker2, [], [resting!]);
      expect(await next()).to.equal('touch');
      const [cut, touched] = (await publicationsOf(stack)).slice(-2);
      expect([touched!.cut, touched!.snapshotHash]).to.deep.equal([cut!.cut, cut!.snapshotHash]);
      expect(touched!.deadlineSec).to.be.greaterThan(cut!.deadlineSec);
      // A large change takes the small one along.
      await stack.order(maker1, [ask(302_000n)]);
      expect(await next()).to.not.equal('touch');
      // A maker whose cancel would come due before the curve dies goes at once, however little it quotes.
      [resting] = await stack.order(maker2, [tiny(300_500n)]);
      await land(6);
      expect(await next()).to.not.equal('none');
      await stack.arm(maker2, nowMs() + 3_900);
      expect(await next()).to.not.equal('none');
      expect((await publicationsOf(stack)).at(-1)!.excluded).to.deep.equal([maker2]);
      // It is back when the interval is over; what it cancels itself waits, what a scheduled cancel closed does not.
      await stack.arm(maker2, nowMs() + 60_000);
      expect(await next(5)).to.equal('none');
      expect(await next()).to.not.equal('none');
      await stack.trigger(maker2, [resting!]);
      expect(await next()).to.not.equal('none');
      expect((await publicationsOf(stack)).at(-1)!.excluded).to.deep.equal([]);
    });

    it('empties the curve once when nobody is left in it', async () => {
      await stack.order(maker1, [ask(300_000n), bid(299_000n)]);
      await round();
      await stack.arm(maker1, nowMs() + 1_000);
      await land(2);
      expect(await round()).to.have.length(1);
      expect((await live()).askWords).to.deep.equal([]);
      await land(50);
      expect(await round()).to.deep.equal([]);
    });

    it('leaves out suspended makers though no gateway has closed their orders, and stops for a halt', async () => {
      await stack.order(maker1, [ask(300_000n)]);
      await stack.order(maker2, [ask(300_500n)]);
      await round();
      const act = { timeMs: nowMs(), note: 'test' };
      await appendOperatorRow(stack.db, { ...act, kind: 'approve', maker: maker1 });
      await appendOperatorRow(stack.db, { ...act, kind: 'suspend', maker: maker1 });
      await land();
      await round();
      expect((await publicationsOf(stack)).at(-1)!.excluded).to.deep.equal([maker1]);
      await appendOperatorRow(stack.db, { ...act, kind: 'halt', maker: null });
      await stack.order(maker2, [ask(300_600n)]);
      expect(await round()).to.deep.equal([]);
      expect(stack.poster.status().blockedBy).to.match(/halt/);
      await land(70);
      expect((await live()).deadlineSec).to.be.at.most(await headSec());
      await appendOperatorRow(stack.db, { ...act, kind: 'resume', maker: null });
      await land();
      expect(await round()).to.have.length(1);
    });

    it('lets the curve of a delisted market expire though no gateway has closed its orders, and goes on when it is listed again', async () => {
      await stack.order(maker1, [ask(300_000n), ask(300_000n, 1)]);
      expect(await round()).to.have.length(2);
      const { deadlineSec } = (await publicationsOf(stack, 1)).at(-1)!;
      await appendOperatorRow(stack.db, { timeMs: 0, kind: 'delist', maker: null, note: '', market: 1 });
      const sent: string[] = [];
      while ((await headSec()) <= deadlineSec) {
        await stack.order(maker1, [ask(300_100n, 1)]);
        await land(2);
        sent.push(...(await round()));
      }
      expect(sent.map((one) => one.split(' ')[0])).to.include(stack.markets[0]!.pair);
      expect((await publicationsOf(stack, 1)).length, 'neither a post nor a touch').to.equal(1);
      await appendOperatorRow(stack.db, { timeMs: 0, kind: 'relist', maker: null, note: '', market: 1 });
      await land();
      expect(await round()).to.include(`${stack.markets[1]!.pair} 2 full`);
    });

    it('says once what keeps it from posting, and once that it posts again', async () => {
      await stack.stop();
      const said: unknown[] = [];
      const write = (line: string): void => void said.push((JSON.parse(line) as { msg: unknown }).msg);
      const logger = pino({ level: 'info' }, { write });
      stack = await startKeepers(stack.db, chain, { nowMs, poster: { logger } });
      await stack.watcher.scan();
      await stack.order(maker1, [ask(300_000n)]);
      const act = { timeMs: nowMs(), note: 'test', maker: null };
      await appendOperatorRow(stack.db, { ...act, kind: 'halt' });
      for (let i = 0; i < 3; i++) expect(await stack.poster.round()).to.equal(null);
      expect(said).to.deep.equal(['nothing is published']);
      await appendOperatorRow(stack.db, { ...act, kind: 'resume' });
      await land();
      expect(await round()).to.have.length(1);
      expect(said).to.deep.equal(['nothing is published', 'publishing again']);
      expect(stack.poster.status().blockedBy).to.equal(null);
    });

    it('prolongs an unchanged curve by a touch, whatever knots are set now', async () => {
      const ladder = Array.from({ length: 40 }, (_, i) => ({ ...ask(300_000n + BigInt(i * i)), sizeLots: 10n }));
      await stack.order(maker1, ladder);
      await round();
      expect(await asks()).to.equal(2);
      const words = (await live()).askWords;
      await stack.stop();
      const knots = { maxKnots: 31, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 } as const;
      stack = await startKeepers(stack.db, chain, { nowMs, poster: { knots } });
      await land(56);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 2 touch`]);
      expect((await live()).askWords).to.deep.equal(words);
      await land(70);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 3 full`]);
      expect(await asks()).to.equal(4);
    });

    it('leaves out depth that the curve can not follow, says so, and records by which limit', async () => {
      const near = Array.from({ length: 5 }, (_, i) => ({ ...ask(300_000n + BigInt(i)), sizeLots: 1_000n }));
      // Each size 1.24 times the one before: 15 segments are far too few.
      const scattered = Array.from({ length: 40 }, (_, i) => ({
        ...ask(302_000n + BigInt(i) * 3_000n),
        sizeLots: (40n * 1_240n ** BigInt(i)) / 1_000n ** BigInt(i),
      }));
      const leftOutLots = () => stack.poster.status().leftOut.filter(({ side }) => side === 'ask');
      await stack.stop();
      const knots = { maxKnots: 15, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 5_000 } as const;
      stack = await startKeepers(stack.db, chain, { nowMs, poster: { knots } });
      await stack.watcher.scan();
      await stack.order(maker1, near);
      await round();
      expect(leftOutLots().map(({ reason, lots }) => [reason, lots])).to.deep.equal([
        ['error', 0n],
        ['reach', 0n],
      ]);
      await stack.order(maker2, scattered);
      await round();
      const pair = stack.markets[0]!.pair;
      const unfollowed = leftOutLots()[0]!.lots;
      expect(leftOutLots()[0]).to.deep.equal({ pair, side: 'ask', reason: 'error', lots: unfollowed });
      const all = scattered.reduce((lots, { sizeLots }) => lots + sizeLots, 5_000n);
      expect(unfollowed > all / 10n && unfollowed < all - 5_000n, `${unfollowed} of ${all} lots`).to.equal(true);
      expect((await publicationsOf(stack)).at(-1)!.maxErrorMilliBps).to.equal(5_000);
      const depth = decodeSide(stack.markets[0]!, 'ask', (await live()).askWords);
      expect(depthUnits(depth) / stack.markets[0]!.lotUnits + unfollowed <= all).to.equal(true);
      // The records hold whatever the limit is set to later.
      await stack.stop();
      stack = await startKeepers(stack.db, chain, { nowMs, poster: { knots: { ...knots, maxErrorMilliBps: 0 } } });
      await stack.watcher.scan();
      await stack.order(maker1, [ask(299_999n)]);
      await round();
      expect(leftOutLots()[0]!.lots).to.equal(0n);
    });

    it('sends only the words that changed when that is cheaper, and the chain then has them all', async () => {
      // Hardly a byte of these words is zero.
      const steps = (i: number): bigint => BigInt(7 * i * i + 83 * i);
      const ladder = Array.from({ length: 31 }, (_, i) => ({ ...ask(300_000n + steps(i)), sizeLots: 2_731n }));
      const knots = { maxKnots: 31, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 } as const;
      await stack.stop();
      stack = await startKeepers(stack.db, chain, { nowMs, poster: { knots } });
      await stack.watcher.scan();
      const bids = ladder.map((one, i) => ({ ...bid(299_000n - steps(i)), sizeLots: one.sizeLots }));
      const oids = await stack.order(maker1, [...ladder, ...bids]);
      await round();
      // The last level grows: one word of four is another one.
      const far = ladder.at(-1)!;
      const [grown] = await stack.order(maker1, [{ ...far, sizeLots: 2_733n }], [oids[30]!]);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 2 partial`]);
      // Other orders of the same sizes and prices: only the header changes.
      await stack.order(maker1, [{ ...far, sizeLots: 2_733n }], [grown!]);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 3 partial`]);
      const [, amended, header] = await publicationsOf(stack);
      expect(header!.wordsHash).to.equal(amended!.wordsHash);
      expect(header!.snapshotHash).to.not.equal(amended!.snapshotHash);
      // Once most words change, a full post is cheaper.
      await stack.order(maker2, [ask(299_900n), bid(299_100n)]);
      expect(await round()).to.deep.equal([`${stack.markets[0]!.pair} 4 full`]);
    });

    it('measures orders from their acknowledgement', async () => {
      await stack.order(maker1, [ask(300_000n), ask(300_100n)]);
      await stack.order(maker2, [ask(300_200n)]);
      await round();
      await stack.order(maker2, [ask(300_300n)]);
      await round();
      const [latency] = stack.poster.status().latency;
      expect(latency!.pair).to.equal(stack.markets[0]!.pair);
      expect([latency!.orderToSignMs.count, latency!.orderToLandedMs.count]).to.deep.equal([3, 2]);
      expect(latency!.orderToSignMs.p50).to.be.a('number');
    });
  }),
);
