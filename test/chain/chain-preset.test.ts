/** From what is known of the public chain to a server that swaps there: configuration, record, settings, and what is said at start. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'chai';
import { ContractFactory, ZeroAddress, getAddress, isAddress, keccak256, type InterfaceAbi } from 'ethers';
import { loadConfig, type Config } from '../../cli/config.js';
import { ConfigError } from '../../cli/errors.js';
import { inspectSwaps } from '../../cli/roles/swap-check.js';
import { RpcUnavailableError } from '../../core/rpc-errors.js';
import type { Address, Hex } from '../../core/types.js';
import { chainPreset } from '../../deploy/chain-preset.js';
import { verifyCommand } from '../../deploy/checks/verify.js';
import { configureCommand, statusCommand } from '../../deploy/commands.js';
import { parseConfig } from '../../deploy/config.js';
import { deployCommand, deployDryRun } from '../../deploy/install.js';
import { uniswapV3 } from '../../liquidity/uniswap-v3.js';
import { uniswapV4 } from '../../liquidity/uniswap-v4.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';

const PERIPHERY = '@uniswap/v3-periphery/artifacts/contracts';
const ROUTER_02 = '@uniswap/swap-router-contracts/artifacts/contracts/SwapRouter02.sol/SwapRouter02.json';
const POOL_MANAGER = '@uniswap/v4-core/out/PoolManager.sol/PoolManager.json';
const KEY = (digit: string): string => `0x${digit.repeat(64)}`;
const BASE = chainPreset(8453)!;

const require = createRequire(import.meta.url);
const artifactOf = (path: string) =>
  JSON.parse(readFileSync(require.resolve(path), 'utf8')) as {
    abi: InterfaceAbi;
    bytecode: string | { object: string };
  };

describe('what is known of chain 8453', () => {
  it('is an address with its checksum and its source each time, and nothing of other chains', () => {
    const venues = Object.values(BASE.venues).flatMap((venue) => Object.values(venue ?? {}));
    const places = [...Object.values(BASE.contracts), ...venues, ...BASE.tokens];
    expect(places).to.have.length(12);
    for (const { address, source } of places) {
      expect(isAddress(address) && getAddress(address) === address, address).to.equal(true);
      expect(source.length).to.be.above(10);
    }
    expect(new Set(BASE.tokens.map(({ symbol }) => symbol))).to.deep.equal(new Set(['WETH', 'USDC', 'cbBTC']));
    expect(BASE.tokens[0]!.address).to.equal(BASE.contracts.wrappedNative.address);
    expect(chainPreset(1)).to.equal(null);
  });

  it('completes tokens of a configuration that are named by their symbols alone', () => {
    const one = `0x${'11'.repeat(20)}`;
    const config = (tokens: unknown[]) =>
      parseConfig({
        chainId: 8453,
        owner: one,
        withdrawDelaySec: 600,
        tokens,
        markets: [],
        curvePosters: [],
        claimPosters: [],
      });
    const { tokens, targets } = config([{ symbol: 'USDC' }, { symbol: 'WETH', address: one, decimals: 6 }]);
    expect(targets).to.equal(undefined);
    expect(tokens).to.deep.include.members([
      { symbol: 'USDC', address: BASE.tokens[1]!.address, decimals: 6, noSymbol: false },
      { symbol: 'WETH', address: getAddress(one), decimals: 6, noSymbol: false },
    ]);
    expect(() => config([{ symbol: 'PEPE' }])).to.throw(/tokens\.0\.address/);
  });
});

describe('a deployment on a chain with the id 8453', function () {
  this.timeout(120_000);
  let world: OwnerWorld;
  const { wrappedNative } = BASE.contracts;
  const venue = (name: string): Record<string, string> =>
    Object.fromEntries(Object.entries(BASE.venues[name]!).map(([contract, { address }]) => [contract, address]));
  const [v3, v2, v4] = [venue('uniswap-v3'), venue('uniswap-v2'), venue('uniswap-v4')] as [
    Record<'factory' | 'router' | 'quoter', string>,
    Record<'factory' | 'router', string>,
    Record<'poolManager', string>,
  ];

  before(async () => (world = await startOwnerWorld()));
  after(() => world.close());

  /** Puts a published contract, as its constructor leaves it, at an address. */
  async function place(at: string, path: string, ...args: unknown[]): Promise<void> {
    const { abi, bytecode } = artifactOf(path);
    const deployed = await new ContractFactory(abi, bytecode, world.chain.signers[9]).deploy(...args);
    await deployed.waitForDeployment();
    const code = await world.chain.provider.getCode(await deployed.getAddress());
    await world.chain.provider.send('hardhat_setCode', [at, code]);
  }

  const load = (changes: Record<string, string> = {}): Config =>
    loadConfig(
      {},
      {
        MANIFEST: join(world.folder, '8453.json'),
        RPC_URL: 'http://127.0.0.1:1',
        OPERATOR_ADDRESS: `0x${'ab'.repeat(20)}`,
        POSTER_PRIVATE_KEY: KEY('1'),
        SETTLER_PRIVATE_KEY: KEY('2'),
        EXECUTOR_PRIVATE_KEY: KEY('3'),
        ...changes,
      },
    );

  it('records no place that the chain does not have, and lists its tokens all the same', async () => {
    await deployCommand(await world.context(), world.config());
    await configureCommand(await world.context(), world.config(), 'send');
    expect(world.record().contracts).not.to.have.any.keys('wrappedNative', 'uniswapV3Router');
    const { swap, wrappedNative: wrapped } = load();
    expect(swap?.tokens.map(({ symbol, name, chainId }) => [symbol, name, chainId])).to.deep.equal([
      ['WETH', 'WETH', 8453],
      ['USDC', 'USDC', 8453],
    ]);
    expect(wrapped).to.equal(wrappedNative.address.toLowerCase());
    expect(swap?.venues.map(({ kind, origin, contracts }) => [kind.name, origin, contracts.router])).to.deep.equal([
      ['uniswap-v3', 'preset', v3.router.toLowerCase()],
      ['uniswap-v2', 'preset', v2.router.toLowerCase()],
    ]);
    expect(swap?.unrouted).to.deep.equal([{ kind: uniswapV4, parent: v4.poolManager.toLowerCase() }]);
    expect(world.printed().join('\n')).to.contain(`Uniswap v4 is not at ${v4.poolManager}: it gets no router`);
  });

  it('refuses to configure a router that is something else', async () => {
    const { provider } = world.chain;
    for (const address of [wrappedNative.address, ...Object.values(v3)]) {
      await provider.send('hardhat_setCode', [address, '0x6001']);
    }
    const { code, message } = await refusal(configureCommand(await world.context(), world.config(), 'send'));
    expect(code).to.equal('BAD_CONFIG');
    expect(message).to.contain(`${v3.router.toLowerCase()} is neither Uniswap's SwapRouter nor its SwapRouter02`);
    await place(v3.router, ROUTER_02, ZeroAddress, ZeroAddress, ZeroAddress, ZeroAddress);
    const other = await refusal(configureCommand(await world.context(), world.config(), 'dry-run'));
    expect(other.code, 'another factory').to.equal('BAD_CONFIG');
  });

  it('lets the settler call the router that is there, and records where everything is', async () => {
    const native = wrappedNative.address;
    await place(v3.router, ROUTER_02, ZeroAddress, v3.factory, ZeroAddress, native);
    await place(v3.quoter, `${PERIPHERY}/lens/QuoterV2.sol/QuoterV2.json`, v3.factory, native);
    await world.chain.provider.send('hardhat_setCode', [v2.factory, '0x6001']);
    await place(v2.router, '@uniswap/v2-periphery/build/UniswapV2Router02.json', v2.factory, native);
    const actions = await configureCommand(await world.context(), world.config(), 'send');
    const targets = [v3.router, v2.router];
    expect(actions.map(({ summary }) => summary)).to.have.members(targets.map((at) => `+ external target ${at}`));
    expect(world.record().contracts).to.include({
      wrappedNative: native,
      uniswapV3Router: v3.router,
      uniswapV3Quoter: v3.quoter,
      uniswapV3Factory: v3.factory,
      uniswapV2Router: v2.router,
      uniswapV2Factory: v2.factory,
    });
    expect(load().swap?.venues.map(({ origin }) => origin)).to.deep.equal(['manifest', 'manifest']);
    // An empty list is a decision, and takes the right away again.
    const none = await configureCommand(await world.context(), world.config({ targets: [] }), 'dry-run');
    expect(none.map(({ summary }) => summary)).to.have.members(targets.map((at) => `- external target ${at}`));
  });

  it('deploys a router of its own for the manager of Uniswap v4, also beside a deployment that is complete', async () => {
    const { provider } = world.chain;
    const before = world.record();
    await provider.send('hardhat_setCode', [v4.poolManager, '0x6001']);
    const { code, message } = await refusal(deployCommand(await world.context(), world.config()));
    expect(code).to.equal('BAD_CONFIG');
    expect(message).to.contain(`${v4.poolManager.toLowerCase()} is not Uniswap's PoolManager`);
    const nowhere = getAddress(`0x${'ab'.repeat(20)}`);
    const empty = await refusal(deployCommand(await world.context(), world.config({ uniswapV4PoolManager: nowhere })));
    expect(empty).to.deep.equal({
      code: 'BAD_CONFIG',
      message: `uniswapV4PoolManager: nothing is at ${nowhere}`,
    });
    await place(v4.poolManager, POOL_MANAGER, world.config().owner);
    world.printed();
    expect(await deployDryRun(await world.context(), world.config())).to.equal(null);
    const foretold = world.printed().join('\n');
    expect(world.record()).to.deep.equal(before);

    const record = await deployCommand(await world.context(), world.config());
    expect(record).to.deep.equal(world.record());
    const { uniswapV4Router: router } = record.contracts;
    expect(record.contracts).to.deep.equal({
      ...before.contracts,
      uniswapV4PoolManager: v4.poolManager,
      uniswapV4Router: router,
    });
    expect(record.codeHashes['uniswapV4Router']).to.equal(keccak256(await provider.getCode(router!)));
    expect(foretold).to.match(
      new RegExp(
        `^uniswapV4Router ${router}: .* of ${v4.poolManager}, .* ${record.codeHashes['uniswapV4Router']}$`,
        'm',
      ),
    );
    expect(await deployCommand(await world.context(), world.config()), 'once').to.deep.equal(record);
    expect(load().swap?.unrouted).to.deep.equal([]);
    expect(load().swap?.venues.map(({ kind, origin }) => [kind.name, origin])).to.deep.include([
      'uniswap-v4',
      'manifest',
    ]);

    const actions = await configureCommand(await world.context(), world.config(), 'send');
    expect(actions.map(({ summary }) => summary)).to.deep.equal([`+ external target ${router}`]);
    expect(await configureCommand(await world.context(), world.config(), 'dry-run')).to.deep.equal([]);
    expect(world.record().contracts).to.include({ uniswapV4Router: router, uniswapV3Router: v3.router });
    world.printed();
    await statusCommand(await world.context());
    expect(world.printed()).to.include(`uniswapV4Router ${router}`);
    const named = await refusal(verifyCommand(await world.context(), ['nothing']));
    expect(named.message).to.match(/ uniswapV4Router,/);

    // Another manager gets another router, and the settler forgets the one before.
    const { abi, bytecode } = artifactOf(POOL_MANAGER);
    const other = await new ContractFactory(abi, bytecode, world.chain.signers[9]).deploy(world.config().owner);
    await other.waitForDeployment();
    const moved = world.config({ uniswapV4PoolManager: await other.getAddress() });
    const next = await deployCommand(await world.context(), moved);
    expect(next.contracts.uniswapV4PoolManager).to.equal(await other.getAddress());
    expect(next.contracts.uniswapV4Router).to.not.equal(router);
    const change = await configureCommand(await world.context(), moved, 'dry-run');
    expect(change.map(({ summary }) => summary)).to.have.members([
      `- external target ${router}`,
      `+ external target ${next.contracts.uniswapV4Router}`,
    ]);
  });

  it('stops a start with a token list of other chains', () => {
    const list = join(world.folder, 'list.json');
    const tokens = BASE.tokens.map(({ symbol, name, address, decimals }) => ({
      chainId: 1,
      symbol,
      name,
      address,
      decimals,
    }));
    world.restoreFiles(new Map([...world.saveFiles(), ['list.json', JSON.stringify({ name: 'other', tokens })]]));
    expect(() => load({ TOKEN_LIST: list })).to.throw(
      ConfigError,
      /TOKEN_LIST: the token list has no token of chain 8453/,
    );
  });
});

