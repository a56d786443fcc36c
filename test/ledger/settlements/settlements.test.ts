import { expect } from 'chai';
import { MAX_U128 } from '../../../core/amounts.js';
import { NO_CLAIM } from '../../../core/claim-state.js';
import type { Address, Hex } from '../../../core/types.js';
import { draftGeneration } from '../../../keepers/watcher/derive/derive.js';
import { readClaimContext } from '../../../keepers/watcher/derive/custody.js';
import { PAID_GAS_MAX, REQUEST_GAS } from '../../../core/settle-gas.js';
import type { ChainEvent } from '../../../keepers/chain/logs.js';
import {
  maySettleAny,
  readClaim,
  readPendingClaims,
  readTakerFees,
  requestsAfter,
} from '../../../ledger/chain/claims.js';
import { commitGeneration, readBalances } from '../../../ledger/chain/ledger-log.js';
import {
  appendOperatorRow,
  nextLowering,
  readOperatorRows,
  readOperatorState,
} from '../../../ledger/operator/operator-log.js';
import {
  claimKey,
  countEmptySettlements,
  explainSettlement,
  insertOutcomes,
  insertSettlements,
  landedSettlements,
  lastSettlementNo,
  lastSettlements,
  openSettlements,
} from '../../../ledger/settlements/settlement-log.js';
import { insertOutbox } from '../../../ledger/transactions/outbox.js';
import type { Db, GenerationWrite, Settlement, SettlementOutcome } from '../../../ledger/types.js';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { OPERATOR, TAKER, blockOf, deposit, fillOf, generationOf, withFills } from '../../support/generations.js';
import { DAI, USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const [alice, bob] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`] as const satisfies readonly Address[];
const MARKETS = [WETH_USDC];
const txOf = (n: number): Hex => `0x${n.toString(16).padStart(64, '7')}`;

type Custody = Extract<ChainEvent, { type: 'deposited' | 'requested' | 'executed' | 'settled' }>;
const requested = (maker: Address, amountUnits: bigint, token = WETH.address): Custody => ({
  type: 'requested',
  maker,
  token,
  amountUnits,
});
const executed = (maker: Address, amountUnits: bigint): Custody => ({
  type: 'executed',
  maker,
  token: WETH.address,
  amountUnits,
});
const settled = (maker: Address, amountUnits: bigint, basis: bigint): Custody => ({
  type: 'settled',
  maker,
  token: WETH.address,
  amountUnits,
  basis,
  readyAtSec: 2_000n,
});

function settlement(settlementNo: number, change: Partial<Settlement> = {}): Settlement {
  return {
    settlementNo,
    maker: alice,
    token: WETH.address,
    amountUnits: 10n,
    basis: 0n,
    previousUnits: 0n,
    cutGeneration: 2,
    cutBlock: 102,
    checkpointSeq: 1,
    preparedMs: 1_000 * settlementNo,
    preparedBy: 'settler',
    operatorSeq: null,
    txKey: `settle:${settlementNo}`,
    ...change,
  };
}

forEachDatabase((name, open) => {
  describe(`withdrawals in the ledger, ${name}`, () => {
    interface Ledger {
      db: Db;
      /** Scans one block with these events; returns what was committed. */
      scan(...events: Custody[]): Promise<GenerationWrite>;
      prepare(...settlements: Settlement[]): Promise<void>;
      reserved(maker: Address): Promise<bigint>;
    }

    async function opened(openDb: OpenTestDb): Promise<Ledger> {
      const db = await openDb();
      const commit = (write: GenerationWrite) =>
        db.knex.transaction((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
      await commit(generationOf(1, { listed: MARKETS, ...deposit(1, 0, alice, WETH.address, 100n) }));
      let n = 1;
      return {
        db,
        async scan(...events) {
          n += 1;
          const block = blockOf(100 + n);
          const seen = events.map((event, logIndex) => ({
            event,
            log: {
              address: alice,
              topics: [],
              data: '0x' as const,
              blockNumber: block.number,
              blockHash: block.hash,
              txHash: txOf(n),
              logIndex,
            },
          }));
          const {
            fills: _,
            posts: __,
            curveEvents: ___,
            ...draft
          } = draftGeneration(seen, {
            markets: MARKETS,
            listed: [],
            blocks: [block],
            claims: await readClaimContext(db.knex, seen),
          });
          const write = generationOf(n, draft);
          await commit(write);
          return write;
        },
        prepare: (...settlements) => db.knex.transaction((tx) => insertSettlements(tx, settlements)),
        async reserved(maker) {
          const rows = await readBalances(db.knex, { account: maker });
          return rows.find(({ token }) => token === WETH.address)?.reservedUnits ?? 0n;
        },
      };
    }

    const claimOf = (db: Db, maker: Address) => readClaim(db.knex, { maker, token: WETH.address });

    it('reserves requests, and saturates what strangers ask for', async () => {
      const { db, scan, reserved } = await opened(open);
      await scan(requested(alice, 30n), requested(bob, 2n ** 256n - 1n), requested(alice, 12n));
      for (let i = 0; i < 9; i++) await scan(requested(bob, 2n ** 256n - 1n));
      expect([await reserved(alice), await reserved(bob)]).to.deep.equal([42n, MAX_U128]);
      expect(await claimOf(db, alice)).to.deep.equal({
        ...NO_CLAIM,
        maker: alice,
        token: WETH.address,
        outstandingUnits: 42n,
        pendingSinceBlock: 102,
        paidGas: 2n * (2_500n + 25_800n / 3n),
      });
      expect(await requestsAfter(db.knex, { maker: bob, token: WETH.address }, 109)).to.deep.equal({
        units: MAX_U128,
        sinceBlock: 110,
        paidGas: 2n * REQUEST_GAS,
      });
    });

    it('ignores requests of a token that no listed pair trades', async () => {
      const { db, scan } = await opened(open);
      await scan(requested(alice, 5n, DAI.address));
      expect(await readClaim(db.knex, { maker: alice, token: DAI.address })).to.include(NO_CLAIM);
      expect((await readBalances(db.knex)).some(({ token }) => token === DAI.address)).to.equal(false);
    });

    it('replaces what a settlement looked at, and keeps requests that came after its cut', async () => {
      const { db, scan, prepare, reserved } = await opened(open);
      await scan(requested(alice, 70n));
      await prepare(settlement(1, { amountUnits: 60n }));
      await scan(requested(alice, 9n));
      const write = await scan(requested(alice, 4n), settled(alice, 60n, 0n), requested(alice, 1n));
      expect(write.custody.map((event) => event.settlementNo)).to.deep.equal([null, 1, null]);
      expect(await claimOf(db, alice)).to.deep.equal({
        maker: alice,
        token: WETH.address,
        claimUnits: 60n,
        basis: 1n,
        readyAtSec: 2_000,
        outstandingUnits: 74n,
        advanceUnits: 0n,
        pendingSinceBlock: 103,
        paidGas: REQUEST_GAS + 2n * (2_500n + 25_800n / 2n),
      });
      expect(await reserved(alice)).to.equal(74n);
      expect([...(await landedSettlements(db.knex, [1, 2]))]).to.deep.equal([1]);
    });

    it('debits an execution, and lets go of what it paid', async () => {
      const { db, scan, prepare, reserved } = await opened(open);
      await scan(requested(alice, 60n));
      await prepare(settlement(1, { amountUnits: 60n }));
      await scan(settled(alice, 60n, 0n));
      await scan(requested(alice, 7n), executed(alice, 60n));
      expect(await reserved(alice)).to.equal(7n);
      const [row] = await readBalances(db.knex, { account: alice });
      expect([row?.balanceUnits, row?.netCapitalUnits]).to.deep.equal([40n, 40n]);
      expect((await claimOf(db, alice)).basis).to.equal(2n);
    });

    it('leaves everything pending after a settlement that nobody prepared', async () => {
      const { db, scan, prepare } = await opened(open);
      await scan(requested(alice, 60n));
      await prepare(settlement(1, { amountUnits: 60n, basis: 1n }));
      const write = await scan(settled(alice, 60n, 0n));
      expect(write.custody[0]?.settlementNo).to.equal(null);
      const claim = await claimOf(db, alice);
      expect([claim.claimUnits, claim.outstandingUnits, claim.pendingSinceBlock]).to.deep.equal([60n, 120n, 102]);
    });

    it('explains an event by the settlement that its transaction was signed for, and each settlement once', async () => {
      const { db, scan, prepare } = await opened(open);
      await scan(requested(alice, 60n));
      await prepare(settlement(1), settlement(2, { cutBlock: 105 }), settlement(3, { maker: bob }));
      const event = { maker: alice, token: WETH.address, amountUnits: 10n, basis: 0n, txHash: txOf(99) };
      expect((await explainSettlement(db.knex, event))?.settlementNo).to.equal(2);
      await db.knex.transaction((tx) =>
        insertOutbox(tx, {
          txKey: 'settle:1',
          signer: OPERATOR,
          nonce: 0,
          to: OPERATOR,
          raw: '0x',
          hash: txOf(99),
          sentMs: 0,
          validUntilSec: null,
        }),
      );
      expect((await explainSettlement(db.knex, event))?.settlementNo).to.equal(1);
      expect((await explainSettlement(db.knex, event, new Set([1])))?.settlementNo).to.equal(2);
      expect(await explainSettlement(db.knex, { ...event, basis: 1n })).to.equal(null);
      expect(await explainSettlement(db.knex, { ...event, amountUnits: 11n })).to.equal(null);
      expect(await explainSettlement(db.knex, { ...event, token: USDC.address })).to.equal(null);
      const write = await scan(settled(alice, 10n, 0n), settled(alice, 10n, 0n), settled(alice, 10n, 0n));
      expect(write.custody.map((one) => one.settlementNo)).to.deep.equal([2, 1, null]);
    });

    it('knows which settlements are open, and counts those that raised nothing', async () => {
      const { db, prepare } = await opened(open);
      expect(await lastSettlementNo(db.knex)).to.equal(0);
      const lowering = { preparedBy: 'operator', operatorSeq: 7, previousUnits: 4n, amountUnits: 4n } as const;
      await prepare(settlement(1, { amountUnits: 0n }), settlement(2), settlement(3, lowering));
      await db.knex.transaction((tx) => insertOutcomes(tx, [{ settlementNo: 2, outcome: 'landed' }], 5));
      expect((await openSettlements(db.knex)).map((one) => one.settlementNo)).to.deep.equal([1, 3]);
      expect((await openSettlements(db.knex))[1]).to.deep.equal(settlement(3, lowering));
      expect(await lastSettlementNo(db.knex)).to.equal(3);
      expect([await countEmptySettlements(db.knex, 1_000), await countEmptySettlements(db.knex, 1_001)]).to.deep.equal([
        1, 0,
      ]);
    });

    it('asks for a lowering until it is under way, done or found to be none, in the order of the acts', async () => {
      const { db, prepare } = await opened(open);
      const lower = (amountUnits: bigint) => ({ token: WETH.address, amountUnits });
      const act = { timeMs: 1, kind: 'lowerClaim' as const, maker: alice, note: '' };
      await appendOperatorRow(db, { ...act, kind: 'halt', maker: null });
      for (const units of [1n, 2n, 3n]) await appendOperatorRow(db, { ...act, lower: lower(units) });
      const next = async () => (await nextLowering(db.knex))?.operatorSeq ?? null;
      expect(await nextLowering(db.knex)).to.deep.equal({ ...act, operatorSeq: 2, lower: lower(1n) });
      const prepared = (no: number, operatorSeq: number, change: Partial<Settlement> = {}) =>
        prepare(settlement(no, { preparedBy: 'operator', operatorSeq, previousUnits: 9n, amountUnits: 1n, ...change }));
      const end = (settlementNo: number, outcome: SettlementOutcome) =>
        db.knex.transaction((tx) => insertOutcomes(tx, [{ settlementNo, outcome }], 5));
      await prepared(1, 2);
      expect(await next(), 'the first is under way').to.equal(3);
      await prepared(2, 3, { amountUnits: 9n });
      await end(2, 'abandoned');
      expect(await next(), 'the second found nothing to lower').to.equal(4);
      await end(1, 'refused');
      expect(await next(), 'the first had no effect').to.equal(2);
      await prepared(3, 2);
      await prepared(4, 4);
      await end(3, 'landed');
      await end(4, 'abandoned');
      expect(await next(), 'the third was never signed').to.equal(4);
    });

    it('asks for funded and unfunded requests apart, the oldest first', async () => {
      const { db, scan, prepare } = await opened(open);
      const strangers = Array.from({ length: 30 }, (_, i): Address => `0x${(i + 1).toString(16).padStart(40, '0')}`);
      await scan(...strangers.map((stranger) => requested(stranger, 2n ** 256n - 1n)));
      await scan(requested(alice, 5n));
      const funded = await readPendingClaims(db.knex, { funded: true, limit: 5 });
      expect(funded.map(({ maker, balanceUnits }) => [maker, balanceUnits])).to.deep.equal([[alice, 100n]]);
      const unfunded = await readPendingClaims(db.knex, { funded: false, limit: 5 });
      expect(unfunded.map(({ maker }) => maker)).to.deep.equal(strangers.slice(0, 5));
      const ofNothing = await readPendingClaims(db.knex, { funded: true, limit: 5, only: 'first' });
      expect(ofNothing.map(({ maker }) => maker)).to.deep.equal([alice]);
      expect(unfunded.map(({ paidGas }) => paidGas)).to.deep.equal(Array(5).fill(2_500n + 25_800n / 30n));
      await scan(requested(strangers[7]!, 1n));
      const [most] = await readPendingClaims(db.knex, { funded: false, limit: 1, mostPaid: true });
      expect(most).to.include({ maker: strangers[7]!, paidGas: 3_360n + REQUEST_GAS });
      await scan(...Array.from({ length: 4 }, () => requested(alice, 1n)), requested(strangers[7]!, 1n));
      const [hers] = await readPendingClaims(db.knex, { funded: true, limit: 5 });
      expect(hers!.paidGas, 'four fifths of a transaction').to.equal(REQUEST_GAS + 4n * (2_500n + 5_160n));
      await scan(...Array.from({ length: 40 }, () => requested(alice, 1n)));
      expect((await claimOf(db, alice)).paidGas).to.equal(PAID_GAS_MAX);
      const standing = await readPendingClaims(db.knex, { funded: false, limit: 5, only: 'standing' });
      expect(standing).to.deep.equal([]);
      await prepare(settlement(1));
      const unsettled = async () =>
        (await readPendingClaims(db.knex, { funded: true, limit: 5, unsettledSinceMs: 1_000 })).length;
      expect(await unsettled(), 'its end is not known').to.equal(1);
      await db.knex.transaction((tx) => insertOutcomes(tx, [{ settlementNo: 1, outcome: 'landed' }], 5));
      expect(await unsettled()).to.equal(0);
      expect(await lastSettlements(db.knex, 1_000)).to.deep.equal(new Map([[claimKey(settlement(1)), 1_000]]));
      expect((await lastSettlements(db.knex, 1_001)).size).to.equal(0);
    });

    it('says at one look whether anything that waits may be settled', async () => {
      const { db, scan } = await opened(open);
      expect(await maySettleAny(db.knex), 'nothing waits').to.equal(false);
      await scan(requested(bob, 5n));
      expect(await maySettleAny(db.knex), 'without funds, and paid for once').to.equal(false);
      await scan(requested(bob, 5n));
      expect(await maySettleAny(db.knex)).to.equal(true);
      await db.knex('claims').update({ paid_gas: 0 });
      expect(await maySettleAny(db.knex)).to.equal(false);
      await scan(requested(alice, 5n));
      expect(await maySettleAny(db.knex), 'a first raise').to.equal(true);
      await db.knex('claims').where({ maker: alice }).update({ claim_units: '5', basis: '1' });
      expect(await maySettleAny(db.knex), 'a claim that stands, and one request').to.equal(false);
      await db.knex('balances').where({ account: alice }).update({ balance_units: '-7' });
      expect(await maySettleAny(db.knex), 'a claim that nothing is left for').to.equal(true);
    });

    it('refuses a claim that is not reserved, and holdings that the rows do not add up to', async () => {
      const { db } = await opened(open);
      const commit = (write: GenerationWrite) =>
        db.knex
          .transaction((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }))
          .then(
            () => 'committed',
            (error: unknown) => (error as { code: string }).code,
          );
      const claim = { ...NO_CLAIM, maker: alice, token: WETH.address, outstandingUnits: 5n };
      const reservations = [{ account: alice, token: WETH.address, deltaUnits: 5n }];
      expect(await commit(generationOf(2, { claims: [claim] }))).to.equal('claim_broken');
      expect(await commit(generationOf(2, { claims: [{ ...claim, claimUnits: 6n }], reservations }))).to.equal(
        'claim_broken',
      );
      const holds = (units: bigint) => ({ holdings: [{ token: WETH.address, units }] });
      expect(await commit(generationOf(2, holds(99n)))).to.equal('vault_mismatch');
      expect(await commit(generationOf(2, { claims: [claim], reservations, ...holds(100n) }))).to.equal('committed');
      const shortfall = { code: 'shortfall', message: 'gone' };
      expect(await commit(generationOf(3, { ...holds(99n), halt: shortfall }))).to.equal('committed');
    });

    it('adds up the fees of a taker', async () => {
      const { db } = await opened(open);
      const part = { oid: 1, maker: alice, priceTicks: 3n, baseUnits: 10n };
      const fees = { residualUnits: 7n, inputFeeUnits: 0n };
      const fills = [
        fillOf(2, WETH_USDC, 1, 'ask', [part], { ...fees, feeUnits: 2n }),
        fillOf(2, WETH_USDC, 2, 'ask', [part], { ...fees, feeUnits: 3n }),
        fillOf(2, WETH_USDC, 3, 'ask', [part], { ...fees, feeUnits: 0n }),
      ];
      const commit = (write: GenerationWrite) =>
        db.knex.transaction((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
      await commit(generationOf(2, withFills([WETH_USDC, WETH_DAI], fills)));
      const more = fillOf(3, WETH_USDC, 4, 'ask', [part], { ...fees, feeUnits: 5n });
      await commit(generationOf(3, withFills(MARKETS, [more])));
      expect(await readTakerFees(db.knex)).to.deep.equal([
        { taker: TAKER, token: WETH.address, accruedUnits: 10n, balanceUnits: 10n },
      ]);
    });

    it('keeps what the operator wants lowered, which approves nobody', async () => {
      const { db } = await opened(open);
      const lower = { token: WETH.address, amountUnits: 3n };
      const act = { timeMs: 1, kind: 'lowerClaim' as const, maker: alice, note: '', lower };
      expect(await appendOperatorRow(db, act)).to.deep.equal({ ...act, operatorSeq: 1 });
      expect(await readOperatorRows(db.knex, { after: 0, limit: 5 })).to.deep.equal([{ ...act, operatorSeq: 1 }]);
      const { approved, suspended } = await readOperatorState(db.knex);
      expect([approved.size, suspended.size]).to.deep.equal([0, 0]);
      const refused = await appendOperatorRow(db, { ...act, lower: undefined }).catch((error: unknown) => error);
      expect(refused).to.include({ code: 'bad_claim' });
      const misplaced = await appendOperatorRow(db, { ...act, kind: 'approve' }).catch((error: unknown) => error);
      expect(misplaced).to.include({ code: 'bad_claim' });
    });
  });
});
