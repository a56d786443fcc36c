import { expect } from 'chai';
import { Contract } from 'ethers';
import { createMinOrderUnits } from '../../core/min-order.js';
import type { Address, Market } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { readFillsAfter } from '../../ledger/chain/past-fills.js';
import { forEachKeepers, type KeeperTest } from '../support/manual-suite.js';
import { seededRandom } from '../support/random.js';
import { drawStrategy } from './genome.js';
import { addressOf, COLLUDING_MAKERS, HONEST_MAKERS, OPERATOR, roleOf, type Setting } from './setting.js';
import type { Step } from './steps.js';
import { createWorld, type World, type WorldAct } from './world.js';

const GWEI = 1_000_000_000n;
const MAKERS = [...COLLUDING_MAKERS, ...HONEST_MAKERS];
/** Strategies with a fill; the seed is fixed, so that each run plays the same ones. */
const STRATEGIES = 4;
const SEED = 20_261;
const MAX_TRIES = 2_000;
/** Depends on rows that the chain has besides, or on its clock. */
const NOT_PLAYED = ['trimmed', 'inventory short', 'post reverted', 'touch'];

/** The sandbox's first market, with what its accounts have. */
function settingOn(market: Market): Setting {
  const half = { weth: 50n * 10n ** 18n, usdc: 150_000n * 10n ** 6n };
  return {
    name: 'chain',
    markets: [market],
    midTicks: [250_000n],
    unitValue: new Map([
      [market.base.address, 2_500n],
      [market.quote.address, 10n ** 12n],
    ]),
    dollar: 10n ** 18n,
    endowment: new Map([
      [market.base.address, 2n * half.weth],
      [market.quote.address, 2n * half.usdc],
    ]),
    sizeLots: [4_000n],
    knots: { maxKnots: 15, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 },
    feeMarket: null,
    minOrderUnits: createMinOrderUnits({}),
  };
}

/** What of a drawn strategy every chain with a mempool can do: each post lands in the block after its cut. */
function playable(steps: readonly Step[]): Step[] {
  const played: Step[] = [];
  let isPosted = false;
  for (const step of steps) {
    if (step.kind === 'post') {
      if (!isPosted) played.push({ kind: 'post', amend: false });
      isPosted = true;
    } else if (step.kind === 'land') {
      if (isPosted) played.push({ kind: 'land', pick: 0 });
    } else if (step.kind === 'block') {
      if (isPosted) played.push({ kind: 'land', pick: 0 });
      played.push({ kind: 'block', sec: 2, scan: true });
      isPosted = false;
    } else if (step.kind === 'swap') played.push({ ...step, market: 0, taker: step.taker === 1 ? 0 : step.taker });
    else if (step.kind === 'quote' || step.kind === 'honestQuote' || step.kind === 'cancel')
      played.push({ ...step, market: 0 });
    else if (step.kind === 'modify') played.push(step);
  }
  return played;
}

/** Does on the contracts, through the keepers, what happened in the world. */
async function replay({ chain, stack }: KeeperTest, acts: readonly WorldAct[]): Promise<void> {
  const { base, quote } = stack.markets[0]!;
  const deadline = 2n ** 40n;
  let sent = 0;
  let isLanded = false;
  for (const act of acts) {
    if (act.kind === 'row') {
      const opens = act.row.effects.flatMap((effect) =>
        effect.type === 'open' ? [{ ...effect, cloid: effect.cloid ?? undefined }] : [],
      );
      const closes = act.row.effects.filter((effect) => effect.type === 'close').map(({ oid }) => oid);
      if (opens.length + closes.length > 0) await stack.order(act.row.maker, opens, closes);
    } else if (act.kind === 'post') expect(await stack.poster.round(), 'what the poster sends').not.to.equal(null);
    else if (act.kind === 'land') isLanded = true;
    else if (act.kind === 'block') {
      await chain.mine();
      await stack.watcher.scan();
      [sent, isLanded] = [0, false];
    } else {
      const { taker, mode, amountUnits } = act.call;
      const role = roleOf(taker);
      sent += 1;
      // Highest fee first: before what the poster bids, or after it.
      const priority = isLanded ? 1_000n - BigInt(sent) : 5n * GWEI - BigInt(sent);
      const options = { maxPriorityFeePerGas: priority, maxFeePerGas: 100n * GWEI, gasLimit: 600_000n };
      const [tokenIn, tokenOut] = mode.startsWith('buy')
        ? [quote.address, base.address]
        : [base.address, quote.address];
      const entrypoint = chain.entrypointAs(role);
      if (mode.endsWith('Out'))
        await entrypoint.swapExactOutput(tokenIn, tokenOut, amountUnits, 2n ** 100n, taker, deadline, options);
      else await entrypoint.swap(tokenIn, tokenOut, amountUnits, 0n, taker, deadline, options);
    }
  }
}

