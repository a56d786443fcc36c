/** OpenZeppelin's timelock as the owner: what the commands prepare waits for its delay in public, and can be cancelled meanwhile. */
import { expect } from 'chai';
import { Contract, ContractFactory, Interface, ZeroHash, id, type BaseContract, type Signer } from 'ethers';
import { proposalOf, type Action } from '../../deploy/actions.js';
import type { Build } from '../../deploy/build.js';
import { acceptCommand, configureCommand, statusCommand, transferCommand } from '../../deploy/commands.js';
import {
  CONTRACT_NAMES,
  PROXY_NAMES,
  connectContracts,
  implementationOf,
  ownershipOf,
  type Contracts,
} from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { rollbackCommand } from '../../deploy/upgrade/rollback.js';
import { addressesOf, upgradeCommand } from '../../deploy/upgrade/upgrade.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';
import { buildSuccessors } from '../support/contracts/successors.js';

const DELAY_SEC = 2 * 86_400;
const NOTE = new Interface(['function note() view returns (uint256)', 'function initializeV2(uint256)']);
const SOURCES = { custodian: 'CustodianV2', curveBook: 'CurveBookV2', entrypoint: 'EntrypointV2' };
const CALLS = Object.fromEntries(
  PROXY_NAMES.map((name, i) => [name, NOTE.encodeFunctionData('initializeV2', [100 + i])]),
);

