import { expect } from 'chai';
import fc from 'fast-check';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { migrate, openDb } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';
import type { Side } from '../../core/types.js';
import { forEachDatabase } from '../support/db.js';
import { fcOptions } from '../support/fc.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import {
  MAKER_ROLES,
  TAKER_ROLES,
  doubleChain,
  realChain,
  startHistory,
  type History,
  type HistoryChain,
} from '../support/worlds/ledger-world.js';

/** What happens after a command: nothing, a block that nobody looks at yet, or a block that is scanned. */
type After = 'nothing' | 'block' | 'scan';

type Command = fc.AsyncCommand<object, History>;

/** A command that is possible until the history has ended. */
function command(name: string, after: After, run: (history: History) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => `${name} then ${after}`,
    async run(_model, history) {
      if (history.ended) return;
      await run(history);
      if (after !== 'nothing') await history.mine();
      if (after === 'scan') await history.scan();
    },
  };
}

const next = fc.constantFrom<After>('nothing', 'block', 'scan', 'scan', 'scan');
const maker = fc.constantFrom(...MAKER_ROLES);
const taker = fc.constantFrom(...TAKER_ROLES);
const symbol = fc.constantFrom('WETH', 'USDC', 'DAI');
const side = fc.constantFrom<Side>('ask', 'bid');
const market = fc.nat({ max: 1 });
const permille = fc.integer({ min: 1, max: 1_000 });
const MID_TICKS = 250_000n;

/** Up to five tokens of base, or what that is worth. */
const unitsOf = (token: string, share: number): bigint =>
  ((token === 'WETH' ? 5n * 10n ** 18n : token === 'USDC' ? 12_500n * 10n ** 6n : 12_500n * 10n ** 18n) *
    BigInt(share)) /
    1_000n +
  BigInt(share % 7);

const open = fc.record({
  market,
  side,
  away: fc.integer({ min: 1, max: 40 }),
  sizeLots: fc.integer({ min: 1, max: 30_000 }),
});
const opened = ({
  market: index,
  side: on,
  away,
  sizeLots,
}: typeof open extends fc.Arbitrary<infer T> ? T : never) => ({
  market: index,
  side: on,
  priceTicks: MID_TICKS + (on === 'ask' ? 1n : -1n) * BigInt(away),
  sizeLots: BigInt(sizeLots),
});
const openOf = (history: History, role: string) =>
  history.orders.filter((order) => order.open && order.maker === history.chain.address(role));

/** Somebody trades. Three times as likely as the other commands. */
const swap: fc.Arbitrary<Command> = fc
  .tuple(taker, market, side, fc.boolean(), permille, next)
  .map(([who, index, on, exactOut, share, then]) =>
    command(`${who} takes ${share} ${on} of ${index}${exactOut ? ', exact output' : ''}`, then, (history) => {
      const { base, quote } = history.markets[index]!;
      const [tokenIn, tokenOut] = on === 'ask' ? [quote, base] : [base, quote];
      const units = unitsOf(exactOut ? tokenOut.symbol : tokenIn.symbol, share) / 3n;
      return history.swap(who, exactOut, tokenIn.address, tokenOut.address, units);
    }),
  );

/** Orders whose prices and sizes grow geometrically, up to far more or down to far less than the first: no curve follows them. */
function ladder(index: number, on: Side, lots: bigint) {
  const levels = 40n;
  return Array.from({ length: 40 }, (_, i) => {
    const away = (MID_TICKS * (on === 'ask' ? 9n : 5n) * BigInt(i + 1) ** 2n) / (10n * levels ** 2n);
    return { market: index, side: on, away: Number(away) + 6, sizeLots: Number((lots * BigInt(i + 2)) / 860n) + 1 };
  }).map(opened);
}

/**
 * A maker exchanges what rests for a ladder, while takers hit what rested: the ladder's curve lands after late fills of any size, and is then
 * taken. What the operator would lose there is what the carry rule is for.
 */
