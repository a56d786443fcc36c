/**
 * The contracts can't list who has a right, so it is read from events, and an endpoint that does not have all events answers as if nobody else had one:
 * because it pruned old blocks, has not indexed them, or lies. What must exist is asked for, too, so that such an endpoint is noticed. One that hides
 * the events of just an account that neither the record nor the configuration names can't be.
 */
import { ZeroHash, getAddress, type Provider } from 'ethers';
import type { Action } from '../actions.js';
import type { DeployConfig } from '../config.js';
import { CONTRACT_NAMES, connectContracts, type ContractName, type Contracts } from '../contracts.js';
import { DeployError } from '../errors.js';
import type { DeploymentRecord } from '../record.js';
import { logsOf, readState, type PlatformState } from '../state.js';
import { addressesOf } from '../upgrade/upgrade.js';

/** Accounts by what they may do. */
type Rights = NonNullable<DeploymentRecord['rights']>;

interface Right {
  label: string;
  has(contracts: Contracts, account: string): Promise<boolean>;
  /** Call data that ends the right. */
  end(contracts: Contracts, account: string): string;
}

const RIGHTS: Readonly<Record<keyof Rights, Right>> = {
  curvePosters: {
    label: 'curve poster',
    has: ({ curveBook }, account) => curveBook.isPoster(account),
    end: ({ curveBook }, account) => curveBook.interface.encodeFunctionData('setPoster', [account, false]),
  },
  claimPosters: {
    label: 'claim poster',
    has: ({ custodian }, account) => custodian.isPoster(account),
    end: ({ custodian }, account) => custodian.interface.encodeFunctionData('setPoster', [account, false]),
  },
  executors: {
    label: 'executor',
    has: ({ orderSettler }, account) => orderSettler.isExecutor(account),
    end: ({ orderSettler }, account) => orderSettler.interface.encodeFunctionData('setExecutor', [account, false]),
  },
  targets: {
    label: 'external target',
    has: ({ orderSettler }, account) => orderSettler.isTarget(account),
    end: ({ orderSettler }, account) => orderSettler.interface.encodeFunctionData('setTarget', [account, false]),
  },
  takers: {
    label: 'taker with a fee',
    has: async ({ entrypoint }, account) => (await entrypoint.takerFee(account)) !== 0n,
    end: ({ entrypoint }, account) => entrypoint.interface.encodeFunctionData('setTakerFee', [account, 0]),
  },
};
const KINDS = Object.keys(RIGHTS) as (keyof Rights)[];

/** What the owner has set, for commands that decide or report by it. Throws `BAD_ARGUMENT` when the endpoint can't have all of the events. */
export async function checkedState(
  provider: Provider,
  record: DeploymentRecord,
  config: DeployConfig | null,
): Promise<PlatformState> {
  const at = addressesOf(record);
  await assertEvents(provider, record, CONTRACT_NAMES);
  const state = await readState(provider, at, record.deploymentBlock);
  const contracts = connectContracts(at, provider);
  const found = rightsOf(state);
  for (const kind of KINDS) {
    for (const account of knownOf(record, config, kind)) {
      if (!found[kind].includes(account) && (await RIGHTS[kind].has(contracts, account))) throw hidden(kind, account);
    }
  }
  return state;
}

/**
 * Throws `BAD_ARGUMENT` when the endpoint lacks the event of a contract's first owner, which each contract emitted when it was deployed. The query is
 * that of all other events.
 */
export async function assertEvents(
  provider: Provider,
  record: DeploymentRecord,
  names: readonly ContractName[],
): Promise<void> {
  const contracts = connectContracts(addressesOf(record), provider);
  for (const name of names) {
    const first = await logsOf(provider, contracts[name], 'OwnershipTransferred', record.deploymentBlock, [ZeroHash]);
    if (first.length !== 0) continue;
    throw new DeployError(
      'BAD_ARGUMENT',
      `--rpc: the endpoint has no event of ${name} ${record.contracts[name]} from block ${record.deploymentBlock} on, not even that of its ` +
        'deployment, so that nothing can be read from events; use one that keeps all events since then',
    );
  }
}

/**
 * Throws `BAD_ARGUMENT` unless the actions end each right that the configuration does not name: they were made from another answer than `state`, and an
 * endpoint may be several nodes, of which one lacks events.
 */
export function assertEnded(
  provider: Provider,
  record: DeploymentRecord,
  { state, config, actions }: { state: PlatformState; config: DeployConfig; actions: readonly Action[] },
): void {
  const contracts = connectContracts(addressesOf(record), provider);
  const [found, wanted] = [rightsOf(state), wantedBy(config)];
  for (const kind of KINDS) {
    for (const account of found[kind].filter((one) => !wanted[kind].includes(one))) {
      const data = RIGHTS[kind].end(contracts, account);
      if (!actions.some((action) => action.data === data)) throw hidden(kind, account);
    }
  }
}

/** Who has which right, for the record; of accounts that the record or the configuration names the contracts are asked, whatever the events say. */
export async function presentRights(
  provider: Provider,
  record: DeploymentRecord,
  { state, config }: { state: PlatformState; config: DeployConfig },
): Promise<Rights> {
  const contracts = connectContracts(addressesOf(record), provider);
  const rights = rightsOf(state);
  for (const kind of KINDS) {
    for (const account of knownOf(record, config, kind)) {
      if (!rights[kind].includes(account) && (await RIGHTS[kind].has(contracts, account))) rights[kind].push(account);
    }
  }
  return rights;
}

function rightsOf({ curvePosters, claimPosters, executors, targets, takerFees }: PlatformState): Rights {
  return {
    curvePosters: [...curvePosters],
    claimPosters: [...claimPosters],
    executors: [...executors],
    targets: [...targets],
    takers: takerFees.map(({ taker }) => taker),
  };
}

function wantedBy({ curvePosters, claimPosters, executors, targets = [], takerFees }: DeployConfig): Rights {
  const takers = takerFees.filter(({ ratePpm }) => ratePpm !== 0).map(({ taker }) => taker);
  return { curvePosters, claimPosters, executors, targets, takers };
}

function knownOf({ rights }: DeploymentRecord, config: DeployConfig | null, kind: keyof Rights): string[] {
  const named = [...(rights?.[kind] ?? []), ...(config === null ? [] : wantedBy(config)[kind])];
  return [...new Set(named.map((account) => getAddress(account)))];
}

const hidden = (kind: keyof Rights, account: string): DeployError =>
  new DeployError(
    'BAD_ARGUMENT',
    `--rpc: the endpoint has no event by which ${account} became ${RIGHTS[kind].label}, which it is; if that was a moment ago, try again, ` +
      'else use an endpoint that keeps all events since the deployment',
  );
