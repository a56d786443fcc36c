import { expect } from 'chai';
import { createAgents } from '../../core/book/agents.js';
import type { Address, OrderEffect } from '../../core/types.js';

const address = (letter: string): Address => `0x${letter.repeat(40)}`;
const [alice, bob] = [address('a'), address('b')];
const approve = (name: string, agent: Address | null): OrderEffect => ({
  type: 'agent',
  name,
  agent,
  sinceMs: 5,
  validUntilMs: 9,
});

describe('agents', () => {
  it('hold one address per maker and name, and remember who ever was one', () => {
    const agents = createAgents();
    const apply = (maker: Address, name: string, agent: Address | null): void =>
      agents.apply({ maker, effects: [approve(name, agent)] });
    apply(alice, '', address('1'));
    apply(alice, 'bot', address('2'));
    apply(bob, 'bot', address('3'));
    expect(agents.byAddress(address('2'))).to.deep.equal({
      master: alice,
      name: 'bot',
      address: address('2'),
      sinceMs: 5,
      validUntilMs: 9,
    });
    const before = agents.clone();
    apply(alice, 'bot', address('4'));
    expect(agents.byAddress(address('2'))).to.equal(undefined);
    expect(agents.wasAgent(address('2'))).to.equal(true);
    expect(agents.ofMaster(alice).map((agent) => agent.address)).to.deep.equal([address('1'), address('4')]);
    apply(alice, '', null);
    expect(agents.byAddress(address('1'))).to.equal(undefined);
    expect(agents.byAddress(address('3'))?.master).to.equal(bob);
    expect(agents.wasAgent(address('9'))).to.equal(false);
    expect(before.byAddress(address('2'))?.master).to.equal(alice);
    expect(before.byAddress(address('4'))).to.equal(undefined);
    expect(before.wasAgent(address('1'))).to.equal(true);
  });
});
