/**
 * A withdrawal is requested, settled and paid while curves that offer the same tokens are cut, signed, mined and traded against. The steps
 * of the keepers are taken apart, so that any of them may come between any two of another.
 */
import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import type { Hex } from '../../core/types.js';
import { sumBalances } from '../../ledger/chain/balances.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { fcOptions } from '../support/fc.js';
import {
  startKeepers,
  startManualChain,
  type Intercept,
  type KeeperStack,
  type ManualChain,
  type Sender,
} from '../support/keeper-stack.js';
import { seededRandom, type Random } from '../support/random.js';

const LOTS_PER_WETH = 10_000n;
const SENDERS: readonly Sender[] = ['poster', 'settler'];

/**
 * One keeper's round in three steps: it has read what it decides on and is about to write it down; it has written and signed; what it
 * signed is mined.
 */
type Step = `${Sender} ${'looks' | 'writes' | 'lands'}` | 'request' | 'scan' | 'swap';

/** Steps in their own order each; the rest is up to chance. */
const STRANDS: readonly (readonly Step[])[] = [
  ['request', 'scan'],
  ['poster looks', 'poster writes', 'poster lands'],
  ['settler looks', 'settler writes', 'settler lands'],
  ['swap'],
  ['swap', 'scan'],
];

/** Any order of the steps that keeps each strand's own; every other time the request is known to begin with. */
function shuffle(random: Random): Step[] {
  const strands = STRANDS.map((strand) => [...strand]);
  const steps: Step[] = random.int(0, 1) === 0 ? strands.shift()! : [];
  for (let left = strands; left.length > 0; left = left.filter((strand) => strand.length > 0)) {
    steps.push(random.pick(left.flatMap((strand) => strand.map(() => strand))).shift()!);
  }
  return steps;
}

/** What a run starts from, in whole tokens of a maker with a hundred: what its curve offers, what it wants to offer, what it requests. */
interface Run {
  live: bigint;
  offered: bigint;
  requested: bigint;
  steps: readonly Step[];
}

/** Those that chance might leave out. */
const FIRST_RUNS: readonly Run[] = [
  {
    // A settlement is written down, and a curve that knows of the request, each while the other is under way.
    live: 50n,
    offered: 45n,
    requested: 50n,
    steps: [
      ...(['request', 'scan', 'poster looks', 'settler looks', 'settler writes', 'poster writes'] as const),
      ...(['poster lands', 'swap', 'settler lands', 'swap', 'scan'] as const),
    ],
  },
  {
    // A curve is cut before the request was seen, and would be written down after the settlement that it leaves nothing for.
    live: 50n,
    offered: 70n,
    requested: 45n,
    steps: [
      ...(['poster looks', 'request', 'scan', 'settler looks', 'settler writes', 'poster writes'] as const),
      ...(['settler lands', 'poster lands', 'swap', 'scan', 'swap'] as const),
    ],
  },
];

function anyRun(random: Random): Run {
  const [live, offered] = [random.big(0n, 70n), random.big(0n, 70n)];
  return { live, offered, requested: random.big(1n, 110n), steps: shuffle(random) };
}

/** Stops rounds between reading and writing, and keeps what they sign. */
function createGates() {
  const held: Record<Sender, Hex[]> = { poster: [], settler: [] };
  const rounds: Record<Sender, { running: Promise<unknown>; go(): void } | null> = { poster: null, settler: null };
  const armed: Record<Sender, { hasLooked: boolean; reached(): void; go: Promise<void> } | null> = {
    poster: null,
    settler: null,
  };
  const intercept: Intercept = {
    look(role) {
      const gate = armed[role];
      if (gate !== null) gate.hasLooked = true;
    },
    async write(role) {
      const gate = armed[role];
      if (gate === null || !gate.hasLooked) return;
      armed[role] = null;
      gate.reached();
      await gate.go;
    },
    async broadcast(role, raw) {
      if (!held[role].includes(raw)) held[role].push(raw);
    },
  };
  return {
    intercept,
    held,
    /** Starts a round; resolves when it is about to write, or has ended without. */
    async start(role: Sender, round: () => Promise<unknown>): Promise<void> {
      let go = (): void => undefined;
      const reached = new Promise<void>((resolve) => {
        armed[role] = { hasLooked: false, reached: resolve, go: new Promise((release) => (go = release)) };
      });
      const running = round().finally(() => (armed[role] = null));
      rounds[role] = { running, go };
      await Promise.race([reached, running]);
    },
    /** Its round is under way, or what it signed has not landed. */
    isBusy: (role: Sender): boolean => rounds[role] !== null || held[role].length > 0,
    /** Lets the round go on to its end. */
    async finish(role: Sender): Promise<void> {
      const round = rounds[role];
      rounds[role] = null;
      round?.go();
      await round?.running;
    },
  };
}

