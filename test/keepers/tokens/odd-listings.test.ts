/** Twenty and more markets that the owner lists at once on the chain, of tokens that say odd things of themselves, from the contract to the read API. */
import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import type { Market } from '../../../core/types.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readMarkets } from '../../../ledger/chain/markets.js';
import { CurveBook__factory, Custodian__factory, MintableToken__factory } from '../../../typechain-types/index.js';
import { forOneDatabase } from '../../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../../support/keeper-stack.js';
import { startReadServer, type ReadServer } from '../../support/api/read-server.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { verifyDeps, verifyRpc } from '../../support/verify.js';

/** Symbols and decimals; each is the base of a market in USDC. */
const ODD: [symbol: string, decimals: number][] = [
  ...(['USDC', 'USDC', 'usdc', 'WETH', 'USDC.e'] as const).map((symbol): [string, number] => [symbol, 18]),
  ...['', ' ', 'A-B', 'A/B', '🚀', 'USD₮0', 'A'.repeat(64), '%2F..', '?x=1&y', '<b>'].map((one): [string, number] => [
    one,
    8,
  ]),
  ...[0, 1, 6, 19, 24, 36].map((decimals): [string, number] => [`D${decimals}`, decimals]),
  ['constructor', 18],
  ['__proto__', 18],
  ['ENDLESS', 255],
];
const LOTS = 5n;
const TICKS = 100n;

interface Row {
  pair: string;
}

