/** Every role is taken over while its process is frozen: it lives, its connections stand, and it does nothing. PostgreSQL only. */
import { expect } from 'chai';
import { ROLE_NAMES as ROLES } from '../../ledger/roles.js';
import { KEEPALIVE_MS, LOOK_MS, SILENT_MS } from '../../ledger/db/pg-lock.js';
import { POLL_MS } from '../../ledger/db/writers.js';
import { GRACE_MS, POLITE_MS } from '../../cli/roles/logs.js';
import { startFreezing, type Freezing } from '../support/children/freezing.js';
import { forPostgresUrl, type TestDatabase } from '../support/stack.js';

/** What operators are promised. */
const TAKEN_OVER_MS = 5_000;
/** What a process may take of that to start a role when its log is its own. */
const START_MS = 500;

describe('The time after which a frozen process has lost its roles', () => {
  it('is below five seconds by its parts, and longer than four pauses of a holder that lives', () => {
    // The last look before the silence counts comes just too early, and the lock is asked for before its session has ended.
    const freeMs = SILENT_MS + Math.max(LOOK_MS, POLL_MS) + POLL_MS;
    // One for several processes waits until others have not taken the log, and then whether it gets its other logs.
    const severalMs = freeMs + POLITE_MS + POLL_MS + GRACE_MS;
    expect(severalMs + START_MS).to.be.at.most(TAKEN_OVER_MS);
    expect(SILENT_MS).to.be.at.least(5 * KEEPALIVE_MS);
  });
});

forPostgresUrl((database, open) => {
  describe(`A frozen process, on ${database}`, function () {
    this.timeout(240_000);
    let db: TestDatabase;
    let freezing: Freezing;

    before(async () => {
      db = await open();
      freezing = await startFreezing(db.url);
    });

    after(async () => {
      await freezing?.close();
      await db?.drop();
    });

    it('loses each of its roles to the standby of that role within 5 s, and ends once it goes on', async () => {
      const holder = freezing.serve(ROLES);
      await holder.says('roles started');
      const standbys = ROLES.map((role) => ({ role, ...freezing.serve([role]) }));
      await freezing.waiting(ROLES.length);
      const { takenMs, silentMs, lateMs } = await freezing.freeze(holder, standbys);
      const all = [...takenMs].map(([role, ms]) => `${role} ${ms} ms after ${silentMs.get(role)} ms of silence`);
      console.log(`        ${all.join(', ')}; the machine was late by ${lateMs} ms`);
      expect([...takenMs.keys()]).to.have.members([...ROLES]);
      // Both times are those of the standby's own log. A busy machine is late with everything, and it says by how much.
      for (const [role, ms] of takenMs) {
        expect(silentMs.get(role), role).to.be.within(SILENT_MS, ms);
        expect(ms, role).to.be.below(TAKEN_OVER_MS + lateMs);
      }
      expect(await holder.goesOn(), holder.child.output()).to.equal(75);
      for (const { role, child } of standbys) expect(child.process.exitCode, role).to.equal(null);
    });
  });
});