describe('what a server with swaps finds on its chain', function () {
  this.timeout(120_000);
  let chain: ManualChain;
  let rpc: Rpc;

  before(async () => {
    chain = await startManualChain(1, { pools: true });
    rpc = createRpc(chain.rpcUrl);
  });
  after(() => chain?.close());

  const lower = (name: string) => chain.manifest.contracts[name]!.toLowerCase() as Address;
  function config(change: Partial<NonNullable<Config['swap']>> = {}) {
    const swap: NonNullable<Config['swap']> = {
      permit2: lower('permit2'),
      settler: lower('orderSettler'),
      periphery: [],
      tokens: [{ chainId: 8453, address: lower('weth'), symbol: 'WETH', name: 'WETH', decimals: 18, logoURI: '' }],
      wrappedNative: lower('weth'),
      venues: venue('manifest'),
      unrouted: [],
      ...change,
    };
    return {
      swap,
      ROLES: ['gateway' as const, 'executor' as const],
      keys: { executor: chain.wallet('executor').privateKey as Hex },
    };
  }
  const venue = (origin: 'manifest' | 'preset', change = {}) => {
    const contracts = {
      factory: lower('uniswapV3Factory'),
      router: lower('uniswapV3Router'),
      quoter: lower('uniswapV3Quoter'),
      ...change,
    };
    return [{ kind: uniswapV3, contracts, origin }];
  };
  const NOBODY: Address = `0x${'ab'.repeat(20)}`;

  it('is nothing while all is there', async () => {
    expect(await inspectSwaps(rpc, config())).to.deep.equal({ wrong: [], missing: [] });
  });

  it('is each thing that is missing, with what to do', async () => {
    const unrouted = [NOBODY, lower('custodian')].map((parent) => ({ kind: uniswapV4, parent }));
    const { missing, wrong } = await inspectSwaps(rpc, {
      ...config({ permit2: NOBODY, wrappedNative: NOBODY, tokens: [], venues: [], unrouted }),
      keys: { executor: KEY('5') as Hex },
    });
    expect(wrong).to.deep.equal([]);
    expect(missing).to.have.length(7);
    for (const [i, text] of [
      'no Permit2',
      'WRAPPED_NATIVE',
      'no token list',
      `no liquidity of Uniswap v4: the chain has no poolManager at ${NOBODY}`,
      'no liquidity of Uniswap v4: the deployment has no router of its own for it yet; run deploy, then configure',
      'external liquidity',
      'executors',
    ].entries()) {
      expect(missing[i]).to.contain(text);
    }
  });

  it('stops on a router that is none, and goes on without one that only the preset names', async () => {
    const wrong = await inspectSwaps(rpc, config({ venues: venue('manifest', { router: lower('weth') }) }));
    expect(wrong.wrong[0]).to.match(/^MANIFEST: 0x4200\w+ is neither Uniswap's SwapRouter nor its SwapRouter02$/);
    const absent = { router: NOBODY };
    expect((await inspectSwaps(rpc, config({ venues: venue('manifest', absent) }))).wrong).to.have.length(1);
    const { wrong: none, missing } = await inspectSwaps(rpc, config({ venues: venue('preset', absent) }));
    expect(none).to.deep.equal([]);
    expect(missing).to.deep.equal([`no liquidity of Uniswap v3: the chain has no router at ${NOBODY}`]);
  });

  it('is nothing that a node without state can say', async () => {
    const empty = {
      ...rpc,
      call: (method: string, params?: unknown[]) =>
        method === 'eth_getCode' ? Promise.resolve('0x') : rpc.call(method, params),
    };
    const error: unknown = await inspectSwaps(empty, config()).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(RpcUnavailableError);
  });

  it('says when the settler may not call the router', async () => {
    const settler = lower('orderSettler');
    const word = `0x${'00'.repeat(32)}`;
    const deaf = {
      ...rpc,
      call: (method: string, params?: unknown[]) =>
        method === 'eth_call' && (params?.[0] as { to: string }).to === settler
          ? Promise.resolve(word)
          : rpc.call(method, params),
    };
    const { missing } = await inspectSwaps(deaf, config());
    expect(missing).to.have.length(2);
    expect(missing[0]).to.contain('the settler may not call the router');
    expect(missing[1]).to.contain('the settler does not take orders from');
  });
});
