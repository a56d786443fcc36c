/** The samples of docs/contracts.md, run as they stand there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { BrowserProvider, Contract, ContractFactory, MaxUint256, parseUnits, type Signer } from 'ethers';
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  custom,
  parseAbi,
} from 'viem';
import { foundry } from 'viem/chains';
import type { Build } from '../../deploy/build.js';
import { configureCommand } from '../../deploy/commands.js';
import { connectContracts, type Contracts } from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { addressesOf } from '../../deploy/upgrade/upgrade.js';
import { postFirstCurve } from '../support/contracts/live-curve.js';
import { startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';
import { buildSuccessors } from '../support/contracts/successors.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const guide = readFileSync(join(root, 'docs', 'contracts.md'), 'utf8');
const AMOUNT_IN = parseUnits('1000', 6);

/** The only block of code in this language. */
function sample(language: string): string {
  const blocks = [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code!);
  expect(blocks, language).to.have.length(1);
  return blocks[0]!;
}

describe('the samples for integrators', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let at: Contracts;
  let taker: Signer & { address: string };
  let successors: Build;

  before(async () => {
    // Compiled before there is a curve, which would be dead by then.
    successors = await buildSuccessors();
    world = await startOwnerWorld();
    // A rate alone charges nothing, but the sample is that of anybody.
    const config = world.config({ takerFees: [] });
    await deployCommand(await world.context(), config);
    await configureCommand(await world.context(), config, 'send');
    at = connectContracts(addressesOf(world.record()), world.chain.provider);
    const { signers } = world.chain;
    const [poster, maker, issuer] = [signers[1]!, signers[4]!, signers[9]!];
    taker = signers[5] as typeof taker;
    for (const token of [world.base, world.quote]) {
      for (const holder of [maker, taker]) {
        await (await token.connect(issuer).mint(await holder.getAddress(), parseUnits('10000', 18))).wait();
      }
      await (await token.connect(maker).approve(at.custodian, parseUnits('1000', 18))).wait();
      await (await at.custodian.connect(maker).deposit(token, parseUnits('1000', 18))).wait();
    }
    await postFirstCurve(at, poster);
  });
  after(() => world?.close());

  const AsyncFunction = (async () => undefined).constructor as new (
    ...source: string[]
  ) => (...values: unknown[]) => Promise<void>;

  /** Runs the lines behind the import with what they leave to the reader. */
  async function run(code: string, imported: string, given: Record<string, unknown>): Promise<void> {
    const [first, ...body] = code.split('\n');
    expect(first).to.equal(imported);
    await new AsyncFunction(...Object.keys(given), body.join('\n'))(...Object.values(given));
  }

  /** What another taker does before the sample's transaction. */
  async function tradeFirst(): Promise<void> {
    await (await world.quote.connect(taker).approve(at.entrypoint, AMOUNT_IN)).wait();
    const amounts = [AMOUNT_IN, 0n] as const;
    await (
      await at.entrypoint.connect(taker).swap(world.quote, world.base, ...amounts, taker.address, MaxUint256)
    ).wait();
  }

  /** As nodes and wallets answer: data of a revert are a string, which the chain of tests keeps deeper. */
  const request = async ({ method, params = [] }: { method: string; params?: unknown }): Promise<unknown> => {
    try {
      return await world.chain.provider.send(method, params as unknown[]);
    } catch (error) {
      const { message, data } = (error as { info: { error: { message: string; data?: string | { data?: string } } } })
        .info.error;
      throw Object.assign(new Error(message), { code: 3, data: typeof data === 'string' ? data : data?.data });
    }
  };

  /** The samples' clock: that of the chain, which is a second ahead for each block that a test mines within one. */
  const chainClock = async () => {
    const block = await world.chain.provider.getBlock('latest');
    return { floor: () => block!.timestamp };
  };

  const ethersGiven = async () => ({
    Contract,
    Math: await chainClock(),
    wallet: await new BrowserProvider({ request }).getSigner(taker.address),
    address: await at.entrypoint.getAddress(),
    tokenIn: await world.quote.getAddress(),
    tokenOut: await world.base.getAddress(),
    amountIn: AMOUNT_IN,
    erc20: world.quote.connect(taker),
  });
  const ETHERS = "import { Contract } from 'ethers';";
  const VIEM = "import { BaseError, ContractFunctionRevertedError } from 'viem';";

  const said = async (run: Promise<void>): Promise<string> =>
    run.then(
      () => 'nothing',
      (error: unknown) => (error as Error).message,
    );

  it('quote and swap with ethers, and the quote may move by what a block brings', async () => {
    const { base, quote } = world;
    const expected = await at.entrypoint.quote(quote, base, AMOUNT_IN);
    expect(expected > 0n).to.equal(true);
    const before = await base.balanceOf(taker);
    const given = await ethersGiven();
    await run(sample('ts'), ETHERS, given);
    expect((await base.balanceOf(taker)) - before).to.equal(expected);

    // Somebody trades between the quote and the swap.
    const moving = {
      connect: () => quote,
      approve: async (...args: [string, bigint]) => (await tradeFirst(), quote.connect(taker).approve(...args)),
    };
    const quoted = await at.entrypoint.quote(quote, base, AMOUNT_IN);
    const held = await base.balanceOf(taker);
    await run(sample('ts'), ETHERS, { ...given, erc20: moving });
    const own = (await base.balanceOf(taker)) - held - quoted;
    expect(own > 0n && own <= quoted).to.equal(true);
  });

  it('name the error of a revert, with ethers and with viem', async () => {
    const given = await ethersGiven();
    const dead = { ...given, Math: { floor: () => 1 } };
    expect(await said(run(sample('ts'), ETHERS, dead))).to.equal('DeadlinePassed(31)');
    const viem = await viemGiven(given);
    expect(await said(run(sample('js'), VIEM, { ...viem, Math: { floor: () => 1 } }))).to.equal('DeadlinePassed(31)');
  });

  it('name every way in which a swap may fail, with ethers and with viem', async () => {
    const given = await ethersGiven();
    const nobody = { ...given.erc20, approve: async () => ({ wait: async () => null }) };
    const dust = {
      tokenIn: given.tokenOut,
      tokenOut: given.tokenIn,
      erc20: world.base.connect(taker),
      amountIn: 1n,
    };
    const cases: [string, Record<string, unknown>, RegExp][] = [
      ['nothing', { amountIn: 0n }, /^ZeroAmount\(\)$/],
      ['dust', dust, /^ZeroOutput\(1\)$/],
      ['too much', { amountIn: parseUnits('9000', 18) }, /^InsufficientDepth\(/],
      ['beyond any amount', { amountIn: 2n ** 101n }, /^AmountTooLarge\(/],
      ['no such market', { tokenOut: given.tokenIn }, /^UnknownMarket\(0x/],
      ['the vault itself', { recipient: await at.custodian.getAddress() }, /^ForbiddenRecipient\(0x/],
      ['no allowance', { erc20: nobody }, /reverted/],
    ];
    await (await world.quote.connect(taker).approve(at.entrypoint, 0n)).wait();
    for (const [what, change, pattern] of cases.reverse()) {
      const { amountIn, tokenIn, tokenOut, recipient, erc20 } = {
        recipient: given.wallet.address,
        ...given,
        ...change,
      };
      const to = (code: string, own: string) => code.replace(`${own}, `, 'recipient, ');
      const ethers = run(to(sample('ts'), 'wallet.address'), ETHERS, {
        ...given,
        Math: await chainClock(),
        ...{ amountIn, tokenIn, tokenOut, recipient, erc20 },
      });
      expect(await said(ethers), `${what}, ethers`).to.match(pattern);
      const viem = { ...(await viemGiven(given)), amountIn, tokenIn, tokenOut, recipient };
      const code = to(sample('js'), 'account.address');
      expect(await said(run(code, VIEM, viem)), `${what}, viem`).to.match(pattern);
    }
  });

  it('quote and swap with viem', async () => {
    const { base, quote } = world;
    const viem = await viemGiven(await ethersGiven());
    await (await quote.connect(taker).approve(at.entrypoint, AMOUNT_IN)).wait();
    const expected = await at.entrypoint.quote(quote, base, AMOUNT_IN);
    const before = await base.balanceOf(taker);
    await run(sample('js'), VIEM, viem);
    expect((await base.balanceOf(taker)) - before).to.equal(expected);
  });

  async function viemGiven({ address, tokenIn, tokenOut }: Awaited<ReturnType<typeof ethersGiven>>) {
    const lines = [...sample('ts').matchAll(/'((?:function|error) [^']+)'/g)].map(([, line]) => line!);
    const chain = { ...foundry, id: 8453 };
    const options = { chain, transport: custom({ request } as never), pollingInterval: 20 };
    return {
      BaseError,
      ContractFunctionRevertedError,
      client: createPublicClient(options),
      wallet: createWalletClient({ ...options, account: taker.address as `0x${string}` }),
      account: { address: taker.address, type: 'json-rpc' },
      Math: await chainClock(),
      abi: parseAbi(lines as never),
      ...{ address, tokenIn, tokenOut, amountIn: AMOUNT_IN },
    };
  }

  it('quote and swap in Solidity', async () => {
    const lines = sample('solidity').trim().split('\n');
    const source = readFileSync(join(root, 'test/fixtures/upgrades/Integrator.sol'), 'utf8');
    const indented = lines.map((line) => `        ${line}\n`).join('');
    expect(source, 'what is compiled is what the guide shows').to.contain(`external {\n${indented}    }\n`);

    const { interface: abi, bytecode } = successors.contract('Integrator');
    const integrator = (await new ContractFactory(abi, bytecode, taker).deploy()) as Contract;
    await integrator.waitForDeployment();
    const { base, quote } = world;
    await (await quote.connect(taker).transfer(integrator, AMOUNT_IN)).wait();
    const expected = await at.entrypoint.quote(quote, base, AMOUNT_IN);
    const before = await base.balanceOf(taker);
    await (await integrator.getFunction('trade')(at.entrypoint, quote, base, AMOUNT_IN, taker.address)).wait();
    expect((await base.balanceOf(taker)) - before).to.equal(expected);
    expect(await quote.allowance(integrator, at.entrypoint), 'no allowance is left').to.equal(0n);
  });
});