const ambush: fc.Arbitrary<Command> = fc
  .tuple(maker, market, side, fc.array(permille, { minLength: 1, maxLength: 2 }), fc.boolean(), permille, next)
  .map(([who, index, on, late, wait, share, then]) =>
    command(`${who} lays a ladder on the ${on} side of ${index}, late ${late.join()}`, then, async (history) => {
      const own = openOf(history, who).filter((order) => order.market === index && order.side === on);
      const rest = opened({ market: index, side: on, away: 5, sizeLots: 20_000 });
      const take = (of: number) => {
        const { base, quote } = history.markets[index]!;
        const units = 2n * 10n ** 15n * BigInt(of) + BigInt(of % 3);
        return on === 'ask'
          ? history.swap('taker2', true, quote.address, base.address, units)
          : history.swap('taker2', false, base.address, quote.address, units);
      };
      await history.order(who, [rest], own);
      await history.post();
      await history.mine();
      await history.scan();
      if (history.ended) return;
      const resting = openOf(history, who).filter((order) => order.market === index && order.side === on);
      await history.order(who, ladder(index, on, 20_000n), resting);
      let left = 1_000;
      const takeOf = async (part: number) => {
        const units = Math.ceil((left * part) / 1_000);
        left -= units;
        await take(units);
      };
      for (const one of late) await takeOf(one / 2);
      await history.post();
      await history.mine();
      if (wait) {
        // Once more over what is left, after the ledger has seen it.
        await history.scan();
        if (history.ended) return;
        await takeOf(share / 4);
        await history.post();
      }
      await takeOf(share);
      await takeOf(900);
    }),
  );

const commands: fc.Arbitrary<Command>[] = [
  ambush,
  fc
    .tuple(maker, symbol, permille, next)
    .map(([who, token, share, then]) =>
      command(`${who} deposits ${share} ${token}`, then, (history) =>
        history.custody(who, 'deposit', [history.token(token), unitsOf(token, share)]),
      ),
    ),
  fc
    .tuple(maker, fc.array(open, { minLength: 1, maxLength: 4 }), fc.boolean(), next)
    .map(([who, opens, anew, then]) =>
      command(`${who} quotes ${opens.length}${anew ? ' anew' : ''}`, then, (history) =>
        history.order(who, opens.map(opened), anew ? openOf(history, who) : []),
      ),
    ),
  // The same money is promised elsewhere, before the curve that promised it first is gone.
  fc.tuple(maker, market, next).map(([who, from, then]) =>
    command(`${who} moves from market ${from}`, then, async (history) => {
      const moved = openOf(history, who).filter((order) => order.market === from);
      if (moved.length === 0) return;
      const opens = moved.map(({ side: on, priceTicks, sizeLots }) => ({
        market: 1 - from,
        side: on,
        priceTicks,
        sizeLots,
      }));
      await history.order(who, opens, moved);
    }),
  ),
  next.map((then) => command('post', then, (history) => history.post())),
  next.map((then) => command('post', then, (history) => history.post())),
  swap,
  swap,
  swap,
  fc
    .tuple(fc.constantFrom(...MAKER_ROLES, 'taker1'), symbol, fc.integer({ min: 0, max: 1_200 }), next)
    .map(([who, token, share, then]) =>
      command(`${who} asks for ${share} ${token}`, then, (history) => {
        const key = `${history.chain.address(who)}:${history.token(token)}`;
        const balance = history.standing().balances.get(key) ?? 0n;
        const units = share > 1_190 ? 2n ** 256n - 1n : (balance * BigInt(share)) / 1_000n + 1n;
        return history.custody(who, 'requestWithdraw', [history.token(token), units]);
      }),
    ),
  next.map((then) => command('settle', then, (history) => history.settle())),
  fc
    .tuple(maker, symbol, next)
    .map(([who, token, then]) =>
      command(`${who} executes ${token}`, then, (history) =>
        history.custody(who, 'executeWithdraw', [history.token(token)]),
      ),
    ),
  fc
    .tuple(taker, symbol, permille, next)
    .map(([who, token, share, then]) =>
      command(`${who} gives ${share} ${token} away`, then, (history) =>
        history.transfer(who, history.token(token), BigInt(share)),
      ),
    ),
  fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.boolean())
    .map(([depth, again]) =>
      command(`reorganisation of ${depth}${again ? ', sent again' : ''}`, 'scan', (history) =>
        history.reorg(depth, again),
      ),
    ),
  fc
    .tuple(fc.constantFrom(2, 10, 70), next)
    .map(([sec, then]) => command(`wait ${sec} s`, then, (history) => history.wait(sec))),
];
const histories = (size: number) => fc.commands(commands, { maxCommands: size, size: 'max' });

