/** New accounts whose trades cross ticks of a pool: each has a condition of its own, and a quote counts them as the executor will. */
import { expect } from 'chai';
import { Contract, MaxUint256, Transaction, Wallet, ZeroAddress, parseEther, parseUnits } from 'ethers';
import type { SplitKind } from '../../../core/swap/split.js';
import type { Hex } from '../../../core/types.js';
import { sandboxIssuerKey } from '../../../deploy/sandbox/accounts.js';
import { GAS, publish } from '../../../deploy/sandbox/pools.js';
import { fillIn } from '../../../keepers/executor/permits.js';
import { countChecks, routeChecks } from '../../../liquidity/checks.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { createOwners, startSwapStack, type SwapStack } from '../../support/swap-stack.js';

const POSITIONS =
  '@uniswap/v3-periphery/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager.json';
const FACTORY = ['function getPool(address, address, uint24) view returns (address)'];
const POOL = ['function slot0() view returns (uint160, int24 tick, uint16, uint16, uint16, uint8, bool)'];
/** Ticks to either side at which little liquidity ends. */
const WIDTHS = [10, 20, 30, 40, 50, 60];

forOneDatabase((name, open) =>
  describe(`first orders across ticks on ${name}`, function () {
    this.timeout(180_000);
    let chain: ManualChain;
    let stack: SwapStack;

    before(async () => {
      chain = await startManualChain(1, { pools: true, pairs: true, managedPools: true });
      await chain.provider.send('evm_setAutomine', [true]);
      await addTicks();
      await chain.provider.send('evm_setAutomine', [false]);
    });

    after(() => chain?.close());

    beforeEach(async () => {
      stack = await startSwapStack(await open(), chain);
      await mine();
    });

    afterEach(() => stack.stop());

    async function mine(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function addTicks(): Promise<void> {
      const { uniswapV3Factory: factory, weth, usdc } = chain.manifest.contracts as Record<string, string>;
      const issuer = new Wallet(sandboxIssuerKey(), chain.provider);
      const positions = await publish(issuer, POSITIONS, factory, weth, ZeroAddress);
      const pair = [weth!, usdc!].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
      const pool = (await new Contract(factory!, FACTORY, chain.provider).getFunction('getPool')(
        ...pair,
        500,
      )) as string;
      const [, tick] = (await new Contract(pool, POOL, chain.provider).getFunction('slot0')()) as unknown as bigint[];
      const near = Number(tick! / 10n) * 10;
      for (const [symbol, units] of [
        ['WETH', parseEther('1')],
        ['USDC', parseUnits('5000', 6)],
      ] as const) {
        const rich = chain.tokenAs(symbol, 'taker1');
        await rich.getFunction('transfer').send(issuer.address, units, { gasLimit: 100_000n });
        await (rich.connect(issuer) as Contract)
          .getFunction('approve')
          .send(await positions.getAddress(), MaxUint256, { gasLimit: 100_000n });
      }
      for (const width of WIDTHS) {
        const range = [near - width, near + width];
        const amounts = pair.map((token) => (token === weth ? parseEther('0.02') : parseUnits('50', 6)));
        const position = [...pair, 500, ...range, ...amounts, 0, 0, issuer.address, MaxUint256];
        await positions.getFunction('mint').send(position, GAS);
      }
    }

    const sold = (units: bigint) => ({
      kind: 'sell' as const,
      sellToken: stack.token('WETH'),
      buyToken: stack.token('USDC'),
      parts: [{ id: 'uniswap-v3:500', inUnits: units, outUnits: 0n }],
    });

    it('are counted without asking, as the conditions that are asked for', async () => {
      const { marketData } = stack;
      const head = await marketData.head();
      let [most, refused] = [0, 0];
      for (const id of ['uniswap-v3:500', 'uniswap-v4:500', 'uniswap-v2:3000']) {
        for (const kind of ['sell', 'buy'] as SplitKind[]) {
          for (const units of ['0.001', '4', '9', '15', '19', '40'].map((one) => parseEther(one))) {
            const trade = { ...sold(units), kind };
            const usdc = (units * 2_450n) / 10n ** 12n;
            const pool = (await marketData.sources(trade.sellToken, trade.buyToken, head, head.timestampSec)).find(
              (one) => one.id === id,
            )!;
            const [inUnits, outUnits] =
              kind === 'sell' ? [units, pool.outputFor(units)!] : [pool.inputFor(usdc)!, usdc];
            for (const bps of [0n, 1n, 50n, 500n]) {
              const boundUnits =
                kind === 'sell' ? (outUnits * (10_000n - bps)) / 10_000n : (inUnits * (10_000n + bps)) / 10_000n;
              const route = { ...trade, parts: [{ id, inUnits, outUnits }], boundUnits };
              const counted = await countChecks(marketData, route, head, head.timestampSec);
              const asked = await routeChecks(marketData, route, head, head.timestampSec);
              expect(counted, `${id}, ${kind} ${units}, ${bps} bps`).to.equal(asked?.length ?? null);
              most = Math.max(most, counted ?? 0);
              refused += counted === null ? 1 : 0;
            }
          }
        }
      }
      expect([most, refused > 0], 'three ticks, and more than those').to.deep.equal([5, true]);
    });

    it('are quoted over what will be sent, or refused before anything is signed', async () => {
      const sizes = ['1', '4', '7', '10', '14', '18', '25'].map((one) => parseEther(one));
      const owners: Wallet[] = [];
      for (const units of sizes) {
        owners.push(...(await createOwners(chain, 'WETH', 1, units)));
        await mine();
      }
      await stack.keepers.watcher.scan();
      let [quoted, crossing] = [0, 0];
      for (const [i, owner] of owners.entries()) {
        const quote = await stack
          .quote(owner.address, { sellAmountBeforeFee: sizes[i]!.toString() })
          .catch((error: Error) => (expect(error.message).to.contain('UNPROVEN_ACCOUNT'), null));
        if (quote === null) continue;
        quoted += 1;
        const { body } = await stack.submit(quote, owner);
        await stack.executor.round();
        const { attempts } = await stack.order(body.orderId);
        const what = `${sizes[i]} over ${quote.route.map(({ source }) => source).join()}: ${JSON.stringify(attempts)}`;
        expect(
          attempts.map(({ result }) => result),
          what,
        ).to.deep.equal(['sent']);
        const [hash] = attempts[0]!.txHashes;
        const { data } = Transaction.from((await chain.provider.getTransaction(hash!))!);
        const { isChecked, checks } = fillIn(data as Hex);
        expect(isChecked).to.equal(true);
        crossing += checks > 2 * quote.route.length ? 1 : 0;
        await mine();
        expect((await stack.order(body.orderId)).status).to.equal('filled');
      }
      expect(quoted, 'most are served').to.be.above(sizes.length / 2);
      expect(crossing, 'some cross a tick').to.be.above(0);
    });
  }),
);
