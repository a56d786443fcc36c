import { expect } from 'chai';
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { toSafeInt } from '../../core/amounts.js';
import { auditBooks, balanceOf, limitsAt, MAKERS, micros, wei } from '../support/audit.js';
import {
  filledOnChain,
  nothingPromised,
  orderNow,
  signOrders,
  stream,
  trade,
  takeSettled,
  withdraw,
  type Pace,
  type Promised,
} from '../support/worlds/crash-acts.js';
import { fcOptions } from '../support/fc.js';
import { seededRandom, type Random } from '../support/random.js';
import { accountOf, contractsOf, exchangeClient, forEachDatabaseUrl, startStack, until } from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { place } from '../support/trading.js';

const deep = process.env.RUNS !== undefined && process.env.RUNS !== '1';
/** With fewer than five not every process dies; with more than so many the takers' swaps would not last. */
const [LEAST_KILLS, MOST_KILLS] = [5, 150];
/**
 * Kills in one run per database; the seed that is printed with the other properties' decides where they fall. KILLS sets their number. A short
 * run kills each process of PostgreSQL's five, and SQLite's only one as often.
 */
const rounds = killsOf(process.env.KILLS) ?? (deep ? 100 : LEAST_KILLS);
/** Bounds one round on a machine that does much else. */
const ROUND_LIMIT_MS = 150_000;
/** Longest time that a process lives once the ledger is ready, and longest time that it stays dead. */
const MAX_LIFE_MS = 1_000;
const MAX_DEATH_MS = 400;
/** Swaps of one taker over the whole run; with three of them less than the 256 fills that the read API lists. */
const SWAPS_PER_TAKER = 80;
/** Throws RangeError. */
function killsOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const kills = Number.parseInt(text, 10);
  if (!/^\d+$/.test(text) || kills < LEAST_KILLS || kills > MOST_KILLS)
    throw new RangeError(`KILLS is ${LEAST_KILLS} to ${MOST_KILLS}, not ${text}`);
  return kills;
}

const DEPOSITS = { WETH: wei('100'), USDC: micros('300000') };

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

/** Asks by a connection of its own each time, until it is stopped; then how often there was which status, or error. */
function askedOverAndOver(url: string): { stop(): Promise<Map<string, number>> } {
  const answers = new Map<string, number>();
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const answer = await new Promise<string>((resolve) => {
        const asked = request(url, { agent: false }, (response) => {
          response.resume();
          response.once('end', () => resolve(String(response.statusCode)));
        });
        asked.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        asked.end();
      });
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      await delay(10);
    }
    return answers;
  })();
  return {
    stop() {
      isOver = true;
      return asking;
    },
  };
}

