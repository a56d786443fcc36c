/** The two routers of Uniswap v3, each from its published artifact: which one an address is, and what is sent to it. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { Contract, MaxUint256 } from 'ethers';
import { routerKindOf, type RouterKind } from '../../core/swap/router-kind.js';
import type { SplitKind } from '../../core/swap/split.js';
import type { Address, Hex } from '../../core/types.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { createHeadReader } from '../../liquidity/eth.js';
import { RouterError } from '../../liquidity/routers.js';
import { createUniswapV3, uniswapV3, type UniswapV3Contracts } from '../../liquidity/uniswap-v3.js';
import { inspectVenue } from '../../liquidity/venues.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { startSwapStack, type SwapStack } from '../support/swap-stack.js';
import { forOneDatabase } from '../support/db.js';

const ERC20 = ['function approve(address, uint256) returns (bool)'];
const NOBODY: Address = `0x${'ab'.repeat(20)}`;
const WETH_UNIT = 10n ** 18n;

const require = createRequire(import.meta.url);
const codeOf = (path: string): Hex =>
  (JSON.parse(readFileSync(require.resolve(path), 'utf8')) as { deployedBytecode: Hex }).deployedBytecode;

describe('which router an address is', () => {
  it('is told by its published code', () => {
    const old = codeOf('@uniswap/v3-periphery/artifacts/contracts/SwapRouter.sol/SwapRouter.json');
    const today = codeOf('@uniswap/swap-router-contracts/artifacts/contracts/SwapRouter02.sol/SwapRouter02.json');
    expect(routerKindOf(old)).to.equal('SwapRouter');
    expect(routerKindOf(today)).to.equal('SwapRouter02');
  });

  it('is nothing for other contracts, and for what holds the calls of both', () => {
    const quoter = codeOf('@uniswap/v3-periphery/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json');
    expect(routerKindOf(quoter)).to.equal(null);
    expect(routerKindOf('0x')).to.equal(null);
    expect(routerKindOf('0x63414bf38963db3e2198')).to.equal('SwapRouter');
    expect(routerKindOf('0x63414bf38963db3e21986304e45aaf635023b4df')).to.equal(null);
  });
});

for (const kind of ['SwapRouter', 'SwapRouter02'] as const satisfies readonly RouterKind[]) {
  describe(`a chain with ${kind}`, function () {
    this.timeout(120_000);
    let chain: ManualChain;
    let rpc: Rpc;
    let contracts: UniswapV3Contracts;
    let tokens: [Address, Address];

    before(async () => {
      chain = await startManualChain(1, { pools: true, router: kind });
      rpc = createRpc(chain.rpcUrl);
      const at = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
      contracts = { factory: at('uniswapV3Factory'), router: at('uniswapV3Router'), quoter: at('uniswapV3Quoter') };
      tokens = [at('weth'), at('usdc')];
      await chain.provider.send('evm_setAutomine', [true]);
      for (const token of tokens) {
        const approve = new Contract(token, ERC20, chain.wallet('taker1')).getFunction('approve');
        await approve.send(contracts.router, MaxUint256);
      }
    });

    after(() => chain?.close());

    it('is known for what it is', async () => {
      expect(await inspectVenue(rpc, uniswapV3, { ...contracts })).to.deep.equal({ kind });
    });

    it('is told from addresses that are something else, each by what is wrong', async () => {
      const problem = async (change: Partial<UniswapV3Contracts>) =>
        inspectVenue(rpc, uniswapV3, { ...contracts, ...change });
      expect(await problem({ router: contracts.quoter })).to.deep.equal({
        isMissing: false,
        problem: `${contracts.quoter} is neither Uniswap's SwapRouter nor its SwapRouter02`,
      });
      expect(await problem({ router: NOBODY })).to.deep.equal({
        isMissing: true,
        problem: `the chain has no router at ${NOBODY}`,
      });
      expect(await problem({ factory: tokens[0] })).to.deep.equal({
        isMissing: false,
        problem: `the router ${contracts.router} belongs to factory ${contracts.factory}, not to ${tokens[0]}`,
      });
      expect(await problem({ quoter: tokens[1] })).to.deep.equal({
        isMissing: false,
        problem: `the quoter ${tokens[1]} belongs to no factory, not to ${contracts.factory}`,
      });
    });

    it('offers nothing by a router that is none, and encodes no call for it', async () => {
      const head = await createHeadReader(rpc).head();
      const none = createUniswapV3(rpc, { ...contracts, router: NOBODY });
      expect(await none.sources(...tokens, head)).to.deep.equal([]);
      const other = createUniswapV3(rpc, { ...contracts, router: contracts.quoter });
      const failure = await other.sources(...tokens, head).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(RouterError);
    });

    for (const trade of ['sell', 'buy'] as const satisfies readonly SplitKind[]) {
      it(`executes a ${trade} at the quoted amounts to the unit`, async () => {
        const venue = createUniswapV3(rpc, contracts);
        const head = await createHeadReader(rpc).head();
        const [sellToken, buyToken] = tokens;
        const [source] = await venue.sources(sellToken, buyToken, head);
        const inUnits = WETH_UNIT / 3n;
        const outUnits = source!.outputFor(inUnits)!;
        const recipient = chain.address('taker1');
        const terms = { recipient, deadlineSec: head.timestampSec + 3_600, maxIn: inUnits * 2n };
        const wanted = { id: source!.id, kind: trade, sellToken, buyToken, inUnits, outUnits };
        const { target, data } = await venue.call(wanted, terms);
        const [soldBefore, boughtBefore] = await balances(recipient);
        const cost = source!.inputFor(outUnits)!;
        await chain.wallet('taker1').sendTransaction({ to: target, data, gasLimit: 2_000_000n });
        const [soldAfter, boughtAfter] = await balances(recipient);
        expect(boughtAfter - boughtBefore).to.equal(outUnits);
        expect(soldBefore - soldAfter).to.equal(trade === 'sell' ? inUnits : cost);
      });
    }

    const balances = (owner: string): Promise<[bigint, bigint]> =>
      Promise.all([balanceOf('WETH', owner), balanceOf('USDC', owner)]);
    const balanceOf = (symbol: string, owner: string) =>
      chain.tokenAs(symbol, 'taker1').getFunction('balanceOf')(owner) as Promise<bigint>;

    forOneDatabase((name, open) =>
      it(`fills a signed order over it on ${name}`, async () => {
        // Nonces of an owner begin anew with each database, and not on the chain.
        await chain.reset();
        await chain.provider.send('evm_setAutomine', [false]);
        const stack: SwapStack = await startSwapStack(await open(), chain);
        try {
          await stack.keepers.watcher.scan();
          const taker = chain.wallet('taker3');
          const before = await stack.balanceOf('USDC', taker.address);
          const quote = await stack.quote(taker.address, { sellAmountBeforeFee: WETH_UNIT.toString() });
          const { orderId } = (await stack.submit(quote, taker)).body;
          await stack.land();
          const order = await stack.order(orderId);
          expect(order).to.include({ status: 'filled', executedBuyAmount: quote.quote.buyAmount });
          const after = await stack.balanceOf('USDC', taker.address);
          expect(after - before).to.equal(BigInt(quote.quote.buyAmount));
        } finally {
          await stack.stop();
          await chain.provider.send('evm_setAutomine', [true]);
        }
      }),
    );
  });
}
