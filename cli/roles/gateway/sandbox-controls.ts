import { readStandingHalt } from '../../../keepers/watcher/status.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import type { SandboxControls } from '../../../server/sandbox.js';
import type { RoleContext } from '../context.js';

/** The owner's acts on a sandbox, by the rows that the commands write. `restart` ends the roles, which start again. */
export function sandboxControls({ config, db, nowMs }: RoleContext, restart: () => void): SandboxControls {
  return {
    accounts: config.manifest.accounts,
    async halt(note) {
      await appendOperatorRow(db, { timeMs: nowMs(), kind: 'halt', maker: null, note });
    },
    async resume() {
      const halt = await readStandingHalt(db.knex);
      if (halt === null) return 'nothing is halted';
      if (!halt.byOperator) return `halted by ${halt.code}: ${halt.message}; curvebook resume says what to do`;
      await appendOperatorRow(db, { timeMs: nowMs(), kind: 'resume', maker: null, note: '' });
      return null;
    },
    async approve(maker) {
      await appendOperatorRow(db, { timeMs: nowMs(), kind: 'approve', maker, note: 'from the console' });
    },
    restart,
  };
}
