import {
  NO_CLAIM,
  addSaturating,
  afterExecution,
  afterRequest,
  afterSettlement,
  type ClaimState,
  type LaterRequests,
} from '../../core/claim-state.js';
import { maxBig } from '../../core/amounts.js';
import { PAID_GAS_MAX, addGas, eventGas, paysGas } from '../../core/settle-gas.js';
import type { Address } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { liveRanges } from '../../ledger/chain/branches.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { isLost } from '../../ledger/settlements/settlement-log.js';
import { servedFrom } from './listings.js';
import { extremes, readRows } from '../../ledger/db/rows.js';
import type { Stored } from '../../ledger/db/tables.js';
import type { Queryable } from '../../ledger/types.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'withdrawals';
const PAGE = 2_000;

/** One maker's withdrawals in one token, replayed so far. */
interface Replayed {
  maker: Address;
  token: Address;
  state: ClaimState;
}

/** What the events of some generations come to, by `generation:maker:token`. */
interface Derived {
  reserved: Map<string, bigint>;
  capital: Map<string, bigint>;
  claims: Map<string, ClaimState>;
}

/** What all generations so far come to: a row per account and token, however long the history is. */
interface Totals {
  replayed: Map<string, Replayed>;
  /** The generation of the newest row of each claim, by `maker:token`. */
  changed: Map<string, number>;
  reserved: Map<string, bigint>;
  capital: Map<string, bigint>;
  /** What events changed the counters of capital by since they began, or began again, by `maker:token`. */
  sinceOrigin: Map<string, bigint>;
}

/** Consecutive generations, both included. */
interface Span {
  from: number;
  to: number;
}

/**
 * Replays the events of every withdrawal, one after the other, and compares claims, reservations and the counters of capital with what
 * is stored, some generations at a time. Returns the number of withdrawals.
 */
export async function verifyClaims(verification: Verification): Promise<number> {
  const { head, onProgress } = verification;
  const served = await servedFrom(verification);
  const empty = (): Map<string, bigint> => new Map();
  const totals: Totals = {
    replayed: new Map(),
    changed: new Map(),
    reserved: empty(),
    capital: empty(),
    sinceOrigin: empty(),
  };
  await checkGenerations(verification);
  for (let from = 1; from <= head.generation; from += PAGE) {
    const span = { from, to: Math.min(from + PAGE - 1, head.generation) };
    const derived = await deriveSpan(verification, served, totals, span);
    await compareClaimChanges(verification, totals, derived.claims, span);
    await compareChanges(verification, totals, derived, span);
    onProgress({ check: CHECK, done: span.to, total: head.generation });
  }
  return compare(verification, totals);
}

/** Replays the events of a span, and lets the counters of capital start again where the operator did. */
async function deriveSpan(
  verification: Verification,
  served: ReadonlyMap<Address, number>,
  { replayed, sinceOrigin }: Totals,
  span: Span,
): Promise<Derived> {
  const { q } = verification;
  const derived: Derived = { reserved: new Map(), capital: new Map(), claims: new Map() };
  const between: ['generation', number, number] = ['generation', span.from, span.to];
  const origins = (await readRows(q, 'capital_origins', { between, orderBy: ['generation'] })).map(
    (one) => one.generation,
  );
  const restartUpTo = (generation: number): void => {
    for (let origin = origins[0]; origin !== undefined && origin <= generation; origin = origins[0]) {
      for (const [key, units] of sinceOrigin) add(derived.capital, `${origin}:${key}`, -units);
      sinceOrigin.clear();
      origins.shift();
    }
  };
  const events = await readRows(q, 'custody_events', { between, orderBy: ['block_number', 'log_index'] });
  const settlements = await readPrepared(verification, events);
  checkPaidGas(events);
  for (const event of events) {
    // An event of the very generation that listed its token counts: deployments list before anybody can deposit.
    if ((served.get(event.token) ?? Number.MAX_SAFE_INTEGER) > event.generation) continue;
    restartUpTo(event.generation);
    const claim = `${event.maker}:${event.token}`;
    const key = `${event.generation}:${claim}`;
    const before = replayed.get(claim)?.state ?? NO_CLAIM;
    const { state } = await apply(q, replayed, settlements, event);
    add(derived.reserved, key, state.outstandingUnits - before.outstandingUnits);
    const units = fromColumn(event.amount_units);
    const capital = event.kind === 'deposited' ? units : event.kind === 'executed' ? -units : 0n;
    add(derived.capital, key, capital);
    add(sinceOrigin, claim, capital);
    if (event.kind !== 'deposited') derived.claims.set(key, state);
  }
  restartUpTo(span.to);
  return derived;
}