/** The makers that the sandbox gives nothing get what the world gives them. */
async function fund({ chain, stack, custody }: KeeperTest, setting: Setting): Promise<void> {
  const approve = ['function approve(address,uint256)'];
  for (const role of ['maker3', 'taker3']) {
    await chain.provider.send('hardhat_setBalance', [chain.address(role), '0xde0b6b3a7640000']);
    for (const [token, units] of setting.endowment) {
      const wallet = chain.wallet(role);
      const contract = new Contract(token, approve, wallet);
      await contract.getFunction('approve')(chain.manifest.contracts.custodian, units);
      await chain.mine();
      await custody.as(role).deposit(token, units / 2n);
      await chain.mine();
    }
  }
  await stack.watcher.scan();
}

forEachKeepers((begin) =>
  describe('strategies of the search, played on the contracts by the keepers', function () {
    this.timeout(120_000);
    const random = seededRandom(SEED);

    for (let number = 1; number <= STRATEGIES; number++) {
      it(`come out to the unit as they do in memory (${number})`, async () => {
        const test = await begin();
        const { stack } = test;
        await stack.watcher.scan();
        const market = stack.markets[0]!;
        const setting = settingOn(market);
        await fund(test, setting);
        const started = await rowsOf(test);
        const { world, acts } = drawWorld(setting);
        await replay(test, acts);

        const fills = await readFillsAfter(stack.db.knex, 0, 0);
        const shown = world.ledger.fills.map(({ fill, orderFills }) => ({
          ...amounts(fill),
          orders: orderFills.map(({ oid, baseUnits }) => `${oid}: ${baseUnits}`),
        }));
        const real = fills.map((fill) => ({
          ...amounts(fill),
          orders: fill.orderFills.map(({ oid, baseUnits }) => `${oid}: ${baseUnits}`),
        }));
        expect(real).to.deep.equal(shown);
        const ended = await rowsOf(test);
        for (const role of MAKERS) {
          for (const [token, units] of setting.endowment) {
            const [maker, key] = [addressOf(role), `${addressOf(role)}:${token}`];
            const change = (ended.get(key) ?? 0n) - (started.get(key) ?? 0n);
            expect(change, `${role} ${token}`).to.equal(world.ledger.rowOf(maker, token) - units / 2n);
          }
        }
        const owed = `${OPERATOR}:${market.quote.address}`;
        expect(ended.get(owed) ?? 0n, 'operator').to.equal(world.ledger.rowOf(OPERATOR, market.quote.address));
        expect(stack.watcher.status().halt).to.equal(null);
        await stack.stop();
      });
    }

    /** The next strategy that fills a curve that a late fill raised, without what depends on more than the world gives the chain. */
    function drawWorld(setting: Setting): { world: World; acts: WorldAct[] } {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const acts: WorldAct[] = [];
        const world = createWorld(setting, 'raised', (act) => acts.push(act));
        // The keepers of tests post every change at once.
        world.step({ kind: 'pace', on: false });
        for (const step of playable(drawStrategy(random, ['chain']).steps)) world.step(step);
        world.finish();
        const { seen, faults } = world;
        expect(faults).to.deep.equal([]);
        const isRaised = world.ledger.fills.some(
          ({ fill }) => (world.ledger.curve(0, fill.curveSeq)?.raised[fill.side] ?? 0n) > 0n,
        );
        const isApt = isRaised && NOT_PLAYED.every((what) => !seen.has(what));
        if (isApt) return { world, acts: acts.slice(acts.findIndex(({ kind }) => kind === 'row')) };
      }
      throw new Error('no strategy fills a curve after a raise');
    }
  }),
);

const amounts = ({
  curveSeq,
  side,
  baseUnits,
  quoteUnits,
}: {
  curveSeq: number;
  side: string;
  baseUnits: bigint;
  quoteUnits: bigint;
}) => ({
  curveSeq,
  side,
  baseUnits,
  quoteUnits,
});

async function rowsOf({ stack }: KeeperTest): Promise<Map<string, bigint>> {
  const rows = await readBalances(stack.db.knex);
  return new Map(rows.map(({ account, token, balanceUnits }) => [`${account as Address}:${token}`, balanceUnits]));
}
