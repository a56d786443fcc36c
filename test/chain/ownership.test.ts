/** Offers of the ownership: to the wrong account, to several, and withdrawn. */
import { expect } from 'chai';
import type { Action } from '../../deploy/actions.js';
import { acceptCommand, transferCommand } from '../../deploy/commands.js';
import { CONTRACT_NAMES, connectContracts, ownershipOf } from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { addressesOf } from '../../deploy/upgrade/upgrade.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';

describe('offers of the ownership', function () {
  this.timeout(120_000);
  let world: OwnerWorld;
  let [owner, wrong, right]: string[] = [];

  beforeEach(async () => {
    world = await startOwnerWorld();
    [owner, wrong, right] = await Promise.all([0, 6, 4].map((index) => world.chain.signers[index]!.getAddress()));
    await deployCommand(await world.context(), world.config());
    world.printed();
  });
  afterEach(() => world.close());

  const owners = async () => {
    const all = CONTRACT_NAMES.map((name) => ownershipOf(world.chain.provider, world.record().contracts[name]));
    return (await Promise.all(all)).map(({ owner: one, pendingOwner }) => [one, pendingOwner]);
  };
  const offer = async (to: string, mode: 'send' | 'dry-run' | 'propose' = 'send') =>
    transferCommand(await world.context(), to, mode);
  const summaries = (actions: readonly Action[]) => actions.map(({ summary }) => summary);

  it('to the wrong account are withdrawn by an offer to the present owner', async () => {
    await offer(wrong!);
    expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => [owner, wrong]));
    const words = CONTRACT_NAMES.map((name) => `~ next owner of ${name} ${wrong} -> nobody (owner stays ${owner})`);
    world.printed();
    expect(summaries(await offer(owner!, 'dry-run'))).to.deep.equal(words);
    expect(world.printed().join('\n')).not.to.contain('already');
    const stranger = await world.context({ signer: world.chain.signers[6]! });
    expect((await refusal(transferCommand(stranger, owner!, 'send'))).code).to.equal('NOT_OWNER');
    expect(summaries(await offer(owner!))).to.deep.equal(words);
    expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => [owner, null]));
    expect((await refusal(acceptCommand(stranger, wrong!, 'send'))).code).to.equal('NOT_OWNER');
    world.printed();
    expect(await offer(owner!), 'once is enough').to.deep.equal([]);
    expect(world.printed().join('\n')).to.contain(`the four contracts are ${owner}'s, or offered to it, already`);
  });

  it('of some contracts only are withdrawn there, and offered elsewhere without a detour', async () => {
    const { curveBook } = connectContracts(addressesOf(world.record()), world.chain.signers[0]!);
    await (await curveBook.transferOwnership(wrong!)).wait();
    expect((await offer(owner!)).map(({ contract }) => contract)).to.deep.equal(['curveBook']);
    await offer(wrong!);
    expect(await offer(right!)).to.have.length(4);
    expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => [owner, right]));
  });

  it('to the wrong account are withdrawn where it has not accepted yet, and what it has accepted is named', async () => {
    await offer(wrong!);
    const { signers } = world.chain;
    const { custodian } = connectContracts(addressesOf(world.record()), signers[6]!);
    await (await custodian.acceptOwnership()).wait();
    const named = `custodian is ${wrong}'s, who alone can offer it or withdraw an offer`;
    const others = CONTRACT_NAMES.filter((name) => name !== 'custodian');
    const toOthers = (await offer(right!, 'dry-run')).map(({ contract }) => contract);
    expect(toOthers, 'one call of one account is no reason to leave out three of another one').to.deep.equal(others);
    // An onlooker owns nothing, as the deployer of what a multisig owns: the calls are then those of the account that is named.
    const onlooker = await world.context({ signer: signers[5]! });
    for (const context of [onlooker, await world.context()]) {
      world.printed();
      const proposed = await transferCommand(context, owner!, 'propose');
      expect(proposed.map(({ contract }) => contract)).to.deep.equal(others);
      expect(world.printed().filter((line) => line.startsWith(named))).to.have.length(1);
    }
    expect((await refusal(transferCommand(onlooker, owner!, 'send'))).code).to.equal('NOT_OWNER');
    world.printed();
    expect(await offer(owner!)).to.have.length(3);
    expect(world.printed().filter((line) => line.startsWith(named))).to.have.length(1);
    expect(await owners()).to.deep.equal(CONTRACT_NAMES.map((name) => [name === 'custodian' ? wrong : owner, null]));
    expect((await refusal(offer(owner!))).message).to.contain(`custodian belongs to ${wrong}`);
    await transferCommand(await world.context({ signer: signers[6]! }), owner!, 'send');
    expect(await owners()).to.deep.equal(
      CONTRACT_NAMES.map((name) => (name === 'custodian' ? [wrong, owner] : [owner, null])),
    );
  });

  it('that wait are named when there is nothing to accept', async () => {
    await offer(wrong!);
    world.printed();
    expect(await acceptCommand(await world.context(), owner!, 'dry-run')).to.deep.equal([]);
    const said = world.printed().join('\n');
    for (const name of CONTRACT_NAMES)
      expect(said).to.contain(`${name} is offered to ${wrong}, who may still accept it`);
  });
});
