/** The `rollback` command: returns a proxy to the implementation that it ran before, without needing the sources of that implementation. */
import { assertOwner, sendActions, type Action } from '../actions.js';
import { currentRecord, isOnChain, type Context, type Mode } from '../context.js';
import type { ProxyName } from '../contracts.js';
import { DeployError } from '../errors.js';
import { addProposal, type DeploymentRecord, type ImplementationRecord } from '../record.js';
import { assertLayoutSafe, assertRelated, recordedLayout } from './storage.js';
import { rehearse, upgradeAction } from './upgrade.js';

/**
 * Goes back one step, to what ran last of what this chain has: the record may name what only a copy of it had. The live layout must still be a valid
 * successor of the older one, so that the older code finds all of its data; what only the newer code stores stays where it is. Returns the owner's calls; they are made in mode `send`.
 * Throws `BAD_ARGUMENT` when nothing ran before, `CODE_MISMATCH`, `LAYOUT_UNKNOWN`, `UNSAFE_UPGRADE`, `NOT_OWNER`.
 */
export async function rollbackCommand(context: Context, only: readonly ProxyName[], mode: Mode): Promise<Action[]> {
  const { signer, files, log } = context;
  const record = await currentRecord(context);
  const actions: Action[] = [];
  for (const name of only) {
    const live = record.implementations[name];
    const target = await targetOf(context, record, name);
    const { contract, address, codeHash } = target;
    const layout = recordedLayout(context, target);
    const newer = recordedLayout(context, live);
    assertLayoutSafe(`${contract} can't take its storage back from ${live.contract}`, layout, newer);
    await assertRelated(context, record, name, { contract, address, layout });
    const plan = { name, contract, address, codeHash, call: '0x', deployed: target };
    const action = await upgradeAction(context, record, plan);
    await rehearse(context, action);
    log(`${name}: back to ${contract} of ${target.commit}`);
    log(`  ${action.summary}`);
    actions.push(action);
    addProposal(record, name, target, plan.call);
  }
  if (mode === 'dry-run') return actions;
  if (mode === 'send') await assertOwner(actions, signer);
  files.write(record);
  if (mode === 'send') {
    await sendActions(actions, signer, log);
    await currentRecord(context);
  }
  return actions;
}

/** What ran last before the live implementation. Throws `BAD_ARGUMENT` when nothing did. */
async function targetOf(
  { provider, log }: Context,
  record: DeploymentRecord,
  name: ProxyName,
): Promise<ImplementationRecord> {
  const live = record.implementations[name].address;
  for (const one of [...(record.previous[name] ?? [])].reverse()) {
    if (one.address === live) continue;
    if (await isOnChain(provider, one)) return one;
    log(`${name}: passes over ${one.contract} at ${one.address}, which this chain does not have`);
  }
  throw new DeployError('BAD_ARGUMENT', `${name} has run ${live} from the start`);
}
