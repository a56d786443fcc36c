/** Pairs of Uniswap v2, from its published artifacts: priced as its router does, traded at what was quoted, and beside our curve and v3. */
import { expect } from 'chai';
import { Contract, MaxUint256 } from 'ethers';
import { MAX_RESERVE, pairSource } from '../../core/swap/pair-source.js';
import type { SplitKind } from '../../core/swap/split.js';
import type { Address } from '../../core/types.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { createHeadReader, type Head } from '../../liquidity/eth.js';
import { RouterError } from '../../liquidity/routers.js';
import { createUniswapV2, uniswapV2 } from '../../liquidity/uniswap-v2.js';
import type { Venue } from '../../liquidity/venue.js';
import { inspectVenue } from '../../liquidity/venues.js';
import { forOneDatabase } from '../support/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { seededRandom } from '../support/random.js';
import { startSwapStack } from '../support/swap-stack.js';

const WETH_UNIT = 10n ** 18n;
const SETTLER = ['function setTarget(address target, bool allowed)'];
const NOBODY: Address = `0x${'ab'.repeat(20)}`;

describe('a pair of reserves', () => {
  it('has nothing to give while one side is empty, and takes no more than it can count', () => {
    const state = { id: 'pair', feePpm: 3_000n, reserveIn: 10n ** 9n, reserveOut: 10n ** 9n };
    expect(pairSource({ ...state, reserveIn: 0n })).to.equal(null);
    expect(pairSource({ ...state, reserveOut: 0n })).to.equal(null);
    const source = pairSource(state)!;
    const most = MAX_RESERVE - state.reserveIn;
    expect(source.outputFor(most)).to.be.a('bigint');
    expect(source.outputFor(most + 1n)).to.equal(null);
    expect(source.outputFor(0n)).to.equal(null);
    expect(source.outputFor(1n)).to.equal(null);
    expect(source.inputFor(state.reserveOut)).to.equal(null);
    const full = pairSource({ ...state, reserveIn: MAX_RESERVE })!;
    expect(full.outputFor(1n)).to.equal(null);
    expect(full.tradedAt({ out: 0n, in: 1n })).to.deep.equal({ inUnits: 0n, outUnits: 0n });
  });
});

