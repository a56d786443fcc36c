/** Posts of many markets, and what becomes of them when the owner changes what the poster may do. */
import { expect } from 'chai';
import { MaxUint256, parseUnits, type TransactionResponse } from 'ethers';
import { MAX_SEQ_STEP, encodePost } from '../../../core/curve/post.js';
import { createRpc, type Rpc } from '../../../keepers/chain/rpc.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { NO_HIGHS } from '../../../keepers/archive/format.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import {
  executablePublications,
  landedSeq,
  readPostSeen,
  readPublication,
} from '../../../ledger/publications/publication-log.js';
import { insertAll } from '../../../ledger/db/columns.js';
import type { Db } from '../../../ledger/types.js';
import { CurveBook__factory } from '../../../typechain-types/factories/CurveBook__factory.js';
import { Entrypoint__factory } from '../../../typechain-types/factories/Entrypoint__factory.js';
import { readSenders } from '../../../ledger/transactions/senders.js';
import { forEachDatabase } from '../../support/db.js';
import {
  startKeepers,
  startManualChain,
  type KeeperOptions,
  type KeeperStack,
  type ManualChain,
} from '../../support/keeper-stack.js';
import { verifyDeps, verifyRpc } from '../../support/verify.js';

forEachDatabase((name, open) => {
  describe(`a poster and its owner, ${name}`, function () {
    this.timeout(60_000);
    let chain: ManualChain;
    let db: Db;
    let stack: KeeperStack;
    let firstBlock: number;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(4);
    });

    after(() => chain.close());

    beforeEach(async () => {
      await chain.reset();
      firstBlock = await chain.provider.getBlockNumber();
      db = await open();
      quotes = [];
      stack = await start();
      await land();
    });

    afterEach(async () => {
      expect(await readHalt(db.knex)).to.equal(null);
      await stack.stop();
    });

    async function start(options: KeeperOptions = {}, on = chain): Promise<KeeperStack> {
      const started = await startKeepers(db, on, { ...options, poster: { curveTtlSec: 40, ...options.poster } });
      await started.watcher.scan();
      return started;
    }

    /** A poster whose node answers some requests otherwise than the chain. */
    const startBlind = (instead: (method: string, params?: unknown[]) => unknown): Promise<KeeperStack> => {
      const blind = (rpc: Rpc): Rpc => ({
        ...rpc,
        call: async (method, params) => instead(method, params) ?? rpc.call(method, params),
      });
      const connect = (url: string, timeoutMs?: number): Rpc =>
        url === 'http://poster' ? blind(createRpc(chain.rpcUrl, timeoutMs)) : createRpc(url, timeoutMs);
      return start({ posterRpcUrl: 'http://poster', connect });
    };

    async function land(): Promise<void> {
      await chain.mine();
      await stack.watcher.scan();
    }

    let quotes: number[];

    /** A new level in each market, so that a post of each is due. */
    async function requote(levels = 1): Promise<void> {
      const opens = stack.markets.flatMap(({ index }) =>
        Array.from({ length: levels }, (_, i) => ({
          market: index,
          side: 'ask' as const,
          priceTicks: 30_000_000n + BigInt(quotes.length) + BigInt(i) * BigInt(i) * 9n,
          sizeLots: 100n + BigInt((i * 37) % 91),
        })),
      );
      quotes = await stack.order(chain.address('maker1'), opens, quotes);
    }

    const book = (role = 'owner') =>
      CurveBook__factory.connect(chain.manifest.contracts['curveBook'], chain.wallet(role));
    /** Ahead of whatever waits to be mined. */
    const FIRST = { gasPrice: parseUnits('40', 'gwei'), gasLimit: 100_000n };
    const allow = (role: string, allowed: boolean): Promise<TransactionResponse> =>
      book().setPoster(chain.address(role), allowed, FIRST);
    const seqs = async (): Promise<bigint[]> =>
      Promise.all(stack.markets.map(async ({ id }) => (await book().marketState(id)).seq));

    /** Status and gas of each transaction that the poster had mined. */
    async function minedOf(role = 'poster'): Promise<{ status: number; gasUsed: bigint; gasLimit: bigint }[]> {
      const mined = [];
      for (let at = firstBlock + 1; at <= (await chain.provider.getBlockNumber()); at++) {
        for (const tx of (await chain.provider.getBlock(at, true))!.prefetchedTransactions) {
          if (tx.from.toLowerCase() !== chain.address(role)) continue;
          const receipt = (await chain.provider.getTransactionReceipt(tx.hash))!;
          mined.push({ status: receipt.status!, gasUsed: receipt.gasUsed, gasLimit: tx.gasLimit });
        }
      }
      return mined;
    }

    it('posts more markets than one transaction holds by several, which land in one block', async () => {
      await stack.stop();
      const knots = { maxKnots: 31, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 } as const;
      stack = await start({ poster: { maxTxGas: 600_000n, knots } });
      await requote(40);
      const round = await stack.poster.round();
      expect(round?.publications).to.have.length(4);
      expect(round?.txHashes).to.have.length(2);
      await land();
      expect(await seqs()).to.deep.equal([1n, 1n, 1n, 1n]);
      for (const { status, gasUsed, gasLimit } of await minedOf()) {
        expect(status).to.equal(1);
        expect(gasUsed < (gasLimit * 4n) / 5n, `${gasUsed} of ${gasLimit}`).to.equal(true);
        expect(gasLimit <= 600_000n).to.equal(true);
      }
      // What is still under way is replaced, transaction by transaction.
      await requote();
      await stack.poster.round();
      await requote();
      await stack.watcher.scan();
      await land();
      await requote();
      await stack.poster.round();
      await land();
      expect(new Set(await seqs()).size).to.equal(1);
    });

    it('stops when its key is removed, says so, and goes on when it is back', async () => {
      await requote();
      await stack.poster.round();
      await allow('poster', false);
      await land();
      await requote();
      expect(await stack.poster.round()).to.equal(null);
      expect(stack.poster.status()).to.deep.include({ blockedBy: 'not_poster', lastRevert: 'NotPoster' });
      const [sender] = await readSenders(stack.db.knex, Date.now());
      expect([sender?.role, sender?.lastRevert?.reason]).to.deep.equal(['poster', 'NotPoster']);
      for (let i = 0; i < 3; i++) {
        await land();
        await requote();
        expect(await stack.poster.round()).to.equal(null);
      }
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([0]);
      await allow('poster', true);
      await land();
      expect(await stack.poster.round()).to.not.equal(null);
      expect(stack.poster.status().blockedBy).to.equal(null);
      await land();
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([0, 1]);
    });

    it('changes keys without a gap, as the runbook says', async () => {
      await requote();
      await stack.poster.round();
      await land();
      const before = await book().marketState(stack.markets[0]!.id);
      // 1. The owner lets the new key post. 2. The poster is started with it. 3. The owner removes the old one.
      await allow('taker2', true);
      await land();
      await stack.stop();
      const wallet = (role: string) => chain.wallet(role === 'poster' ? 'taker2' : role);
      stack = await start({}, { ...chain, wallet });
      await requote();
      await stack.poster.round();
      await land();
      const after = await book().marketState(stack.markets[0]!.id);
      expect(after.seq).to.equal(before.seq + 1n);
      expect((await chain.provider.getBlock('latest'))!.timestamp).to.be.below(Number(before.deadline));
      await allow('poster', false);
      await requote();
      await stack.poster.round();
      await land();
      expect((await minedOf('taker2')).map(({ status }) => status)).to.deep.equal([1, 1]);
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([1]);
      expect(stack.poster.status()).to.deep.include({ blockedBy: null, lastRevert: null });
    });

    it('posts with a deadline that the owner allows from the block on in which that was changed', async () => {
      await requote();
      await stack.poster.round();
      const [, lowered] = stack.markets;
      await book().setMaxTtl(lowered!.id, 12, FIRST);
      await land();
      expect(
        (await minedOf()).map(({ status }) => status),
        'it was signed before',
      ).to.deep.equal([0]);
      await requote();
      expect((await stack.poster.round())?.publications).to.have.length(4);
      expect(stack.poster.status().lastRevert).to.equal('DeadlineOutOfRange');
      await land();
      expect(await seqs()).to.deep.equal([2n, 2n, 2n, 2n]);
      const headSec = BigInt((await chain.provider.getBlock('latest'))!.timestamp);
      const { deadline } = await book().marketState(lowered!.id);
      expect(deadline <= headSec + 12n).to.equal(true);
      // Also in a process that starts later, and once it is raised again.
      await stack.stop();
      stack = await start();
      await requote();
      await stack.poster.round();
      await land();
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([0, 1, 1]);
      await book().setMaxTtl(lowered!.id, 60, FIRST);
      await land();
      await requote();
      await stack.poster.round();
      await land();
      const raised = await book().marketState(lowered!.id);
      expect(raised.deadline > deadline + 20n).to.equal(true);
    });

    it('goes on above the number that the owner sets, past those that were used, and the books stay right', async () => {
      await stack.stop();
      // What others' records do to the numbers of a market, and what a poster that follows them then has: far more than one step.
      const highs: Record<string, number> = {};
      const archive = {
        highs: () => ({ ...NO_HIGHS, seqs: highs }),
        write: () => Promise.resolve(),
        status: () => ({ files: 0, failures: 0, failing: false, waitingSinceMs: null, dropped: 0 }),
      };
      stack = await start({ poster: { archive: { archive, required: false } } });
      const { id } = stack.markets[0]!;
      const postOne = async (levels = 1): Promise<number> => {
        await requote(levels);
        const round = await stack.poster.round();
        await land();
        const seq = round!.publications.find(({ pair }) => pair === stack.markets[0]!.pair)!.seq;
        expect((await book().marketState(id)).seq, 'it landed').to.equal(BigInt(seq));
        return seq;
      };
      const buy = async (): Promise<void> => {
        const { entrypoint } = chain.manifest.contracts;
        const [{ base, quote }] = [stack.markets[0]!];
        await Entrypoint__factory.connect(entrypoint, chain.wallet('taker1')).swapExactOutput(
          ...([quote.address, base.address, 10n ** 14n, MaxUint256, chain.address('taker1'), MaxUint256] as const),
          { gasLimit: 1_000_000n },
        );
        await land();
      };
      await postOne();
      await buy();
      for (const high of [3, 60_000, 120_000]) {
        highs[0] = high;
        await postOne();
      }
      await buy();
      delete highs[0];
      // A post under way lands in front of it or behind it, and is explained in both cases.
      await requote();
      await stack.poster.round();
      await book().setSeq(id, 3, { gasPrice: parseUnits('40', 'gwei'), gasLimit: 100_000n });
      await land();
      const under = (await book().marketState(id)).seq;
      expect(under).to.equal(3n);
      expect(await readPostSeen(db.knex, 0)).to.equal(null);
      expect(await landedSeq(db.knex, 0)).to.equal(3);
      expect(await postOne(), 'four is taken').to.equal(5);
      await buy();
      expect(await postOne()).to.equal(6);
      await buy();
      expect((await executablePublications(db.knex, { market: 0, atSec: 0 })).map(({ seq }) => seq)).to.include(6);

      expect((await readHalt(db.knex)) ?? 'none').to.equal('none');
      // A key in other hands posts under a number that a curve of ours had before.
      const { askWords, bidWords } = (await readPublication(db.knex, 0, await postOne(5)))!;
      await allow('taker2', true);
      await book().setSeq(id, 3, FIRST);
      await land();
      const { id: market } = stack.markets[0]!;
      const head = (await chain.provider.getBlock('latest'))!;
      const words = { askWords, bidWords };
      const record = {
        ...{ kind: 'full' as const, marketId: market, seq: 4, deadlineSec: head.timestamp + 30, exactAskKnots: 0 },
        ...{ exactBidKnots: 0, snapAskUnits: 0n, snapBidUnits: 0n, ...words },
      };
      const data = encodePost({ number: head.number, hash: head.hash as `0x${string}` }, [record]);
      await book('taker2').post(data, { gasLimit: 500_000n });
      await land();
      expect((await book().marketState(id)).seq).to.equal(4n);
      const seen = await db.knex('posts_seen').where({ market: 0, seq: 4 }).orderBy('era').select('era');
      expect(seen.map(({ era }: { era: number }) => era)).to.deep.equal([0, 2]);
      expect((await readHalt(db.knex))?.code).to.equal('unexplained_curve');
      // Nobody here prepared what is live: it is in suspense, and compared with what was seen of it.
      const verify = () => verifyLedger({ ...verifyDeps(db, chain), rpc: verifyRpc(chain) });
      await verify();
      const inSuspense = (await db.knex('suspense').where({ market: 0, seq: 4 })) as Record<string, unknown>[];
      expect(inSuspense).to.have.length(1);
      await db.knex('suspense').where({ market: 0, seq: 4 }).delete();
      expect(await verify().catch((error: Error) => error.message)).to.match(/^curve 4 of WETH-USDC/);
      await db.knex.transaction((tx) => insertAll(tx, 'suspense', inSuspense));
      await appendOperatorRow(db, { timeMs: 1, kind: 'resume', maker: null, note: '' });
      await land();
      expect(await postOne(2), 'up to seven they are taken').to.equal(8);
      await buy();
      await verify();
    });

    it('says so when all numbers that the contract takes were used, and takes the one that is free', async () => {
      await requote();
      await stack.poster.round();
      await land();
      const { id, index: market, pair } = stack.markets[0]!;
      const first = await landedSeq(db.knex, market);
      await book().setSeq(id, 0, FIRST);
      await land();
      const row = (await db.knex('posts_seen').where({ market, seq: first }).first()) as Record<string, unknown>;
      const used = Array.from({ length: MAX_SEQ_STEP }, (_, i) => ({ ...row, seq: i + 1 }));
      const others = used.filter(({ seq }) => seq !== first);
      await db.knex.transaction((tx) => insertAll(tx, 'posts_seen', others));
      await requote();
      const posted = async () => {
        const round = await stack.poster.round();
        await land();
        return round?.publications.find((one) => one.pair === pair)?.seq;
      };
      expect(await posted()).to.equal(undefined);
      expect(stack.poster.status().skipped['no_free_number']).to.be.greaterThan(0);
      await db.knex('posts_seen').where({ market, seq: MAX_SEQ_STEP }).delete();
      expect(await posted()).to.equal(MAX_SEQ_STEP);
      expect((await book().marketState(id)).seq, 'the contract takes it').to.equal(BigInt(MAX_SEQ_STEP));
    });

    it('leaves a record that would revert out of the next batch, whatever its reason', async () => {
      await stack.stop();
      stack = await startBlind((method) => (method === 'eth_getLogs' ? [] : undefined));
      await requote();
      await stack.poster.round();
      await book().setMaxTtl(stack.markets[1]!.id, 5, FIRST);
      await land();
      for (let i = 0; i < 3; i++) {
        await requote();
        await stack.poster.round();
        await land();
      }
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([0, 1, 1, 1]);
      expect(stack.poster.status().skipped['would_revert']).to.equal(3);
      const landed = (await seqs()).map((seq) => seq > 0n);
      expect(landed).to.deep.equal([true, false, true, true]);
    });

    it('stops after the second revert that nothing foretold', async () => {
      await stack.stop();
      const isTrial = ([call]: unknown[] = []): boolean => (call as { from?: string }).from !== undefined;
      stack = await startBlind((method, params) => {
        if (method === 'eth_getLogs') return [];
        return method === 'eth_call' && isTrial(params) ? '0x' : undefined;
      });
      await allow('poster', false);
      for (let i = 0; i < 5; i++) {
        await requote();
        await stack.poster.round();
        await land();
      }
      expect((await minedOf()).map(({ status }) => status)).to.deep.equal([0, 0]);
      expect(stack.poster.status()).to.deep.include({ blockedBy: 'posts_revert', lastRevert: 'unknown' });
    });
  });
});
