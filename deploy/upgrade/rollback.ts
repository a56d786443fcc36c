/** The `rollback` command: returns a proxy to the implementation that it ran before, without needing the sources of that implementation. */
import { assertOwner, sendActions, type Action } from '../actions.js';
import { assertOnChain, currentRecord, type Context, type Mode } from '../context.js';
import type { ProxyName } from '../contracts.js';
import { DeployError } from '../errors.js';
import { addProposal } from '../record.js';
import { assertLayoutSafe, assertRelated, recordedLayout } from './storage.js';
import { rehearse, upgradeAction } from './upgrade.js';

/**
 * Goes back one step. The live layout must still be a valid successor of the older one, so that the older code finds all of its data;
 * what only the newer code stores stays where it is. Returns the owner's calls; they are made in mode `send`.
 * Throws `BAD_ARGUMENT` when nothing ran before, `CODE_MISMATCH`, `LAYOUT_UNKNOWN`, `UNSAFE_UPGRADE`, `NOT_OWNER`.
 */
export async function rollbackCommand(context: Context, only: readonly ProxyName[], mode: Mode): Promise<Action[]> {
  const { provider, signer, files, log } = context;
  const record = await currentRecord(context);
  const actions: Action[] = [];
  for (const name of only) {
    const live = record.implementations[name];
    const target = record.previous[name]?.at(-1);
    if (target === undefined) throw new DeployError('BAD_ARGUMENT', `${name} has run ${live.address} from the start`);
    const { contract, address, codeHash } = target;
    await assertOnChain(provider, target);
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
