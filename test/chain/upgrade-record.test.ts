/** What upgrades are judged by besides the live version: every implementation that the record names, as far as the chain has it. */
import { expect } from 'chai';
import { Interface, id, keccak256, type Filter, type Log } from 'ethers';
import { proposalOf, type Action } from '../../deploy/actions.js';
import type { Build } from '../../deploy/build.js';
import { statusCommand } from '../../deploy/commands.js';
import type { RpcProvider } from '../../deploy/context.js';
import { connectContracts, implementationOf } from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { rollbackCommand } from '../../deploy/upgrade/rollback.js';
import { addressesOf, upgradeCommand, type UpgradeOptions } from '../../deploy/upgrade/upgrade.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';
import { buildSuccessors } from '../support/contracts/successors.js';

const NOTE = new Interface(['function initializeV2(uint256 note)']);
const UPGRADED = id('Upgraded(address)');
const LIMIT = new Interface(['function setLimit(uint256)']);

describe('the record of implementations', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let successors: Build;
  let snapshot: string;
  let files: Map<string, string>;

  before(async () => {
    successors = await buildSuccessors();
    world = await startOwnerWorld();
    await deployCommand(await world.context(), world.config());
    files = world.saveFiles();
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
  });
  after(() => world?.close());
  afterEach(async () => {
    await revertChain();
    world.restoreFiles(files);
    world.printed();
  });

  /** As a reorganisation does, or the end of a rehearsal on a fork: the files stay. */
  async function revertChain(): Promise<void> {
    await world.chain.provider.send('evm_revert', [snapshot]);
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
  }
  const context = () => world.context({ build: successors });
  const upgrade = async (entrypoint: string, options: Partial<UpgradeOptions> = {}) =>
    upgradeCommand(await context(), { mode: 'send', only: ['entrypoint'], sources: { entrypoint }, ...options });
  const propose = (entrypoint: string) => upgrade(entrypoint, { mode: 'propose' });
  const carryOut = async ([action]: Action[]): Promise<void> => {
    await (await world.chain.signers[0]!.sendTransaction({ to: action!.to, data: action!.data })).wait();
  };
  const rollback = async () => rollbackCommand(await world.context(), ['entrypoint'], 'send');
  const status = async () => {
    world.printed();
    await statusCommand(await context());
    return world.printed().join('\n');
  };
  const running = () => implementationOf(world.chain.provider, world.record().contracts.entrypoint);

  describe('judges the storage of a new one', () => {
    it('by what ran before and wrote the same slot, after a rollback, too', async () => {
      await upgrade('EntrypointWithLimit', { calls: { entrypoint: LIMIT.encodeFunctionData('setLimit', [7]) } });
      const { address } = world.record().implementations.entrypoint;
      await rollback();
      const nonce = await world.chain.signers[0]!.getNonce();
      for (const mode of ['dry-run', 'propose', 'send'] as const) {
        const { code, message } = await refusal(upgrade('EntrypointWithGuardian', { mode }));
        expect([mode, code]).to.deep.equal([mode, 'UNSAFE_UPGRADE']);
        expect(message)
          .to.contain(`EntrypointWithLimit of test at ${address}, which ran before`)
          .and.to.contain('guardian');
      }
      expect(await world.chain.signers[0]!.getNonce(), 'nothing is deployed').to.equal(nonce);
      await upgrade('EntrypointWithBoth');
      expect(world.record().implementations.entrypoint.contract).to.equal('EntrypointWithBoth');
    });

    it('by what waits for the owner, who may carry out proposals in any order', async () => {
      const limit = await propose('EntrypointWithLimit');
      const { code, message } = await refusal(propose('EntrypointWithGuardian'));
      expect(code).to.equal('UNSAFE_UPGRADE');
      expect(message).to.match(/EntrypointWithLimit of test at 0x\w{40}, which is proposed/);
      expect(message).to.contain(`out of "proposed" in ${(await context()).files.path}`);
      await carryOut(await propose('EntrypointWithBoth'));
      await carryOut(limit);
      expect(await status()).to.contain('entrypoint runs EntrypointWithLimit');
    });

    it('and lets two have storage in places of their own, and goes back to the first layout', async () => {
      await upgrade('EntrypointV2');
      await rollback();
      await upgrade('EntrypointWithLimit');
      await rollback();
      const first = world.record().implementations.entrypoint;
      expect(first.contract).to.equal('Entrypoint');
      await upgrade('EntrypointWithLimit');
      expect(world.record().implementations.entrypoint).to.include({ contract: 'EntrypointWithLimit' });
    });

    it('and stops where the layout of one of them is not recorded', async () => {
      await upgrade('EntrypointWithLimit');
      const { address } = world.record().implementations.entrypoint;
      await rollback();
      const layouts = JSON.parse(world.file('8453.layouts.json')) as Record<string, unknown>;
      delete layouts[address];
      world.restoreFiles(new Map([...world.saveFiles(), ['8453.layouts.json', JSON.stringify(layouts)]]));
      const { code, message } = await refusal(upgrade('EntrypointV2'));
      expect(code).to.equal('LAYOUT_UNKNOWN');
      expect(message).to.contain(address);
    });
  });

  describe('is held against the chain', () => {
    it('so that what a reorganisation took back is deployed again', async () => {
      await propose('EntrypointV2');
      const [lost] = world.record().proposed.entrypoint!;
      await revertChain();
      expect(await status()).to.match(
        new RegExp(`entrypoint: ${lost!.address} .*, is proposed, but the chain does not have its code`),
      );
      world.printed();
      await upgrade('EntrypointV2', { mode: 'dry-run' });
      expect(world.printed().join('\n')).to.contain(`-> ${lost!.address}\n`).and.not.to.contain('(deployed)');
      await upgrade('EntrypointV2');
      expect(keccak256(await world.chain.provider.getCode(await running()))).to.equal(lost!.codeHash);
      expect(world.record().proposed).to.deep.equal({});
    });

    it('so that the code of another contract at its address is not taken for it', async () => {
      await propose('EntrypointV2');
      const [lost] = world.record().proposed.entrypoint!;
      await revertChain();
      // The deployer's next transaction has the same nonce, and so the same address.
      const { bytecode, interface: abi } = successors.contract('EntrypointWithLimit');
      const { contracts: at } = world.record();
      const args = abi.encodeDeploy([at.curveBook, at.custodian, at.orderSettler]);
      const receipt = await (
        await world.chain.signers[0]!.sendTransaction({ data: `${bytecode}${args.slice(2)}` })
      ).wait();
      expect(receipt!.contractAddress).to.equal(lost!.address);
      await upgrade('EntrypointV2');
      expect(await running()).not.to.equal(lost!.address);
      expect(world.record().implementations.entrypoint).to.include({ contract: 'EntrypointV2' });
    });

    it('so that storage of what never ran here is not in the way', async () => {
      await upgrade('EntrypointWithLimit');
      await revertChain();
      await upgrade('EntrypointWithGuardian');
      expect(world.record().implementations.entrypoint.contract).to.equal('EntrypointWithGuardian');
    });
  });

  describe('knows what ran before', () => {
    const inRecord = () => {
      const { implementations, previous, proposed } = world.record();
      return {
        runs: implementations.entrypoint.contract,
        before: (previous.entrypoint ?? []).map(({ contract }) => contract),
        waiting: (proposed.entrypoint ?? []).map(({ contract }) => contract),
      };
    };
    const statusBy = async (provider: RpcProvider) => {
      world.printed();
      await statusCommand({ ...(await context()), provider }).catch(() => undefined);
      return world.printed().join('\n');
    };
    /** An endpoint that answers the query for upgrades otherwise, and every other one as it is. */
    const answering = (change: (logs: Log[]) => Log[]): RpcProvider =>
      new Proxy(world.chain.provider, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (typeof value !== 'function') return value;
          const method = (value as (...args: unknown[]) => unknown).bind(target);
          if (name !== 'getLogs') return method;
          return async (filter: Filter) => {
            const logs = (await method(filter)) as Log[];
            return filter.topics?.[0] === UPGRADED ? change(logs) : logs;
          };
        },
      });
    const upgradeTo = async (address: string): Promise<void> => {
      const { entrypoint } = connectContracts(addressesOf(world.record()), world.chain.signers[0]!);
      await (await entrypoint.upgradeToAndCall(address, '0x')).wait();
    };

    it('on this chain, so that a rollback after a rehearsal on a copy of it goes to that', async () => {
      await upgrade('EntrypointWithLimit');
      const copy: unknown = await world.chain.provider.send('evm_snapshot', []);
      await upgrade('EntrypointWithBoth');
      await world.chain.provider.send('evm_revert', [copy]);
      expect(await status()).to.match(/entrypoint: 0x\w{40} .*, is proposed, but the chain does not have its code/);
      expect(inRecord()).to.deep.include({ runs: 'EntrypointWithLimit', waiting: ['EntrypointWithBoth'] });
      await rollback();
      expect(inRecord().runs).to.equal('Entrypoint');
    });

    it('on this chain alone, where a rehearsal had several steps', async () => {
      await upgrade('EntrypointWithLimit');
      await upgrade('EntrypointWithBoth');
      await revertChain();
      world.printed();
      const { code, message } = await refusal(rollback());
      expect(code).to.equal('BAD_ARGUMENT');
      expect(message).to.contain('from the start');
      const passed = /entrypoint: passes over EntrypointWithLimit at 0x\w{40}, which this chain does not have/;
      expect(world.printed().join('\n')).to.match(passed);
    });

    it('also when a reorganisation brings an upgrade back that it took', async () => {
      await upgrade('EntrypointV2');
      const { provider, signers } = world.chain;
      const { address, block } = world.record().implementations.entrypoint;
      const [hash] = (await provider.getBlock(block))!.transactions;
      const { data } = (await provider.getTransaction(hash!))!;
      await revertChain();
      await status();
      expect(inRecord()).to.deep.include({ runs: 'Entrypoint', waiting: ['EntrypointV2'] });
      await (await signers[0]!.sendTransaction({ data })).wait();
      await upgradeTo(address);
      await status();
      expect(inRecord()).to.deep.equal({ runs: 'EntrypointV2', before: ['Entrypoint', 'Entrypoint'], waiting: [] });
    });

    it('when the owner carries out two proposals before any command looks', async () => {
      const [limit, both] = [await propose('EntrypointWithLimit'), await propose('EntrypointWithBoth')];
      await propose('EntrypointV2');
      await carryOut(limit);
      await carryOut(both);
      const said = await status();
      const before = ['Entrypoint', 'EntrypointWithLimit'];
      expect(inRecord()).to.deep.equal({ runs: 'EntrypointWithBoth', before, waiting: ['EntrypointV2'] });
      expect(said.split('\n').filter((line) => line.includes('is proposed'))).to.have.length(1);
      await rollback();
      expect(inRecord().runs).to.equal('EntrypointWithLimit');
      await status();
      expect(inRecord().waiting).to.deep.equal(['EntrypointV2']);
    });

    it('when the owner has gone back by itself meanwhile', async () => {
      const first = await running();
      await carryOut(await propose('EntrypointWithLimit'));
      await upgradeTo(first);
      await status();
      expect(inRecord()).to.deep.equal({ runs: 'Entrypoint', before: ['EntrypointWithLimit'], waiting: [] });
      const again = await propose('EntrypointWithLimit');
      await status();
      expect(inRecord(), 'it waits once more').to.deep.include({ waiting: ['EntrypointWithLimit'] });
      await carryOut(again);
      await carryOut(await rollbackCommand(await world.context(), ['entrypoint'], 'propose'));
      await status();
      expect(inRecord()).to.deep.include({ runs: 'Entrypoint', waiting: [] });
    });

    it('as far as the endpoint tells it, and says where it does not', async () => {
      const [limit, both] = [await propose('EntrypointWithLimit'), await propose('EntrypointWithBoth')];
      await carryOut(limit);
      await carryOut(both);
      const found = world.saveFiles();
      const known = { runs: 'EntrypointWithBoth', before: ['Entrypoint'], waiting: ['EntrypointWithLimit'] };
      const refuse = () => {
        throw new Error('history is pruned');
      };
      for (const [change, told] of [
        [() => [], /entrypoint: the endpoint does not tell all that it has run since block \d+: what/],
        [refuse, /entrypoint: the endpoint does not tell .*: history is pruned/],
        [(logs: Log[]) => logs.slice(0, 1), /entrypoint: the endpoint does not tell/],
      ] as const) {
        world.restoreFiles(found);
        expect(await statusBy(answering(change))).to.match(told);
        expect(inRecord()).to.deep.equal(known);
      }
      expect(await status()).not.to.contain('does not tell');
      const all = { runs: 'EntrypointWithBoth', before: ['Entrypoint', 'EntrypointWithLimit'], waiting: [] };
      expect(inRecord(), 'a better endpoint tells it later').to.deep.equal(all);
      world.restoreFiles(found);
      await statusBy(answering((logs) => logs.slice(1)));
      expect(inRecord(), 'what is left is enough').to.deep.equal(all);
    });
  });

  describe('says what the owner is asked to run right after an upgrade', () => {
    const describe = (actions: Action[]) =>
      proposalOf('test', actions, { chainId: 8453, owner: '0x', createdAtMs: 0 }).meta.description;
    const call = NOTE.encodeFunctionData('initializeV2', [42]);

    it('in the proposal and in status, decoded', async () => {
      const actions = await upgrade('EntrypointV2', { mode: 'propose', calls: { entrypoint: call } });
      expect(describe(actions)).to.match(
        new RegExp(`code hash 0x\\w{64}\\), then calls initializeV2\\(42\\) \\(${call}\\)$`),
      );
      expect(await status()).to.contain(`waits for the owner, then calls initializeV2(42) (${call})`);
      await carryOut(actions);
      await status();
      expect(world.record().implementations.entrypoint).not.to.have.property('call');
    });

    it('as it is where it fits no function, and nothing where there is none', async () => {
      expect(describe(await upgrade('EntrypointV2', { mode: 'dry-run' }))).to.match(/code hash 0x\w{64}\)$/);
      const raw = { entrypoint: '0x12345678' };
      expect(describe(await upgrade('EntrypointV2', { mode: 'dry-run', calls: raw }))).to.match(
        /, then calls 0x12345678$/,
      );
    });

    it('once for each call that was proposed with one implementation', async () => {
      await upgrade('EntrypointV2', { mode: 'propose', calls: { entrypoint: call } });
      await propose('EntrypointV2');
      const lines = (await status()).split('\n').filter((line) => line.includes('is proposed'));
      expect(lines).to.have.length(2);
      expect(lines.filter((line) => line.includes('then calls'))).to.have.length(1);
    });
  });
});