/** All events of a transaction are of one generation, so that a page has all of them. */
function checkPaidGas(events: readonly Stored<'custody_events'>[]): void {
  const calls = new Map<string, number>();
  for (const { kind, tx_hash: hash } of events) if (paysGas(kind)) calls.set(hash, (calls.get(hash) ?? 0) + 1);
  for (const { kind, tx_hash: hash, log_index: logIndex, paid_gas: paid } of events) {
    if (paid === null) continue;
    same(CHECK, `what the event ${logIndex} of ${hash} paid`, BigInt(paid), eventGas(kind, calls.get(hash) ?? 1));
  }
}

/** No row is of a generation that is missing; claims did not change before the first one. */
async function checkGenerations({ q, head }: Verification): Promise<void> {
  for (const table of ['claim_changes', 'balance_changes', 'capital_origins'] as const) {
    const ends = await extremes(q, table, 'generation');
    if (ends === null) continue;
    const isEarly = table === 'claim_changes' && ends.least < 1;
    const strange = isEarly ? ends.least : ends.most;
    if (isEarly || strange > head.generation)
      throw new VerifyError(CHECK, `a row of ${table} is of generation ${strange}, which is missing`);
  }
}

function add(sums: Map<string, bigint>, key: string, units: bigint): void {
  sums.set(key, (sums.get(key) ?? 0n) + units);
}

/** A prepared settlement. */
interface Prepared extends Stored<'settlements'> {
  /** A reorganisation took the blocks back that it looked at. */
  lost: boolean;
}

/** The settlements that events of a page name, and those between them. */
async function readPrepared(
  { q, reversals }: Verification,
  events: readonly Stored<'custody_events'>[],
): Promise<Map<number, Prepared>> {
  const named = events.flatMap(({ settlement_no: no }) => (no === null ? [] : [no]));
  if (named.length === 0) return new Map();
  const ends = { from: named.reduce((a, b) => Math.min(a, b)), to: named.reduce((a, b) => Math.max(a, b)) };
  const rows = await readRows(q, 'settlements', { between: ['settlement_no', ends.from, ends.to] });
  const isGone = (row: Stored<'settlements'>): boolean =>
    isLost({ preparedBy: row.prepared_by, cutGeneration: row.cut_generation }, reversals);
  return new Map(rows.map((row) => [row.settlement_no, { ...row, lost: isGone(row) }]));
}

/** Every state that a claim ever had is kept, for a reorganisation may bring it back. */
async function compareClaimChanges(
  { q }: Verification,
  { changed }: Totals,
  derived: ReadonlyMap<string, ClaimState>,
  { from, to }: Span,
): Promise<void> {
  const left = new Map(derived);
  const rows = await readRows(q, 'claim_changes', { between: ['generation', from, to], orderBy: ['generation'] });
  for (const row of rows) {
    const key = `${row.generation}:${row.maker}:${row.token}`;
    const state = left.get(key);
    same(
      CHECK,
      `the claim of ${row.maker} in ${row.token} after generation ${row.generation}`,
      ofRow(row),
      state && ofState(state),
    );
    left.delete(key);
    changed.set(`${row.maker}:${row.token}`, row.generation);
  }
  const [missing] = left.keys();
  if (missing !== undefined) throw new VerifyError(CHECK, `the claim ${missing} was not kept`);
}

const ofRow = (row: Stored<'claim_changes'>) => [
  ...[row.claim_units, row.basis, row.ready_at_sec],
  ...[row.outstanding_units, row.advance_units, row.pending_since_block, BigInt(row.paid_gas)],
];

const ofState = (claim: ClaimState) => [
  ...[claim.claimUnits, claim.basis, claim.readyAtSec],
  ...[claim.outstandingUnits, claim.advanceUnits, claim.pendingSinceBlock, claim.paidGas],
];

async function apply(
  q: Queryable,
  replayed: Map<string, Replayed>,
  settlements: ReadonlyMap<number, Prepared>,
  event: Stored<'custody_events'>,
): Promise<Replayed> {
  const { maker, token } = event;
  const key = `${maker}:${token}`;
  const one = replayed.get(key) ?? { maker, token, state: NO_CLAIM };
  replayed.set(key, one);
  const units = fromColumn(event.amount_units);
  const call = { units, paidGas: BigInt(event.paid_gas ?? 0) };
  if (event.kind !== 'settled' && event.settlement_no !== null)
    throw new VerifyError(CHECK, `settlement ${event.settlement_no} explains an event of another kind`);
  switch (event.kind) {
    case 'deposited':
      break;
    case 'requested':
      one.state = afterRequest(one.state, call, event.block_number);
      break;
    case 'executed':
      one.state = afterExecution(one.state, call);
      break;
    case 'settled':
      one.state = afterSettlement(
        one.state,
        {
          units,
          readyAtSec: event.ready_at_sec,
          blockNumber: event.block_number,
          lost: settlements.get(event.settlement_no ?? 0)?.lost ?? false,
        },
        await laterRequests(q, one, settlements, event),
      );
      break;
  }
  if (event.paid_gas === null && event.kind !== 'deposited') one.state = { ...one.state, paidGas: PAID_GAS_MAX };
  return one;
}

