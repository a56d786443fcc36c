/** The samples of docs/contracts.md, run as they stand there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Contract, ContractFactory, parseUnits } from 'ethers';
import type { Signer } from 'ethers';
import type { Build } from '../../deploy/build.js';
import { configureCommand } from '../../deploy/commands.js';
import { connectContracts } from '../../deploy/contracts.js';
import type { Contracts } from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { addressesOf } from '../../deploy/upgrade.js';
import { postFirstCurve } from '../support/live-curve.js';
import { startOwnerWorld } from '../support/owner.js';
import type { OwnerWorld } from '../support/owner.js';
import { buildSuccessors } from '../support/successors.js';

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

  it('quote and swap in TypeScript, within ten lines of calls', async () => {
    const code = sample('ts');
    const [first, ...body] = code.split('\n');
    expect(first).to.equal("import { Contract } from 'ethers';");
    expect(body.filter((line) => line !== '').length).to.be.at.most(10);
    const { base, quote } = world;
    const given = {
      Contract,
      wallet: taker,
      address: await at.entrypoint.getAddress(),
      tokenIn: await quote.getAddress(),
      tokenOut: await base.getAddress(),
      amountIn: AMOUNT_IN,
      erc20: quote.connect(taker),
    };
    const expected = await at.entrypoint.quote(quote, base, AMOUNT_IN);
    const before = await base.balanceOf(taker);
    const AsyncFunction = (async () => undefined).constructor as new (
      ...source: string[]
    ) => (...values: unknown[]) => Promise<void>;
    await new AsyncFunction(...Object.keys(given), body.join('\n'))(...Object.values(given));
    expect(expected > 0n).to.equal(true);
    expect((await base.balanceOf(taker)) - before).to.equal(expected);
  });

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