describe('a timelock as the owner', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let successors: Build;
  let at: Contracts;
  let timelock: BaseContract;
  let owner: string;
  let proposer: Signer;
  let executor: Signer;
  let stranger: Signer;

  before(async () => {
    successors = await buildSuccessors();
    world = await startOwnerWorld();
    [stranger, proposer, executor] = world.chain.signers.slice(6, 9) as [Signer, Signer, Signer];
    const { interface: abi, bytecode } = successors.contract('Timelock');
    const roles = [[await proposer.getAddress()], [await executor.getAddress()]];
    timelock = await new ContractFactory(abi, bytecode, stranger).deploy(DELAY_SEC, ...roles);
    owner = await (await timelock.waitForDeployment()).getAddress();
    await deployCommand(await world.context(), world.config());
    at = connectContracts(addressesOf(world.record()), world.chain.provider);
    await transferCommand(await world.context(), owner, 'send');
  });
  after(() => world.close());

  /** The arguments of the timelock's functions for a batch, as its owners take them from the file that the commands write. */
  function batchOf(actions: readonly Action[]) {
    const proposal = proposalOf('test', actions, { chainId: 8453, owner, createdAtMs: 0 });
    const calls = proposal.transactions;
    return [calls.map(({ to }) => to), calls.map(({ value }) => value), calls.map(({ data }) => data)] as const;
  }
  const as = (signer: Signer) => timelock.connect(signer) as Contract;
  const operationOf = async (actions: readonly Action[], salt: string) =>
    (await as(stranger)
      .getFunction('hashOperationBatch')
      .staticCall(...batchOf(actions), ZeroHash, salt)) as string;

  async function schedule(actions: readonly Action[], salt: string): Promise<void> {
    await (await as(proposer).getFunction('scheduleBatch')(...batchOf(actions), ZeroHash, salt, DELAY_SEC)).wait();
  }
  const execute = async (actions: readonly Action[], salt: string, by = executor): Promise<void> => {
    await (await as(by).getFunction('executeBatch')(...batchOf(actions), ZeroHash, salt)).wait();
  };
  async function wait(sec: number): Promise<void> {
    await world.chain.provider.send('evm_increaseTime', [sec]);
    await world.chain.provider.send('evm_mine', []);
  }
  /** Name of the error with which a call of the timelock reverts; empty when it does not. */
  const refusedBy = async (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => '',
      (error: unknown) => {
        const { data } = error as { data?: string };
        return timelock.interface.parseError(data ?? '0x')?.name ?? `unknown: ${String(error)}`;
      },
    );
  const owners = async () => {
    const all = CONTRACT_NAMES.map((name) => ownershipOf(world.chain.provider, world.record().contracts[name]));
    return (await Promise.all(all)).map(({ owner: one }) => one);
  };
  const running = () =>
    Promise.all(PROXY_NAMES.map((name) => implementationOf(world.chain.provider, world.record().contracts[name])));

  it('accepts the four contracts after its delay, and not before', async () => {
    const [first, salt] = [await owners(), id('accept')];
    const actions = await acceptCommand(await world.context({ signer: stranger }), owner, 'propose');
    expect(actions).to.have.length(CONTRACT_NAMES.length);
    expect(await refusedBy(execute(actions, salt))).to.equal('TimelockUnexpectedOperationState');
    await schedule(actions, salt);
    await wait(DELAY_SEC - 60);
    expect(await refusedBy(execute(actions, salt))).to.equal('TimelockUnexpectedOperationState');
    expect(await owners()).to.deep.equal(first);
    await wait(60);
    expect(await refusedBy(execute(actions, salt, stranger))).to.equal('AccessControlUnauthorizedAccount');
    await execute(actions, salt);
    expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => owner));
    expect(await acceptCommand(await world.context({ signer: stranger }), owner, 'propose')).to.deep.equal([]);
  });

  it('configures everything by one batch of prepared calls; nobody behind it can do so at once', async () => {
    for (const signer of [world.chain.signers[0]!, proposer, executor]) {
      const { code } = await refusal(configureCommand(await world.context({ signer }), world.config(), 'send'));
      expect(code).to.equal('NOT_OWNER');
    }
    const actions = await configureCommand(await world.context({ signer: stranger }), world.config(), 'propose');
    expect(actions.length).to.be.greaterThan(4);
    await schedule(actions, id('configure'));
    await wait(DELAY_SEC);
    expect(await at.curveBook.marketCount()).to.equal(0n);
    await execute(actions, id('configure'));
    expect(await configureCommand(await world.context(), world.config(), 'propose'), 'done').to.deep.equal([]);
    world.printed();
    await statusCommand(await world.context());
    expect(world.printed().join('\n')).to.contain(`owner ${owner}`).and.to.contain('WETH-USDC');
  });

  it('upgrades all three proxies in one batch, and back', async () => {
    const first = await running();
    const context = async () => world.context({ signer: stranger, build: successors });
    const actions = await upgradeCommand(await context(), { mode: 'propose', sources: SOURCES, calls: CALLS });
    await schedule(actions, id('upgrade'));
    await wait(DELAY_SEC);
    expect(await running(), 'nothing changes by itself').to.deep.equal(first);
    await execute(actions, id('upgrade'));
    const second = await running();
    for (const [i, address] of second.entries()) expect(address).not.to.equal(first[i]);
    for (const [i, name] of PROXY_NAMES.entries()) {
      const noted = new Contract(await at[name].getAddress(), NOTE, world.chain.provider);
      expect(await noted.getFunction('note').staticCall()).to.equal(BigInt(100 + i));
    }
    const again = await upgradeCommand(await context(), { mode: 'propose', sources: SOURCES, calls: CALLS });
    expect(again, 'adopted').to.deep.equal([]);
    expect(world.record().proposed).to.deep.equal({});

    const back = await rollbackCommand(await world.context({ signer: stranger }), PROXY_NAMES, 'propose');
    await schedule(back, id('back'));
    await wait(DELAY_SEC);
    await execute(back, id('back'));
    expect(await running()).to.deep.equal(first);
  });

  it('lets its proposers cancel what waits, for good', async () => {
    const changed = world.config({ withdrawDelaySec: 0 });
    const actions = await configureCommand(await world.context({ signer: stranger }), changed, 'propose');
    expect(actions).to.have.length(1);
    await schedule(actions, id('cancelled'));
    await wait(DELAY_SEC);
    await (await as(proposer).getFunction('cancel')(await operationOf(actions, id('cancelled')))).wait();
    expect(await refusedBy(execute(actions, id('cancelled')))).to.equal('TimelockUnexpectedOperationState');
    expect(await at.custodian.withdrawDelay()).to.equal(600n);
  });
});
