/** What the ledger log keeps of generations, and what is read of it; what it refuses is in generation-refusals.test.ts. */
import { expect } from 'chai';
import type { Address, MarketSnapshot } from '../../../core/types.js';
import { readTakerFees } from '../../../ledger/chain/claims.js';
import {
  loadLedgerHead,
  readProgress,
  readBalances,
  readGenerationEffects,
  readHalt,
  readMarkets,
  readSnapshot,
  sumBalances,
} from '../../../ledger/chain/ledger-log.js';
import { readFillsAfter } from '../../../ledger/chain/past-fills.js';
import {
  fillSeqs,
  fillWithLegs,
  lastGeneration,
  makerBalances,
  recentFills,
  userOrderFills,
} from '../../../ledger/views/reads.js';
import { VAULT } from '../../../ledger/types.js';
import { forEachDatabase } from '../../support/db.js';
import { OPERATOR, TAKER, blockOf, fillOf, generationOf, withFills } from '../../support/generations.js';
import {
  BUY,
  ETHER,
  MARKETS,
  SELL,
  alice,
  bob,
  codeOf,
  dump,
  openLedger,
  opening,
  trading,
} from '../../support/ledger-log.js';
import { MAKERS, USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

describe('ledger log', () => {
  forEachDatabase((_name, open) => {
    it('is empty at first', async () => {
      const { db } = await openLedger(open);
      expect(await loadLedgerHead(db.knex)).to.equal(null);
      expect(await lastGeneration(db.knex)).to.equal(null);
      expect(await readMarkets(db.knex)).to.deep.equal([]);
      expect(await readHalt(db.knex)).to.equal(null);
      expect(await readGenerationEffects(db.knex, { after: 0, limit: 10 })).to.deep.equal([]);
      expect(await recentFills(db.knex, 0)).to.deep.equal([]);
      expect(await fillWithLegs(db.knex, 0, 1)).to.equal(null);
      expect((await fillSeqs(db.knex)).size).to.equal(0);
    });

    it('books deposits and lists markets', async () => {
      const { db, commit } = await openLedger(open);
      expect(await commit(opening())).to.equal('committed');
      expect(await readMarkets(db.knex)).to.deep.equal(MARKETS);
      expect(await makerBalances(db.knex, bob)).to.deep.equal([
        {
          account: bob,
          token: WETH.address,
          balanceUnits: 50n * ETHER,
          reservedUnits: 0n,
          netCapitalUnits: 50n * ETHER,
        },
      ]);
      expect(await sumBalances(db.knex)).to.deep.equal(
        new Map<Address, bigint>([
          [WETH.address, 150n * ETHER],
          [USDC.address, 300_000_000_000n],
        ]),
      );
      const mirror = await readBalances(db.knex, { account: VAULT });
      expect(mirror.map((row) => row.balanceUnits)).to.deep.equal([-150n * ETHER, -300_000_000_000n]);
      const head = await loadLedgerHead(db.knex);
      expect(head).to.deep.equal({
        generation: 1,
        fromBlock: 101,
        toBlock: 101,
        blockHash: blockOf(101).hash,
        blockTimestampMs: blockOf(101).timestampSec * 1_000,
        scannedMs: blockOf(101).timestampSec * 1_000 + 300,
        observedHead: 101,
        observedHeadTimestampMs: blockOf(101).timestampSec * 1_000,
        lastScanMs: blockOf(101).timestampSec * 1_000 + 300,
      });
    });

    it('pays every maker its own price, floored, and the rest to the operator', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      await commit(trading(2));
      const quote = (priceTicks: bigint, baseUnits: bigint): bigint => (priceTicks * baseUnits) / WETH_USDC.lotUnits;
      const received = BUY.map(({ priceTicks, baseUnits }) => quote(priceTicks, baseUnits));
      const paid = quote(SELL[0]!.priceTicks, SELL[0]!.baseUnits);
      const units = async (account: Address, token: Address): Promise<bigint | undefined> =>
        (await makerBalances(db.knex, account)).find((row) => row.token === token)?.balanceUnits;
      expect(await units(alice, WETH.address)).to.equal(100n * ETHER - 3n * ETHER - 1n + ETHER / 7n);
      expect(await units(alice, USDC.address)).to.equal(300_000_000_000n + received[0]! + received[2]! - paid);
      expect(await units(bob, WETH.address)).to.equal(50n * ETHER - ETHER / 3n);
      expect(await units(bob, USDC.address)).to.equal(received[1]);
      // +7 on the buy, +5 on the sell, and input fees of 2 in each input token.
      expect([await units(OPERATOR, USDC.address), await units(OPERATOR, WETH.address)]).to.deep.equal([14n, 2n]);
      expect([await units(TAKER, USDC.address), await units(TAKER, WETH.address)]).to.deep.equal([3n, 3n]);
      const fees = { taker: TAKER, accruedUnits: 3n, balanceUnits: 3n };
      expect(await readTakerFees(db.knex)).to.have.deep.members([
        { ...fees, token: WETH.address },
        { ...fees, token: USDC.address },
      ]);
      const all = await readBalances(db.knex);
      for (const token of [WETH.address, USDC.address]) {
        const sum = all.filter((row) => row.token === token).reduce((total, row) => total + row.balanceUnits, 0n);
        expect(sum).to.equal(0n);
      }
    });

    it('gives fills back exactly as they were committed', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      const write = trading(2);
      await commit(write);
      expect(await fillWithLegs(db.knex, 0, 1)).to.deep.equal({ ...write.fills[0], generation: 2 });
      expect(await fillWithLegs(db.knex, 0, 2)).to.deep.equal({ ...write.fills[1], generation: 2 });
      expect(await fillWithLegs(db.knex, 0, 3)).to.equal(null);
      expect(await recentFills(db.knex, 0)).to.deep.equal(write.fills.map((one) => one.fill));
      expect(await recentFills(db.knex, 0, 1)).to.deep.equal([write.fills[1]!.fill]);
      expect(await recentFills(db.knex, 1)).to.deep.equal([]);
      const past = await readFillsAfter(db.knex, 0, 1);
      expect(past.map((one) => one.orderFills)).to.deep.equal(
        write.fills.slice(1).map((one) => one.orderFills.map(({ tid: _, cloid: __, ...part }) => part)),
      );
    });

    it('tells followers the effects of every generation, and counts volumes', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      await commit(trading(2));
      await commit(generationOf(3));
      const other = fillOf(4, WETH_DAI, 1, 'ask', [{ oid: 9, maker: bob, priceTicks: 5n, baseUnits: ETHER }]);
      await commit(generationOf(4, withFills(MARKETS, [...trading(4, 3).fills, other])));
      const sold = BUY.reduce((sum, part) => sum + part.baseUnits, 0n);
      const effects = await readGenerationEffects(db.knex, { after: 0, limit: 10 });
      expect(effects.map((one) => [one.generation, one.toBlock, one.orderFills.length])).to.deep.equal([
        [1, 101, 0],
        [2, 102, 4],
        [3, 103, 0],
        [4, 104, 5],
      ]);
      expect(effects[1]!.orderFills.slice(0, 3)).to.deep.equal(
        BUY.map((part) => ({ ...part, market: 0, side: 'ask' })),
      );
      const first = { market: 0, fillSeq: 2, askVolumeUnits: sold, bidVolumeUnits: ETHER / 7n };
      const second = { market: 0, fillSeq: 4, askVolumeUnits: 2n * sold, bidVolumeUnits: 2n * (ETHER / 7n) };
      const dai = { market: 1, fillSeq: 1, askVolumeUnits: ETHER, bidVolumeUnits: 0n };
      expect(effects.map((one) => one.progress)).to.deep.equal([[], [first], [], [second, dai]]);
      expect(await readProgress(db.knex)).to.deep.equal([second, dai]);
      expect(await fillSeqs(db.knex)).to.deep.equal(
        new Map([
          [0, 4],
          [1, 1],
        ]),
      );
      expect(await readGenerationEffects(db.knex, { after: 1, upTo: 3, limit: 1 })).to.deep.equal([effects[1]]);
      expect(await readGenerationEffects(db.knex, { after: 1, upTo: 3, limit: 9 })).to.deep.equal(effects.slice(1, 3));
    });

    it('shows a maker its parts, newest first, with the balance before each', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      await commit(trading(2));
      const fills = await userOrderFills(db.knex, alice);
      const start = 100n * ETHER;
      expect(fills.map((fill) => [fill.oid, fill.side, fill.startBaseUnits])).to.deep.equal([
        [3, 'bid', start - 3n * ETHER - 1n],
        [5, 'ask', start - ETHER - 1n],
        [1, 'ask', start],
      ]);
      const { fill } = trading(2).fills[1]!;
      expect(fills[0]).to.deep.equal({
        market: 0,
        fillSeq: 2,
        oid: 3,
        tid: 1_002_003,
        cloid: null,
        side: 'bid',
        priceTicks: 299_999n,
        baseUnits: ETHER / 7n,
        startBaseUnits: start - 3n * ETHER - 1n,
        quoteUnits: (299_999n * (ETHER / 7n)) / 10n ** 14n,
        // Bought back below what was sold: a seventh at 3000.02 on average less what it cost.
        closedUnits: 3_810n,
        txHash: fill.txHash,
        blockNumber: 102,
        timestampMs: fill.timestampMs,
        generation: 2,
      });
      expect(await userOrderFills(db.knex, alice, 1)).to.have.length(1);
      expect(await userOrderFills(db.knex, MAKERS[3]!)).to.deep.equal([]);
    });

    it('leaves a generation that is there already as it is', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      await commit(trading(2));
      const before = await dump(db);
      expect(await commit(trading(2))).to.equal('replayed');
      expect(await commit(opening())).to.equal('replayed');
      expect(await dump(db)).to.equal(before);
      const block = { ...blockOf(102), hash: blockOf(999).hash };
      expect(await codeOf(commit({ ...trading(2), blocks: [block] }))).to.equal('generation_conflict');
      expect(await dump(db)).to.equal(before);
    });

    it('keeps snapshots, events, reservations and halts of a generation', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      const snapshot: MarketSnapshot = {
        market: 0,
        fillSeq: 0,
        askVolumeUnits: 0n,
        bidVolumeUnits: 2n ** 95n,
        asks: [{ oid: 1, maker: alice, priceTicks: 3n, sizeLots: 2n ** 80n }],
        bids: [],
      };
      const write = generationOf(2, {
        custody: [
          {
            kind: 'settled',
            maker: alice,
            token: WETH.address,
            amountUnits: 2n ** 128n - 1n,
            basis: 2n ** 256n - 1n,
            readyAtSec: Number.MAX_SAFE_INTEGER,
            settlementNo: null,
            paidGas: 0n,
            blockNumber: 102,
            txHash: blockOf(5).hash,
            logIndex: 0,
          },
        ],
        reservations: [
          { account: alice, token: WETH.address, deltaUnits: 70n },
          { account: alice, token: WETH.address, deltaUnits: -30n },
        ],
        snapshots: [{ seq: 4, snapshot }],
        halt: { code: 'shortfall', message: 'the vault lacks 1 unit' },
      });
      await commit(write);
      expect(await readSnapshot(db.knex, 0, 4)).to.deep.equal(snapshot);
      expect(await readSnapshot(db.knex, 0, 5)).to.equal(null);
      expect((await makerBalances(db.knex, alice))[0]?.reservedUnits).to.equal(40n);
      expect(await readHalt(db.knex)).to.deep.equal({
        haltNo: 1,
        code: 'shortfall',
        fromBlock: null,
        message: 'the vault lacks 1 unit',
        generation: 2,
        timeMs: write.scannedMs,
      });
    });

    it('lets the operator alone go below zero', async () => {
      const { db, commit } = await openLedger(open);
      await commit(opening());
      const fill = fillOf(2, WETH_USDC, 1, 'ask', BUY, { residualUnits: -1n, inputFeeUnits: 0n });
      await commit(generationOf(2, withFills(MARKETS, [fill])));
      expect((await makerBalances(db.knex, OPERATOR))[0]?.balanceUnits).to.equal(-1n);
    });
  });
});
