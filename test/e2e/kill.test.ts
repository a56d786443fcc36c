import { expect } from 'chai';
import { isError } from 'ethers';
import { setTimeout as delay } from 'node:timers/promises';
import { toSafeInt } from '../../core/amounts.js';
import { auditBooks, balanceOf, fillsNow, limitsAt, MAKERS, micros, wei } from '../support/audit.js';
import { fcOptions } from '../support/fc.js';
import { seededRandom } from '../support/random.js';
import { accountOf, contractsOf, exchangeClient, forEachDatabaseUrl, startStack, until } from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { FIRST_ASSET, place, placeWith, swap } from '../support/trading.js';
import { tokenOf } from '../support/stack.js';

/** Kills in one run; the seed that is printed with the other properties' decides where they fall. */
const deep = process.env.RUNS !== undefined && process.env.RUNS !== '1';
const ROUNDS = deep ? 100 : 12;
/** Longest time that a process lives once the ledger is ready, and longest time that it stays dead. */
const MAX_LIFE_MS = 1_000;
const MAX_DEATH_MS = 400;
/** Pauses between two acts of a maker and of a taker, so that limits on open orders and on listed fills are not reached. */
const ORDER_PACE_MS = 60;
const SWAP_PACE_MS = deep ? 3_000 : 500;
const MAX_OPEN = 600;
const DEPOSITS = { WETH: wei('100'), USDC: micros('300000') };
/** Most fills that the read API lists. */
const LISTED_FILLS = 256;

/** What a maker was told. An order or a cancel that was sent and not answered is in none of the lists. */
interface Promises {
  placed: Set<number>;
  cancelSent: Set<number>;
  canceled: Set<number>;
}

