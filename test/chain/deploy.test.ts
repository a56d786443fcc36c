import { expect } from 'chai';
import { Contract, Wallet, getCreateAddress, keccak256 } from 'ethers';
import { sandboxAccounts } from '../../deploy/sandbox/accounts.js';
import { PERMIT2_ADDRESS, WETH_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { deployCurvebook, type DeployOptions } from '../../deploy/deploy.js';
import { deploymentIdOf, type SandboxManifest } from '../../deploy/manifest.js';
import { SANDBOX_MARKETS, deploySandbox } from '../../deploy/sandbox/sandbox.js';
import { connect } from '../../deploy/transactions.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { startTestChain, type TestChain } from '../support/chain.js';
import { startChild, type Child } from '../support/child.js';

const ERC20_ABI = [
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
];
/** keccak256 of Permit2's EIP-712 domain on chain 8453, as published. */
const PERMIT2_DOMAIN_SEPARATOR = '0x3b6f35e4fce979ef8eac3bcdc8c3fc38fe7911bb0c69c8fe72bf1fd1a17e6f07';

describe('deployment', function () {
  this.timeout(60_000);
  let chain: TestChain;
  let options: DeployOptions;

  before(async () => {
    chain = await startTestChain();
    const deployer = chain.signers[0]!;
    const from = await deployer.getAddress();
    const tokens = ['WETH', 'USDC'].map((symbol, nonce) => ({
      symbol,
      decimals: symbol === 'WETH' ? 18 : 6,
      address: getCreateAddress({ from, nonce }),
    }));
    for (const { symbol, decimals } of tokens) {
      await (await new MintableToken__factory(deployer).deploy(symbol, symbol, decimals)).waitForDeployment();
    }
    options = {
      deployer,
      owner: await chain.signers[1]!.getAddress(),
      curvePosters: [await chain.signers[2]!.getAddress()],
      claimPosters: [await chain.signers[3]!.getAddress()],
      withdrawDelaySec: 77,
      tokens,
      markets: [{ pair: 'WETH-USDC', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
      log: () => undefined,
    };
  });

  after(() => chain.close());

  it('refuses a market whose tick of a lot is no whole number of quote units, before it sends anything', async () => {
    const nonce = await options.deployer.getNonce();
    const markets = [{ pair: 'WETH-USDC', tickSize: '0.001', lotSize: '0.0001', maxTtlSec: 60 }];
    const failure = await deployCurvebook({ ...options, markets }).catch((error: Error) => error.message);
    expect(failure).to.contain('not a whole number of quote units');
    expect(await options.deployer.getNonce()).to.equal(nonce);
  });

  it('names the posters, waits for the new owner to accept, and closes the implementations', async () => {
    const { custodian, curveBook, entrypoint } = await deployCurvebook(options);
    const newOwner = chain.signers[1]!;
    for (const contract of [custodian, curveBook, entrypoint]) {
      expect(await contract.owner()).to.equal(await options.deployer.getAddress());
      expect(await contract.pendingOwner()).to.equal(options.owner);
      await (await contract.connect(newOwner).acceptOwnership()).wait();
      expect(await contract.owner()).to.equal(options.owner);
    }
    expect(await curveBook.isPoster(options.curvePosters[0]!)).to.equal(true);
    expect(await custodian.isPoster(options.curvePosters[0]!)).to.equal(false);
    expect(await custodian.isPoster(options.claimPosters[0]!)).to.equal(true);
    expect(await custodian.withdrawDelay()).to.equal(77n);
    const again = await custodian
      .connect(newOwner)
      .initialize(options.owner, 0)
      .then(
        () => 'initialized twice',
        () => 'refused',
      );
    expect(again).to.equal('refused');
  });

  it('gives every deployment an id of its own, derived from what is on the chain', async () => {
    const [first, second] = [await deployCurvebook(options), await deployCurvebook(options)];
    expect(first.manifest.deploymentId).to.match(/^[0-9a-f]{16}$/);
    expect(second.manifest.deploymentId).to.not.equal(first.manifest.deploymentId);
    const block = await chain.provider.getBlock(first.manifest.deploymentBlock);
    const { chainId, contracts, deploymentId } = first.manifest;
    expect(deploymentIdOf(chainId, contracts.custodian, block!.hash!)).to.equal(deploymentId);
    const listed = await first.curveBook.queryFilter(first.curveBook.filters.MarketListed(), 0);
    expect(listed.map((event) => event.blockNumber > first.manifest.deploymentBlock)).to.deep.equal([true]);
  });
});

describe('sandbox chain', function () {
  this.timeout(60_000);
  let chain: Child;
  let manifest: SandboxManifest;
  let provider: ReturnType<typeof connect>;

  before(async () => {
    chain = startChild('deploy/sandbox/chain-main.ts', ['--port', '0', '--block-time-ms', '100']);
    const line = await chain.line((text) => text.startsWith('{'), 60_000);
    const { rpcUrl } = JSON.parse(line) as { rpcUrl: string };
    manifest = await deploySandbox({ rpcUrl, serverUrl: 'http://127.0.0.1:1', marketCount: 4, log: () => undefined });
    provider = connect(rpcUrl);
  });

  after(async () => {
    provider?.destroy();
    await chain.end('SIGTERM');
  });

  const token = (symbol: string): Contract =>
    new Contract(manifest.tokens.find((one) => one.symbol === symbol)!.address, ERC20_ABI, provider);
  const ask = (contract: Contract, method: string, ...args: unknown[]): Promise<unknown> =>
    contract.getFunction(method).staticCall(...args);
  const address = (role: string): string => manifest.accounts.find((one) => one.role === role)!.address;

  it('has the canonical Permit2 and WETH at their addresses', async () => {
    const permit2 = new Contract(PERMIT2_ADDRESS, ['function DOMAIN_SEPARATOR() view returns (bytes32)'], provider);
    expect(await ask(permit2, 'DOMAIN_SEPARATOR')).to.equal(PERMIT2_DOMAIN_SEPARATOR);
    const weth = token('WETH');
    expect(await weth.getAddress()).to.equal(WETH_ADDRESS);
    expect([await ask(weth, 'name'), await ask(weth, 'symbol'), await ask(weth, 'decimals')]).to.deep.equal([
      'Wrapped Ether',
      'WETH',
      18n,
    ]);
  });

  it('lists the markets in the order of the manifest, on the grid of the manifest', async () => {
    const curveBook = CurveBook__factory.connect(manifest.contracts.curveBook, provider);
    expect(manifest.markets.map(({ pair }) => pair)).to.deep.equal(SANDBOX_MARKETS.map(({ pair }) => pair));
    const states = await Promise.all(
      manifest.markets.map(async (_, index) => curveBook.marketState(await curveBook.marketAt(index))),
    );
    expect(states.map((state) => [state.lotUnits, state.tickLotUnits])).to.deep.equal([
      [10n ** 14n, 1n],
      [10n ** 14n, 10n ** 12n],
      [10n ** 3n, 10n],
      [10n ** 4n, 10n ** 10n],
    ]);
  });

  it('has two makers deposited alike and a third with tokens only', async () => {
    const custodian = Custodian__factory.connect(manifest.contracts.custodian, provider);
    const deposits = await custodian.queryFilter(custodian.filters.Deposited(), manifest.deploymentBlock);
    const weth = await token('WETH').getAddress();
    const usdc = await token('USDC').getAddress();
    for (const maker of ['maker1', 'maker2']) {
      const own = deposits.filter((event) => event.args.maker === address(maker));
      expect(own.find((event) => event.args.token === weth)?.args.amount).to.equal(100n * 10n ** 18n);
      expect(own.find((event) => event.args.token === usdc)?.args.amount).to.equal(300_000n * 10n ** 6n);
    }
    expect(deposits.filter((event) => event.args.maker === address('maker3'))).to.have.length(0);
    expect(await ask(token('USDC'), 'balanceOf', address('maker3'))).to.equal(300_000n * 10n ** 6n);
  });

  it('has takers ready to swap, the third by signature only', async () => {
    const { entrypoint, permit2 } = manifest.contracts;
    for (const symbol of manifest.tokens.map((one) => one.symbol)) {
      for (const [taker, spender] of [
        ['taker1', entrypoint],
        ['taker2', entrypoint],
        ['taker3', permit2],
      ] as const) {
        const balance = (await ask(token(symbol), 'balanceOf', address(taker))) as bigint;
        const allowance = (await ask(token(symbol), 'allowance', address(taker), spender)) as bigint;
        expect(balance > 0n && allowance >= balance, `${taker} ${symbol}`).to.equal(true);
      }
    }
    expect(await provider.getBalance(address('taker3'))).to.equal(0n);
    expect((await provider.getBalance(address('taker1'))) > 10n ** 18n).to.equal(true);
  });

  it('gives each role its right and its key', async () => {
    for (const { role, address: expected, privateKey } of manifest.accounts) {
      expect(new Wallet(privateKey).address, role).to.equal(expected);
    }
    expect(manifest.accounts).to.deep.equal(sandboxAccounts());
    const curveBook = CurveBook__factory.connect(manifest.contracts.curveBook, provider);
    const custodian = Custodian__factory.connect(manifest.contracts.custodian, provider);
    const entrypoint = Entrypoint__factory.connect(manifest.contracts.entrypoint, provider);
    expect(await curveBook.isPoster(address('poster'))).to.equal(true);
    expect(await custodian.isPoster(address('settler'))).to.equal(true);
    for (const contract of [curveBook, custodian, entrypoint])
      expect(await contract.owner()).to.equal(address('owner'));
  });

  it("puts USDC behind a proxy that only its admin, who can't use the token, may change", async () => {
    const usdc = await token('USDC').getAddress();
    const implementation = keccak256(Buffer.from('org.zeppelinos.proxy.implementation'));
    const stored = await provider.getStorage(usdc, implementation);
    expect(await provider.getCode(`0x${stored.slice(-40)}`)).to.not.equal('0x');
  });

  it('keeps its time with the wall clock, whatever the block time', async () => {
    // A block is mined between two looks at the chain; how far they are apart is up to the machine.
    const seen = async (number: number): Promise<{ timestamp: number }> => {
      for (;;) {
        const block = await provider.getBlock(number);
        if (block !== null) return block;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const before = await provider.getBlockNumber();
    await seen(before + 15);
    const earliestSec = Date.now() / 1000;
    const next = (await provider.getBlockNumber()) + 1;
    const { timestamp } = await seen(next);
    expect(timestamp).to.be.within(earliestSec - 3, Date.now() / 1000 + 1);
  });

  it('says which setting to change when its port is taken', async () => {
    const port = new URL(manifest.rpcUrl).port;
    const second = startChild('deploy/sandbox/chain-main.ts', ['--port', port]);
    await new Promise<void>((resolve) => second.process.once('close', () => resolve()));
    expect(second.process.exitCode).to.equal(1);
    expect(second.output()).to.contain(`port ${port} is in use`).and.to.contain('RPC_PORT');
  });
});
