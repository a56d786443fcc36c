import {
  NO_CLAIM,
  addSaturating,
  afterExecution,
  afterRequest,
  afterSettlement,
  type ClaimState,
  type LaterRequests,
} from '../../core/claim-state.js';
import { maxBig, toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { liveRanges } from '../../ledger/chain/branches.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { isLost } from '../../ledger/settlements/settlement-log.js';
import { servedFrom } from './listings.js';
import { countRows, extremes, readRows } from '../../ledger/db/rows.js';
import type { Stored } from '../../ledger/db/tables.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'withdrawals';
const PAGE = 2_000;

/** One maker's withdrawals in one token, replayed so far. */
interface Replayed {
  maker: Address;
  token: Address;
  state: ClaimState;
  requests: { units: bigint; blockNumber: number }[];
}

/** What the events of each generation come to, by `generation:maker:token`. */
interface Derived {
  reserved: Map<string, bigint>;
  capital: Map<string, bigint>;
  claims: Map<string, ClaimState>;
}

/**
 * Replays the events of every withdrawal, one after the other, and compares claims, reservations and the counters of capital with what
 * is stored, generation by generation. Returns the number of withdrawals.
 */
export async function verifyClaims(verification: Verification): Promise<number> {
  const { q, onProgress } = verification;
  const served = await servedFrom(verification);
  // An event of the very generation that listed its token counts: deployments list before anybody can deposit.
  const replayed = new Map<string, Replayed>();
  const derived: Derived = { reserved: new Map(), capital: new Map(), claims: new Map() };
  const total = await countRows(q, 'custody_events');
  for (let done = 0; done < total; done += PAGE) {
    const page = await readRows(q, 'custody_events', {
      orderBy: ['block_number', 'log_index'],
      limit: PAGE,
      offset: done,
    });
    const settlements = await readPrepared(verification, page);
    for (const event of page) {
      if ((served.get(event.token) ?? Number.MAX_SAFE_INTEGER) > event.generation) continue;
      const key = `${event.generation}:${event.maker}:${event.token}`;
      const before = replayed.get(`${event.maker}:${event.token}`)?.state ?? NO_CLAIM;
      const { state } = apply(replayed, settlements, event);
      add(derived.reserved, key, state.outstandingUnits - before.outstandingUnits);
      if (event.kind === 'deposited') add(derived.capital, key, fromColumn(event.amount_units));
      else derived.claims.set(key, state);
      if (event.kind === 'executed') add(derived.capital, key, -fromColumn(event.amount_units));
    }
    onProgress({ check: CHECK, done: Math.min(done + PAGE, total), total });
  }
  await restartCapital(verification, derived.capital);
  await compareClaimChanges(verification, derived.claims);
  await compareChanges(verification, derived);
  return compare(verification, replayed);
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

/** Where the counters of capital start again, what they came to until then is taken off. */
async function restartCapital({ q }: Verification, capital: Map<string, bigint>): Promise<void> {
  const origins = await readRows(q, 'capital_origins', { orderBy: ['generation'] });
  const taken = new Map<string, bigint>();
  for (const [key, units] of capital) {
    const [generation = '', maker, token] = key.split(':');
    const origin = origins.find((one) => one.generation > toSafeInt(BigInt(generation)));
    if (origin !== undefined) add(taken, `${origin.generation}:${maker}:${token}`, -units);
  }
  for (const [key, units] of taken) add(capital, key, units);
}

/** Every state that a claim ever had is kept, for a reorganisation may bring it back. */
async function compareClaimChanges({ q, head }: Verification, derived: ReadonlyMap<string, ClaimState>): Promise<void> {
  const left = new Map(derived);
  const newest = new Map<string, number>();
  for (let start = 0; start <= head.generation; start += PAGE) {
    const between = ['generation', start, start + PAGE - 1] as const;
    for (const row of await readRows(q, 'claim_changes', { between: [...between], orderBy: ['generation'] })) {
      const key = `${row.generation}:${row.maker}:${row.token}`;
      const state = left.get(key);
      same(
        CHECK,
        `the claim of ${row.maker} in ${row.token} after generation ${row.generation}`,
        ofRow(row),
        state && ofState(state),
      );
      left.delete(key);
      newest.set(`${row.maker}:${row.token}`, row.generation);
    }
  }
  const ends = await extremes(q, 'claim_changes', 'generation');
  const strange = [ends?.least ?? 1, ends?.most ?? 1].find((one) => one < 0 || one > head.generation);
  if (ends !== null && strange !== undefined)
    throw new VerifyError(CHECK, `a claim changed in generation ${strange}, which is missing`);
  const [missing] = left.keys();
  if (missing !== undefined) throw new VerifyError(CHECK, `the claim ${missing} was not kept`);
  for (const row of await readRows(q, 'claims')) {
    const key = `${row.maker}:${row.token}`;
    same(CHECK, `the generation of the claim ${key}`, row.generation, newest.get(key));
  }
}

const ofRow = (row: Stored<'claim_changes'>) => [
  ...[row.claim_units, row.basis, row.ready_at_sec],
  ...[row.outstanding_units, row.advance_units, row.pending_since_block],
];

const ofState = (claim: ClaimState) => [
  ...[claim.claimUnits, claim.basis, claim.readyAtSec],
  ...[claim.outstandingUnits, claim.advanceUnits, claim.pendingSinceBlock],
];

function apply(
  replayed: Map<string, Replayed>,
  settlements: ReadonlyMap<number, Prepared>,
  event: Stored<'custody_events'>,
): Replayed {
  const { maker, token } = event;
  const key = `${maker}:${token}`;
  const one = replayed.get(key) ?? { maker, token, state: NO_CLAIM, requests: [] };
  replayed.set(key, one);
  const units = fromColumn(event.amount_units);
  if (event.kind !== 'settled' && event.settlement_no !== null)
    throw new VerifyError(CHECK, `settlement ${event.settlement_no} explains an event of another kind`);
  switch (event.kind) {
    case 'deposited':
      break;
    case 'requested':
      one.requests.push({ units, blockNumber: event.block_number });
      one.state = afterRequest(one.state, units, event.block_number);
      break;
    case 'executed':
      one.state = afterExecution(one.state, units);
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
        laterRequests(one, settlements, event),
      );
      break;
  }
  return one;
}

/** Requests that the settlement did not look at; all that wait when no log prepared it. */
function laterRequests(
  one: Replayed,
  settlements: ReadonlyMap<number, Prepared>,
  event: Stored<'custody_events'>,
): LaterRequests {
  const { state, requests } = one;
  if (event.settlement_no === null) {
    return { units: maxBig(state.outstandingUnits - state.claimUnits, 0n), sinceBlock: state.pendingSinceBlock };
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
  const cut = prepared.cut_block;
  const later = requests.filter(({ blockNumber }) => blockNumber > cut);
  return {
    units: later.reduce((sum, { units }) => addSaturating(sum, units), 0n),
    sinceBlock: later[0]?.blockNumber ?? null,
  };
}

/**
 * Each generation that stands reserved, released and counted what its events say, and all changes together, those that were taken back
 * and their reversals included, are what the rows have.
 */
async function compareChanges({ q, head, reversals }: Verification, { reserved, capital }: Derived): Promise<void> {
  const left = new Set([...reserved, ...capital].flatMap(([key, units]) => (units === 0n ? [] : [key])));
  const reversing = new Set(reversals.map(({ generation }) => generation));
  const live = liveRanges(reversals, head.generation);
  const sums = { reserved: new Map<string, bigint>(), capital: new Map<string, bigint>() };
  for (let start = 1; start <= head.generation; start += PAGE) {
    const rows = await readRows(q, 'balance_changes', {
      between: ['generation', start, start + PAGE - 1],
    });
    for (const { generation, account, token, ...delta } of rows) {
      const units = [delta.reserved_delta_units, delta.net_capital_delta_units].map(fromColumn);
      add(sums.reserved, `${account}:${token}`, units[0]!);
      add(sums.capital, `${account}:${token}`, units[1]!);
      if (reversing.has(generation) || !live.some(({ from, to }) => from <= generation && generation <= to)) continue;
      const key = `${generation}:${account}:${token}`;
      const name = `what generation ${generation} reserved and counted of ${token} for ${account}`;
      same(CHECK, name, units, [reserved.get(key) ?? 0n, capital.get(key) ?? 0n]);
      left.delete(key);
    }
  }
  for (const key of left) throw new VerifyError(CHECK, `what was reserved and counted in ${key} was not kept`);
  for (const row of await readBalances(q)) {
    const key = `${row.account}:${row.token}`;
    same(CHECK, `the reservation of ${key}`, row.reservedUnits, sums.reserved.get(key) ?? 0n);
    same(CHECK, `the capital of ${key}`, row.netCapitalUnits, sums.capital.get(key) ?? 0n);
  }
}

async function compare({ q }: Verification, replayed: ReadonlyMap<string, Replayed>): Promise<number> {
  const rows = new Map((await readBalances(q)).map((row) => [`${row.account}:${row.token}`, row]));
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