/** Deposits and quotes come first, so that most histories trade. */
async function prelude(history: History): Promise<void> {
  for (const who of MAKER_ROLES.slice(0, 2)) {
    for (const token of ['WETH', 'USDC', 'DAI']) {
      await history.custody(who, 'deposit', [history.token(token), unitsOf(token, 1_000)]);
    }
    const quote = (index: number, on: Side) => opened({ market: index, side: on, away: 5, sizeLots: 20_000 });
    await history.order(who, [quote(0, 'ask'), quote(0, 'bid'), quote(1, 'ask'), quote(1, 'bid')], []);
  }
  await history.mine();
  await history.scan();
  await history.post();
  await history.mine();
  await history.scan();
}

/** Runs one history on a database with no rows; returns what came about in it. */
async function runHistory(db: Db, chain: HistoryChain, steps: Iterable<Command>): Promise<ReadonlyMap<string, number>> {
  const history = await startHistory(db, chain);
  try {
    await prelude(history);
    await fc.asyncModelRun(() => ({ model: {}, real: history }), steps);
    await history.mine();
    if (!history.ended) await history.scan();
    await verifyLedger({ ...history.verification(), onProgress: () => undefined });
    return history.seen;
  } finally {
    await history.stack.stop();
  }
}

/** What was seen in all histories together. */
function tally(all: Map<string, number>, one: ReadonlyMap<string, number>): void {
  for (const [what, times] of one) all.set(what, (all.get(what) ?? 0) + times);
}

describe('random histories against a simple model of balances', () => {
  it('agree on a chain in memory', async function () {
    const { numRuns, seed } = fcOptions(40);
    this.timeout(120_000 + 5_000 * numRuns);
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(histories(40), async (steps) => {
        const db = await openDb('sqlite::memory:');
        try {
          await migrate(db);
          tally(seen, await runHistory(db, doubleChain(), steps));
        } finally {
          await db.close();
        }
      }),
      { numRuns, seed },
    );
    console.log(`      ${JSON.stringify(Object.fromEntries(seen))}`);
    for (const what of ['fills', 'raised', 'reversals', 'settlements', 'trimmed', 'full']) {
      expect(seen.get(what) ?? 0, what).to.be.above(0);
    }
  });

  forEachDatabase((_name, openEmpty) => {
    let chain: ManualChain;
    let onChain: HistoryChain;
    let start: string;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(2);
      onChain = await realChain(chain);
      start = (await chain.provider.send('evm_snapshot', [])) as string;
    });

    after(() => chain.close());

    it('agree on the local chain', async function () {
      // A quick run has one history; with more runs there are 25 of them at least.
      const { numRuns: factor, seed } = fcOptions(1);
      const numRuns = factor === 1 ? 1 : Math.max(25, factor);
      this.timeout(120_000 + 60_000 * numRuns);
      const seen = new Map<string, number>();
      await fc.assert(
        fc.asyncProperty(histories(30), async (steps) => {
          await chain.provider.send('evm_revert', [start]);
          start = (await chain.provider.send('evm_snapshot', [])) as string;
          tally(seen, await runHistory(await openEmpty(), onChain, steps));
        }),
        { numRuns, seed, endOnFailure: factor === 1 },
      );
      console.log(`      ${JSON.stringify(Object.fromEntries(seen))}`);
      expect(seen.get('full') ?? 0).to.be.above(0);
    });
  });
});
