import { expect } from 'chai';
import { isError } from 'ethers';
import { setTimeout as delay } from 'node:timers/promises';
import { auditBooks, balanceOf, fillsNow, limitsAt, MAKERS, micros, wei } from '../support/audit.js';
import { accountOf, contractsOf, exchangeClient, forEachDatabaseUrl, startStack, until } from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { FIRST_ASSET, place, placeWith, swap } from '../support/trading.js';

/** Pause between two orders of a stream, so that a slow machine does not reach the limit of open orders. */
const PACE_MS = 5;
/** How much must have happened before the kill, and again after it. */
const MIN_FILLS = 6;
const MIN_ORDERS = 40;
const DEPOSITS = { WETH: wei('100'), USDC: micros('300000') };

/** What a maker was told. An order or a cancel that was sent and not answered is in none of the lists. */
interface Promises {
  placed: Set<number>;
  cancelSent: Set<number>;
  canceled: Set<number>;
}

forEachDatabaseUrl((name, open) => {
  describe(`A server killed in the middle of trading, on ${name}`, function () {
    this.timeout(180_000);
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      stack = await startStack({ databaseUrl: database.url });
      for (const role of MAKERS) await stack.operate('maker', 'approve', accountOf(stack, role).address);
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
    });

    const untilReady = (): Promise<void> =>
      until('the ledger to be ready', async () => {
        const limits = await limitsAt(stack, accountOf(stack, 'maker1').address);
        return limits.ledger.ready && balanceOf(stack, limits, 'WETH') > 0n;
      });

    /** A maker that never rests: one order after the other far from the market, every third one cancelled. */
    async function stream(role: string, promises: Promises, firstPrice: number, signal: AbortSignal): Promise<void> {
      const { exchange } = exchangeClient(stack, role);
      for (let count = 0; !signal.aborted; count += 1) {
        await delay(PACE_MS);
        const [oid = 0] = await placeWith(exchange, [{ isBuy: true, price: `${firstPrice + count}`, size: '0.001' }]);
        promises.placed.add(oid);
        if (count % 3 !== 2) continue;
        promises.cancelSent.add(oid);
        await exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oid }] });
        promises.canceled.add(oid);
      }
    }

    /** Sells and buys small amounts, one swap after the other; returns how many were mined. A curve may expire under a swap. */
    async function trade(role: string, signal: AbortSignal): Promise<number> {
      let count = 0;
      for (let turn = 0; !signal.aborted; turn += 1) {
        const sell = () => swap(stack, role, 'WETH', 'USDC', wei('0.123456789012345678'));
        const buy = () => swap(stack, role, 'USDC', 'WETH', micros('400.000001'));
        try {
          await (turn % 2 === 0 ? sell() : buy());
          count += 1;
        } catch (error) {
          if (!isError(error, 'CALL_EXCEPTION')) throw error;
        }
      }
      return count;
    }

    it('loses no acknowledged order and no fill, and attributes none twice', async () => {
      await untilReady();
      const promises: Record<string, Promises> = {};
      for (const role of MAKERS) {
        promises[role] = { placed: new Set(), cancelSent: new Set(), canceled: new Set() };
        const quotes = [0, 1, 2].flatMap((level) => [
          { isBuy: true, price: `${2499 - level}`, size: '5' },
          { isBuy: false, price: `${2501 + level}`, size: '5' },
        ]);
        await place(stack, role, quotes);
      }

      const trading = new AbortController();
      const traders = ['taker1', 'taker2'].map((role) => trade(role, trading.signal));
      for (const round of [0, 1]) {
        const streaming = new AbortController();
        const streams = MAKERS.map((role) => stream(role, promises[role]!, 1_000 + 300 * round, streaming.signal));
        const enoughFills = (await fillsNow(stack)).length + MIN_FILLS;
        const enoughOrders = MIN_ORDERS * (round + 1);
        await until(
          'orders and fills',
          async () =>
            MAKERS.every((role) => promises[role]!.placed.size >= enoughOrders) &&
            (await fillsNow(stack)).length >= enoughFills,
        );
        if (round === 1) {
          streaming.abort();
          await Promise.all(streams);
          continue;
        }
        // The kill falls into whatever is under way; the streams end with a connection error.
        const cut = Promise.allSettled(streams);
        await stack.endServer('SIGKILL');
        await cut;
        const killedAt = await stack.provider.getBlockNumber();
        await delay(1_500);
        const { entrypoint } = contractsOf(stack, 'taker1');
        const unseen = await entrypoint.queryFilter(entrypoint.filters.Swap(), killedAt + 1);
        expect(unseen, 'takers go on while the server is dead').not.to.have.length(0);
        await stack.startServer();
        await untilReady();
      }
      trading.abort();
      const swaps = (await Promise.all(traders)).reduce((a, b) => a + b, 0);
      await until('every fill', async () => (await fillsNow(stack)).length >= swaps);

      expect(await auditBooks(stack, DEPOSITS)).to.equal(swaps);
      for (const role of MAKERS) {
        const { placed, cancelSent, canceled } = promises[role]!;
        const { info, user } = exchangeClient(stack, role);
        const open = new Set((await info.openOrders({ user })).map((order) => order.oid));
        const lost = [...placed].filter((oid) => !cancelSent.has(oid) && !open.has(oid));
        const undead = [...canceled].filter((oid) => open.has(oid));
        expect({ lost, undead }, role).to.deep.equal({ lost: [], undead: [] });
      }
    });
  });
});
