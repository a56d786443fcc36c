/** Calls that only the owner may make, prepared: the owner's key sends them, or a file proposes them to the multisig that owns the contracts. */
import { getAddress } from 'ethers';
import type { BaseContract, Signer } from 'ethers';
import { ownershipOf, providerOf } from './contracts.js';
import type { ContractName } from './contracts.js';
import { DeployError } from './errors.js';
import { reasonOf } from './reasons.js';
import { mined } from './transactions.js';

export interface Action {
  contract: ContractName;
  to: string;
  /** Call data. */
  data: string;
  /** One line for people: what changes, from what, to what. */
  summary: string;
}

/** Encodes a call of `method` on `contract`. */
export async function actionOn(
  name: ContractName,
  contract: BaseContract,
  method: string,
  args: readonly unknown[],
  summary: string,
): Promise<Action> {
  const data = contract.interface.encodeFunctionData(method, args);
  return { contract: name, to: await contract.getAddress(), data, summary };
}

/** Throws `NOT_OWNER` unless `signer` owns every contract that the actions call, before anything is sent. */
export async function assertOwner(actions: readonly Action[], signer: Signer): Promise<void> {
  const account = getAddress(await signer.getAddress());
  const targets = new Map(actions.map((action) => [action.to, action.contract]));
  for (const [address, name] of targets) {
    const { owner } = await ownershipOf(providerOf(signer), address);
    if (owner !== account) {
      throw new DeployError(
        'NOT_OWNER',
        `${name} belongs to ${owner}, not to ${account}; prepare the calls for the owner with --propose`,
      );
    }
  }
}

/** Sends the actions one after the other, each when the one before it is mined. Throws `CALL_REVERTS`, with the action that failed. */
export async function sendActions(
  actions: readonly Action[],
  signer: Signer,
  log: (line: string) => void,
): Promise<void> {
  for (const { contract, to, data, summary } of actions) {
    await mined(signer.sendTransaction({ to, data })).catch((error: unknown) => {
      throw new DeployError('CALL_REVERTS', `${contract}: ${summary} failed: ${reasonOf(error)}`);
    });
    log(summary);
  }
}

/** Contents of a file that Safe's transaction builder imports. For another multisig, copy `to` and `data` from it. */
export interface Proposal {
  version: '1.0';
  chainId: string;
  createdAt: number;
  meta: { name: string; description: string; createdFromSafeAddress: string };
  transactions: { to: string; value: '0'; data: string }[];
}

/** The actions as one proposal to `owner`; what each does is in the description, in the same order. */
export function proposalOf(
  name: string,
  actions: readonly Action[],
  { chainId, owner, createdAtMs }: { chainId: number; owner: string; createdAtMs: number },
): Proposal {
  return {
    version: '1.0',
    chainId: chainId.toString(),
    createdAt: createdAtMs,
    meta: {
      name,
      description: actions.map((action, i) => `${i + 1}. ${action.contract}: ${action.summary}`).join('\n'),
      createdFromSafeAddress: owner,
    },
    transactions: actions.map(({ to, data }) => ({ to, value: '0', data })),
  };
}
