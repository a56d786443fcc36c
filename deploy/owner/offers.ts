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

interface Divided {
  /** The calls of one account. */
  actions: Action[];
  /** The contracts whose calls are another account's. */
  others: { contract: ContractName; owner: string }[];
}

/**
 * Divides calls by who owns the contracts: a contract may have gone to the wrong account already, and no transaction and no proposal is of two accounts.
 * The calls of the first of `senders` that owns one of the contracts are taken; of whoever owns the most where none of them does.
 */
export async function divideByOwner(
  provider: Provider,
  actions: readonly Action[],
  senders: readonly string[],
): Promise<Divided> {
  const owned: { action: Action; owner: string }[] = [];
  for (const action of actions) owned.push({ action, owner: (await ownershipOf(provider, action.to)).owner });
  const count = (account: string): number => owned.filter(({ owner }) => owner === account).length;
  const [most] = owned.map(({ owner }) => owner).sort((a, b) => count(b) - count(a));
  const sender = senders.map((one) => getAddress(one)).find((one) => count(one) !== 0) ?? most;
  return {
    actions: owned.filter(({ owner }) => owner === sender).map(({ action }) => action),
    others: owned
      .filter(({ owner }) => owner !== sender)
      .map(({ action, owner }) => ({ contract: action.contract, owner })),
  };
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