forOneDatabase((name, open) =>
  describe(`odd listings, ${name}`, function () {
    this.timeout(120_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    let server: ReadServer;

    before(async () => {
      chain = await startManualChain();
      await listAll(chain);
    });
    after(() => chain?.close());

    beforeEach(async () => {
      stack = await startKeepers(await open(), chain, { watcher: { scanMaxBlocks: 2_000 } });
      await stack.watcher.scan();
      server = await startReadServer(stack.db, stack.markets, { nowMs: () => Date.now() });
    });
    afterEach(async () => {
      await server?.close();
      await stack?.stop();
    });

    const get = async <T>(path: string): Promise<T> => {
      const { status, body } = await server.get(path);
      expect(status, path).to.equal(200);
      return body as T;
    };

    it('have names that are unique, trade, and are found under them everywhere', async () => {
      const { markets } = stack;
      expect(markets).to.have.length(ODD.length + 3);
      const pairs = markets.map(({ pair }) => pair);
      expect(new Set(pairs).size).to.equal(pairs.length);
      for (const pair of pairs) expect(pair).to.match(/^[A-Za-z0-9._]{1,42}-[A-Za-z0-9._]{1,42}$/);
      expect(await readMarkets(stack.db.knex)).to.deep.equal(markets);
      expect(pairs.slice(0, 2)).to.deep.equal(['WETH-USDC', `USDC.${markets[1]!.base.address.slice(2, 10)}-USDC`]);
      const shouting = markets.find(({ base }) => base.symbol.startsWith('0x'));
      expect(shouting?.base.symbol).to.equal(shouting?.base.address);
      const nameless = markets.at(-1)!;
      expect([nameless.base.decimals, nameless.base.symbol]).to.deep.equal([0, nameless.base.address]);

      const maker = chain.address('maker1');
      for (const market of markets) {
        if (market === nameless) continue;
        await stack.order(maker, [{ side: 'ask', priceTicks: TICKS, sizeLots: LOTS, market: market.index }]);
      }
      await stack.poster.round();
      await chain.mine();
      await stack.watcher.scan();
      const traded = markets.filter(({ index }) => index > 0 && index <= ODD.length);
      await buyOneLotOfEach(chain, traded);
      await stack.watcher.scan();
      expect(await readHalt(stack.db.knex)).to.equal(null);

      expect((await get<Row[]>('/v0/pairs')).map(({ pair }) => pair)).to.deep.equal(pairs);
      for (const { pair, index } of markets) {
        expect(await get<Row>(`/v0/book/${pair}`)).to.include({ pair });
        const fills = await get<{ pair: string; fill_seq: number }[]>(`/v0/fills?pair=${pair}`);
        const expected = traded.some((one) => one.index === index) ? [[pair, 1]] : [];
        expect(
          fills.map((row) => [row.pair, row.fill_seq]),
          pair,
        ).to.deep.equal(expected);
        if (fills.length > 0) {
          const { legs } = await get<{ legs: { maker: string }[] }>(`/v0/fills/1/decomposition?pair=${pair}`);
          expect(legs.map((leg) => leg.maker)).to.deep.equal([maker]);
        }
      }
      const { ledger } = await get<{ ledger: { fill_seqs: object; balances: { token: string }[] } }>(
        `/v0/makers/${maker}/limits`,
      );
      expect(Object.keys(ledger.fill_seqs)).to.have.members(pairs);
      const tokens = ledger.balances.map(({ token }) => token);
      expect(new Set(tokens).size).to.equal(tokens.length);
      expect(await get<{ pairs: Row[] }>('/v0/status')).to.be.an('object');
      const report = await verifyLedger({ ...verifyDeps(stack.db, chain), rpc: verifyRpc(chain) });
      expect(report.fills).to.equal(traded.length);
    });
  }),
);

/** The owner lists them without the deployment's commands, in one block, behind the sandbox's own market. */
async function listAll(chain: ManualChain): Promise<void> {
  const { provider, manifest } = chain;
  await provider.send('evm_setAutomine', [true]);
  const [owner, maker] = [chain.wallet('owner'), chain.wallet('maker1')];
  const usdc = manifest.tokens.find(({ symbol }) => symbol === 'USDC')!.address;
  const custodian = Custodian__factory.connect(manifest.contracts['custodian'], maker);
  const book = CurveBook__factory.connect(manifest.contracts['curveBook'], owner);
  const listings: [base: string, quote: string, lotExponent: number][] = [];
  for (const [symbol, decimals] of ODD) {
    const token = await new MintableToken__factory(maker).deploy('odd', symbol, decimals);
    await token.waitForDeployment();
    const lotExponent = Math.min(18, Math.max(0, decimals - 4));
    listings.push([await token.getAddress(), usdc, lotExponent]);
  }
  // Two odd ones against each other, and a contract that is no token at all.
  listings.push([listings[0]![0], listings[5]![0], 4], [manifest.contracts['entrypoint'], usdc, 0]);
  await provider.send('evm_setAutomine', [false]);
  let nonce = await owner.getNonce();
  for (const [base, quote, lotExponent] of listings) {
    await book.listMarket(base, quote, lotExponent, 1, 0, 60, { nonce: nonce++, gasLimit: 300_000n });
  }
  await chain.mine();
  expect(await book.marketCount()).to.equal(BigInt(listings.length + 1));
  // Deposits count from the listing on.
  await provider.send('evm_setAutomine', [true]);
  for (const [base, , lotExponent] of listings.slice(0, ODD.length)) {
    const token = MintableToken__factory.connect(base, maker);
    const grant = 1_000n * 10n ** BigInt(lotExponent);
    await (await token.mint(maker.address, grant)).wait();
    await (await token.approve(custodian, MaxUint256)).wait();
    await (await custodian.deposit(token, grant)).wait();
  }
  await provider.send('evm_setAutomine', [false]);
}

async function buyOneLotOfEach(chain: ManualChain, markets: readonly Market[]): Promise<void> {
  const taker = chain.wallet('taker1');
  const entrypoint = chain.entrypointAs('taker1');
  let nonce = await taker.getNonce();
  for (const { base, quote } of markets) {
    const deadline = 2n ** 40n;
    await entrypoint.swap(quote.address, base.address, TICKS, 1n, taker.address, deadline, {
      nonce: nonce++,
      gasLimit: 1_000_000n,
    });
  }
  await chain.mine();
}
