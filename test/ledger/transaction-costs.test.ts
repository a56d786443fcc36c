/** What transactions cost, by the markets that they were for, whatever is listed, imported or made anew later. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { NO_PARTNER } from '../../core/swap/partner.js';
import type { Address, Hex } from '../../core/types.js';
import { verifyActivity } from '../../keepers/verify/activity.js';
import { rebuildActivity } from '../../ledger/accounts/rebuild.js';
import { GAS_DAYS } from '../../ledger/accounts/tables.js';
import { sendForRows } from '../../ledger/db/dialects.js';
import { migrations } from '../../ledger/migrations/index.js';
import { readSwapProfits } from '../../ledger/swaps/swap-costs.js';
import { insertOutbox } from '../../ledger/transactions/outbox.js';
import { acceptOrder, insertAttempt } from '../../ledger/swaps/swap-log.js';
import { appendQuotes } from '../../ledger/swaps/swap-quotes.js';
import { insertCosts, readCosts, type CostRole, type TransactionCost } from '../../ledger/transactions/costs.js';
import type { Db } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';
import { MARKETS } from '../support/ledger-log.js';
import { createTradedLedger } from '../support/worlds/traded-ledger.js';
import { drawer } from '../support/random.js';

const OWNER: Address = `0x${'a1'.repeat(20)}`;
const TOKENS: [Address, Address] = [`0x${'c3'.repeat(20)}`, `0x${'d4'.repeat(20)}`];

const hashOf = (name: string): Hex => `0x${Buffer.from(name).toString('hex').padStart(64, '0')}`;

const costOf = (nonce: number, txKey: string, feeWei: bigint): TransactionCost => ({
  ...{ signer: OWNER, nonce, hash: '0x', txKey, blockNumber: 1, gasUsed: 10, feeWei, seenMs: 5, succeeded: true },
});

forEachDatabase((name, open, openBare) => {
  describe(`costs of transactions, ${name}`, () => {
    let db: Db;

    beforeEach(async () => {
      db = await open();
    });

    const store = (role: CostRole, cost: TransactionCost, after?: () => Promise<void>) =>
      db.knex.transaction(async (tx) => {
        await insertCosts(tx, role, [cost]);
        await after?.();
      });
    const verify = () => verifyActivity({ q: db.knex, markets: [], onProgress: () => undefined });
    const rebuild = () => db.knex.transaction((tx) => rebuildActivity(tx));
    const sums = async () =>
      (await db.knex<{ role: string; market: number; fee_wei: string }>('gas_days').orderBy(['role', 'market'])).map(
        ({ role, market, fee_wei: fee }) => `${role} ${market} ${fee}`,
      );

    async function sentOrder(txKey: string, isOnCurve = true): Promise<void> {
      const draft = {
        ...{ id: randomUUID(), owner: OWNER, receiver: OWNER, sellToken: TOKENS[0], buyToken: TOKENS[1] },
        ...({
          kind: 'sell',
          preference: 'auto',
          slippageBps: 0,
          sellUnits: 1n,
          expectedSellUnits: 1n,
          isLimit: false,
        } as const),
        ...{ buyUnits: 1n, minBuyUnits: 1n, feeUnits: 0n, validToSec: 9, createdMs: 1, expiresMs: 2, route: '{}' },
        ...NO_PARTNER,
      };
      const [quote] = await appendQuotes(db, [draft], (one, i) => ({ ...one, nonce: BigInt(i), typedData: '{}' }));
      const { owner, id: quoteId } = quote!;
      const order = { id: randomUUID(), quoteId, owner, signature: '0x' as const, clientOrderId: null, createdMs: 1 };
      await acceptOrder(db, order, quote!);
      const attempt = { orderId: order.id, attemptNo: 1, timeMs: 1, result: 'sent', txKey, isOnCurve } as const;
      await db.knex.transaction((tx) => insertAttempt(tx, attempt));
    }

    /** Stores a signed transaction. */
    const signAt = (nonce: number, txKey: string, name = txKey) =>
      db.knex.transaction((tx) =>
        insertOutbox(tx, {
          ...{ txKey, signer: OWNER, nonce, to: OWNER, raw: '0x', hash: hashOf(name), sentMs: 1 },
          ...{ validUntilSec: null, maxFeeWei: null },
        }),
      );

    /** Lists the pair of the two tokens as one more market, with the other columns of one that is listed. */
    async function list(): Promise<number> {
      const [some] = await db.knex('markets').orderBy('market', 'desc').limit(1);
      const market = some!.market + 1;
      const named = { market, id: `0x${'e5'.repeat(32)}` as const, pair: 'C-D' };
      const tokens = { base_address: TOKENS[1], quote_address: TOKENS[0] };
      await db.knex('markets').insert({ ...some!, ...named, ...tokens });
      return market;
    }

    it('stay with no market when the pair of their order is listed later, and count there from then on', async () => {
      await createTradedLedger(db, MARKETS, drawer(3));
      for (const key of ['early', 'late']) await sentOrder(key);
      await store('executor', costOf(1, 'early', 7n));
      const market = await list();
      await verify();
      await store('executor', costOf(2, 'late', 11n));
      const expected = ['executor -1 7', `executor ${market} 11`];
      expect(await sums()).to.deep.equal(expected);
      await verify();
      await rebuild();
      expect(await sums()).to.deep.equal(expected);
    });

    it('of orders that pools alone fill are of no market, though their pair is listed', async () => {
      await createTradedLedger(db, MARKETS, drawer(3));
      const market = await list();
      await sentOrder('pools', false);
      await sentOrder('curve');
      await store('executor', costOf(1, 'pools', 7n));
      await store('executor', costOf(2, 'curve', 11n));
      expect(await sums()).to.deep.equal(['executor -1 7', `executor ${market} 11`]);
      await rebuild();
      await verify();
      expect(await sums()).to.deep.equal(['executor -1 7', `executor ${market} 11`]);
    });

    it('of orders are one sum, by their sell token, with the transfers that took the place of some', async () => {
      for (const [nonce, key] of ['filled', 'reverted', 'gave way'].entries()) {
        await sentOrder(key);
        await signAt(nonce, key);
      }
      // Of the last one a transfer was mined in its place; the one after it filled a gap.
      await signAt(2, 'expired:2', 'transfer');
      await signAt(3, 'gap:3');
      await store('executor', { ...costOf(0, 'filled', 7n), hash: hashOf('filled') });
      await store('executor', { ...costOf(1, 'reverted', 11n), succeeded: false });
      await store('executor', costOf(2, 'expired:2', 13n));
      await store('executor', costOf(3, 'gap:3', 17n));
      const profits = await readSwapProfits(db.knex, 0);
      const [ofToken, ofNone] = [TOKENS[0], null].map((token) => profits.find((one) => one.token === token)!);
      const nothing = { filled: 0, feesWei: 0n, filledCostWei: 0n, revertedCostWei: 0n };
      expect(ofToken).to.deep.equal({
        ...{ token: TOKENS[0], filled: 1, feesWei: 0n, worstWei: -13n },
        ...{ filledCostWei: 7n, revertedCostWei: 11n, gaveWayCostWei: 13n },
      });
      expect(ofNone).to.deep.equal({ ...nothing, token: null, gaveWayCostWei: 17n, worstWei: -17n });
      const all = await readCosts(db.knex, 'executor', { signer: OWNER, sinceMs: 0 });
      expect(all.reduce((sum, { feeWei }) => sum + feeWei, 0n)).to.equal(48n);
      expect(await sums(), 'which the summary shows').to.deep.equal(['executor -1 48']);
      expect(await readSwapProfits(db.knex, 6), 'noted before').to.deep.equal([]);
    });

    it('of orders lose no fee that was noted before they had one definition', async () => {
      const old = await openBare();
      const at = migrations.findIndex(({ name: step }) => step === '0040-swap-fees');
      await old.knex.transaction(async (tx) => {
        for (const step of migrations.slice(0, at)) await step.up(tx);
        for (const [name, filled] of Object.entries({ a: 1, b: 0 })) {
          const row = { tx_hash: hashOf(name), order_id: name, token: TOKENS[0], filled, time_ms: 3 };
          await tx.table('swap_costs').insert({ ...row, fee_wei: filled === 1 ? '5' : '0', cost_wei: '4' });
        }
        const attempt = { order_id: 'a', result: 'sent' as const, attempt_no: 1, time_ms: 3, tx_key: 'order:a:1' };
        await tx.table('swap_attempts').insert(attempt);
        const placed = {
          id: 'a',
          quote_id: 'q',
          owner: OWNER,
          signature: '0x01' as const,
          client_order_id: null,
          created_ms: 1,
        };
        await tx.table('swap_orders').insert(placed);
        // Costed by the meter, and not held against their owners yet; the second one was given up, the third one is no order's.
        for (const [nonce, txKey, gas] of [
          [7, 'order:a:1', 90_000],
          [8, 'order:a:1', 0],
          [9, 'gap:9', 21_000],
        ] as const) {
          const row = {
            signer: OWNER,
            nonce,
            hash: hashOf(`r${nonce}`),
            tx_key: txKey,
            block_number: 6,
            gas_used: gas,
          };
          await tx.table('order_costs').insert({ ...row, fee_wei: '1', succeeded: 0, seen_ms: 4, markets: '' });
        }
        await migrations[at]!.up(tx);
      });
      const reverts = await old.knex('swap_reverts').select();
      expect(
        reverts.map(({ time_ms: time, block_number: block, ...row }) => ({ ...row, at: [time, block].map(Number) })),
      ).to.deep.equal([{ tx_hash: hashOf('r7'), order_id: 'a', owner: OWNER, gas_used: '90000', at: [4, 6] }]);
      const fees = await old.knex('swap_fees').select();
      expect(fees.map(({ order_id: id, fee_wei: fee }) => [id, String(fee)])).to.deep.equal([['a', '5']]);
      const [attempt] = await old.knex('swap_attempts').select('on_curve');
      expect(attempt?.on_curve).to.equal(1);
    });

    it('stay with the markets of posts whose publications make way for others', async () => {
      const world = await createTradedLedger(db, MARKETS, drawer(4));
      for (let fills = 0; fills < 4;) fills += await world.step();
      const posts = await db.knex('publications').orderBy(['market', 'seq']).limit(1);
      const { market, seq, tx_key: txKey } = posts[0]!;
      await store('poster', costOf(1, txKey, 7n));
      const before = await sums();
      await db.knex('publications').where({ market, seq }).update({ tx_key: 'another' });
      const gas = () => db.knex(GAS_DAYS.name).select();
      const rows = await gas();
      await rebuild();
      expect(await gas()).to.deep.equal(rows);
      expect(await sums()).to.deep.equal(before);
      expect(before).to.deep.equal([`poster ${market} 7`]);
    });

    it('of posts have the markets of their publications in a database of before that was stored', async () => {
      const world = await createTradedLedger(db, MARKETS, drawer(5));
      for (let fills = 0; fills < 2;) fills += await world.step();
      const [newest] = await db.knex('publications').limit(1);
      // Columns of later versions.
      const { ask_error_ppb: _ask, bid_error_ppb: _bid, ...post } = newest!;
      const old = await openBare();
      const at = migrations.findIndex(({ name: step }) => step === '0029-gas');
      await old.knex.transaction(async (tx) => {
        for (const step of migrations.slice(0, at)) await step.up(tx);
        for (const [market, key] of [
          [10, 'both'],
          [9, 'both'],
          [3, 'one'],
        ] as const)
          for (const seq of [1, 2]) await tx('publications').insert({ ...post, market, seq, tx_key: key });
        for (const [nonce, key] of ['both', 'one', 'none'].entries()) {
          const row = {
            signer: OWNER,
            nonce,
            hash: '0x' as const,
            tx_key: key,
            block_number: 1,
            gas_used: 1,
            fee_wei: '1',
          };
          await tx.table('post_costs').insert({ ...row, succeeded: 1, seen_ms: 5 });
        }
        await migrations[at]!.up(tx);
      });
      const rows = await old.knex('post_costs').orderBy('nonce').select('markets');
      expect(rows.map(({ markets }) => markets)).to.deep.equal(['9,10', '3', '']);
    });

    it('count once when all sums are made anew while costs are written', async () => {
      await store('settler', costOf(0, 'first', 1n));
      for (let nonce = 1; nonce <= 20; nonce += 1) {
        await Promise.all([rebuild(), store('settler', costOf(nonce, 'next', 1n)), rebuild()]);
      }
      expect(await sums()).to.deep.equal(['settler -1 21']);
      await verify();
    });

    // On SQLite there is one write transaction at a time.
    if (name !== 'PostgreSQL') return;

    it('wait for what is made anew, so that no sum is written back that was read before', async () => {
      await store('settler', costOf(0, 'first', 1n));
      await db.knex('gas_days').update({ fee_wei: '5' });
      const written: Promise<void>[] = [];
      await db.knex.transaction(async (tx) => {
        await rebuildActivity(tx);
        written.push(store('settler', costOf(1, 'next', 1n)));
        const sql = `select count(*)::int as waits from pg_locks where not granted and relation = 'gas_days'::regclass`;
        let waits = 0;
        for (let asked = 0; waits === 0 && asked < 5_000; asked += 1)
          waits = (await sendForRows<{ waits: number }>(tx, sql))[0]!.waits;
        expect(waits).to.equal(1);
      });
      await Promise.all(written);
      expect(await sums()).to.deep.equal(['settler -1 2']);
    });
  });
});
