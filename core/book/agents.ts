import type { Address, OrderEffect, OrderLogRow } from '../types.js';

/** An approved agent of a maker. The empty name is the unnamed slot. */
export interface Agent {
  master: Address;
  name: string;
  address: Address;
  /** Nonces before this are refused, so that nothing signed before the approval counts. */
  sinceMs: number;
  /** First millisecond at which the approval no longer holds. */
  validUntilMs: number;
}

/**
 * Which agents may act for which makers: a projection of the order log. Expired approvals stay in it, because replaying has no clock: the
 * caller compares `validUntilMs` with its own.
 */
export interface Agents {
  apply(row: Pick<OrderLogRow, 'maker' | 'effects'>): void;
  /** The approval that names the address as agent; it may have expired. */
  byAddress(address: Address): Agent | undefined;
  /** Approvals of a maker, one per name, oldest approval first; some may have expired. */
  ofMaster(master: Address): Agent[];
  /** Whether the address is or ever was somebody's agent. */
  wasAgent(address: Address): boolean;
  clone(): Agents;
}

type AgentEffect = Extract<OrderEffect, { type: 'agent' }>;

/** Creates the projection with these approvals, oldest first; `everSeen` are all addresses that were agents once. */
export function createAgents(approvals: readonly Agent[] = [], everSeen: Iterable<Address> = []): Agents {
  const masters = new Map<Address, Map<string, Agent>>();
  for (const agent of approvals) {
    const names = masters.get(agent.master) ?? new Map<string, Agent>();
    masters.set(agent.master, names.set(agent.name, agent));
  }
  return createFrom(masters, new Set(everSeen));
}

function createFrom(masters: ReadonlyMap<Address, ReadonlyMap<string, Agent>>, seen: ReadonlySet<Address>): Agents {
  const byMaster = new Map([...masters].map(([master, names]) => [master, new Map(names)]));
  const everSeen = new Set(seen);
  const live = new Map<Address, Agent>();
  for (const names of byMaster.values()) for (const agent of names.values()) live.set(agent.address, agent);

  function set(master: Address, effect: AgentEffect): void {
    const names = byMaster.get(master) ?? new Map<string, Agent>();
    byMaster.set(master, names);
    const replaced = names.get(effect.name);
    if (replaced !== undefined) live.delete(replaced.address);
    names.delete(effect.name);
    if (effect.agent === null) return;
    const { name, agent: address, sinceMs, validUntilMs } = effect;
    const agent = { master, name, address, sinceMs, validUntilMs };
    names.set(name, agent);
    live.set(address, agent);
    everSeen.add(address);
  }

  return {
    apply({ maker, effects }) {
      for (const effect of effects) if (effect.type === 'agent') set(maker, effect);
    },
    byAddress: (address) => live.get(address),
    ofMaster: (master) => [...(byMaster.get(master)?.values() ?? [])],
    wasAgent: (address) => everSeen.has(address),
    clone: () => createFrom(byMaster, everSeen),
  };
}
