/** How soon standbys have each role of a process that is frozen, over several rounds: `npm run bench:failover -- --freezes 5`. */
import { ROLE_NAMES as ROLES, type Role } from '../../ledger/roles.js';
import { startFreezing } from '../../test/support/children/freezing.js';
import type { Row } from '../gateway/measure.js';

/** What operators are promised, on a machine with time for it. */
const GOAL_SEC = 5;

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;

/**
 * Each round freezes a process with every role, of which a standby each takes one, and then those one after the other, of which one standby for
 * all takes what it lacks. Times are from the last sign of life.
 */
export async function measureFreezes(databaseUrl: string, rounds: number): Promise<Row[]> {
  const freezing = await startFreezing(databaseUrl);
  const tookMs = { apart: [] as number[], together: [] as number[] };
  const byRole = new Map<Role, number[]>(ROLES.map((role) => [role, []]));
  let lateMs = 0;
  try {
    let holder = freezing.serve(ROLES);
    await holder.says('roles started');
    for (let round = 1; round <= rounds; round += 1) {
      const standbys = ROLES.map((role) => ({ role, ...freezing.serve([role]) }));
      await freezing.waiting(ROLES.length);
      const apart = await freezing.freeze(holder, standbys);
      await holder.goesOn();
      const next = freezing.serve(ROLES);
      await freezing.waiting(ROLES.length);
      const together: (readonly [Role, number])[] = [];
      for (const standby of standbys) {
        const taken = await freezing.freeze(standby, [next], [standby.role]);
        await standby.goesOn();
        together.push([standby.role, taken.takenMs.get(standby.role) ?? Number.NaN]);
        lateMs += taken.lateMs;
      }
      lateMs += apart.lateMs;
      tookMs.apart.push(...apart.takenMs.values());
      tookMs.together.push(...together.map(([, ms]) => ms));
      for (const [role, ms] of [...apart.takenMs, ...together]) byRole.get(role)!.push(ms);
      process.stderr.write(`round ${round}: ${[...apart.takenMs, ...together].map(String).join(' ')}\n`);
      holder = next;
    }
  } finally {
    await freezing.close();
  }
  const rows = (what: string, ms: readonly number[]): Row[] => {
    const sorted = [...ms].sort((a, b) => a - b);
    const row = (which: string, share: number, bound: Row['bound']): Row => ({
      ...{
        goal: '',
        what: `${what}: ${which} of ${ms.length}`,
        value: quantile(sorted, share) / 1_000,
        unit: 's',
        bound,
      },
    });
    return [row('p50', 0.5, null), row('worst', 1, { atMost: GOAL_SEC })];
  };
  return [
    ...rows('all frozen, a standby for each role', tookMs.apart),
    ...rows('one frozen, a standby for all roles', tookMs.together),
    ...[...byRole].flatMap(([role, ms]) => rows(role, ms)),
    { goal: '', what: 'how late the machine was, all together', value: lateMs / 1_000, unit: 's', bound: null },
  ];
}
