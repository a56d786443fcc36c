import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { NO_PARTNER } from '../../../core/swap/partner.js';
import type { Address } from '../../../core/types.js';
import { insertSettledOrders, readSettledOrders } from '../../../ledger/chain/settled-orders.js';
import {
  acceptOrder,
  closeOrders,
  countPending,
  insertAttempt,
  insertOutcome,
  listPending,
  readAttempts,
  readClientOrder,
  readFilledPending,
  readOrder,
  readPending,
  type SwapOrder,
} from '../../../ledger/swaps/swap-log.js';
import {
  appendQuotes,
  pruneQuotes,
  readQuote,
  type SwapQuote,
  type SwapQuoteDraft,
} from '../../../ledger/swaps/swap-quotes.js';
import { readOrderFacts } from '../../../ledger/swaps/order-facts.js';
import { readDealings } from '../../../ledger/swaps/swap-wallets.js';
import type { Db, SettledOrder } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { insertFee } from '../../../ledger/swaps/swap-costs.js';
import { forEachDatabase } from '../../support/db.js';

const OWNER: Address = `0x${'a1'.repeat(20)}`;
const OTHER: Address = `0x${'b2'.repeat(20)}`;
const SELL: Address = `0x${'c3'.repeat(20)}`;
const BUY: Address = `0x${'d4'.repeat(20)}`;
const MAX = 2n ** 256n - 1n;

function draftOf(owner: Address = OWNER, change: Partial<SwapQuoteDraft> = {}): SwapQuoteDraft {
  return {
    id: randomUUID(),
    owner,
    receiver: OTHER,
    sellToken: SELL,
    buyToken: BUY,
    kind: 'sell',
    preference: 'auto',
    slippageBps: 50,
    sellUnits: MAX,
    expectedSellUnits: MAX - 1n,
    isLimit: false,
    buyUnits: 2n ** 70n + 1n,
    minBuyUnits: 2n ** 70n,
    feeUnits: 3n,
    validToSec: 2_000_000_000,
    createdMs: 1_000,
    expiresMs: 31_000,
    route: '{}',
    ...NO_PARTNER,
    ...change,
  };
}

const complete = (draft: SwapQuoteDraft, index: number): SwapQuote => ({
  ...draft,
  nonce: MAX - 1_000n + BigInt(index),
  typedData: `{"nonce":${index}}`,
});

const quoteIn = async (db: Db, owner?: Address, change?: Partial<SwapQuoteDraft>): Promise<SwapQuote> =>
  (await appendQuotes(db, [draftOf(owner, change)], complete))[0]!;

const orderOf = (quote: SwapQuote, clientOrderId: string | null = null): SwapOrder => ({
  id: randomUUID(),
  quoteId: quote.id,
  owner: quote.owner,
  signature: '0x1234',
  clientOrderId,
  createdMs: 2_000,
});

/** Stores fills on our curve, each of a swap in the given transaction and block. */
async function insertFills(db: Db, fills: readonly { taker: Address; tx: number; block: number }[]): Promise<void> {
  const ints = ['market', 'curve_seq', 'timestamp_ms', 'generation'].map((column) => [column, 1]);
  const texts = ['side', 'recipient', 'block_hash'].map((column) => [column, '0x']);
  const parts = ['base', 'quote', 'fee', 'input_fee', 'consumed_before', 'residual', 'rounding', 'operator_gain'];
  const units = [...parts, 'compression_residual', 'missing_base'].map((part) => [`${part}_units`, '0']);
  const common = Object.fromEntries([...ints, ...texts, ...units]) as object;
  const rows = fills.map(({ taker, tx, block }, i) => ({
    ...{ ...common, fill_seq: i + 1, log_index: i, taker, block_number: block },
    tx_hash: `0x${String(tx).padStart(64, '0')}`,
  }));
  await db.knex.batchInsert('fills', rows, 40);
}

/** The oldest pending orders, whole. */
const pendingOf = async (db: Db, limit: number) => {
  const listed = await listPending(db.knex, limit, false);
  return readPending(
    db.knex,
    listed.map(({ orderId }) => orderId),
  );
};

