/** What trials came to: times by role, fault and act, and what the order log says of what was acknowledged. No I/O. */

/** An action that somebody was told is stored. */
export interface Acknowledged {
  signer: string;
  nonce: number;
  /** The order that it opened; null for a cancel. */
  oid: number | null;
  /** Who said so. */
  server: string;
  /** Unix milliseconds. */
  atMs: number;
}

/** A row of the order log, as far as it is read here. */
export interface StoredAction {
  signer: string | null;
  nonce: number | null;
  oids: readonly number[];
}

/** One time of one trial; NaN when the act did not come in the time that it was given. */
export interface Took {
  role: string;
  fault: string;
  act: string;
  sec: number;
}

export interface SummaryRow {
  role: string;
  fault: string;
  act: string;
  trials: number;
  p50Sec: number;
  worstSec: number;
  /** What is promised of the median; null when nothing is. */
  goalSec: number | null;
  holds: boolean;
}

/** What operators.md promises of the median: an order and a publication after a kill, the log of one that is silent, and that this one says so. */
const GOALS: readonly { role?: string; faults: readonly string[]; act: string; sec: number }[] = [
  { role: 'gateway', faults: ['kill'], act: 'first order', sec: 2 },
  { role: 'poster', faults: ['kill'], act: 'publication prepared', sec: 4 },
  { faults: ['freeze', 'partition', 'no-postgres', 'no-answers'], act: 'log taken', sec: 5 },
  { faults: ['partition', 'no-postgres', 'no-answers'], act: 'says that it does not serve', sec: 10 },
];

const goalOf = ({ role, fault, act }: Took): number | null =>
  GOALS.find((goal) => (goal.role ?? role) === role && goal.faults.includes(fault) && goal.act === act)?.sec ?? null;

/** The time that at least this share of the trials did not exceed. A trial without the act is the worst. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => (Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b));
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)] ?? Number.NaN;
}

/** A row per role, fault and act, in the order in which they came. It holds unless the median is beyond its goal, or an act never came. */
export function summarise(took: readonly Took[]): SummaryRow[] {
  const groups = new Map<string, Took[]>();
  for (const one of took) {
    const key = JSON.stringify([one.role, one.fault, one.act]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].map((group) => {
    const { role, fault, act } = group[0]!;
    const secs = group.map(({ sec }) => sec);
    const [p50Sec, worstSec, goalSec] = [quantile(secs, 0.5), quantile(secs, 1), goalOf(group[0]!)];
    const holds = !Number.isNaN(worstSec) && (goalSec === null || p50Sec <= goalSec);
    return { role, fault, act, trials: group.length, p50Sec, worstSec, goalSec, holds };
  });
}

export interface Judgement {
  /** Acknowledged, and no row has them, or a row without the order that the answer named. */
  lost: Acknowledged[];
  /** Signer and nonce of which there are several rows, acknowledged or not; and orders that were opened twice. */
  doubled: string[];
}

export function judge(acknowledged: readonly Acknowledged[], stored: readonly StoredAction[]): Judgement {
  const byAction = new Map<string, StoredAction[]>();
  const opened = new Map<number, number>();
  for (const row of stored) {
    for (const oid of row.oids) opened.set(oid, (opened.get(oid) ?? 0) + 1);
    if (row.nonce === null) continue;
    const key = `${row.signer} ${row.nonce}`;
    byAction.set(key, [...(byAction.get(key) ?? []), row]);
  }
  const isThere = ({ signer, nonce, oid }: Acknowledged): boolean =>
    (byAction.get(`${signer} ${nonce}`) ?? []).some(({ oids }) => oid === null || oids.includes(oid));
  return {
    lost: acknowledged.filter((one) => !isThere(one)),
    doubled: [
      ...[...byAction].filter(([, rows]) => rows.length > 1).map(([key]) => key),
      ...[...opened].filter(([, times]) => times > 1).map(([oid]) => `order ${oid}`),
    ],
  };
}
