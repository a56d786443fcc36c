import { expect } from 'chai';
import { Contract, MaxUint256 } from 'ethers';
import { sqrtPriceAtTick } from '../../core/swap/pool-math.js';
import type { Source } from '../../core/swap/source.js';
import type { Address } from '../../core/types.js';
import { createRpc } from '../../keepers/chain/rpc.js';
import { createHeadReader, type Head } from '../../liquidity/eth.js';
import { createUniswapV3 } from '../../liquidity/uniswap-v3.js';
import type { Venue } from '../../liquidity/venue.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { sellToPool } from '../support/contracts/pool-router.js';
import { seededRandom } from '../support/random.js';

const ERC20 = ['function approve(address, uint256) returns (bool)'];
describe('external liquidity', function () {
  this.timeout(120_000);
  let chain: ManualChain;
  let venue: Venue;
  let weth: Address;
  let usdc: Address;

  before(async () => {
    chain = await startManualChain(1, { pools: true });
    const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
    venue = createUniswapV3(createRpc(chain.rpcUrl), {
      factory: at('uniswapV3Factory'),
      router: at('uniswapV3Router'),
      quoter: at('uniswapV3Quoter'),
    });
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
});