/** Requests that the settlement does not cover; all pending ones when this database did not prepare it. */
async function laterRequests(
  q: Queryable,
  { state }: Replayed,
  settlements: ReadonlyMap<number, Prepared>,
  event: Stored<'custody_events'>,
): Promise<LaterRequests> {
  if (event.settlement_no === null) {
    const units = maxBig(state.outstandingUnits - state.claimUnits, 0n);
    return { units, sinceBlock: state.pendingSinceBlock, paidGas: state.paidGas };
  }
  const prepared = settlements.get(event.settlement_no);
  const name = `settlement ${event.settlement_no}`;
  if (prepared === undefined) throw new VerifyError(CHECK, `${name} was never prepared`);
  const said = ({
    maker,
    token,
    amount_units,
    basis,
  }: Pick<Prepared, 'maker' | 'token' | 'amount_units'> & { basis: string | null }) => [
    maker,
    token,
    amount_units,
    basis,
  ];
  same(CHECK, name, said(prepared), said(event));
  const isBefore = (one: Stored<'custody_events'>): boolean =>
    one.block_number < event.block_number ||
    (one.block_number === event.block_number && one.log_index < event.log_index);
  const requests = await readRows(q, 'custody_events', {
    where: { maker: event.maker, token: event.token, kind: 'requested' },
    above: ['block_number', prepared.cut_block],
    orderBy: ['block_number', 'log_index'],
  });
  const later = requests.filter(isBefore);
  return {
    units: later.reduce((sum, one) => addSaturating(sum, fromColumn(one.amount_units)), 0n),
    sinceBlock: later[0]?.block_number ?? null,
    paidGas: later.reduce((sum, one) => addGas(sum, BigInt(one.paid_gas ?? PAID_GAS_MAX)), 0n),
  };
}

/**
 * Each generation that stands reserved, released and counted what its events say; all changes, those that were taken back and their reversals
 * included, are summed up.
 */
async function compareChanges(
  { q, head, reversals }: Verification,
  totals: Totals,
  { reserved, capital }: Derived,
  { from, to }: Span,
): Promise<void> {
  const left = new Set([...reserved, ...capital].flatMap(([key, units]) => (units === 0n ? [] : [key])));
  const reversing = new Set(reversals.map(({ generation }) => generation));
  const live = liveRanges(reversals, head.generation);
  for (const row of await readRows(q, 'balance_changes', { between: ['generation', from, to] })) {
    const { generation, account, token, ...delta } = row;
    const units = [delta.reserved_delta_units, delta.net_capital_delta_units].map(fromColumn);
    add(totals.reserved, `${account}:${token}`, units[0]!);
    add(totals.capital, `${account}:${token}`, units[1]!);
    if (reversing.has(generation) || !live.some((range) => range.from <= generation && generation <= range.to))
      continue;
    const key = `${generation}:${account}:${token}`;
    const name = `what generation ${generation} reserved and counted of ${token} for ${account}`;
    same(CHECK, name, units, [reserved.get(key) ?? 0n, capital.get(key) ?? 0n]);
    left.delete(key);
  }
  for (const key of left) throw new VerifyError(CHECK, `what was reserved and counted in ${key} was not kept`);
}

/** Claims and balances are what all changes together come to. */
async function compare({ q }: Verification, { replayed, changed, ...sums }: Totals): Promise<number> {
  for (const row of await readRows(q, 'claims')) {
    const key = `${row.maker}:${row.token}`;
    same(CHECK, `the generation of the claim ${key}`, row.generation, changed.get(key));
  }
  const balances = await readBalances(q);
  for (const row of balances) {
    const key = `${row.account}:${row.token}`;
    same(CHECK, `the reservation of ${key}`, row.reservedUnits, sums.reserved.get(key) ?? 0n);
    same(CHECK, `the capital of ${key}`, row.netCapitalUnits, sums.capital.get(key) ?? 0n);
  }
  const rows = new Map(balances.map((row) => [`${row.account}:${row.token}`, row]));
  let claims = 0;
  for (const [key, { maker, token, state }] of replayed) {
    const name = `${maker} in ${token}`;
    same(CHECK, `the claim of ${name}`, ofState(await readClaim(q, { maker, token })), ofState(state));
    if (state !== NO_CLAIM) claims += 1;
    same(CHECK, `the reservation of ${name}`, rows.get(key)?.reservedUnits ?? 0n, state.outstandingUnits);
    rows.delete(key);
  }
  for (const [key, row] of rows) same(CHECK, `the reservation of ${key}`, row.reservedUnits, 0n);
  return claims;
}
