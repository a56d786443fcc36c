/** What stopped the platform, when it went on and by whose hand, and what the chain took back. */
import type { Queryable } from '../types.js';
import { checkLimit } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import { readOrphans, type Orphans } from '../chain/orphans.js';
import { readReversals, type ReversalRow } from '../chain/reversals.js';

/** A halt of the watcher's, or the operator's own. */
export interface Stop {
  code: string;
  message: string;
  timeMs: number;
  byOperator: boolean;
  /** When it ended, and whether by a resume or by a reversal; null while it stands. */
  ended: { timeMs: number; by: 'resume' | 'reversal' } | null;
}

export interface Stops {
  /** Newest first. */
  halts: Stop[];
  /** Newest first, with what the chain lost and which makers had been told. */
  reversals: { row: ReversalRow; orphans: Orphans }[];
}

/** At most so many of each, from 1 to 10,000. */
export async function readStops(q: Queryable, limits: { halts: number; reversals: number }): Promise<Stops> {
  const found = await sendForRows<StopRow>(q, NEWEST_FOUND, [checkLimit(limits.halts)]);
  const own = await sendForRows<StopRow>(q, NEWEST_OWN, [checkLimit(limits.halts)]);
  const halts = [...found.map((row) => toStop(row, false)), ...own.map((row) => toStop(row, true))]
    .sort((a, b) => b.timeMs - a.timeMs)
    .slice(0, limits.halts);
  const reversals: Stops['reversals'] = [];
  for (const row of (await readReversals(q)).slice(-checkLimit(limits.reversals)).reverse())
    reversals.push({ row, orphans: await readOrphans(q, row.generation) });
  return { halts, reversals };
}

interface StopRow {
  code: string;
  message: string;
  time_ms: number;
  resumed_ms: number | null;
  reversed_ms: number | null;
}

/** A resume and a reversal end what `readHalts` says that they clear. */
const NEWEST_FOUND = `select code, message, time_ms,
    (select min(time_ms) from operator_log where kind = 'resume' and clears_halt_no >= halts.halt_no) as resumed_ms,
    (select min(time_ms) from reversals where clears_halt_no >= halts.halt_no
      and (halts.generation is null or halts.generation > kept_generation)) as reversed_ms
  from halts order by halt_no desc limit ?`;

const NEWEST_OWN = `select 'operator' as code, note as message, time_ms,
    (select min(time_ms) from operator_log as later
      where later.kind = 'resume' and later.operator_seq > own.operator_seq) as resumed_ms,
    null as reversed_ms
  from operator_log as own where kind = 'halt' order by operator_seq desc limit ?`;

function toStop(
  { code, message, time_ms: timeMs, resumed_ms: resumed, reversed_ms: reversed }: StopRow,
  byOperator: boolean,
): Stop {
  const isResumed = resumed !== null && (reversed === null || resumed <= reversed);
  const endedMs = isResumed ? resumed : reversed;
  return {
    ...{ code, message, timeMs, byOperator },
    ended: endedMs === null ? null : { timeMs: endedMs, by: isResumed ? 'resume' : 'reversal' },
  };
}
