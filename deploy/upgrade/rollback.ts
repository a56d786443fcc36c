/** The `rollback` command: returns a proxy to the implementation that it ran before, without needing the sources of that implementation. */
import { keccak256 } from 'ethers';
import { assertOwner, sendActions, type Action } from '../actions.js';
import { currentRecord, type Context, type Mode } from '../context.js';
import type { ProxyName } from '../contracts.js';
import { DeployError } from '../errors.js';
import { addProposal } from '../record.js';
import { assertLayoutSafe, rehearse, upgradeAction } from './upgrade.js';

/**
 * Goes back one step. The live layout must still be a valid successor of the older one, so that the older code finds all of its data;
 * what only the newer code stores stays where it is. Returns the owner's calls; they are made in mode `send`.
 * Throws `BAD_ARGUMENT` when nothing ran before, `CODE_MISMATCH`, `LAYOUT_UNKNOWN`, `UNSAFE_UPGRADE`, `NOT_OWNER`.
 */
export async function rollbackCommand(context: Context, only: readonly ProxyName[], mode: Mode): Promise<Action[]> {
  const { provider, signer, files, log } = context;
  const record = await currentRecord(context);
  const layouts = files.readLayouts();
  const actions: Action[] = [];
  for (const name of only) {
    const live = record.implementations[name];
    const target = record.previous[name]?.at(-1);
    if (target === undefined) throw new DeployError('BAD_ARGUMENT', `${name} has run ${live.address} from the start`);
    if (keccak256(await provider.getCode(target.address)) !== target.codeHash) {
      throw new DeployError('CODE_MISMATCH', `${target.address} does not have the code ${target.codeHash} any more`);
    }
    const [older, newer] = [layouts[target.address], layouts[live.address]];
    if (older === undefined || newer === undefined) {
      throw new DeployError(
        'LAYOUT_UNKNOWN',
        `the storage layouts of ${target.address} and ${live.address} must be recorded`,
      );
    }
    assertLayoutSafe(`${target.contract} can't take its storage back from ${live.contract}`, older, newer);
    const plan = { name, address: target.address, codeHash: target.codeHash, call: '0x' };
    const action = await upgradeAction(context, record, plan);
    await rehearse(context, action);
    log(`${name}: back to ${target.contract} of ${target.commit}`);
    log(`  ${action.summary}`);
    actions.push(action);
    addProposal(record, name, target);
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