forEachDatabase((name, open) =>
  describe(`curves and settlements at once, ${name}`, () => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;
    let gates: ReturnType<typeof createGates>;
    let resting: number[] = [];
    let bought = 0;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
    });

    after(() => chain?.close());

    afterEach(() => stack.stop());

    const weth = () => custody.token('WETH');
    const balance = async (): Promise<bigint> =>
      custody.units('WETH', (await custody.standing('maker1', 'WETH')).balance);

    /** Gives what a keeper signed to the node and mines it. */
    async function land(role: Sender): Promise<void> {
      for (const raw of gates.held[role].splice(0)) {
        // A replaced or used nonce is refused by the node, as it should be.
        await chain.provider.send('eth_sendRawTransaction', [raw]).catch(() => undefined);
      }
      await chain.mine();
    }

    /** Buys everything that the curve has to give, but for less than one. */
    async function swap(): Promise<void> {
      const entrypoint = chain.entrypointAs('taker1');
      const [usdc, taker] = [custody.token('USDC'), chain.address('taker1')];
      for (let whole = 64n; whole > 0n; whole /= 2n) {
        const units = whole * 10n ** 18n;
        if ((await entrypoint.quoteExactOutput(usdc, weth(), units)) === 0n) continue;
        await entrypoint.swapExactOutput(usdc, weth(), units, MaxUint256, taker, MaxUint256, { gasLimit: 1_000_000n });
        await chain.mine();
        bought += 1;
      }
    }

    /** The maker offers so much, in place of what it offered before; the curve is live afterwards. */
    async function offer(lots: bigint): Promise<void> {
      const ask = { side: 'ask' as const, priceTicks: 100n, sizeLots: lots };
      resting = await stack.order(chain.address('maker1'), lots === 0n ? [] : [ask], resting);
    }

    async function quiet(): Promise<void> {
      for (let i = 0; i < 2; i++) {
        await chain.mine();
        await stack.watcher.scan();
        await stack.poster.round();
        await stack.settler.round();
        for (const role of SENDERS) await land(role);
        await stack.watcher.scan();
      }
    }

    /** What was bought goes back to the maker's wallet and into the vault, so that it has 100 again. */
    async function refill(): Promise<void> {
      const token = (role: string) => chain.tokenAs('WETH', role);
      const missing = custody.units('WETH', '100') - (await balance());
      if (missing <= 0n) return;
      const own = (await token('owner').getFunction('balanceOf')(chain.address('maker1'))) as bigint;
      if (own < missing) {
        await token('taker1').getFunction('transfer')(chain.address('maker1'), missing - own, GAS);
        await chain.mine();
      }
      await token('maker1').getFunction('approve')(chain.manifest.contracts['custodian'], missing, GAS);
      await chain.mine();
      await custody.mined(() => custody.as('maker1').deposit(weth(), missing, GAS));
    }

    /** Nothing halted, all rows together are what the vault holds, and the maker's claim is the custodian's and covered. */
    async function expectSound(): Promise<void> {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      const sums = await sumBalances(stack.db.knex);
      const { custodian } = chain.manifest.contracts;
      for (const symbol of ['WETH', 'USDC']) {
        const held = (await chain.tokenAs(symbol, 'owner').getFunction('balanceOf')(custodian)) as bigint;
        expect(sums.get(custody.token(symbol)), symbol).to.equal(held);
      }
      const { claimUnits } = await readClaim(stack.db.knex, { maker: chain.address('maker1'), token: weth() });
      const [amount] = await custody.custodian.claim(chain.address('maker1'), weth());
      expect(claimUnits).to.equal(amount);
      expect(claimUnits <= (await balance()), 'the claim is covered').to.equal(true);
    }

    it('never make a maker pay more than it has, whatever comes first', async function () {
      const { numRuns, seed } = fcOptions(8);
      this.timeout(60_000 + 5_000 * numRuns);
      const random = seededRandom(seed);
      await chain.reset();
      gates = createGates();
      stack = await startKeepers(await open(), chain, { intercept: gates.intercept });
      custody = custodyOf(chain, stack);
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      let together = 0;
      for (let run = 0; run < numRuns; run++) {
        const { live, offered, requested, steps } = FIRST_RUNS[run] ?? anyRun(random);
        const amount = requested * 10n ** 18n;
        await refill();
        await offer(live * LOTS_PER_WETH);
        await quiet();
        await offer(offered * LOTS_PER_WETH);
        const told = `SEED=${seed}, run ${run}, ${amount} of ${await balance()}: ${steps.join(', ')}`;
        const act: Record<Step, () => Promise<unknown>> = {
          request: () => custody.as('maker1').requestWithdraw(weth(), amount, GAS).then(chain.mine),
          scan: () => stack.watcher.scan(),
          swap,
          'poster looks': () => gates.start('poster', () => stack.poster.round()),
          'poster writes': () => gates.finish('poster'),
          'poster lands': () => land('poster'),
          'settler looks': () => gates.start('settler', () => stack.settler.round()),
          'settler writes': () => gates.finish('settler'),
          'settler lands': () => land('settler'),
        };
        try {
          for (const step of steps) {
            await act[step]();
            if (step === 'settler writes' && gates.held.settler.length > 0 && gates.isBusy('poster')) together += 1;
          }
          await stack.watcher.scan();
          await expectSound();
          await quiet();
          await swap();
          await stack.watcher.scan();
          await expectSound();
          const standing = await custody.standing('maker1', 'WETH');
          expect(standing.reserved, 'the request is settled').to.equal(standing.claim);
          const claimUnits = custody.units('WETH', standing.claim);
          expect(claimUnits <= amount && claimUnits <= (await balance())).to.equal(true);
          if (claimUnits > 0n) await custody.mined(() => custody.as('maker1').executeWithdraw(weth(), GAS));
          await expectSound();
        } catch (error) {
          throw new Error(told, { cause: error });
        }
      }
      expect(bought, 'takers bought').to.be.greaterThan(numRuns);
      expect(together, 'a settlement and a post were under way at once').to.be.greaterThan(0);
    });
  }),
);
