/** Books what nothing stored explains in a scan, and the operator's decisions on earlier items. */
import type { Logger } from 'pino';
import type { Address, Market } from '../../../core/types.js';
import { readHalts } from '../../../ledger/chain/halts.js';
import { fillRef } from '../../../ledger/chain/invariants.js';
import { nameItem, type readDecided } from '../../../ledger/chain/suspense.js';
import { withdrawableUnits } from '../../../ledger/settlements/settlement-log.js';
import {
  SUSPENSE,
  type AttributedFill,
  type BalanceRow,
  type ClaimRow,
  type CustodyEvent,
  type LedgerEntry,
  type Queryable,
  type SuspenseAssignment,
  type SuspenseItem,
} from '../../../ledger/types.js';
import type { AttributionRun } from './attributor.js';
import { fillEntries } from '../../../ledger/chain/fill-postings.js';
import { assignmentEntries } from './postings.js';

/** What was done on-chain in a scan, with the postings so far. */
interface Found {
  markets: readonly Market[];
  fills: readonly AttributedFill[];
  custody: readonly CustodyEvent[];
  unexplained: ReturnType<AttributionRun['unexplained']>;
  entries: readonly LedgerEntry[];
  operator: Address;
  /** Balance before the scan. */
  balanceUnits(account: BalanceRow['account'], token: Address): bigint;
}

/** Items, and the postings with what they suspend. */
interface Suspended {
  items: SuspenseItem[];
  entries: LedgerEntry[];
}

/** Faults of which all that is doubtful is in suspense. */
const SUSPENDED_FAULTS: ReadonlySet<string> = new Set([
  'unexplained_curve',
  'unexplained_settlement',
  'unexplained_execution',
  'carry_mismatch',
  'missing_depth',
]);

/**
 * The fault that halts the ledger: a new one rather than one that halts it already; none that is in suspense if `haltOnSuspense` is false.
 */
export async function firstFault(
  q: Queryable,
  faults: readonly { code: string; message: string }[],
  { haltOnSuspense, logger }: { haltOnSuspense: boolean; logger: Logger },
): Promise<{ code: string; message: string } | null> {
  if (faults.length === 0) return null;
  const standing = new Set((await readHalts(q)).map(({ code }) => code));
  for (const { code, message } of faults) {
    if (!standing.has(code)) logger.error({ code }, `the books do not explain what the chain has: ${message}`);
  }
  const halting = faults.filter(({ code }) => haltOnSuspense || !SUSPENDED_FAULTS.has(code));
  return halting.find(({ code }) => !standing.has(code)) ?? halting[0] ?? null;
}

/** Why settlements and payouts among the items halt the ledger; curves and fills have faults of their own. */
export function unexplainedCustody(items: readonly SuspenseItem[]): { code: string; message: string }[] {
  return items
    .filter(({ kind }) => kind === 'settlement' || kind === 'execution')
    .map(({ code, message }) => ({ code, message }));
}

/**
 * Puts in suspense what no book or settlement explains. The part of a payout above its maker's balance is booked there, because it was
 * paid.
 */
export function suspend(found: Found): Suspended {
  const covered = coverExecutions(found);
  const curves = found.unexplained.map(({ post, fault }) =>
    named({
      ...{ kind: 'curve', ...fault, ...NOTHING, maker: null, blockNumber: post.blockNumber, txHash: post.txHash },
      ...{ ref: `curve:${found.markets[post.market]!.id}:${post.seq}`, market: post.market, seq: post.seq },
    }),
  );
  const fills = found.fills.flatMap((one) => {
    const market = found.markets[one.fill.market];
    return one.suspended === undefined || market === undefined ? [] : [fillItem(market, one, found.operator)];
  });
  const settlements = found.custody
    .filter(({ kind, settlementNo }) => kind === 'settled' && settlementNo === null)
    .map(settlementItem);
  return { items: [...curves, ...fills, ...settlements, ...covered.items], entries: covered.entries };
}

const NOTHING = { token: null, units: 0n, otherToken: null, otherUnits: 0n } as const;

const named = (item: Omit<SuspenseItem, 'item'>): SuspenseItem => ({ ...item, item: nameItem(item) });

/** The item of a fill that `suspended` says is not explained. */
export function fillItem(market: Market, one: AttributedFill, operator: Address): SuspenseItem {
  const { fill, decomposition, suspended } = one;
  const lines = fillEntries(market, fill, decomposition, operator, true);
  const of = (token: Address): bigint =>
    lines.reduce((sum, line) => (line.account === SUSPENSE && line.token === token ? sum + line.amountUnits : sum), 0n);
  const [token, otherToken] = [market.base.address, market.quote.address];
  return named({
    ...{ kind: 'fill', code: suspended?.code ?? '', message: suspended?.message ?? '', maker: null },
    ...{ ref: fillRef(market, fill.fillSeq), market: fill.market, seq: fill.fillSeq },
    ...{ token, units: of(token), otherToken, otherUnits: of(otherToken) },
    ...{ blockNumber: fill.blockNumber, txHash: fill.txHash },
  });
}

