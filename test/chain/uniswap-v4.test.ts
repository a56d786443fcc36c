/** Pools of Uniswap v4, in its published manager: priced as its own quoter prices them, traded at what was quoted, and beside pools of v3. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  AbiCoder,
  Contract,
  ContractFactory,
  MaxUint256,
  Wallet,
  ZeroAddress,
  keccak256,
  type InterfaceAbi,
} from 'ethers';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import type { Source } from '../../core/swap/source.js';
import type { SplitKind } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import { sandboxIssuerKey } from '../../deploy/sandbox/accounts.js';
import { changeLiquidity, publishModifier, type PoolKeyTuple } from '../../deploy/sandbox/managed-pools.js';
import type { Rpc } from '../../keepers/chain/rpc.js';
import { createHeadReader, type Head } from '../../liquidity/eth.js';
import { RouterError } from '../../liquidity/routers.js';
import { createUniswapV4, swapFeePpm, uniswapV4, type UniswapV4Contracts } from '../../liquidity/uniswap-v4.js';
import { inspectVenue } from '../../liquidity/venues.js';
import { UniswapV4Router__factory } from '../../typechain-types/factories/periphery/UniswapV4Router__factory.js';
import { seededRandom } from '../support/random.js';
import { uniswapV4Chain, WETH_UNIT } from '../support/contracts/uniswap-v4.js';

const QUOTER = JSON.parse(readFileSync(new URL('../fixtures/v4-quoter.json', import.meta.url), 'utf8')) as {
  abi: InterfaceAbi;
  bytecode: string;
};
const KEY = '(address,address,uint24,int24,address)';
const MANAGER = [
  `function initialize(${KEY}, uint160) returns (int24)`,
  'function setProtocolFeeController(address)',
  `function setProtocolFee(${KEY}, uint24)`,
];
/** The first word of a pool, as the manager's own StateLibrary finds it. */
function poolSlot(key: PoolKeyTuple): string {
  const coder = AbiCoder.defaultAbiCoder();
  const id = keccak256(coder.encode(['address', 'address', 'uint24', 'int24', 'address'], key));
  return keccak256(coder.encode(['bytes32', 'uint256'], [id, 6]));
}
const NOBODY: Address = `0x${'ab'.repeat(20)}`;
const GAS = { gasLimit: 8_000_000n };
/** Fee and spacing of the pools beside the sandbox's own. */
const OTHER_TIERS = [
  [100, 1],
  [3_000, 60],
  [10_000, 200],
] as const;

