import { expect } from 'chai';
import { Contract, MaxUint256 } from 'ethers';
import { pino } from 'pino';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import type { Source } from '../../core/swap/source.js';
import type { Address, Hex } from '../../core/types.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import { createRpc, RpcUnavailableError, type Rpc } from '../../keepers/chain/rpc.js';
import { createHeadReader, type Head } from '../../liquidity/eth.js';
import { createPoolFinder } from '../../liquidity/pool-finder.js';
import { createUniswapV3, poolRule, type UniswapV3Contracts } from '../../liquidity/uniswap-v3.js';
import type { Venue } from '../../liquidity/venue.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { sellToPool } from '../support/contracts/pool-router.js';
import { seededRandom } from '../support/random.js';

const ERC20 = ['function approve(address, uint256) returns (bool)'];
describe('external liquidity', function () {
  this.timeout(120_000);
  let chain: ManualChain;
  let contracts: UniswapV3Contracts;
  let venue: Venue;
  let weth: Address;
  let usdc: Address;

  before(async () => {
    chain = await startManualChain(1, { pools: true });
    const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
    contracts = { factory: at('uniswapV3Factory'), router: at('uniswapV3Router'), quoter: at('uniswapV3Quoter') };
    venue = createUniswapV3(createRpc(chain.rpcUrl), contracts);
    [weth, usdc] = ['weth', 'usdc'].map(at) as [Address, Address];
    await chain.provider.send('evm_setAutomine', [true]);
    for (const token of [weth, usdc]) {
      await new Contract(token, ERC20, chain.wallet('taker1'))
        .getFunction('approve')
        .send(at('uniswapV3Router'), MaxUint256);
    }
  });

  after(() => chain?.close());

  const headNow = (): Promise<Head> => createHeadReader(createRpc(chain.rpcUrl)).head();

  it('knows square-root prices of ticks to the unit', () => {
    expect(sqrtPriceAtTick(0)).to.equal(2n ** 96n);
    expect(sqrtPriceAtTick(-887_272)).to.equal(4_295_128_739n);
    expect(sqrtPriceAtTick(887_272)).to.equal(1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342n);
    expect(() => sqrtPriceAtTick(887_273)).to.throw(RangeError);
  });

  it('prices a pool as its quoter does, to the unit, both ways and across ticks, wherever the price is', async () => {
    const random = seededRandom(7);
    let compared = 0;
    for (let state = 0; state < 6; state++) {
      const head = await headNow();
      for (const [sellToken, buyToken] of [
        [weth, usdc],
        [usdc, weth],
      ] as const) {
        const sources = await venue.sources(sellToken, buyToken, head);
        expect(sources.map(({ id }) => id)).to.deep.equal(['uniswap-v3:500']);
        const source = sources[0] as Source;
        const all = source.tradedAt({ out: 0n, in: 1n });
        for (let i = 0; i < 12; i++) {
          const pair = { id: source.id, sellToken, buyToken, inUnits: 0n, outUnits: 0n };
          const inUnits = random.big(1n, all.inUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
          const sold = await venue.quote({ ...pair, kind: 'sell', inUnits }, head);
          expect(source.outputFor(inUnits), `selling ${inUnits}`).to.equal(sold);
          const outUnits = random.big(1n, all.outUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
          const bought = await venue.quote({ ...pair, kind: 'buy', outUnits }, head);
          expect(source.inputFor(outUnits), `buying ${outUnits}`).to.equal(bought);
          compared += 2;
        }
      }
      const sells = state % 2 === 0;
      const amount = sells ? random.big(10n ** 16n, 60n * 10n ** 18n) : random.big(10n ** 7n, 150_000n * 10n ** 6n);
      const [tokenIn, tokenOut] = sells ? [weth, usdc] : [usdc, weth];
      await sellToPool(chain, 'taker1', { tokenIn, tokenOut, amountIn: amount }, { gasLimit: 3_000_000n });
    }
    expect(compared).to.equal(288);
  });

  it('refuses beyond its depth, and what no pool trades', async () => {
    const head = await headNow();
    const [source] = await venue.sources(weth, usdc, head);
    const { inUnits, outUnits } = source!.tradedAt({ out: 0n, in: 1n });
    expect(source!.outputFor(inUnits * 2n)).to.equal(null);
    expect(source!.inputFor(outUnits + 1n)).to.equal(null);
    expect(source!.outputFor(0n)).to.equal(null);
    const id = source!.id;
    const trade = { id, kind: 'sell' as const, sellToken: weth, buyToken: usdc, inUnits: 0n, outUnits: 0n };
    expect(await venue.quote(trade, head)).to.equal(null);
    const stranger: Address = `0x${'12'.repeat(20)}`;
    expect(await venue.sources(weth, stranger, head)).to.deep.equal([]);
  });

  describe('of which one of several endpoints lies', () => {
    const EVIL: Address = `0x${'e'.repeat(40)}`;
    const GET_POOL = '0x1698ee82';
    const SLOT0 = '0x3850c7bd';
    const LIQUIDITY = '0x1a686502';
    const wordOf = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`;
    const word = (address: Address): Hex => `0x${address.slice(2).padStart(64, '0')}`;

    interface Lies {
      getPool?(real: Hex): Hex;
      slot0?(real: Hex): Hex;
      liquidity?: bigint;
      code?: Hex;
    }

    /** The node as somebody tells of it who wants another pool to be traded with, or another call to be made. */
    function telling(name: string, lies: Lies, read: Set<string>): Rpc {
      const real = createRpc(chain.rpcUrl);
      async function call(method: string, params: unknown[] = []): Promise<unknown> {
        const { to = '', data = '' } = (params[0] ?? {}) as { to?: string; data?: string };
        if (method === 'eth_call') read.add(to);
        const answer = (to === EVIL ? '0x' : await real.call(method, params)) as Hex;
        if (method === 'eth_call' && data.startsWith(GET_POOL) && lies.getPool) return lies.getPool(answer);
        if (method === 'eth_call' && data === SLOT0 && lies.slot0) return lies.slot0(answer);
        if (method === 'eth_call' && data === LIQUIDITY && lies.liquidity !== undefined) return wordOf(lies.liquidity);
        if (method === 'eth_getCode' && lies.code !== undefined) return lies.code;
        return answer;
      }
      return { name, call, batch: (all) => Promise.all(all.map(({ method, params }) => call(method, params))) };
    }

    async function ask(
      lies: readonly Lies[],
      change: Partial<UniswapV3Contracts> = {},
    ): Promise<{ ids: string[]; read: Set<string>; pool: RpcPool; data: string; brought: (bigint | null)[] }> {
      const read = new Set<string>();
      const names = lies.map((_, i) => String(i));
      const connect = (name: string): Rpc => telling(name, lies[Number(name)]!, read);
      const pool = createRpcPool(names, { nowMs: () => performance.now(), logger: pino({ level: 'silent' }), connect });
      const lied = createUniswapV3(pool, { ...contracts, ...change });
      const sources = await lied.sources(weth, usdc, await headNow());
      const trade = { id: 'uniswap-v3:500', kind: 'sell' as const, sellToken: weth, buyToken: usdc };
      const terms = { recipient: EVIL, deadlineSec: 1, maxIn: 1n };
      const { data } = await lied.call({ ...trade, inUnits: 1n, outUnits: 1n }, terms);
      const brought = sources.map((source) => source.outputFor(10n ** 16n));
      return { ids: sources.map(({ id }) => id), read, pool, data, brought };
    }

    it('trades with no pool that one endpoint names, of two, of three, and beside silent ones', async () => {
      const evil: Lies = { getPool: () => word(EVIL) };
      for (const lies of [
        [evil, {}],
        [evil, {}, {}],
        [{}, evil, {}],
      ] as const) {
        const { ids, read, pool } = await ask(lies);
        // Of two nobody knows which one lies, before both have named a pool.
        expect(ids, `${lies.length}`).to.deep.equal(lies.length === 2 ? [] : ['uniswap-v3:500']);
        expect([...read]).to.not.include(EVIL);
        if (lies.length === 2) expect(pool.health()[1]!.problem).to.equal(null);
        else if (lies[0] === evil) expect(pool.health()[0]!.problem).to.match(/is the pool of/);
      }
      const dead = { name: 'dead', call: () => Promise.reject(new RpcUnavailableError('dead')) };
      const read = new Set<string>();
      const alone = createRpcPool(['liar', 'b', 'c'], {
        ...{ nowMs: () => performance.now(), logger: pino({ level: 'silent' }) },
        connect: (name) => (name === 'liar' ? telling(name, evil, read) : { ...dead, batch: dead.call }),
      });
      const lied = createUniswapV3(alone, contracts);
      const found = await lied.sources(weth, usdc, await headNow()).catch(() => []);
      expect(found).to.deep.equal([]);
      expect([...read]).to.not.include(EVIL);
    });

    it('knows of no pool that does not exist, and keeps none that can not be read', async () => {
      // The address of a pool that nobody has created.
      const absent = poolRule(contracts.factory).addressOf([weth, usdc], 3_000n);
      const invents: Lies = { getPool: (real) => (BigInt(real) === 0n ? word(absent) : real) };
      const { ids, pool } = await ask([invents, {}, {}]);
      expect(ids).to.deep.equal(['uniswap-v3:500']);
      expect(pool.health()[0]!.counts.contradiction).to.be.greaterThan(0);
      const blamed = (one: RpcPool) => one.health().map(({ counts }) => counts.contradiction);
      expect(blamed(pool).slice(1)).to.deep.equal([0, 0]);
      const two = await ask([invents, {}]);
      expect(two.ids).to.deep.equal(['uniswap-v3:500']);
      expect(blamed(two.pool), 'nobody is blamed where it is open who is right').to.deep.equal([0, 0]);
    });

    it('passes over an endpoint that says of a pool what none can be', async () => {
      const truth = (await ask([{}])).brought;
      const slotOf = (sqrtPrice: bigint) => (real: Hex) => `${wordOf(sqrtPrice)}${real.slice(66)}` as Hex;
      const withTick = (tick: bigint) => (real: Hex) =>
        `${real.slice(0, 66)}${wordOf(tick).slice(2)}${real.slice(130)}` as Hex;
      for (const lie of [
        { slot0: slotOf(1n), liquidity: 1n },
        { slot0: slotOf(4_295_128_739n) },
        { slot0: slotOf(1n << 159n) },
        { slot0: withTick(0n) },
        { slot0: withTick(887_272n) },
        { liquidity: 1n << 128n },
      ]) {
        const { brought, pool } = await ask([lie, {}]);
        expect(brought).to.deep.equal(truth);
        expect(pool.health()[0]!.counts.contradiction).to.be.above(0);
      }
    });

    /** A finder over endpoints that can change what they say, by a clock that stands still. */
    function finderOver(lies: readonly Lies[]) {
      const clock = { ms: 0 };
      const pool = createRpcPool(
        lies.map((_, i) => String(i)),
        {
          ...{ nowMs: () => performance.now(), logger: pino({ level: 'silent' }) },
          connect: (name) => telling(name, lies[Number(name)]!, new Set()),
        },
      );
      const finder = createPoolFinder(pool, poolRule(contracts.factory), () => clock.ms);
      const blamed = () => pool.health().map(({ counts }) => counts.contradiction);
      return { clock, finder, blamed, find: async () => finder.poolsOf(weth, usdc, await headNow()) };
    }
    const zero = (): Hex => word(`0x${'0'.repeat(40)}`);

    it("takes Uniswap's own address for the truth once both of two have named one, and never before", async () => {
      const own = poolRule(contracts.factory).addressOf([weth, usdc], 500n);
      // As if the factory were somebody else's: the liar names what Uniswap's would give, the honest one what is there.
      const fork: Lies = { getPool: (real) => (BigInt(real) === 0n ? real : word(EVIL)) };
      const other = finderOver([{}, fork]);
      expect(await other.find()).to.deep.equal([]);
      expect(other.blamed()).to.deep.equal([0, 0]);

      const liar: Lies = {};
      const known = finderOver([liar, {}]);
      expect(await known.find()).to.deep.equal([[500n, own]]);
      liar.getPool = () => word(EVIL);
      known.finder.forget(own);
      expect(await known.find()).to.deep.equal([[500n, own]]);
      expect(known.blamed()).to.deep.equal([1, 0]);
    });

    it('has no pool hidden by one of three, asks for those that it does not know at a bounded rate', async () => {
      const hidden = finderOver([{ getPool: zero }, {}, {}]);
      expect((await hidden.find()).length).to.equal(1);
      expect(hidden.blamed()).to.deep.equal([1, 0, 0]);

      let asked = 0;
      const count: Lies = { getPool: () => ((asked += 1), zero()) };
      const { find, clock } = finderOver([count, {}]);
      for (let i = 0; i < 5; i += 1) expect(await find()).to.deep.equal([]);
      expect(asked, 'all fee tiers, once').to.equal(4);
      clock.ms = 10_000;
      count.getPool = (real) => real;
      expect((await find()).length).to.equal(1);
    });

    it('waits a second for one of two that hangs, and not for each quote', async () => {
      const hanging = new Promise<never>(() => undefined);
      const real = telling('real', {}, new Set());
      const pool = createRpcPool(['real', 'hangs'], {
        ...{ nowMs: () => performance.now(), logger: pino({ level: 'silent' }) },
        connect: (name) => (name === 'real' ? real : { name, call: () => hanging, batch: () => hanging }),
      });
      const lied = createUniswapV3(pool, contracts);
      const head = await headNow();
      const took: number[] = [];
      for (let i = 0; i < 3; i += 1) {
        const from = performance.now();
        expect(await lied.sources(weth, usdc, head)).to.deep.equal([]);
        took.push(Math.round(performance.now() - from));
      }
      // One for the router, one for the pools of the pair.
      expect(took[0], String(took)).to.be.within(1_900, 4_000);
      expect(Math.max(...took.slice(1)), String(took)).to.be.lessThan(500);
    });

    it("finds Uniswap's own pools where its factory says that they are", async () => {
      const read = new Set<string>();
      const found = createPoolFinder(telling('one', {}, read), poolRule(contracts.factory));
      const [[fee, pool] = []] = await found.poolsOf(weth, usdc, await headNow());
      expect(pool).to.equal(poolRule(contracts.factory).addressOf([weth, usdc], fee!));
    });

    it('calls the router as most say that it is', async () => {
      const other = ['414bf389', 'db3e2198', '04e45aaf', '5023b4df'];
      const real = (await ask([{}])).data.slice(2, 10);
      const lie = other.indexOf(real) < 2 ? other.slice(2) : other.slice(0, 2);
      const code: Hex = `0x${lie.map((selector) => `63${selector}`).join('')}`;
      for (const lies of [
        [{ code }, {}, {}],
        [{}, {}, { code }],
      ] as const)
        expect((await ask(lies)).data.slice(2, 10)).to.equal(real);
    });
  });
});