/** Hashes of blocks from `from` on, up to the newest, by number. */
async function hashesFrom({ provider }: Stack, from: number): Promise<Map<number, string>> {
  const hashes = new Map<number, string>();
  for (let number = from; ; number++) {
    const block = (await provider.send('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])) as {
      hash: string;
    } | null;
    if (block === null) return hashes;
    hashes.set(number, block.hash);
  }
}

forEachDatabaseUrl((name, open) => {
  describe(`Processes killed in the middle of trading, on ${name}`, function () {
    this.timeout(deep ? 0 : 900_000);
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      // Only PostgreSQL takes roles apart; then each keeper is a victim of its own.
      const processes =
        name === 'PostgreSQL' ? ['gateway', 'watcher', 'poster', 'settler'] : ['watcher,gateway,poster,settler'];
      stack = await startStack({ databaseUrl: database.url, processes });
      for (const role of MAKERS) await stack.operate('maker', 'approve', accountOf(stack, role).address);
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
    });

    const limits = () => limitsAt(stack, accountOf(stack, 'maker1').address);
    const untilReady = (): Promise<void> =>
      until('the ledger to be ready', async () => {
        const now = await limits().catch(() => null);
        return now !== null && now.ledger.ready && balanceOf(stack, now, 'WETH') > 0n;
      });

    /**
     * A maker that never rests: one order after the other far from the market, most of them cancelled. What fails because the server is
     * dead or not ready was not promised.
     */
    async function stream(role: string, promises: Promises, signal: AbortSignal): Promise<void> {
      const { exchange } = exchangeClient(stack, role);
      for (let count = 0; !signal.aborted; count += 1) {
        await delay(ORDER_PACE_MS);
        try {
          const quote = { isBuy: true, price: `${1_000 + (count % 500)}`, size: '0.001' };
          const [oid = 0] = await placeWith(exchange, [quote]);
          promises.placed.add(oid);
          if (count % 4 === 0 && promises.placed.size - promises.cancelSent.size < MAX_OPEN) continue;
          promises.cancelSent.add(oid);
          await exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oid }] });
          promises.canceled.add(oid);
        } catch {
          await delay(200);
        }
      }
    }

    /** Sells and buys small amounts, one swap after the other. A curve may expire under a swap, or be gone for a while. */
    async function trade(role: string, signal: AbortSignal): Promise<void> {
      for (let turn = 0; !signal.aborted; turn += 1) {
        const sell = () => swap(stack, role, 'WETH', 'USDC', wei('0.123456789012345678'));
        const buy = () => swap(stack, role, 'USDC', 'WETH', micros('400.000001'));
        try {
          await (turn % 2 === 0 ? sell() : buy());
        } catch (error) {
          if (!isError(error, 'CALL_EXCEPTION')) throw error;
        }
        await delay(SWAP_PACE_MS, undefined, { signal }).catch(() => undefined);
      }
    }

    /** Withdraws a little, so that settlements are under way when processes die. */
    async function requestWithdraw(): Promise<void> {
      const { custodian } = contractsOf(stack, 'maker2');
      await (await custodian.requestWithdraw(tokenOf(stack, 'USDC').address, 1_000_001n)).wait();
    }

    async function verify(): Promise<void> {
      const printed = await stack.operate('verify', '--json', '--rpc', stack.manifest.rpcUrl);
      expect(JSON.parse(printed.split('\n').at(-1)!)).to.include({ ok: true });
    }

    it('loses no acknowledged order and no event of the chain, and books none twice', async () => {
      const { seed } = fcOptions(1);
      const random = seededRandom(seed);
      await untilReady();
      const promises = new Map<string, Promises>();
      for (const role of MAKERS) {
        promises.set(role, { placed: new Set(), cancelSent: new Set(), canceled: new Set() });
        const quotes = [0, 1, 2].flatMap((level) => [
          { isBuy: true, price: `${2499 - level}`, size: '10' },
          { isBuy: false, price: `${2501 + level}`, size: '10' },
        ]);
        await place(stack, role, quotes);
      }

      const acting = new AbortController();
      const acts = [
        ...MAKERS.map((role) => stream(role, promises.get(role)!, acting.signal)),
        ...['taker1', 'taker2'].map((role) => trade(role, acting.signal)),
      ];
      for (let round = 0; round < ROUNDS; round++) {
        await requestWithdraw();
        await delay(random.int(0, MAX_LIFE_MS));
        const victim = random.pick(stack.processes);
        await stack.kill(victim);
        await delay(random.int(0, MAX_DEATH_MS));
        if (random.int(0, 5) === 0) {
          // It dies once more before, or just after, it serves.
          const started = stack.revive(victim);
          await delay(random.int(500, 3_000));
          await stack.kill(victim);
          await started;
        }
        await stack.revive(victim);
        await untilReady();
      }
      acting.abort();
      await Promise.all(acts);

      const { entrypoint } = contractsOf(stack, 'taker1');
      const swaps = (await entrypoint.queryFilter(entrypoint.filters.Swap(), 0)).length;
      expect(swaps, 'takers traded').to.be.at.least(ROUNDS / 2);
      await until('every fill', async () => (await limits()).ledger.fill_seqs['WETH-USDC'] === swaps);
      await until('every withdrawal to be settled', async () => (await pendingWithdrawals()) === 0);
      await verify();
      if ((await fillsNow(stack)).length < LISTED_FILLS) expect(await auditBooks(stack, DEPOSITS)).to.equal(swaps);
      for (const role of MAKERS) {
        const { placed, cancelSent, canceled } = promises.get(role)!;
        expect(placed.size, 'orders were placed').to.be.greaterThan(ROUNDS);
        const { info, user } = exchangeClient(stack, role);
        const openNow = new Set((await info.openOrders({ user })).map((order) => order.oid));
        const lost = [...placed].filter((oid) => !cancelSent.has(oid) && !openNow.has(oid));
        const undead = [...canceled].filter((oid) => openNow.has(oid));
        expect({ lost, undead }, role).to.deep.equal({ lost: [], undead: [] });
      }
    });

    const status = async (): Promise<{ pendingWithdrawals: number; reason: string | null }> =>
      JSON.parse((await stack.operate('status', '--json')).split('\n').at(-1)!) as never;
    const pendingWithdrawals = async (): Promise<number> => (await status()).pendingWithdrawals;

    it('goes on after the operator reconciled it with a chain that took blocks back', async () => {
      const start = toSafeInt(BigInt((await stack.provider.send('eth_blockNumber', [])) as string));
      const before = (await stack.provider.send('evm_snapshot', [])) as string;
      await until('some more blocks', async () => (await limits()).ledger.next_block > start + 6);
      const lost = await hashesFrom(stack, start);
      await stack.provider.send('evm_revert', [before]);
      await until('the halt', async () => (await limits()).ledger.reason === 'integrity_halt');
      // An empty block that is mined again may well be the same one.
      const now = await hashesFrom(stack, start);
      const firstLost = [...lost.keys()].find((number) => lost.get(number) !== now.get(number));
      const printed = await stack.operate('reconcile', '--yes', '--json');
      const { ok, plan } = JSON.parse(printed.split('\n').at(-1)!) as {
        ok: boolean;
        plan: { orphanedBlocks: { from: number } };
      };
      expect([ok, plan.orphanedBlocks.from]).to.deep.equal([true, firstLost]);
      await untilReady();
      await verify();
      await stack.operate('halt', 'for', 'a', 'while');
      await until('the operator halt', async () => (await limits()).ledger.reason === 'operator_halt');
      await stack.operate('resume');
      await untilReady();
      expect(await stack.operate('outbox', '--all')).to.match(/nonce \d+ used/);
    });
  });
});