forEachDatabase((name, open) => {
  describe(`swap log of ${name}`, () => {
    let db: Db;

    beforeEach(async () => {
      db = await open();
    });

    it('returns quotes as they were stored, and numbers the nonces of each owner from 0', async () => {
      const drafts = [draftOf(), draftOf(OTHER), draftOf()];
      const stored = await appendQuotes(db, drafts, complete);
      expect(stored.map(({ nonce }) => nonce)).to.deep.equal([MAX - 1_000n, MAX - 1_000n, MAX - 999n]);
      for (const quote of stored) expect(await readQuote(db.knex, quote.id)).to.deep.equal(quote);
      expect((await quoteIn(db)).nonce).to.equal(MAX - 998n);
      expect(await readQuote(db.knex, 'nothing')).to.equal(null);
    });

    it('gives every quote a nonce of its own under concurrency', async () => {
      const quotes = await Promise.all(Array.from({ length: 40 }, (_, i) => quoteIn(db, i % 3 === 0 ? OTHER : OWNER)));
      expect(new Set(quotes.map(({ owner, nonce }) => `${owner} ${nonce}`)).size).to.equal(40);
    });

    it('uses a quote once', async () => {
      const quote = await quoteIn(db);
      const first = orderOf(quote);
      expect(await acceptOrder(db, first, quote)).to.deep.equal({ result: 'accepted', order: first });
      const again = await acceptOrder(db, orderOf(quote), quote);
      expect(again).to.deep.equal({ result: 'quoteUsed', order: first });
      expect(await pendingOf(db, 10)).to.deep.equal([{ order: first, quote, permit: null }]);
    });

    it('keeps the approval that an order brought, and none of one that was not accepted', async () => {
      const quote = await quoteIn(db);
      const refuse = (): never => {
        throw new RangeError('no funds');
      };
      const refused = await acceptOrder(db, orderOf(quote), quote, refuse, '0xd505accf').catch(
        (error: unknown) => error,
      );
      expect(refused).to.be.instanceOf(RangeError);
      const order = orderOf(quote);
      await acceptOrder(db, order, quote, () => undefined, '0x8fcbaf0c');
      expect(await pendingOf(db, 10)).to.deep.equal([{ order, quote, permit: '0x8fcbaf0c' }]);
      const rows: unknown = await db.knex('swap_permits').select();
      expect(rows).to.deep.equal([{ order_id: order.id, data: '0x8fcbaf0c' }]);
    });

    it('accepts one of 50 concurrent orders with one client order id, on one quote or on many', async () => {
      for (const many of [false, true]) {
        const id = many ? 'many' : 'one';
        const shared = await quoteIn(db);
        const quotes = many ? await Promise.all(Array.from({ length: 50 }, () => quoteIn(db))) : Array(50).fill(shared);
        const results = await Promise.all(quotes.map((quote: SwapQuote) => acceptOrder(db, orderOf(quote, id), quote)));
        expect(results.filter(({ result }) => result === 'accepted')).to.have.length(1);
        expect(results.filter(({ result }) => result === 'existing')).to.have.length(49);
        expect(new Set(results.map(({ order }) => order.id)).size).to.equal(1);
        expect((await readClientOrder(db.knex, OWNER, id))?.id).to.equal(results[0]!.order.id);
      }
      expect(await pendingOf(db, 100)).to.have.length(2);
    });

    it('lets two owners use the same client order id, and many orders have none', async () => {
      for (const owner of [OWNER, OTHER, OWNER, OWNER]) {
        const quote = await quoteIn(db, owner);
        const id = owner === OTHER ? 'shared' : null;
        expect((await acceptOrder(db, orderOf(quote, id), quote)).result).to.equal('accepted');
      }
      const quote = await quoteIn(db, OWNER);
      expect((await acceptOrder(db, orderOf(quote, 'shared'), quote)).result).to.equal('accepted');
      expect(await readClientOrder(db.knex, OTHER, 'none')).to.equal(null);
    });

    it('keeps attempts in order and ends an order once', async () => {
      const quote = await quoteIn(db);
      const order = orderOf(quote);
      await acceptOrder(db, order, quote);
      const writer = await acquireWriter(db, 'swap');
      const orderId = order.id;
      const refused = {
        orderId,
        attemptNo: 1,
        timeMs: 5,
        result: 'refused',
        code: 'PRICE_MOVED',
        message: 'm',
      } as const;
      const sent = { orderId, attemptNo: 2, timeMs: 6, result: 'sent', txKey: 'order:1:2', isOnCurve: false } as const;
      await writer.tx((tx) => insertAttempt(tx, refused));
      await writer.tx((tx) => insertAttempt(tx, sent));
      expect(await readAttempts(db.knex, orderId)).to.deep.equal([refused, sent]);
      const outcome = { orderId, status: 'expired', code: 'EXPIRED', message: 'x', generation: 4, timeMs: 9 } as const;
      await writer.tx((tx) => insertOutcome(tx, outcome));
      expect((await readOrderFacts(db.knex, [order]))[0]?.outcome).to.deep.equal(outcome);
      expect(await pendingOf(db, 10)).to.deep.equal([]);
      expect(await readOrder(db.knex, orderId)).to.deep.equal(order);
      const second = await writer
        .tx((tx) => insertOutcome(tx, { ...outcome, status: 'failed' }))
        .catch((e: unknown) => e);
      expect(second).to.be.instanceOf(Error);
    });

    it('forgets old quotes that nobody used', async () => {
      const used = await quoteIn(db, OWNER, { expiresMs: 10 });
      const unused = await quoteIn(db, OWNER, { expiresMs: 10 });
      const young = await quoteIn(db, OWNER, { expiresMs: 30 });
      await acceptOrder(db, orderOf(used), used);
      const pruned = (fromMs: number) => db.knex.transaction((tx) => pruneQuotes(tx, { fromMs, beforeMs: 20 }, 100));
      expect(await pruned(11), 'none that were looked at before').to.equal(0);
      expect(await pruned(10)).to.equal(1);
      expect(await readQuote(db.knex, unused.id)).to.equal(null);
      for (const { id } of [used, young]) expect(await readQuote(db.knex, id)).not.to.equal(null);
    });

    it('forgets an owner with the last of its quotes, and no owner of an order or of another quote', async () => {
      const [asked, young, ordered] = [OTHER, OWNER, SELL];
      for (const owner of [asked, young, ordered]) await quoteIn(db, owner, { expiresMs: 10 });
      await quoteIn(db, young, { expiresMs: 30 });
      const used = await quoteIn(db, ordered, { expiresMs: 10 });
      await acceptOrder(db, orderOf(used), used);
      await db.knex.transaction((tx) => pruneQuotes(tx, { fromMs: 0, beforeMs: 20 }, 100));
      const kept = await db.knex('swap_nonces').orderBy('owner').select('owner', 'issued');
      expect(kept).to.deep.equal([
        { owner: young, issued: 2 },
        { owner: ordered, issued: 2 },
      ]);
      expect((await quoteIn(db, asked)).nonce).to.equal(used.nonce - 1n);
    });

    it('knows as pending what neither ended nor was filled, and what was filled long ago', async () => {
      const quotes = await Promise.all([1, 2, 3].map(() => quoteIn(db)));
      const orders = quotes.map((quote, i) => ({ ...orderOf(quote), createdMs: 2_000 + i }));
      for (const [i, order] of orders.entries()) await acceptOrder(db, order, quotes[i]!);
      expect(await countPending(db.knex)).to.deep.equal({ count: 3, oldestMs: 2_000 });
      const fill: SettledOrder = {
        owner: OWNER,
        nonce: quotes[0]!.nonce,
        recipient: OTHER,
        tokenIn: SELL,
        tokenOut: BUY,
        amountInUnits: 1n,
        amountOutUnits: 1n,
        feeUnits: 0n,
        feeInSwap: true,
        partner: null,
        appData: null,
        blockNumber: 7,
        txHash: `0x${'ef'.repeat(32)}`,
        logIndex: 3,
      };
      await db.knex.transaction((tx) => insertSettledOrders(tx, 5, [fill]));
      expect((await pendingOf(db, 10)).map(({ order }) => order)).to.deep.equal(orders.slice(1));
      expect((await pendingOf(db, 1)).map(({ order }) => order)).to.deep.equal(orders.slice(1, 2));
      expect(await readPending(db.knex, [orders[0]!.id, 'unknown'])).to.deep.equal([]);
      expect(await countPending(db.knex)).to.deep.equal({ count: 2, oldestMs: 2_001 });
      expect(await readFilledPending(db.knex, 6, 10)).to.deep.equal([]);
      expect(await readFilledPending(db.knex, 7, 10), 'its fee is not noted').to.deep.equal([]);
      const fee = { txHash: fill.txHash, orderId: orders[0]!.id, token: SELL, feeWei: 0n, timeMs: 1 } as const;
      await db.knex.transaction((tx) => insertFee(tx, fee));
      expect(await readFilledPending(db.knex, 7, 10)).to.deep.equal([orders[0]!.id]);
      await db.knex.transaction((tx) => closeOrders(tx, [orders[0]!.id]));
      expect(await readFilledPending(db.knex, 7, 10)).to.deep.equal([]);
      expect(await countPending(db.knex)).to.deep.equal({ count: 2, oldestMs: 2_001 });
    });

    it('counts all swaps of a transaction as one, and none of a transaction that other accounts share', async () => {
      const swaps = (count: number, one: { taker: Address; tx: number; block: number }) =>
        Array.from({ length: count }, () => one);
      await insertFills(db, [
        ...swaps(7, { taker: OWNER, tx: 1, block: 5 }),
        ...swaps(1, { taker: OWNER, tx: 2, block: 5 }),
        ...swaps(2, { taker: OWNER, tx: 3, block: 6 }),
        ...swaps(1, { taker: OTHER, tx: 3, block: 6 }),
      ]);
      const kinds = async (owner: Address) => (await readDealings(db.knex, owner)).map(({ kind }) => kind);
      expect(await kinds(OWNER)).to.deep.equal(['swap', 'swap']);
      expect(await kinds(OTHER)).to.deep.equal([]);
    });

    it('reads the newest 64 transactions with swaps, however many swaps each has', async () => {
      const txs = Array.from({ length: 70 }, (_, i) => ({ taker: OWNER, tx: i, block: i }));
      await insertFills(
        db,
        txs.flatMap((one) => Array.from({ length: 7 }, () => one)),
      );
      expect((await readDealings(db.knex, OWNER)).length).to.equal(64);
    });

    it('stores what the settler filled, whatever the amounts', async () => {
      const order: SettledOrder = {
        owner: OWNER,
        nonce: MAX,
        recipient: OTHER,
        tokenIn: SELL,
        tokenOut: BUY,
        amountInUnits: MAX,
        amountOutUnits: MAX,
        feeUnits: 0n,
        feeInSwap: false,
        partner: { partner: OTHER, amountUnits: MAX },
        appData: `0x${'a9'.repeat(32)}`,
        blockNumber: 7,
        txHash: `0x${'ef'.repeat(32)}`,
        logIndex: 3,
      };
      await db.knex.transaction((tx) => insertSettledOrders(tx, 5, [order]));
      expect(await readSettledOrders(db.knex, [{ owner: OWNER, nonce: MAX }])).to.deep.equal([
        { ...order, generation: 5 },
      ]);
      expect(await readSettledOrders(db.knex, [{ owner: OWNER, nonce: 1n }])).to.deep.equal([]);
      // No fill of one owner is taken for another's with the same nonce.
      const crossed = [
        { owner: OWNER, nonce: 1n },
        { owner: OTHER, nonce: MAX },
      ];
      expect(await readSettledOrders(db.knex, crossed)).to.deep.equal([]);
    });
  });
});
