/** Books what nothing stored explains in a scan, and the operator's decisions on earlier items. */
import type { Logger } from 'pino';
import type { Address, Market } from '../../../core/types.js';
import { readHalts } from '../../../ledger/chain/halts.js';
import { accountKey, fillRef } from '../../../ledger/chain/invariants.js';
import { decidedOf, nameItem, readDecided, type DecidedItem } from '../../../ledger/chain/suspense.js';
import { withdrawableUnits } from '../../../ledger/settlements/settlement-log.js';
import {
  isAddress,
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

/** What was done on-chain in a scan, with its postings but for those of the fills. */
interface Found {
  markets: readonly Market[];
  fills: readonly AttributedFill[];
  custody: readonly CustodyEvent[];
  unexplained: ReturnType<AttributionRun['unexplained']>;
  /** Of deposits and payouts, and after those of the fills, of fees of signed orders. */
  entries: { custody: readonly LedgerEntry[]; orders: readonly LedgerEntry[] };
  /** Claims that the scan changed. */
  claims: readonly ClaimRow[];
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
  'uncovered_fill',
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

/** Why settlements, payouts and makers' sides of fills among the items halt the ledger; curves and unexplained fills have faults of their own. */
export function suspenseFaults(items: readonly SuspenseItem[]): { code: string; message: string }[] {
  return items
    .filter(({ kind, maker }) => kind === 'settlement' || kind === 'execution' || (kind === 'fill' && maker !== null))
    .map(({ code, message }) => ({ code, message }));
}

/**
 * Puts in suspense what no book or settlement explains, and books the items that the operator decided on, those of this scan included: what
 * was assigned and spent since comes back in one scan when blocks are read again. No maker's row ends below zero. What payouts took beyond it
 * is in suspense, because it was paid; where that is not enough, so are the maker's sides of fills, the last ones first, whole, so that the
 * maker keeps what it had before them.
 */
export async function bookSuspense(
  q: Queryable,
  found: Found,
  logger: Logger,
): Promise<Suspended & { fills: readonly AttributedFill[]; assignments: SuspenseAssignment[] }> {
  const { custody, operator, markets } = found;
  const curves = found.unexplained.map(({ post, fault }) =>
    named({
      ...{ kind: 'curve', ...fault, ...NOTHING, maker: null, blockNumber: post.blockNumber, txHash: post.txHash },
      ...{ ref: `curve:${markets[post.market]!.id}:${post.seq}`, market: post.market, seq: post.seq },
    }),
  );
  const settlements = custody
    .filter(({ kind, settlementNo }) => kind === 'settled' && settlementNo === null)
    .map(settlementItem);
  const earlier = await readDecided(q);
  for (let { fills } = found; ;) {
    const entries = [...found.entries.custody, ...fillPostings(markets, fills, operator), ...found.entries.orders];
    const ofFills = fills.flatMap((one) => fillItems(markets[one.fill.market], one, operator));
    const decided = [...earlier, ...(await decidedOf(q, [...ofFills, ...settlements]))];
    const assigned = await assign(q, decided, { ...found, entries, logger });
    const balances = balancesAfter([...entries, ...assigned.entries], found.balanceUnits);
    const more = uncover(fills, balances, found);
    if (more !== null) {
      fills = more;
      continue;
    }
    const covered = coverExecutions([...entries, ...assigned.entries], balances, found);
    const paid = await assign(q, await decidedOf(q, covered.items), { ...found, entries: covered.entries, logger });
    return {
      fills,
      items: [...curves, ...ofFills, ...settlements, ...covered.items],
      entries: [...covered.entries, ...paid.entries],
      assignments: [...assigned.assignments, ...paid.assignments],
    };
  }
}

/** The postings of fills, and of what of them is in suspense. */
export function fillPostings(
  markets: readonly Market[],
  fills: readonly AttributedFill[],
  operator: Address,
): LedgerEntry[] {
  return fills.flatMap(({ fill, decomposition, suspended, uncovered = [] }) => {
    const market = markets[fill.market];
    if (market === undefined) return [];
    return fillEntries(market, fill, decomposition, operator, { isSuspended: suspended !== undefined, uncovered });
  });
}

const NOTHING = { token: null, units: 0n, otherToken: null, otherUnits: 0n } as const;

const named = (item: Omit<SuspenseItem, 'item'>): SuspenseItem => ({ ...item, item: nameItem(item) });

/** The items of a fill: what no book explains of it, and the side of each maker whose row does not cover it. */
function fillItems(market: Market | undefined, one: AttributedFill, operator: Address): SuspenseItem[] {
  if (market === undefined) return [];
  const sides = (one.uncovered ?? []).map((maker) => sideItem(market, one, maker));
  return one.suspended === undefined ? sides : [fillItem(market, one, operator), ...sides];
}

/** The item of a fill that `suspended` says is not explained. */
export function fillItem(market: Market, one: AttributedFill, operator: Address): SuspenseItem {
  const { fill, decomposition, suspended } = one;
  const lines = fillEntries(market, fill, decomposition, operator, { isSuspended: true, uncovered: [] });
  const of = (token: Address): bigint =>
    lines.reduce((sum, line) => (line.account === SUSPENSE && line.token === token ? sum + line.amountUnits : sum), 0n);
  return named({
    ...{ kind: 'fill', code: suspended?.code ?? '', message: suspended?.message ?? '', maker: null },
    ...placeOf(market, fill),
    ...{ token: market.base.address, units: of(market.base.address) },
    ...{ otherToken: market.quote.address, otherUnits: of(market.quote.address) },
  });
}

/** The item of a maker's side of a fill, which its row does not cover. */
export function sideItem(market: Market, { fill, decomposition }: AttributedFill, maker: Address): SuspenseItem {
  const { baseUnits, quoteUnits } = sideOf(fill, decomposition, maker);
  return named({
    ...{ kind: 'fill', code: 'uncovered_fill', maker, ...placeOf(market, fill) },
    message: `${maker} does not have what fill ${fill.fillSeq} of ${market.pair} took from it`,
    ...{ token: market.base.address, units: baseUnits, otherToken: market.quote.address, otherUnits: quoteUnits },
  });
}

const placeOf = (market: Market, { market: index, fillSeq, blockNumber, txHash }: AttributedFill['fill']) => ({
  ...{ ref: fillRef(market, fillSeq), market: index, seq: fillSeq, blockNumber, txHash },
});

/** What a fill adds to a maker's rows. */
function sideOf(
  { side }: Pick<AttributedFill['fill'], 'side'>,
  { legs }: AttributedFill['decomposition'],
  maker: Address,
): { baseUnits: bigint; quoteUnits: bigint } {
  const sign = side === 'ask' ? 1n : -1n;
  const own = legs.filter((leg) => leg.maker === maker);
  const [baseUnits, quoteUnits] = [sumOf(own, (leg) => leg.baseUnits), sumOf(own, (leg) => leg.quoteUnits)];
  return { baseUnits: -sign * baseUnits, quoteUnits: sign * quoteUnits };
}

const sumOf = <T>(items: readonly T[], unitsOf: (item: T) => bigint): bigint =>
  items.reduce((sum, item) => sum + unitsOf(item), 0n);

function settlementItem({ maker, token, amountUnits, txHash, logIndex, blockNumber }: CustodyEvent): SuspenseItem {
  return named({
    ...{ kind: 'settlement', code: 'unexplained_settlement', ...NOTHING, market: null, seq: null, maker, token },
    ...{ ref: `settled:${txHash}:${logIndex}`, txHash, blockNumber },
    message: `a claim of ${amountUnits} units of ${token} was settled for ${maker}, and no log prepared it`,
  });
}

/** Balances after a scan's postings, of each row that they change, by account and token. */
function balancesAfter(
  entries: readonly LedgerEntry[],
  balanceUnits: Found['balanceUnits'],
): Map<string, Pick<LedgerEntry, 'account' | 'token'> & { units: bigint }> {
  const balances: ReturnType<typeof balancesAfter> = new Map();
  for (const { account, token, amountUnits } of entries) {
    const key = accountKey({ account, token });
    const row = balances.get(key);
    if (row === undefined) balances.set(key, { account, token, units: balanceUnits(account, token) + amountUnits });
    else row.units += amountUnits;
  }
  return balances;
}

/**
 * The fills, with as many more of a maker's sides in suspense as its row lacks, the last ones first; null when no row lacks more than the
 * scan's payouts took. It looks at one row, because what is not booked is lacking in another one.
 */
function uncover(
  fills: readonly AttributedFill[],
  balances: ReturnType<typeof balancesAfter>,
  { markets, custody, operator }: Pick<Found, 'markets' | 'custody' | 'operator'>,
): AttributedFill[] | null {
  for (const { account, token, units } of balances.values()) {
    if (units >= 0n || !isAddress(account) || account === operator) continue;
    const paid = custody.filter((one) => one.kind === 'executed' && one.maker === account && one.token === token);
    let lackUnits = -units - sumOf(paid, ({ amountUnits }) => amountUnits);
    let isAny = false;
    const kept = [...fills].reverse().map((one) => {
      const { fill, decomposition, uncovered = [] } = one;
      const market = markets[fill.market];
      if (lackUnits <= 0n || market === undefined || uncovered.includes(account)) return one;
      const { baseUnits, quoteUnits } = sideOf(fill, decomposition, account);
      const gaveUnits = token === market.base.address ? -baseUnits : token === market.quote.address ? -quoteUnits : 0n;
      if (gaveUnits <= 0n) return one;
      lackUnits -= gaveUnits;
      isAny = true;
      return { ...one, uncovered: [...uncovered, account] };
    });
    if (isAny) return kept.reverse();
  }
  return null;
}

/** Makers' balances can't be below zero: what payouts took beyond them goes to the suspense account until it is assigned. */
function coverExecutions(
  entries: readonly LedgerEntry[],
  balances: ReturnType<typeof balancesAfter>,
  { custody, operator }: Pick<Found, 'custody' | 'operator'>,
): Suspended {
  const executed = new Map<string, CustodyEvent>();
  for (const event of custody) {
    if (event.kind === 'executed') executed.set(`executed:${event.txHash}:${event.logIndex}`, event);
  }
  if (executed.size === 0) return { items: [], entries: [...entries] };
  const items: SuspenseItem[] = [];
  // The last payouts first: the earlier ones had more to take from.
  const covered = [...entries].reverse().flatMap((entry) => {
    const event = executed.get(entry.ref);
    const row = balances.get(accountKey(entry));
    const lack = -(row?.units ?? 0n);
    const isOfMaker = event !== undefined && entry.account === event.maker && entry.account !== operator;
    if (!isOfMaker || row === undefined || lack <= 0n) return [entry];
    const units = lack < event.amountUnits ? lack : event.amountUnits;
    row.units += units;
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
async function assign(
  q: Queryable,
  decided: readonly DecidedItem[],
  {
    operator,
    entries,
    claims,
    balanceUnits,
    logger,
  }: Pick<Found, 'operator' | 'claims' | 'balanceUnits'> & { entries: readonly LedgerEntry[]; logger: Logger },
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
