/** Ownership passes in two steps: the owner names the next one, who accepts. Until then nothing changes. */
import { getAddress } from 'ethers';
import type { Provider } from 'ethers';
import { actionOn } from './actions.js';
import type { Action } from './actions.js';
import { CONTRACT_NAMES, connectContracts, ownershipOf } from './contracts.js';
import type { Addresses } from './contracts.js';
import { DeployError } from './errors.js';

/** Offers each contract that `to` neither owns nor was offered. To be sent by the present owner. */
export async function transferActions(provider: Provider, at: Addresses, to: string): Promise<Action[]> {
  const next = getAddress(to);
  const contracts = connectContracts(at, provider);
  const actions: Action[] = [];
  for (const name of CONTRACT_NAMES) {
    const { owner, pendingOwner } = await ownershipOf(provider, at[name]);
    if (owner === next || pendingOwner === next) continue;
    const summary = `~ next owner of ${name} ${pendingOwner ?? 'nobody'} -> ${next} (owner is ${owner})`;
    actions.push(await actionOn(name, contracts[name], 'transferOwnership', [next], summary));
  }
  return actions;
}

/**
 * Accepts each contract that `next` was offered and does not own yet. To be sent by `next`.
 * Throws `NOT_OWNER` when a contract was offered to somebody else, before anything is sent.
 */
export async function acceptActions(provider: Provider, at: Addresses, next: string): Promise<Action[]> {
  const account = getAddress(next);
  const contracts = connectContracts(at, provider);
  const actions: Action[] = [];
  for (const name of CONTRACT_NAMES) {
    const { owner, pendingOwner } = await ownershipOf(provider, at[name]);
    if (owner === account) continue;
    if (pendingOwner !== account) {
      throw new DeployError(
        'NOT_OWNER',
        `${name} was offered to ${pendingOwner ?? 'nobody'}, not to ${account}; transfer it first`,
      );
    }
    const summary = `~ owner of ${name} ${owner} -> ${account}`;
    actions.push(await actionOn(name, contracts[name], 'acceptOwnership', [], summary));
  }
  return actions;
}
