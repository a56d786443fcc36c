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
import { DEFAULT_GAS, gasOf } from '../../core/swap/pricing.js';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import type { Source } from '../../core/swap/source.js';
import type { SplitKind } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import { sandboxIssuerKey } from '../../deploy/sandbox/accounts.js';
import { changeLiquidity, publishModifier, type PoolKeyTuple } from '../../deploy/sandbox/managed-pools.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { createHeadReader, type Head } from '../../liquidity/eth.js';
import { RouterError } from '../../liquidity/routers.js';
import { createUniswapV4, swapFeePpm, uniswapV4, type UniswapV4Contracts } from '../../liquidity/uniswap-v4.js';
import type { Venue } from '../../liquidity/venue.js';
import { inspectVenue } from '../../liquidity/venues.js';
import { UniswapV4Router__factory } from '../../typechain-types/factories/periphery/UniswapV4Router__factory.js';
import { forOneDatabase } from '../support/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { seededRandom } from '../support/random.js';
import { startSwapStack } from '../support/swap-stack.js';

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
const SETTLER = ['function setTarget(address target, bool allowed)'];
const WETH_UNIT = 10n ** 18n;
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
  let chain: ManualChain;
  let rpc: Rpc;
  let contracts: UniswapV4Contracts;
  let venue: Venue;
  let weth: Address;
  let usdc: Address;
  let token0: Address;
  let token1: Address;

  before(async () => {
    chain = await startManualChain(2, { pools: true, managedPools: true });
    rpc = createRpc(chain.rpcUrl);
    const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
    contracts = { poolManager: at('uniswapV4PoolManager'), router: at('uniswapV4Router') };
    venue = createUniswapV4(rpc, contracts);
    [weth, usdc] = ['weth', 'usdc'].map(at) as [Address, Address];
    [token0, token1] = [weth, usdc].sort() as [Address, Address];
    await chain.provider.send('evm_setAutomine', [true]);
    for (const symbol of ['WETH', 'USDC']) {
      await chain.tokenAs(symbol, 'taker1').getFunction('approve').send(contracts.router, MaxUint256);
    }
  });
  after(() => chain?.close());

  const headNow = (): Promise<Head> => createHeadReader(rpc).head();
  const balanceOf = (symbol: string, owner: string): Promise<bigint> =>
    chain.tokenAs(symbol, 'taker1').getFunction('balanceOf')(owner) as Promise<bigint>;
  const keyOf = ([fee, spacing]: readonly [number, number], hooks = ZeroAddress): PoolKeyTuple =>
    [...[token0, token1], ...[fee, spacing], hooks] as PoolKeyTuple;
  const named = ([currency0, currency1, fee, tickSpacing, hooks]: PoolKeyTuple) => ({
    ...{ currency0, currency1, fee, tickSpacing, hooks },
  });
  const issuer = () => new Wallet(sandboxIssuerKey(), chain.provider);
  const manager = () => new Contract(contracts.poolManager, MANAGER, issuer());
  const router = (role = 'taker1') => UniswapV4Router__factory.connect(contracts.router, chain.wallet(role));

  it('is told from addresses that are something else', async () => {
    expect(await inspectVenue(rpc, uniswapV4, { ...contracts })).to.deep.equal({ kind: 'UniswapV4Router' });
    const v3 = chain.manifest.contracts['uniswapV3Router']!.toLowerCase() as Address;
    const wrong = async (change: Partial<UniswapV4Contracts>) => {
      const found = await inspectVenue(rpc, uniswapV4, { ...contracts, ...change });
      return 'problem' in found ? found : null;
    };
    expect(await wrong({ router: v3 })).to.deep.equal({
      isMissing: false,
      problem: `${v3} is not the platform's UniswapV4Router`,
    });
    expect(await wrong({ poolManager: v3 })).to.deep.equal({
      isMissing: false,
      problem: `the router ${contracts.router} belongs to poolManager ${contracts.poolManager}, not to ${v3}`,
    });
    expect(await wrong({ poolManager: NOBODY })).to.deep.equal({
      isMissing: true,
      problem: `the chain has no poolManager at ${NOBODY}`,
    });
    for (const other of [weth, v3]) {
      const misled = await new UniswapV4Router__factory(issuer()).deploy(other);
      await misled.waitForDeployment();
      const at = (await misled.getAddress()).toLowerCase() as Address;
      expect(await wrong({ poolManager: other, router: at })).to.deep.equal({
        isMissing: false,
        problem: `${other} is not Uniswap's PoolManager`,
      });
    }
    const nothing = createUniswapV4(rpc, { ...contracts, router: NOBODY });
    expect(await nothing.sources(weth, usdc, await headNow())).to.deep.equal([]);
    const strange = createUniswapV4(rpc, { ...contracts, router: v3 });
    expect(await strange.sources(weth, usdc, await headNow()).catch((error: unknown) => error)).to.be.instanceOf(
      RouterError,
    );
    expect(await venue.sources(weth, NOBODY, await headNow())).to.deep.equal([]);
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
    const taker = chain.address('taker1');
    const deployed = await new ContractFactory(QUOTER.abi, QUOTER.bytecode, issuer()).deploy(contracts.poolManager);
    await deployed.waitForDeployment();
    const quoter = new Contract(await deployed.getAddress(), QUOTER.abi, chain.provider);
    const modifier = await publishModifier(issuer(), contracts.poolManager);
    for (const symbol of ['WETH', 'USDC']) {
      const token = chain.tokenAs(symbol, 'taker1').connect(issuer()) as Contract;
      await token.getFunction('approve').send(await modifier.getAddress(), MaxUint256);
      const rich = chain.tokenAs(symbol, 'taker2');
      const all = (await rich.getFunction('balanceOf')(chain.address('taker2'))) as bigint;
      await rich.getFunction('transfer').send(issuer().address, all / 2n);
    }
    // WETH at 2,500 USDC, as the sandbox's own pool.
    const [start] = (await venue.sources(weth, usdc, await headNow())).map(({ outputFor }) => outputFor(10n ** 15n)!);
    const perWeth = Number(start) / 1e15;
    const middle = Math.log(token0 === weth ? perWeth : 1 / perWeth) / Math.log(1.0001);
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
        [weth, usdc],
        [usdc, weth],
      ] as const) {
        const sources = await venue.sources(sellToken, buyToken, head);
        expect(sources.map(({ id }) => id)).to.have.members([...tierOf.keys()]);
        for (const source of sources) {
          const pair = { id: source.id, sellToken, buyToken };
          const official = (method: string, amount: bigint): Promise<bigint | null> =>
            quoter
              .getFunction(method)
              .staticCall([keyOf(tierOf.get(source.id)!), sellToken === token0, amount, '0x'])
              .then(
                ([units]: bigint[]) => units!,
                () => null,
              );
          const all = source.tradedAt({ out: 0n, in: 1n });
          for (let i = 0; i < 4; i++) {
            const inUnits = random.big(1n, all.inUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
            const sold = await venue.quote({ ...pair, kind: 'sell', inUnits, outUnits: 0n }, head);
            expect(source.outputFor(inUnits), `${source.id} selling ${inUnits}`).to.equal(sold);
            if (sold !== null) expect(await official('quoteExactInputSingle', inUnits)).to.equal(sold);
            const outUnits = random.big(1n, all.outUnits) / 10n ** BigInt(random.int(0, 6)) + 1n;
            const cost = await venue.quote({ ...pair, kind: 'buy', inUnits: 0n, outUnits }, head);
            expect(source.inputFor(outUnits), `${source.id} buying ${outUnits}`).to.equal(cost);
            expect(await official('quoteExactOutputSingle', outUnits)).to.equal(cost);
            compared += 2;
          }
        }
      }
      const kind: SplitKind = state % 4 < 2 ? 'sell' : 'buy';
      const [sellToken, buyToken, sold, bought] =
        state % 2 === 0 ? ([weth, usdc, 'WETH', 'USDC'] as const) : ([usdc, weth, 'USDC', 'WETH'] as const);
      for (const source of await venue.sources(sellToken, buyToken, head)) {
        const most = source.tradedAt({ out: 0n, in: 1n }).inUnits;
        const held = await balanceOf(sold, taker);
        const inUnits = random.big(most / 10n, most / 2n < held / 8n ? most / 2n : held / 8n);
        const outUnits = source.outputFor(inUnits)!;
        const cost = kind === 'sell' ? inUnits : source.inputFor(outUnits)!;
        const terms = { recipient: taker, deadlineSec: head.timestampSec + 3_600, maxIn: cost };
        const trade = { id: source.id, sellToken, buyToken, kind, inUnits, outUnits };
        const { target, data, amountAt } = await venue.call(trade, terms);
        if (kind === 'sell') expect(BigInt(`0x${data.slice(2 + 2 * amountAt, 66 + 2 * amountAt)}`)).to.equal(inUnits);
        const before = [await balanceOf(sold, taker), await balanceOf(bought, taker)] as const;
        await (await chain.wallet('taker1').sendTransaction({ to: target, data, gasLimit: 3_000_000n })).wait();
        expect((await balanceOf(bought, taker)) - before[1], `${source.id} ${kind}`).to.equal(outUnits);
        expect(before[0] - (await balanceOf(sold, taker))).to.equal(cost);
      }
      const tier = [...tierOf.values()][state % 4]!;
      const fees = random.int(0, 1_000) + (random.int(0, 1_000) << 12);
      await (await manager().getFunction('setProtocolFee').send(keyOf(tier), fees, GAS)).wait();
      await addPosition(OTHER_TIERS[state % 3]!);
    }
    expect(compared).to.equal(512);
    for (const symbol of ['WETH', 'USDC']) expect(await balanceOf(symbol, contracts.router)).to.equal(0n);
  });

  it('refuses beyond its depth, and what no pool trades', async () => {
    const head = await headNow();
    const source = (await venue.sources(weth, usdc, head)).find(({ id }) => id === 'uniswap-v4:500')!;
    const { inUnits, outUnits } = source.tradedAt({ out: 0n, in: 1n });
    expect(source.outputFor(inUnits * 2n)).to.equal(null);
    expect(source.inputFor(outUnits + 1n)).to.equal(null);
    const trade = { id: source.id, kind: 'sell' as const, sellToken: weth, buyToken: usdc, inUnits: 0n, outUnits: 0n };
    expect(await venue.quote(trade, head), 'nothing').to.equal(null);
    expect(await venue.quote({ ...trade, inUnits: 1n << 200n }, head), 'more than is counted').to.equal(null);
    const foreign = await venue.quote({ ...trade, id: 'uniswap-v4:8388608' }, head).catch((error: unknown) => error);
    expect(foreign).to.be.instanceOf(RangeError);
  });

  it('is traded for whoever calls alone, in pools without hooks and ether, in whole', async () => {
    const key = keyOf([500, 10]);
    const sells = token0 === weth;
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
      contracts.poolManager,
      ['function extsload(bytes32) view returns (bytes32)'],
      chain.provider,
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
    const unlock = new Contract(contracts.poolManager, ['function unlock(bytes) returns (bytes)'], stranger.runner);
    expect(await refused(unlock.getFunction('unlock').staticCall(callback))).to.not.equal('nothing');
  });

  it('names what must hold for a trade to keep its bound, which holds until the price moves beyond', async () => {
    const inUnits = WETH_UNIT / 2n;
    const trade = { id: 'uniswap-v4:500', sellToken: weth, buyToken: usdc, inUnits };
    const head = await headNow();
    const source = (await venue.sources(weth, usdc, head)).find(({ id }) => id === trade.id)!;
    const outUnits = source.outputFor(inUnits)!;
    const bound = (outUnits * 9_990n) / 10_000n;
    const checks = (await venue.checks({ ...trade, kind: 'sell', outUnits }, bound, head))!;
    expect(checks.length).to.be.within(2, 5);
    const found = async (): Promise<boolean[]> =>
      Promise.all(
        checks.map(async ({ target, data, word, minimum, maximum }) => {
          const answer = await chain.provider.call({ to: target, data });
          const value = BigInt(`0x${answer.slice(2 + 64 * word, 66 + 64 * word)}`);
          return value >= minimum && (maximum === null || value <= maximum);
        }),
      );
    expect(await found()).to.deep.equal(checks.map(() => true));
    expect(await venue.checks({ ...trade, kind: 'sell', outUnits }, outUnits + 1n, head), 'not now').to.equal(null);
    // Somebody sells as long as all holds: then the trade still keeps its bound, and in the end it does not hold.
    let holds = true;
    for (let sold = 0; holds; sold++) {
      expect(sold, 'moved').to.be.below(100);
      await (await router().swapExactIn(named(keyOf([500, 10])), weth === token0, WETH_UNIT / 4n, 0n, GAS)).wait();
      holds = (await found()).every(Boolean);
      if (!holds) expect(sold).to.be.above(0);
      const now = await venue.quote({ ...trade, kind: 'sell', outUnits: 0n }, await headNow());
      if (holds) expect(now! >= bound, `${now} of ${bound}`).to.equal(true);
    }
  });

  it('says that no state can be what an endpoint invents, instead of trading by it', async () => {
    const head = await headNow();
    /** The node as somebody tells of it who changes the words of each answer of the manager. */
    const lying = (change: (words: bigint[]) => bigint[]): Rpc => {
      const call = async (method: string, params: unknown[] = []): Promise<unknown> => {
        const answer = (await rpc.call(method, params)) as Hex;
        if (method !== 'eth_call' || (params[0] as { to: string }).to !== contracts.poolManager) return answer;
        const words = Array.from({ length: (answer.length - 130) / 64 }, (_, i) =>
          BigInt(`0x${answer.slice(130 + 64 * i, 194 + 64 * i)}`),
        );
        const told = change(words);
        const text = [32n, BigInt(told.length), ...told].map((word) => word.toString(16).padStart(64, '0')).join('');
        return `0x${text}`;
      };
      return { ...rpc, call, batch: (all) => Promise.all(all.map(({ method, params }) => call(method, params))) };
    };
    const told = (change: (words: bigint[]) => bigint[]): Promise<Source[] | Error> =>
      createUniswapV4(lying(change), contracts)
        .sources(weth, usdc, head)
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

  forOneDatabase((name, open) =>
    it(`takes its part of a signed order, sold and bought, beside a pool of v3 on ${name}`, async () => {
      // Nonces of an owner begin anew with each database, and not on the chain.
      await chain.reset();
      await chain.provider.send('evm_setAutomine', [false]);
      const stack = await startSwapStack(await open(), chain, {}, { newAccountGas: 1_000_000n });
      try {
        await stack.keepers.watcher.scan();
        const taker = chain.wallet('taker3');
        for (const [kind, amount] of [
          ['sell', { sellAmountBeforeFee: (20n * WETH_UNIT).toString() }],
          ['buy', { kind: 'buy', buyAmountAfterFee: (40_000n * 10n ** 6n).toString() }],
        ] as const) {
          const before = await stack.balanceOf('USDC', taker.address);
          const quote = await stack.quote(taker.address, amount);
          expect(
            quote.route.map(({ source }) => source),
            kind,
          ).to.have.members(['uniswap-v4:500', 'uniswap-v3:500']);
          const { orderId } = (await stack.submit(quote, taker)).body;
          await stack.land();
          const order = await stack.order(orderId);
          expect(order, kind).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
          expect((await stack.balanceOf('USDC', taker.address)) - before).to.equal(BigInt(quote.quote.buyAmount));
        }
        const settler = chain.manifest.contracts['orderSettler']!;
        for (const token of [weth, usdc]) {
          const allowance = ['function allowance(address, address) view returns (uint256)'];
          const left = new Contract(token, allowance, chain.provider).getFunction('allowance');
          expect(await left(settler, contracts.router), 'nothing is left allowed').to.equal(0n);
        }
        const owned = new Contract(settler, SETTLER, chain.wallet('owner'));
        const allow = async (target: string, isAllowed: boolean): Promise<void> => {
          await owned.getFunction('setTarget').send(target, isAllowed, { gasLimit: 200_000n });
          await chain.mine();
        };
        // Over two pools of v4 alone: what the first brings is what the second sells.
        const v3 = chain.manifest.contracts['uniswapV3Router']!;
        await allow(v3, false);
        const held = await stack.balanceOf('DAI', taker.address);
        const pair = { sellToken: usdc, buyToken: stack.token('DAI') };
        const path = await stack.quote(taker.address, { ...pair, sellAmountBeforeFee: String(2_500n * 10n ** 6n) });
        const ids = path.route.map(({ source }) => source);
        expect(ids).to.deep.equal([`uniswap-v4:500>${weth}>uniswap-v4:500`]);
        const { orderId } = (await stack.submit(path, taker)).body;
        await stack.land();
        const order = await stack.order(orderId);
        expect(order).to.include({ status: 'filled', executedBuyAmount: path.quote.buyAmount });
        expect((await stack.balanceOf('DAI', taker.address)) - held).to.equal(BigInt(path.quote.buyAmount));
        const { gasUsed } = (await chain.provider.getTransactionReceipt(order.txHash!))!;
        expect(gasUsed <= gasOf(DEFAULT_GAS, ids), `${gasUsed} of ${gasOf(DEFAULT_GAS, ids)}`).to.equal(true);
        await allow(v3, true);
        // Orders over a router that the settler may not call would fail.
        await allow(contracts.router, false);
        const without = await stack.quote(taker.address, { sellAmountBeforeFee: (20n * WETH_UNIT).toString() });
        expect(without.route.map(({ source }) => source)).to.deep.equal(['uniswap-v3:500']);
      } finally {
        await stack.stop();
        await chain.provider.send('evm_setAutomine', [true]);
      }
    }),
  );
});
