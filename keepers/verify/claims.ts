import {
  NO_CLAIM,
  addSaturating,
  afterExecution,
  afterRequest,
  afterSettlement,
  type ClaimState,
  type LaterRequests,
} from '../../core/claims.js';
import { maxBig } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readBalances } from '../../ledger/balances.js';
import { liveRanges } from '../../ledger/branches.js';
import { readClaim } from '../../ledger/claims.js';
import { fromColumn } from '../../ledger/columns.js';
import type { CustodyKind } from '../../ledger/types.js';
import { servedFrom } from './served.js';
import { VerifyError, same, type Verification } from './verify.js';

const CHECK = 'withdrawals';
const PAGE = 2_000;

interface StoredEvent {
  kind: CustodyKind;
  maker: Address;
  token: Address;
  amount_units: string;
  basis: string | null;
  ready_at_sec: number | null;
  settlement_no: number | null;
  block_number: number;
  log_index: number;
  generation: number;
}

/** One maker's withdrawals in one token, folded so far. */
interface Folded {
  maker: Address;
  token: Address;
  state: ClaimState;
  requests: { units: bigint; blockNumber: number }[];
  netCapital: bigint;
}

/**
 * Folds every withdrawal from its events, one after the other, and compares claims, reservations and the counters of capital with what
 * is stored. Returns the number of withdrawals.
 */
export async function verifyClaims(verification: Verification): Promise<number> {
  const { q, onProgress } = verification;
  const settlements = await readPrepared(verification);
  const served = await servedFrom(verification);
  // An event of the very generation that listed its token counts: deployments list before anybody can deposit.
  const originGeneration = await capitalOriginGeneration(verification);
  const folded = new Map<string, Folded>();
  const deltas = new Map<string, bigint>();
  const total = ((await q('custody_events').count({ count: '*' }).first()) as { count: number }).count;
  for (let done = 0; done < total; done += PAGE) {
    const page = (await q('custody_events')
      .orderBy(['block_number', 'log_index'])
      .offset(done)
      .limit(PAGE)
      .select()) as StoredEvent[];
    for (const event of page) {
      if ((served.get(event.token) ?? Number.MAX_SAFE_INTEGER) > event.generation) continue;
      const key = `${event.generation}:${event.maker}:${event.token}`;
      const before = folded.get(`${event.maker}:${event.token}`)?.state ?? NO_CLAIM;
      const { state } = apply(folded, settlements, event, event.generation > originGeneration);
      deltas.set(key, (deltas.get(key) ?? 0n) + state.outstandingUnits - before.outstandingUnits);
    }
    onProgress({ check: CHECK, done: Math.min(done + PAGE, total), total });
  }
  await compareReservations(verification, deltas);
  return compare(verification, folded);
}

/** A prepared settlement, as far as its event must agree with it. */
interface Prepared {
  settlement_no: number;
  maker: Address;
  token: Address;
  amount_units: string;
  basis: string;
  cut_block: number;
}

async function readPrepared({ q }: Verification): Promise<Map<number, Prepared>> {
  const columns = ['settlement_no', 'maker', 'token', 'amount_units', 'basis', 'cut_block'] as const;
  const rows = await q('settlements').select<Prepared[]>(...columns);
  return new Map(rows.map((row) => [row.settlement_no, row]));
}

async function capitalOriginGeneration({ q }: Verification): Promise<number> {
  const row = (await q('capital_origins').max({ last: 'generation' }).first()) as { last: number | null };
  return row.last ?? 0;
}

function apply(
  folded: Map<string, Folded>,
  settlements: ReadonlyMap<number, Prepared>,
  event: StoredEvent,
  counts: boolean,
): Folded {
  const { maker, token } = event;
  const key = `${maker}:${token}`;
  const one = folded.get(key) ?? { maker, token, state: NO_CLAIM, requests: [], netCapital: 0n };
  folded.set(key, one);
  const units = fromColumn(event.amount_units);
  switch (event.kind) {
    case 'deposited':
      if (counts) one.netCapital += units;
      break;
    case 'requested':
      one.requests.push({ units, blockNumber: event.block_number });
      one.state = afterRequest(one.state, units, event.block_number);
      break;
    case 'executed':
      if (counts) one.netCapital -= units;
      one.state = afterExecution(one.state, units);
      break;
    case 'settled':
      one.state = afterSettlement(
        one.state,
        { units, readyAtSec: event.ready_at_sec },
        laterRequests(one, settlements, event),
      );
      break;
  }
  return one;
}

/** Requests that the settlement did not look at; all that wait when no log prepared it. */
function laterRequests(one: Folded, settlements: ReadonlyMap<number, Prepared>, event: StoredEvent): LaterRequests {
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

/** Each generation that stands reserved and released what its events say, by `generation:maker:token`. */
async function compareReservations(
  { q, head, reversals }: Verification,
  deltas: ReadonlyMap<string, bigint>,
): Promise<void> {
  const left = new Map([...deltas].filter(([, units]) => units !== 0n));
  const reversing = new Set(reversals.map(({ generation }) => generation));
  for (const { from, to } of liveRanges(reversals, head.generation)) {
    for (let start = from; start <= to; start += PAGE) {
      const rows = await q('balance_changes')
        .whereBetween('generation', [start, Math.min(start + PAGE - 1, to)])
        .select<{ generation: number; account: Address; token: Address; reserved_delta_units: string }[]>();
      for (const { generation, account, token, reserved_delta_units: units } of rows) {
        if (reversing.has(generation)) continue;
        const key = `${generation}:${account}:${token}`;
        const name = `what generation ${generation} reserved of ${token} for ${account}`;
        same(CHECK, name, fromColumn(units), left.get(key) ?? 0n);
        left.delete(key);
      }
    }
  }
  for (const [key, units] of left) same(CHECK, `what was reserved in ${key}`, 0n, units);
}

async function compare({ q }: Verification, folded: ReadonlyMap<string, Folded>): Promise<number> {
  const rows = new Map((await readBalances(q)).map((row) => [`${row.account}:${row.token}`, row]));
  let claims = 0;
  for (const [key, { maker, token, state, netCapital }] of folded) {
    const name = `${maker} in ${token}`;
    const { maker: _maker, token: _token, ...stored } = await readClaim(q, { maker, token });
    const ordered = ({ claimUnits, basis, readyAtSec, outstandingUnits, pendingSinceBlock }: ClaimState) => [
      claimUnits,
      basis,
      readyAtSec,
      outstandingUnits,
      pendingSinceBlock,
    ];
    same(CHECK, `the claim of ${name}`, ordered(stored), ordered(state));
    if (state !== NO_CLAIM) claims += 1;
    const row = rows.get(key);
    same(CHECK, `the reservation of ${name}`, row?.reservedUnits ?? 0n, state.outstandingUnits);
    same(CHECK, `the capital of ${name}`, row?.netCapitalUnits ?? 0n, netCapital);
    rows.delete(key);
  }
  for (const [key, row] of rows) {
    same(CHECK, `the reservation of ${key}`, row.reservedUnits, 0n);
    same(CHECK, `the capital of ${key}`, row.netCapitalUnits, 0n);
  }
  return claims;
}
