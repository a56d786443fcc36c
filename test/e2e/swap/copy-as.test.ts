/** The swap page's programs to copy, run as they are copied, in a project that has only the SDK, a library and a key. */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { Contract, ContractFactory, parseUnits, Wallet, type InterfaceAbi } from 'ethers';
import type * as Packages from '../../../scripts/packages.mjs';
import { createReadClient } from '../../../sdk/src/index.js';
import { snippet, type SnippetName } from '../../../web/src/swap/snippets.js';
import type { SnippetSwap } from '../../../web/src/swap/snippet-swap.js';
import { balanceOf, limitsAt } from '../../support/audit.js';
import { accountOf, contractsOf, startStack, until, type Stack } from '../../support/stack.js';
import { place, untilQuoted } from '../../support/trading.js';

// A program of the repository, where it stands: tests may run from a copy of their own.
const { bundleSdk } = (await import(new URL('../../../scripts/packages.mjs', import.meta.url).href)) as typeof Packages;

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../../', import.meta.url));
const TAKER = 'taker1';
const AMOUNT = '0.1';
const PROGRAM_TIMEOUT_MS = 120_000;

describe('The programs of the swap page, as they are copied', function () {
  this.timeout(300_000);
  let folder: string;
  let stack: Stack;
  let swap: Omit<SnippetSwap, 'mode'>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-copied-'));
    const sdk = join(folder, 'node_modules/@curvebook/sdk');
    mkdirSync(sdk, { recursive: true });
    await bundleSdk(undefined, { outdir: join(sdk, 'dist') });
    copyFileSync(join(root, 'sdk/package.json'), join(sdk, 'package.json'));
    for (const library of ['viem', 'ethers'])
      symlinkSync(join(root, 'node_modules', library), join(folder, 'node_modules', library));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'copied', private: true, type: 'module' }));
    stack = await startStack({ databaseUrl: `sqlite:${join(folder, 'curvebook.sqlite')}`, pools: true });
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    await until('the deposits of the maker', async () => {
      const limits = await limitsAt(stack, accountOf(stack, 'maker1').address);
      return limits.ledger.ready && ['WETH', 'USDC'].every((symbol) => balanceOf(stack, limits, symbol) > 0n);
    });
    await place(stack, 'maker1', [
      { isBuy: false, price: '2500.1', size: '20' },
      { isBuy: true, price: '2499.9', size: '20' },
    ]);
    await untilQuoted(stack, 'WETH', 'USDC', parseUnits('1', 18));
    const { serverUrl: url, rpcUrl } = stack.manifest;
    const deployment = { ...(await createReadClient(url).deployment()), rpc_url: rpcUrl };
    const [sell, buy] = ['WETH', 'USDC'].map((symbol) => deployment.tokens.find((token) => token.symbol === symbol));
    if (sell === undefined || buy === undefined) throw new Error('the sandbox lists both');
    const units = parseUnits(AMOUNT, sell.decimals);
    swap = {
      ...{ url, deployment, sell, buy, units, minBuyUnits: parseUnits('200', buy.decimals) },
      ...{ slippageBps: 100, validForSec: 3_600 },
    };
  });

  after(async () => {
    await stack?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Of a limit order above the market, so that it waits. */
  const far = (): Omit<SnippetSwap, 'mode'> => ({ ...swap, minBuyUnits: parseUnits('300', swap.buy.decimals) });

  async function copied(name: SnippetName, of: SnippetSwap): Promise<string> {
    const file = join(folder, name === 'curl' ? 'main.sh' : 'main.mjs');
    writeFileSync(file, snippet(name, of));
    const env = { ...process.env, PRIVATE_KEY: accountOf(stack, TAKER).privateKey };
    const program = name === 'curl' ? 'bash' : process.execPath;
    const { stdout } = await run(program, [file], { cwd: folder, env, timeout: PROGRAM_TIMEOUT_MS }).catch(
      (error: unknown) => {
        const { stderr = '', stdout: said = '' } = error as { stderr?: string; stdout?: string };
        throw new Error(`${said}\n${stderr}`);
      },
    );
    return stdout;
  }

  /** What the taker holds of both tokens. */
  async function held(): Promise<{ weth: bigint; usdc: bigint }> {
    const { balanceOf: of } = contractsOf(stack, TAKER);
    const taker = accountOf(stack, TAKER).address;
    return { weth: await of('WETH', taker), usdc: await of('USDC', taker) };
  }

  /** Runs what swaps, and looks that it brought what was to be brought. */
  async function expectSwapped(job: () => Promise<unknown>): Promise<void> {
    const before = await held();
    await job();
    await until('the swap', async () => (await held()).usdc > before.usdc);
    const after = await held();
    expect(before.weth - after.weth).to.equal(swap.units);
    expect(after.usdc - before.usdc >= parseUnits('240', 6)).to.equal(true);
  }

  interface Order {
    orderId: string;
    status: string;
    orderClass: string;
    minBuyAmount: string;
    reason: { code: string } | null;
  }

  async function ordersOf(owner: string): Promise<Order[]> {
    const reply = await fetch(`${swap.url}/api/v1/orders?owner=${owner}&limit=50`);
    return ((await reply.json()) as { orders: Order[] }).orders;
  }

  /** A contract of the program, as anybody compiles it, deployed by the taker. */
  async function deployed(of: SnippetSwap): Promise<Contract> {
    const { compile } = createRequire(import.meta.url)('solc') as { compile(input: string): string };
    const settings = { outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } } };
    const sources = { 'Copied.sol': { content: snippet('Solidity', of) } };
    const { errors = [], contracts } = JSON.parse(
      compile(JSON.stringify({ language: 'Solidity', sources, settings })),
    ) as {
      errors?: { severity: string; formattedMessage: string }[];
      contracts?: Record<string, Record<string, { abi: InterfaceAbi; evm: { bytecode: { object: string } } }>>;
    };
    expect(errors.map(({ formattedMessage }) => formattedMessage).join('\n')).to.equal('');
    const made = Object.values(contracts?.['Copied.sol'] ?? {}).find(({ evm }) => evm.bytecode.object !== '');
    if (made === undefined) throw new Error('no contract in it');
    const factory = new ContractFactory(made.abi, made.evm.bytecode.object, signer());
    const contract = await (await factory.deploy()).waitForDeployment();
    const erc20 = ['function approve(address, uint256) returns (bool)'];
    await sent(new Contract(of.sell.address, erc20, signer()), 'approve', contract.target, of.units);
    return new Contract(contract.target, made.abi, signer());
  }

  const signer = (): Wallet => new Wallet(accountOf(stack, TAKER).privateKey, stack.provider);

  async function sent(contract: Contract, method: string, ...args: unknown[]): Promise<void> {
    const transaction = (await contract.getFunction(method)(...args)) as { wait(): Promise<{ status: number } | null> };
    expect((await transaction.wait())?.status).to.equal(1);
  }

  /** Places an order of a program, and looks that the server has it as it was written. */
  async function expectWaiting(name: SnippetName): Promise<void> {
    const owner = accountOf(stack, TAKER).address;
    const before = new Set((await ordersOf(owner)).map(({ orderId }) => orderId));
    const said = await copied(name, { ...far(), mode: 'limit' });
    const order = (await ordersOf(owner)).find(({ orderId }) => !before.has(orderId));
    expect(said).to.contain(order?.orderId ?? 'an order');
    expect(order).to.include({ status: 'pending', orderClass: 'limit', minBuyAmount: '300000000' });
  }

  for (const name of ['viem', 'ethers'] as const) {
    it(`${name}: a transaction of one's own`, async () => {
      await expectSwapped(async () => expect(await copied(name, { ...swap, mode: 'direct' })).to.match(/^mined: 0x/));
    });

    it(`${name}: gasless`, async () => {
      await expectSwapped(async () => expect(await copied(name, { ...swap, mode: 'gasless' })).to.match(/^filled 0x/));
    });

    it(`${name}: a limit order, which waits`, () => expectWaiting(name));
  }

  describe('curl', () => {
    // Wrapped ether takes no approval by a signature, which is all that a program of requests can give.
    before(async () => {
      const erc20 = ['function approve(address, uint256) returns (bool)'];
      const { permit2 } = stack.manifest.contracts;
      await sent(new Contract(swap.sell.address, erc20, signer()), 'approve', permit2, parseUnits('1', 18));
    });

    it('gasless', () => expectSwapped(() => copied('curl', { ...swap, mode: 'gasless' })));

    it('what the server and the contract pay now', async () => {
      const said = await copied('curl', { ...swap, mode: 'direct' });
      const answers = said.split(/(?<=\})(?=\{"jsonrpc)/);
      expect(answers.length, said).to.equal(2);
      const [price, contract] = answers.map((one) => JSON.parse(one) as { buyAmount?: string; result?: string });
      expect(BigInt(contract?.result ?? '0x0')).to.equal(parseUnits('249.99', 6));
      expect(BigInt(price?.buyAmount ?? '0') > parseUnits('249', 6)).to.equal(true);
    });

    it('a limit order, which waits', () => expectWaiting('curl'));

    it('a limit order that the market has reached, and is filled', () =>
      expectSwapped(() => copied('curl', { ...swap, mode: 'limit' })));

    it('signs nothing but what was asked for', async () => {
      const { permit2, ...others } = swap.deployment.contracts;
      if (permit2 === undefined) throw new Error('no Permit2');
      const contracts = { ...others, permit2, orderSettler: permit2 };
      for (const mode of ['gasless', 'limit'] as const) {
        const lie = { ...swap, mode, deployment: { ...swap.deployment, contracts } };
        expect(String(await copied('curl', lie).catch((error: unknown) => error))).to.contain('this is another order');
      }
    });
  });

  describe('Solidity', () => {
    it('swaps for its caller', async () => {
      const contract = await deployed({ ...swap, mode: 'direct' });
      await expectSwapped(() => sent(contract, 'swap', { gasLimit: 500_000 }));
    });

    it('a limit order that anybody fills once the curve is there, and that its owner takes back', async () => {
      const waiting = await deployed({ ...far(), mode: 'limit' });
      const before = await held();
      await sent(waiting, 'place');
      expect(before.weth - (await held()).weth).to.equal(swap.units);
      const failure = await waiting
        .getFunction('fill')
        .staticCall()
        .catch((error: unknown) => error);
      expect(failure).to.be.an('error');
      await sent(waiting, 'cancel');
      expect((await held()).weth).to.equal(before.weth);

      const reached = await deployed({ ...swap, mode: 'limit' });
      const stranger = new Wallet(accountOf(stack, 'taker2').privateKey, stack.provider);
      await expectSwapped(async () => {
        await sent(reached, 'place');
        await sent(reached.connect(stranger) as Contract, 'fill', { gasLimit: 500_000 });
      });
    });
  });
});