describe('liquidity of Uniswap v4', function () {
  this.timeout(240_000);
  const suite = uniswapV4Chain();

  const headNow = (): Promise<Head> => createHeadReader(suite.rpc).head();
  const balanceOf = (symbol: string, owner: string): Promise<bigint> =>
    suite.chain.tokenAs(symbol, 'taker1').getFunction('balanceOf')(owner) as Promise<bigint>;
  const keyOf = ([fee, spacing]: readonly [number, number], hooks = ZeroAddress): PoolKeyTuple =>
    [...[suite.token0, suite.token1], ...[fee, spacing], hooks] as PoolKeyTuple;
  const named = ([currency0, currency1, fee, tickSpacing, hooks]: PoolKeyTuple) => ({
    ...{ currency0, currency1, fee, tickSpacing, hooks },
  });
  const issuer = () => new Wallet(sandboxIssuerKey(), suite.chain.provider);
  const manager = () => new Contract(suite.contracts.poolManager, MANAGER, issuer());
  const router = (role = 'taker1') =>
    UniswapV4Router__factory.connect(suite.contracts.router, suite.chain.wallet(role));

  it('is told from addresses that are something else', async () => {
    expect(await inspectVenue(suite.rpc, uniswapV4, { ...suite.contracts })).to.deep.equal({ kind: 'UniswapV4Router' });
    const v3 = suite.chain.manifest.contracts['uniswapV3Router']!.toLowerCase() as Address;
    const wrong = async (change: Partial<UniswapV4Contracts>) => {
      const found = await inspectVenue(suite.rpc, uniswapV4, { ...suite.contracts, ...change });
      return 'problem' in found ? found : null;
    };
    expect(await wrong({ router: v3 })).to.deep.equal({
      isMissing: false,
      problem: `${v3} is not the platform's UniswapV4Router`,
    });
    expect(await wrong({ poolManager: v3 })).to.deep.equal({
      isMissing: false,
      problem: `the router ${suite.contracts.router} belongs to poolManager ${suite.contracts.poolManager}, not to ${v3}`,
    });
    expect(await wrong({ poolManager: NOBODY })).to.deep.equal({
      isMissing: true,
      problem: `the chain has no poolManager at ${NOBODY}`,
    });
    for (const other of [suite.weth, v3]) {
      const misled = await new UniswapV4Router__factory(issuer()).deploy(other);
      await misled.waitForDeployment();
      const at = (await misled.getAddress()).toLowerCase() as Address;
      expect(await wrong({ poolManager: other, router: at })).to.deep.equal({
        isMissing: false,
        problem: `${other} is not Uniswap's PoolManager`,
      });
    }
    const nothing = createUniswapV4(suite.rpc, { ...suite.contracts, router: NOBODY });
    expect(await nothing.sources(suite.weth, suite.usdc, await headNow())).to.deep.equal([]);
    const strange = createUniswapV4(suite.rpc, { ...suite.contracts, router: v3 });
    expect(
      await strange.sources(suite.weth, suite.usdc, await headNow()).catch((error: unknown) => error),
    ).to.be.instanceOf(RouterError);
    expect(await suite.venue.sources(suite.weth, NOBODY, await headNow())).to.deep.equal([]);
  });

  it('knows the fee of both sides of a pool, and that a pool of a tier has no other', () => {
    const slot0 = (lp: bigint, protocol: bigint): bigint => (lp << 208n) | (protocol << 184n) | 1n;
    expect(swapFeePpm(slot0(500n, 0n), true, 500n)).to.equal(500n);
    const both = (1_000n << 12n) | 200n;
    expect(swapFeePpm(slot0(3_000n, both), true, 3_000n)).to.equal(3_200n);
    expect(swapFeePpm(slot0(10_000n, both), false, 10_000n)).to.equal(10_990n);
    for (const [lp, protocol] of [
      [501n, 0n],
      [0x800000n, 0n],
      [500n, 1_001n],
    ] as const) {
      expect(() => swapFeePpm(slot0(lp, protocol), true, 500n)).to.throw(RangeError);
    }
  });

  it("is priced as Uniswap's quoter and our router price it, to the unit, both ways, across ticks and words, with the protocol's fee", async () => {
    const random = seededRandom(4);
    const taker = suite.chain.address('taker1');
    const deployed = await new ContractFactory(QUOTER.abi, QUOTER.bytecode, issuer()).deploy(
      suite.contracts.poolManager,
    );
    await deployed.waitForDeployment();
    const quoter = new Contract(await deployed.getAddress(), QUOTER.abi, suite.chain.provider);
    const modifier = await publishModifier(issuer(), suite.contracts.poolManager);
    for (const symbol of ['WETH', 'USDC']) {
      const token = suite.chain.tokenAs(symbol, 'taker1').connect(issuer()) as Contract;
      await token.getFunction('approve').send(await modifier.getAddress(), MaxUint256);
      const rich = suite.chain.tokenAs(symbol, 'taker2');
      const all = (await rich.getFunction('balanceOf')(suite.chain.address('taker2'))) as bigint;
      await rich.getFunction('transfer').send(issuer().address, all / 2n);
    }
    // WETH at 2,500 USDC, as the sandbox's own pool.
    const [start] = (await suite.venue.sources(suite.weth, suite.usdc, await headNow())).map(({ outputFor }) =>
      outputFor(10n ** 15n)!,
    );
    const perWeth = Number(start) / 1e15;
    const middle = Math.log(suite.token0 === suite.weth ? perWeth : 1 / perWeth) / Math.log(1.0001);
    for (const tier of OTHER_TIERS) {
      await manager()
        .getFunction('initialize')
        .send(keyOf(tier), sqrtPriceAtTick(Math.round(middle)), GAS);
    }
    async function addPosition([fee, spacing]: readonly [number, number]): Promise<void> {
      const near = Math.round(middle / spacing);
      const [below, above] = [random.int(1, 900), random.int(1, 900)];
      const width = Math.max(1, Math.floor(900 / spacing));
      const lower = (near - 1 - (below % width)) * spacing;
      const upper = (near + 1 + (above % width)) * spacing;
      await changeLiquidity(modifier, keyOf([fee, spacing]), { lower, upper, liquidity: random.big(1n, 10n ** 14n) });
    }
    for (const tier of OTHER_TIERS) for (let i = 0; i < 8; i++) await addPosition(tier);
    const tierOf = new Map<string, readonly [number, number]>(
      [[500, 10] as const, ...OTHER_TIERS].map((tier) => [`uniswap-v4:${tier[0]}`, tier]),
    );
    await (await manager().getFunction('setProtocolFeeController').send(issuer().address, GAS)).wait();

    let compared = 0;
    for (let state = 0; state < 8; state++) {
      const head = await headNow();
      for (const [sellToken, buyToken] of [
        [suite.weth, suite.usdc],
        [suite.usdc, suite.weth],
      ] as const) {
        const sources = await suite.venue.sources(sellToken, buyToken, head);
        expect(sources.map(({ id }) => id)).to.have.members([...tierOf.keys()]);
        for (const source of sources) {
          const pair = { id: source.id, sellToken, buyToken };
          const official = (method: string, amount: bigint): Promise<bigint | null> =>
            quoter
              .getFunction(method)
              .staticCall([keyOf(tierOf.get(source.id)!), sellToken === suite.token0, amount, '0x'])
              .then(
                ([units]: bigint[]) => units!,
                () => null,
              );
          const all = source.tradedAt({ out: 0n, in: 1n });
          for (let i = 0; i < 4; i++) {
            const inUnits = random.big(1n, all.inUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
            const sold = await suite.venue.quote({ ...pair, kind: 'sell', inUnits, outUnits: 0n }, head);
            expect(source.outputFor(inUnits), `${source.id} selling ${inUnits}`).to.equal(sold);
            if (sold !== null) expect(await official('quoteExactInputSingle', inUnits)).to.equal(sold);
            const outUnits = random.big(1n, all.outUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
            const cost = await suite.venue.quote({ ...pair, kind: 'buy', inUnits: 0n, outUnits }, head);
            expect(source.inputFor(outUnits), `${source.id} buying ${outUnits}`).to.equal(cost);
            expect(await official('quoteExactOutputSingle', outUnits)).to.equal(cost);
            compared += 2;
          }
        }
      }
      const kind: SplitKind = state % 4 < 2 ? 'sell' : 'buy';
      const [sellToken, buyToken, sold, bought] =
        state % 2 === 0
          ? ([suite.weth, suite.usdc, 'WETH', 'USDC'] as const)
          : ([suite.usdc, suite.weth, 'USDC', 'WETH'] as const);
      for (const source of await suite.venue.sources(sellToken, buyToken, head)) {
        const most = source.tradedAt({ out: 0n, in: 1n }).inUnits;
        const held = await balanceOf(sold, taker);
        const inUnits = random.big(most / 10n, most / 2n < held / 8n ? most / 2n : held / 8n);
        const outUnits = source.outputFor(inUnits)!;
        const cost = kind === 'sell' ? inUnits : source.inputFor(outUnits)!;
        const terms = { recipient: taker, deadlineSec: head.timestampSec + 3_600, maxIn: cost };
        const trade = { id: source.id, sellToken, buyToken, kind, inUnits, outUnits };
        const { target, data, amountAt } = await suite.venue.call(trade, terms);
        if (kind === 'sell') expect(BigInt(`0x${data.slice(2 + 2 * amountAt, 66 + 2 * amountAt)}`)).to.equal(inUnits);
        const before = [await balanceOf(sold, taker), await balanceOf(bought, taker)] as const;
        await (await suite.chain.wallet('taker1').sendTransaction({ to: target, data, gasLimit: 3_000_000n })).wait();
        expect((await balanceOf(bought, taker)) - before[1], `${source.id} ${kind}`).to.equal(outUnits);
        expect(before[0] - (await balanceOf(sold, taker))).to.equal(cost);
      }
      const tier = [...tierOf.values()][state % 4]!;
      const fees = random.int(0, 1_000) + (random.int(0, 1_000) << 12);
      await (await manager().getFunction('setProtocolFee').send(keyOf(tier), fees, GAS)).wait();
      await addPosition(OTHER_TIERS[state % 3]!);
    }
    expect(compared).to.equal(512);
    for (const symbol of ['WETH', 'USDC']) expect(await balanceOf(symbol, suite.contracts.router)).to.equal(0n);
  });

  it('refuses beyond its depth, and what no pool trades', async () => {
    const head = await headNow();
    const source = (await suite.venue.sources(suite.weth, suite.usdc, head)).find(({ id }) => id === 'uniswap-v4:500')!;
    const { inUnits, outUnits } = source.tradedAt({ out: 0n, in: 1n });
    expect(source.outputFor(inUnits * 2n)).to.equal(null);
    expect(source.inputFor(outUnits + 1n)).to.equal(null);
    const trade = {
      id: source.id,
      kind: 'sell' as const,
      sellToken: suite.weth,
      buyToken: suite.usdc,
      inUnits: 0n,
      outUnits: 0n,
    };
    expect(await suite.venue.quote(trade, head), 'nothing').to.equal(null);
    expect(await suite.venue.quote({ ...trade, inUnits: 1n << 200n }, head), 'more than is counted').to.equal(null);
    const foreign = await suite.venue
      .quote({ ...trade, id: 'uniswap-v4:8388608' }, head)
      .catch((error: unknown) => error);
    expect(foreign).to.be.instanceOf(RangeError);
  });

  it('is traded for whoever calls alone, in pools without hooks and ether, in whole', async () => {
    const key = keyOf([500, 10]);
    const sells = suite.token0 === suite.weth;
    const refused = async (call: Promise<unknown>): Promise<string> => {
      const error = (await call.then(
        () => null,
        (reason: unknown) => reason,
      )) as { revert?: { name: string }; data?: string } | null;
      return error === null ? 'nothing' : (error.revert?.name ?? error.data?.slice(0, 10) ?? 'another error');
    };
    const mine = router();
    for (const [odd, why] of [
      [keyOf([500, 10], NOBODY), 'a hook'],
      [keyOf([0x800000, 10], NOBODY), 'a dynamic fee, which needs a hook'],
      [[ZeroAddress, key[1], 500, 10, ZeroAddress] as PoolKeyTuple, 'ether'],
    ] as const) {
      expect(await refused(mine.swapExactIn.staticCall(named(odd), sells, 1_000n, 0n)), why).to.equal(
        'UnsupportedPool',
      );
      expect(await refused(mine.quoteExactOut.staticCall(named(odd), sells, 1_000n)), why).to.equal('UnsupportedPool');
    }
    const dynamic = manager()
      .getFunction('initialize')
      .staticCall(keyOf([0x800000, 10]), 1n << 96n);
    expect(await refused(dynamic), 'none without hooks').to.not.equal('nothing');
    const pool = named(key);
    const slot0 = await new Contract(
      suite.contracts.poolManager,
      ['function extsload(bytes32) view returns (bytes32)'],
      suite.chain.provider,
    ).getFunction('extsload')(poolSlot(key));
    expect(await mine.sqrtPriceOf(pool)).to.equal(BigInt.asUintN(160, BigInt(slot0 as string)));
    expect(await mine.sqrtPriceOf({ ...pool, tickSpacing: 11 })).to.equal(0n);
    const swap = (amount: bigint, limit: bigint) => refused(mine.swapExactIn.staticCall(pool, sells, amount, limit));
    expect(await swap(10n ** 30n, 0n)).to.equal('PartialSwap');
    expect(await refused(mine.swapExactOut.staticCall(pool, sells, 10n ** 30n, MaxUint256))).to.equal('PartialSwap');
    for (const amount of [0n, 1n << 127n, 1n << 255n, MaxUint256]) {
      expect(await swap(amount, 0n), String(amount)).to.equal('AmountOutOfRange');
    }
    const quoted = await mine.quoteExactIn.staticCall(pool, sells, WETH_UNIT);
    expect(await mine.swapExactIn.staticCall(pool, sells, WETH_UNIT, quoted)).to.equal(quoted);
    expect(await swap(WETH_UNIT, quoted + 1n)).to.equal('InsufficientOutput');
    const cost = await mine.quoteExactOut.staticCall(pool, sells, quoted);
    expect(await mine.swapExactOut.staticCall(pool, sells, quoted, cost)).to.equal(cost);
    expect(await refused(mine.swapExactOut.staticCall(pool, sells, quoted, cost - 1n))).to.equal('ExcessiveInput');
    // Who has approved nothing can't trade with what taker1 has approved.
    const stranger = router('taker2');
    expect(await refused(stranger.swapExactIn.staticCall(pool, sells, 1_000n, 0n))).to.not.equal('nothing');
    const callback = mine.interface.encodeFunctionData('unlockCallback', ['0x']);
    expect(await refused(mine.unlockCallback.staticCall('0x'))).to.equal('NotPoolManager');
    // The manager calls back whoever unlocks it, so that nobody else's data reaches the router.
    const unlock = new Contract(
      suite.contracts.poolManager,
      ['function unlock(bytes) returns (bytes)'],
      stranger.runner,
    );
    expect(await refused(unlock.getFunction('unlock').staticCall(callback))).to.not.equal('nothing');
  });

  it('names what must hold for a trade to keep its bound, which holds until the price moves beyond', async () => {
    const inUnits = WETH_UNIT / 2n;
    const trade = { id: 'uniswap-v4:500', sellToken: suite.weth, buyToken: suite.usdc, inUnits };
    const head = await headNow();
    const source = (await suite.venue.sources(suite.weth, suite.usdc, head)).find(({ id }) => id === trade.id)!;
    const outUnits = source.outputFor(inUnits)!;
    const bound = (outUnits * 9_990n) / 10_000n;
    const checks = (await suite.venue.checks({ ...trade, kind: 'sell', outUnits }, bound, head))!;
    expect(checks.length).to.be.within(2, 5);
    const found = async (): Promise<boolean[]> =>
      Promise.all(
        checks.map(async ({ target, data, word, minimum, maximum }) => {
          const answer = await suite.chain.provider.call({ to: target, data });
          const value = BigInt(`0x${answer.slice(2 + 64 * word, 66 + 64 * word)}`);
          return value >= minimum && (maximum === null || value <= maximum);
        }),
      );
    expect(await found()).to.deep.equal(checks.map(() => true));
    expect(await suite.venue.checks({ ...trade, kind: 'sell', outUnits }, outUnits + 1n, head), 'not now').to.equal(
      null,
    );
    // Somebody sells as long as all holds: then the trade still keeps its bound, and in the end it does not hold.
    let holds = true;
    for (let sold = 0; holds; sold++) {
      expect(sold, 'moved').to.be.below(100);
      await (
        await router().swapExactIn(named(keyOf([500, 10])), suite.weth === suite.token0, WETH_UNIT / 4n, 0n, GAS)
      ).wait();
      holds = (await found()).every(Boolean);
      if (!holds) expect(sold).to.be.above(0);
      const now = await suite.venue.quote({ ...trade, kind: 'sell', outUnits: 0n }, await headNow());
      if (holds) expect(now! >= bound, `${now} of ${bound}`).to.equal(true);
    }
  });

  it('says that no state can be what an endpoint invents, instead of trading by it', async () => {
    const head = await headNow();
    /** The node as somebody tells of it who changes the words of each answer of the manager. */
    const lying = (change: (words: bigint[]) => bigint[]): Rpc => {
      const call = async (method: string, params: unknown[] = []): Promise<unknown> => {
        const answer = (await suite.rpc.call(method, params)) as Hex;
        if (method !== 'eth_call' || (params[0] as { to: string }).to !== suite.contracts.poolManager) return answer;
        const words = Array.from({ length: (answer.length - 130) / 64 }, (_, i) =>
          BigInt(`0x${answer.slice(130 + 64 * i, 194 + 64 * i)}`),
        );
        const told = change(words);
        const text = [32n, BigInt(told.length), ...told].map((word) => word.toString(16).padStart(64, '0')).join('');
        return `0x${text}`;
      };
      return { ...suite.rpc, call, batch: (all) => Promise.all(all.map(({ method, params }) => call(method, params))) };
    };
    const told = (change: (words: bigint[]) => bigint[]): Promise<Source[] | Error> =>
      createUniswapV4(lying(change), suite.contracts)
        .sources(suite.weth, suite.usdc, head)
        .catch((error: Error) => error);
    const first = (change: (word: bigint) => bigint) => (words: bigint[]) =>
      words.map((word, i) => (words.length === 8 && i % 2 === 0 && word !== 0n ? change(word) : word));
    expect(await told((words) => words)).to.be.an('array');
    for (const [what, change] of [
      ['words left out', (words: bigint[]) => words.slice(1)],
      ['another fee', first((word) => word ^ (1n << 208n))],
      ["the protocol's fee beyond its maximum", first((word) => word | (0xfffn << 184n))],
      ['a tick of another price', first((word) => word ^ (1n << 165n))],
      ['liquidity beyond 128 bits', (words: bigint[]) => words.map((word) => word | (1n << 200n))],
    ] as const) {
      expect(await told(change), what).to.be.instanceOf(RangeError);
    }
  });
});