forEachDatabaseUrl((name, open) => {
  describe(`Processes killed in the middle of trading, on ${name}`, function () {
    this.timeout(rounds * ROUND_LIMIT_MS);
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      // Only PostgreSQL takes roles apart; then each keeper is a victim of its own.
      const roles = ['gateway', 'watcher', 'poster', 'settler', 'executor'];
      const processes = name === 'PostgreSQL' ? roles : [roles.join(',')];
      // A maker asks for little after every kill, and all of it is to be settled in the end.
      const env = { CLAIM_INTERVAL_SEC: '1', SMALL_CLAIM_INTERVAL_SEC: '1' };
      stack = await startStack({ databaseUrl: database.url, processes, withdrawDelaySec: 1, env });
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

    /** Every process in turn, each time in another order, so that none is left out. */
    function* victims(random: Random): Generator<string, never> {
      for (;;) {
        const left = [...stack.processes];
        while (left.length > 0) yield left.splice(random.int(0, left.length - 1), 1)[0]!;
      }
    }

    /** Kills a process after a while, sometimes twice, and waits until it and the ledger are back. */
    async function killOne(random: Random, victim: string): Promise<void> {
      await delay(random.int(0, MAX_LIFE_MS));
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

    async function verify(): Promise<void> {
      const printed = await stack.operate('verify', '--json', '--rpc', stack.manifest.rpcUrl);
      expect(JSON.parse(printed.split('\n').at(-1)!)).to.include({ ok: true });
    }

    it('loses no acknowledged order and no event of the chain, and books none twice', async () => {
      const random = seededRandom(fcOptions(1).seed);
      await untilReady();
      const promised = new Map<string, Promised>();
      for (const role of MAKERS) {
        promised.set(role, nothingPromised());
        const quotes = [0, 1, 2].flatMap((level) => [
          { isBuy: true, price: `${2499 - level}`, size: '10' },
          { isBuy: false, price: `${2501 + level}`, size: '10' },
        ]);
        await place(stack, role, quotes);
      }

      const acting = new AbortController();
      let round = 0;
      const quota = (): number => Math.floor(((round + 1) * SWAPS_PER_TAKER) / rounds);
      const pace: Pace = { signal: acting.signal, quota };
      const signed = signOrders(stack, 'taker3', pace);
      const acts = [
        signed,
        ...MAKERS.map((role) => stream(stack, role, promised.get(role)!, pace)),
        ...['taker1', 'taker2'].map((role) => trade(stack, role, pace)),
      ];
      try {
        for (const victim of victims(random)) {
          await withdraw(stack, 'maker2');
          await killOne(random, victim);
          round += 1;
          if (round === rounds) break;
        }
        await enoughHappened();
      } finally {
        acting.abort();
        await Promise.allSettled(acts);
      }
      await Promise.all(acts);
      // A signed order that is still pending may yet be filled, so the books are closed after the last one has ended.
      await expectOrdersEnded(await signed);
      await expectBooked();
      for (const role of MAKERS) await expectKept(role, promised.get(role)!);
    });

    const swapsOnChain = async (): Promise<number> => {
      const { entrypoint } = contractsOf(stack, 'taker1');
      return (await entrypoint.queryFilter(entrypoint.filters.Swap(), 0)).length;
    };
    const executedOnChain = async (): Promise<number> => {
      const { custodian } = contractsOf(stack, 'taker1');
      return (await custodian.queryFilter(custodian.filters.WithdrawExecuted(), 0)).length;
    };

    /** On a machine that has much else to do, actors come to little between the kills; all processes are up now. */
    async function enoughHappened(): Promise<void> {
      await until('swaps', async () => (await swapsOnChain()) >= rounds / 2);
      await until('a signed order to be filled', async () => (await filledOnChain(stack)).length > 0);
      await until('a withdrawal to be executed', async () => {
        if ((await executedOnChain()) > 0) return true;
        await withdraw(stack, 'maker2');
        return false;
      });
    }

    /** Every event of the chain is in the ledger once, to the unit. */
    async function expectBooked(): Promise<void> {
      const swaps = await swapsOnChain();
      expect(swaps, 'takers traded').to.be.at.least(rounds / 2);
      await until('every fill', async () => (await limits()).ledger.fill_seqs['WETH-USDC'] === swaps);
      await until('every withdrawal to be settled', async () => {
        if ((await pendingWithdrawals()) === 0) return true;
        await takeSettled(stack, 'maker2');
        return false;
      });
      expect(await executedOnChain(), 'withdrawals were executed').to.be.greaterThan(0);
      await verify();
      expect(await auditBooks(stack, DEPOSITS)).to.equal(swaps);
    }

    /** Every signed order that was accepted has ended, and those that are called filled are what the chain filled, once each. */
    async function expectOrdersEnded(ids: readonly string[]): Promise<void> {
      await until(
        'every signed order to end',
        async () => (await Promise.all(ids.map((id) => orderNow(stack, id)))).every((one) => one.status !== 'pending'),
        ROUND_LIMIT_MS,
      );
      const orders = await Promise.all(ids.map((id) => orderNow(stack, id)));
      const filled = orders.filter(({ status }) => status === 'filled');
      expect(filled.length, `signed orders were filled, of ${ids.length}`).to.be.greaterThan(0);
      const byHash = (a: { txHash: string | null }, b: { txHash: string | null }) => (a.txHash! < b.txHash! ? -1 : 1);
      const told = filled.map(({ txHash, executedSellAmount, executedBuyAmount }) => ({
        txHash,
        executedSellAmount,
        executedBuyAmount,
      }));
      expect(told.sort(byHash)).to.deep.equal((await filledOnChain(stack)).sort(byHash));
    }

    /** What a maker was told still holds. */
    async function expectKept(role: string, { placed, cancelSent, canceled }: Promised): Promise<void> {
      expect(placed.size, 'orders were placed').to.be.greaterThan(rounds);
      const { info, user } = exchangeClient(stack, role);
      const openNow = new Set((await info.openOrders({ user })).map((order) => order.oid));
      const lost = [...placed].filter((oid) => !cancelSent.has(oid) && !openNow.has(oid));
      const undead = [...canceled].filter((oid) => openNow.has(oid));
      expect({ lost, undead }, role).to.deep.equal({ lost: [], undead: [] });
    }

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
      const reads = askedOverAndOver(`${stack.manifest.serverUrl}/v0/pairs`);
      const printed = await stack.operate('reconcile', '--yes', '--json');
      const { ok, plan } = JSON.parse(printed.split('\n').at(-1)!) as {
        ok: boolean;
        plan: { orphanedBlocks: { from: number } };
      };
      expect([ok, plan.orphanedBlocks.from]).to.deep.equal([true, firstLost]);
      await untilReady();
      const answers = await reads.stop();
      expect(answers.size, 'answers').to.equal(1);
      expect(answers.get('200'), 'no connection refused').to.be.greaterThan(5);
      await verify();
      await stack.operate('halt', 'for', 'a', 'while');
      await until('the operator halt', async () => (await limits()).ledger.reason === 'operator_halt');
      await stack.operate('resume');
      await untilReady();
      expect(await stack.operate('outbox', '--all')).to.match(/nonce \d+ used/);
    });
  });
});
