/** Offers of the ownership that wait: each stays until the account that it names accepts it, or the owner makes another one. */
import { ZeroAddress, getAddress, type Provider } from 'ethers';
import { actionOn, type Action } from '../actions.js';
import { CONTRACT_NAMES, connectContracts, ownershipOf, type Addresses, type ContractName } from '../contracts.js';

interface Offer {
  name: ContractName;
  owner: string;
  /** Who may accept the contract. */
  pendingOwner: string;
}

/** What is offered to another account than its owner. */
export async function waitingOffers(provider: Provider, at: Addresses): Promise<Offer[]> {
  const offers: Offer[] = [];
  for (const name of CONTRACT_NAMES) {
    const { owner, pendingOwner } = await ownershipOf(provider, at[name]);
    if (pendingOwner !== null && pendingOwner !== owner) offers.push({ name, owner, pendingOwner });
  }
  return offers;
}

/** Withdraws what is offered of the contracts that `keeper` owns. To be sent by it. */
export async function withdrawActions(provider: Provider, at: Addresses, keeper: string): Promise<Action[]> {
  const contracts = connectContracts(at, provider);
  const own = (await waitingOffers(provider, at)).filter(({ owner }) => owner === getAddress(keeper));
  return Promise.all(
    own.map(({ name, owner, pendingOwner }) => {
      const summary = `~ next owner of ${name} ${pendingOwner} -> nobody (owner stays ${owner})`;
      return actionOn(name, contracts[name], 'transferOwnership', [ZeroAddress], summary);
    }),
  );
}