describe('liquidity of Uniswap v2', function () {
  this.timeout(120_000);
  let chain: ManualChain;
  let rpc: Rpc;
  let contracts: { factory: Address; router: Address };
  let venue: Venue;
  let weth: Address;
  let usdc: Address;

  before(async () => {
    chain = await startManualChain(1, { pools: true, pairs: true });
    rpc = createRpc(chain.rpcUrl);
    const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
    contracts = { factory: at('uniswapV2Factory'), router: at('uniswapV2Router') };
    venue = createUniswapV2(rpc, contracts);
    [weth, usdc] = ['weth', 'usdc'].map(at) as [Address, Address];
    await chain.provider.send('evm_setAutomine', [true]);
    for (const symbol of ['WETH', 'USDC']) {
      await chain.tokenAs(symbol, 'taker1').getFunction('approve').send(contracts.router, MaxUint256);
    }
  });
  after(() => chain?.close());

  const headNow = (): Promise<Head> => createHeadReader(rpc).head();
  const balanceOf = (symbol: string, owner: string): Promise<bigint> =>
    chain.tokenAs(symbol, 'taker1').getFunction('balanceOf')(owner) as Promise<bigint>;

  it('is told from addresses that are something else', async () => {
    expect(await inspectVenue(rpc, uniswapV2, contracts)).to.deep.equal({ kind: 'Router02' });
    const v3 = chain.manifest.contracts['uniswapV3Router']!.toLowerCase() as Address;
    expect(await inspectVenue(rpc, uniswapV2, { ...contracts, router: v3 })).to.deep.equal({
      isMissing: false,
      problem: `${v3} is not Uniswap's Router02`,
    });
    expect(await inspectVenue(rpc, uniswapV2, { ...contracts, factory: weth })).to.deep.equal({
      isMissing: false,
      problem: `the router ${contracts.router} belongs to factory ${contracts.factory}, not to ${weth}`,
    });
    const nothing = createUniswapV2(rpc, { ...contracts, router: NOBODY });
    expect(await nothing.sources(weth, usdc, await headNow())).to.deep.equal([]);
    const other = createUniswapV2(rpc, { ...contracts, router: v3 });
    expect(await other.sources(weth, usdc, await headNow()).catch((error: unknown) => error)).to.be.instanceOf(
      RouterError,
    );
    expect(await venue.sources(weth, NOBODY, await headNow())).to.deep.equal([]);
  });

  it('is priced as its router prices it, and traded at that, to the unit, both ways, wherever the price is', async () => {
    const random = seededRandom(11);
    const taker = chain.address('taker1');
    for (let state = 0; state < 8; state++) {
      const head = await headNow();
      const [sellToken, buyToken, sold, bought] =
        state % 2 === 0 ? ([weth, usdc, 'WETH', 'USDC'] as const) : ([usdc, weth, 'USDC', 'WETH'] as const);
      const [source] = await venue.sources(sellToken, buyToken, head);
      expect(source!.id).to.equal('uniswap-v2:3000');
      const pair = { id: source!.id, sellToken, buyToken };
      const unit = sold === 'WETH' ? WETH_UNIT : 2_500n * 10n ** 6n;
      for (let i = 0; i < 12; i++) {
        const inUnits = random.big(1n, 20n * unit) / 10n ** BigInt(random.int(0, 6)) + 1n;
        const outUnits = source!.outputFor(inUnits);
        const quoted = await venue.quote({ ...pair, kind: 'sell', inUnits, outUnits: 0n }, head);
        expect(outUnits, `selling ${inUnits}`).to.equal(quoted);
        if (outUnits === null) continue;
        const cost = await venue.quote({ ...pair, kind: 'buy', inUnits: 0n, outUnits }, head);
        expect(source!.inputFor(outUnits), `buying ${outUnits}`).to.equal(cost);
      }
      const kind: SplitKind = state % 4 < 2 ? 'sell' : 'buy';
      const inUnits = random.big(unit / 10n, 5n * unit);
      const outUnits = source!.outputFor(inUnits)!;
      const cost = kind === 'sell' ? inUnits : source!.inputFor(outUnits)!;
      const terms = { recipient: taker, deadlineSec: head.timestampSec + 3_600, maxIn: cost };
      const { target, data, amountAt } = await venue.call({ ...pair, kind, inUnits, outUnits }, terms);
      if (kind === 'sell') expect(BigInt(`0x${data.slice(2 + 2 * amountAt, 2 + 2 * amountAt + 64)}`)).to.equal(inUnits);
      const before = [await balanceOf(sold, taker), await balanceOf(bought, taker)] as const;
      await (await chain.wallet('taker1').sendTransaction({ to: target, data, gasLimit: 1_000_000n })).wait();
      expect((await balanceOf(bought, taker)) - before[1]).to.equal(outUnits);
      expect(before[0] - (await balanceOf(sold, taker))).to.equal(cost);
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
          ).to.have.members(['uniswap-v2:3000', 'uniswap-v3:500']);
          const { orderId } = (await stack.submit(quote, taker)).body;
          await stack.land();
          const order = await stack.order(orderId);
          expect(order, kind).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
          expect((await stack.balanceOf('USDC', taker.address)) - before).to.equal(BigInt(quote.quote.buyAmount));
        }
        // Orders over a router that the settler may not call would fail.
        const settler = new Contract(chain.manifest.contracts['orderSettler']!, SETTLER, chain.wallet('owner'));
        await settler.getFunction('setTarget').send(contracts.router, false, { gasLimit: 200_000n });
        await chain.mine();
        const without = await stack.quote(taker.address, { sellAmountBeforeFee: (20n * WETH_UNIT).toString() });
        expect(without.route.map(({ source }) => source)).to.deep.equal(['uniswap-v3:500']);
      } finally {
        await stack.stop();
        await chain.provider.send('evm_setAutomine', [true]);
      }
    }),
  );
});