function settlementItem({ maker, token, amountUnits, txHash, logIndex, blockNumber }: CustodyEvent): SuspenseItem {
  return named({
    ...{ kind: 'settlement', code: 'unexplained_settlement', ...NOTHING, market: null, seq: null, maker, token },
    ...{ ref: `settled:${txHash}:${logIndex}`, txHash, blockNumber },
    message: `a claim of ${amountUnits} units of ${token} was settled for ${maker}, and no log prepared it`,
  });
}

/** Makers' balances can't be below zero: what payouts took beyond them goes to the suspense account until it is assigned. */
function coverExecutions({ entries, custody, operator, balanceUnits }: Found): Suspended {
  const executed = new Map<string, CustodyEvent>();
  for (const event of custody) {
    if (event.kind === 'executed') executed.set(`executed:${event.txHash}:${event.logIndex}`, event);
  }
  if (executed.size === 0) return { items: [], entries: [...entries] };
  const lacking = new Map<string, bigint>();
  const key = ({ account, token }: Pick<LedgerEntry, 'account' | 'token'>): string => `${account}:${token}`;
  for (const entry of entries) {
    const before = lacking.get(key(entry)) ?? balanceUnits(entry.account, entry.token);
    lacking.set(key(entry), before + entry.amountUnits);
  }
  const items: SuspenseItem[] = [];
  // The last payouts first: the earlier ones had more to take from.
  const covered = [...entries].reverse().flatMap((entry) => {
    const event = executed.get(entry.ref);
    const lack = -(lacking.get(key(entry)) ?? 0n);
    const isOfMaker = event !== undefined && entry.account === event.maker && entry.account !== operator;
    if (!isOfMaker || lack <= 0n) return [entry];
    const units = lack < event.amountUnits ? lack : event.amountUnits;
    lacking.set(key(entry), units - lack);
    const { maker, token, txHash, blockNumber } = event;
    items.push(
      named({
        ...{ kind: 'execution', code: 'unexplained_execution', ...NOTHING, market: null, seq: null, maker, token },
        ...{ units: -units, ref: entry.ref, txHash, blockNumber },
        message: `${maker} was paid ${units} units of ${token} more than the ledger says it had`,
      }),
    );
    const suspended: LedgerEntry = { ref: entry.ref, kind: 'suspense', account: SUSPENSE, token, amountUnits: -units };
    return [suspended, { ...entry, amountUnits: entry.amountUnits + units }];
  });
  return { items: items.reverse(), entries: covered.reverse() };
}

/**
 * Books the items that the operator decided on. One that would put a maker's row below zero, or below what the maker may withdraw, is left
 * open: a withdrawal can't be stopped in time, and would be paid with the tokens of others.
 */
export async function assign(
  q: Queryable,
  decided: Awaited<ReturnType<typeof readDecided>>,
  {
    operator,
    entries,
    claims,
    balanceUnits,
    logger,
  }: Pick<Found, 'operator' | 'entries' | 'balanceUnits'> & { claims: readonly ClaimRow[]; logger: Logger },
): Promise<{ entries: LedgerEntry[]; assignments: SuspenseAssignment[] }> {
  const booked: LedgerEntry[] = [];
  const assignments: SuspenseAssignment[] = [];
  for (const { row, act } of decided) {
    const lines = assignmentEntries(row, act.maker);
    const debits = lines.filter(({ account, amountUnits }) => account === act.maker && amountUnits < 0n);
    const isBounded = debits.length > 0 && act.maker !== operator;
    const claimed = isBounded ? await withdrawableUnits(q, act.maker, claims) : null;
    const isShort = debits.some(({ account, token }) => {
      if (claimed === null) return false;
      const changes = [...entries, ...booked, ...lines].filter((one) => one.account === account && one.token === token);
      const leftUnits = changes.reduce((sum, one) => sum + one.amountUnits, balanceUnits(account, token));
      return leftUnits < (claimed.get(token) ?? 0n);
    });
    if (isShort) {
      logger.error(
        { item: row.item, account: act.maker },
        'an item in suspense can not be assigned: the row that it was assigned to lacks the tokens, or may be withdrawn',
      );
      continue;
    }
    booked.push(...lines);
    assignments.push({ item: row.item, operatorSeq: act.operatorSeq, account: act.maker });
  }
  return { entries: booked, assignments };
}
