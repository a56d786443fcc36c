import type { Address } from '../../core/types.js';
import { checkLimit, fromColumn, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import { lastHaltNo, readHalt } from '../chain/halts.js';
import { readMarkets, readSaid } from '../chain/markets.js';
import { acquireWriter } from '../db/writers.js';
import type { Db, OperatorRow, Queryable, SaidOfToken, Transaction } from '../types.js';
import type { Stored } from '../db/tables.js';

/** State of the operator log after all its rows. */
export interface OperatorState {
  /** Makers that may quote. */
  approved: Set<Address>;
  /** Makers that were approved once and may not quote now. */
  suspended: Set<Address>;
  /** Indexes of markets that take no orders. */
  delisted: Set<number>;
  /** Token metadata that the operator has confirmed by `reread`. */
  reread: Map<Address, SaidOfToken>;
  /** The halt in effect: one that the watcher found, with its code, else the operator's own with the code `operator`. */
  halted: { code: string; message: string } | null;
  /** Note of the operator's own halt. */
  operatorHalt: string | null;
  lastSeq: number;
}

/** An act that the operator log refuses. */
class OperatorRowError extends Error {
  override readonly name = 'OperatorRowError';

  constructor(
    readonly code: 'bad_maker' | 'never_approved' | 'bad_claim' | 'bad_market' | 'bad_token' | 'bad_item',
    message: string,
  ) {
    super(message);
  }
}

/** What an act changes beside its row, in the same transaction. */
type Also = (tx: Transaction) => Promise<void>;

const ACQUIRE_TIMEOUT_MS = 10_000;
const PAGE = 1_000;

/**
 * Appends one act and returns it with its number. The operator log is held for this one row only; the call rejects with the signal's reason
 * when another process holds it for more than 10 s. A resume clears every halt that is durable now, or up to `upToHaltNo` when that is less, and no later one. Throws
 * OperatorRowError `bad_maker` unless approve, suspend, lowerClaim and assign, and only they, name an address in lower case, `bad_claim`
 * unless lowerClaim, and only that, says what to lower, `never_approved` for suspending an address that was never approved, `bad_market`
 * unless delist and relist, and only they, name the index of a listed market, and `bad_item` unless assign and the acts on partitions, and only they,
 * name an item and a reason, and `bad_token` unless reread, and only that, names a token.
 */
export async function appendOperatorRow(
  db: Db,
  act: Omit<OperatorRow, 'operatorSeq'>,
  {
    signal = AbortSignal.timeout(ACQUIRE_TIMEOUT_MS),
    also,
    upToHaltNo = Number.MAX_SAFE_INTEGER,
  }: { signal?: AbortSignal; also?: Also; upToHaltNo?: number } = {},
): Promise<OperatorRow> {
  checkAct(act);
  const writer = await acquireWriter(db, 'operator', { signal });
  try {
    return await writer.tx(async (tx) => {
      const state = await readOperatorState(tx);
      const known = act.maker === null || state.approved.has(act.maker) || state.suspended.has(act.maker);
      if (act.kind === 'suspend' && !known)
        throw new OperatorRowError('never_approved', `${act.maker} was never approved`);
      if (act.market !== undefined && !(await readMarkets(tx)).some(({ index }) => index === act.market))
        throw new OperatorRowError('bad_market', `no market has the index ${act.market}`);
      const operatorSeq = state.lastSeq + 1;
      await tx('operator_log').insert({
        operator_seq: operatorSeq,
        time_ms: act.timeMs,
        kind: act.kind,
        maker: act.maker,
        note: act.reread === undefined ? act.note : rereadNote(act.reread),
        market: act.market ?? null,
        token: act.lower?.token ?? act.reread?.token ?? null,
        amount_units: act.lower === undefined ? null : toColumn(act.lower.amountUnits),
        item: act.item ?? null,
        clears_halt_no: act.kind === 'resume' ? Math.min(upToHaltNo, await lastHaltNo(tx)) : null,
      });
      await also?.(tx);
      return { ...act, operatorSeq };
    });
  } finally {
    await writer.release();
  }
}

/**
 * The state after all rows. Given an earlier state it reads only what came after and returns a new state, so that a read before every write
 * stays cheap.
 */
export async function readOperatorState(q: Queryable, earlier?: OperatorState): Promise<OperatorState> {
  const state: OperatorState = {
    approved: new Set(earlier?.approved),
    suspended: new Set(earlier?.suspended),
    delisted: new Set(earlier?.delisted),
    reread: new Map(earlier?.reread),
    halted: null,
    operatorHalt: earlier?.operatorHalt ?? null,
    lastSeq: earlier?.lastSeq ?? 0,
  };
  for (;;) {
    const rows = await readOperatorRows(q, { after: state.lastSeq, limit: PAGE });
    for (const row of rows) applyOperatorRow(state, row);
    if (rows.length < PAGE) break;
  }
  state.halted = (await readHalt(q)) ?? ownHalt(state);
  return state;
}

/**
 * Approvals, suspensions and delistings after all rows, given an earlier state: one query, and the same object when nothing is new.
 * `halted` is copied from the earlier state; code that acts on halts must call `readOperatorState`.
 */
export async function followOperatorLog(q: Queryable, earlier: OperatorState): Promise<OperatorState> {
  const rows = await readOperatorRows(q, { after: earlier.lastSeq, limit: PAGE });
  if (rows.length === 0) return earlier;
  const { approved, suspended, delisted, reread } = earlier;
  const state = {
    ...earlier,
    approved: new Set(approved),
    suspended: new Set(suspended),
    delisted: new Set(delisted),
    reread: new Map(reread),
  };
  for (const row of rows) applyOperatorRow(state, row);
  return rows.length < PAGE ? state : followOperatorLog(q, state);
}

const ROWS_AFTER = `select operator_seq, time_ms, kind, maker, note, market, token, amount_units, item
  from operator_log where operator_seq > ? order by operator_seq limit ?`;

/**
 * The oldest requested lowering of a claim that is neither in progress, nor done, nor found to have nothing to lower; null when there is
 * none. A lowering whose transaction was never signed, or had no effect, is still open.
 */
export async function nextLowering(q: Queryable): Promise<OperatorRow | null> {
  const [row] = await sendForRows<Stored<'operator_log'>>(q, NEXT_LOWERING);
  return row === undefined ? null : fromRow(row);
}

const NEXT_LOWERING = `select operator_seq, time_ms, kind, maker, note, market, token, amount_units, item
  from operator_log as act where kind = 'lowerClaim' and not exists (
    select 1 from settlements as one
    left join settlement_outcomes as ended on ended.settlement_no = one.settlement_no
    where one.operator_seq = act.operator_seq
      and (ended.outcome is null or ended.outcome = 'landed' or one.amount_units = one.previous_units)
  ) order by operator_seq limit 1`;

/** The accounts that items in suspense were assigned to by acts after one. */
export async function accountsAssignedAfter(q: Queryable, operatorSeq: number): Promise<Address[]> {
  const sql = `select distinct maker from operator_log where operator_seq > ? and kind = 'assign' and maker is not null`;
  return (await sendForRows<{ maker: Address }>(q, sql, [operatorSeq])).map(({ maker }) => maker);
}

/** Rows after `after`, oldest first, at most `limit` (1..10000). */
export async function readOperatorRows(q: Queryable, range: { after: number; limit: number }): Promise<OperatorRow[]> {
  // Plain SQL: it runs before every group commit of orders.
  return (await sendForRows<Stored<'operator_log'>>(q, ROWS_AFTER, [range.after, checkLimit(range.limit)])).map(
    fromRow,
  );
}

function fromRow(row: Stored<'operator_log'>): OperatorRow {
  const token = row.token;
  const lower =
    token === null || row.amount_units === null ? {} : { lower: { token, amountUnits: fromColumn(row.amount_units) } };
  const reread = token === null || row.kind !== 'reread' ? {} : { reread: { token, ...readSaid(row.note) } };
  return {
    operatorSeq: row.operator_seq,
    timeMs: row.time_ms,
    kind: row.kind,
    maker: row.maker,
    note: row.note,
    ...(row.market === null ? {} : { market: row.market }),
    ...(row.item === null ? {} : { item: row.item }),
    ...lower,
    ...reread,
  };
}

/** The note of a `reread` is what the token says. */
const rereadNote = ({ symbol, decimals }: SaidOfToken): string => JSON.stringify({ symbol, decimals });

/** The operator's own halt that it has not resumed; null without one. */
export async function readOperatorHalt(q: Queryable): Promise<OperatorState['halted']> {
  const [newest] = await sendForRows<{ kind: string; note: string }>(q, NEWEST_HALT_OR_RESUME);
  return newest?.kind === 'halt' ? { code: 'operator', message: newest.note } : null;
}

const NEWEST_HALT_OR_RESUME = `select kind, note from operator_log where kind in ('halt', 'resume')
  order by operator_seq desc limit 1`;

function ownHalt(state: OperatorState): OperatorState['halted'] {
  return state.operatorHalt === null ? null : { code: 'operator', message: state.operatorHalt };
}

function applyOperatorRow(state: OperatorState, row: OperatorRow): void {
  state.lastSeq = row.operatorSeq;
  if (row.kind === 'halt') state.operatorHalt = row.note;
  if (row.kind === 'resume') state.operatorHalt = null;
  if (row.market !== undefined) {
    if (row.kind === 'delist') state.delisted.add(row.market);
    else state.delisted.delete(row.market);
  }
  if (row.reread !== undefined) {
    const { token, symbol, decimals } = row.reread;
    state.reread.set(token, { symbol, decimals });
  }
  if (row.maker === null || row.kind === 'lowerClaim' || row.kind === 'assign') return;
  const [into, outOf] = row.kind === 'approve' ? [state.approved, state.suspended] : [state.suspended, state.approved];
  outOf.delete(row.maker);
  into.add(row.maker);
}

function checkAct(act: Omit<OperatorRow, 'operatorSeq'>): void {
  const wantsMaker = ['approve', 'suspend', 'lowerClaim', 'assign'].includes(act.kind);
  const fits = wantsMaker ? act.maker !== null && /^0x[0-9a-f]{40}$/.test(act.maker) : act.maker === null;
  if (!fits) {
    const expected = wantsMaker ? 'the lower-case address of an account' : 'no maker';
    throw new OperatorRowError('bad_maker', `${act.kind} takes ${expected}, not ${String(act.maker)}`);
  }
  const lowers = act.lower !== undefined && /^0x[0-9a-f]{40}$/.test(act.lower.token) && act.lower.amountUnits >= 0n;
  if (lowers !== (act.kind === 'lowerClaim')) {
    throw new OperatorRowError(
      'bad_claim',
      `${act.kind} ${lowers ? 'lowers no claim' : 'names a token and an amount'}`,
    );
  }
  const rereads = act.reread !== undefined && /^0x[0-9a-f]{40}$/.test(act.reread.token);
  if (rereads !== (act.kind === 'reread')) {
    throw new OperatorRowError('bad_token', `${act.kind} ${rereads ? 'reads no token again' : 'names a token'}`);
  }
  const lists = act.kind === 'delist' || act.kind === 'relist';
  if (lists !== (act.market !== undefined)) {
    throw new OperatorRowError('bad_market', `${act.kind} names ${lists ? 'the index of a market' : 'no market'}`);
  }
  const names = act.item !== undefined && act.item !== '' && act.note.trim() !== '';
  if (names !== ['assign', 'detachPartition', 'attachPartition'].includes(act.kind)) {
    throw new OperatorRowError('bad_item', `${act.kind} ${names ? 'assigns nothing' : 'names an item and a reason'}`);
  }
}
