/**
 * The posting of a fill: its entries follow from the fill, its legs and the account that gets the residual. A fill whose entries and legs
 * are exactly the derived ones is stored without them (`fills.booked_by`), which saves most of a fill's storage; any other fill keeps its
 * rows.
 */
import type { Knex } from 'knex';
import { toSafeInt } from '../../core/amounts.js';
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, ChainFill, Decomposition, Market } from '../../core/types.js';
import { chunks, insertAll, toColumn } from '../db/columns.js';
import { groupBy } from '../db/lists.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import type { Stored } from '../db/tables.js';
import {
  SUSPENSE,
  VAULT,
  type AttributedFill,
  type GenerationWrite,
  type LedgerEntry,
  type Queryable,
} from '../types.js';
import { readAttributedFills } from './fills.js';
import { fillRef } from './invariants.js';
import { readMarkets } from './markets.js';

/** What of a fill is in suspense. */
interface FillInSuspense {
  /** Whether no book explains all of it. */
  isSuspended: boolean;
  /** Makers whose rows lack what it took from them. */
  uncovered: readonly Address[];
}

const EXPLAINED: FillInSuspense = { isSuspended: false, uncovered: [] };

/**
 * A fill. On a buy makers give base and get quote, on a sell the reverse; the residual and input fees are the operator's, the taker fee
 * stays in the vault for the taker's own row. Of a suspended fill, depth that no order explains and the residual go to the suspense account
 * until the operator assigns them; so do the legs of makers whose rows do not cover them.
 */
export function fillEntries(
  market: Market,
  fill: Pick<ChainFill, 'side' | 'fillSeq' | 'baseUnits' | 'quoteUnits' | 'feeUnits' | 'inputFeeUnits' | 'taker'>,
  decomposition: Decomposition,
  operator: Address,
  { isSuspended, uncovered }: FillInSuspense = EXPLAINED,
): LedgerEntry[] {
  const ref = fillRef(market, fill.fillSeq);
  const base = market.base.address;
  const quote = market.quote.address;
  const isBuy = fill.side === 'ask';
  /** +1 where the makers' side of the trade receives quote. */
  const sign = isBuy ? 1n : -1n;
  const entries: LedgerEntry[] = [];
  const add = (kind: LedgerEntry['kind'], account: LedgerEntry['account'], token: Address, amountUnits: bigint) => {
    if (amountUnits !== 0n) entries.push({ ref, kind, account, token, amountUnits });
  };

  for (const leg of decomposition.legs) {
    const [kind, account] = uncovered.includes(leg.maker)
      ? (['suspense', SUSPENSE] as const)
      : (['fill', leg.maker] as const);
    add(kind, account, base, -sign * leg.baseUnits);
    add(kind, account, quote, sign * leg.quoteUnits);
  }
  if (isSuspended) {
    add('suspense', SUSPENSE, base, -sign * decomposition.missingBaseUnits);
    add('suspense', SUSPENSE, quote, decomposition.operatorGainUnits);
  } else {
    add('fill', operator, base, -sign * decomposition.missingBaseUnits);
    add('residual', operator, quote, decomposition.operatorGainUnits);
  }
  add('takerFee', fill.taker, isBuy ? base : quote, fill.feeUnits);
  add('inputFee', operator, isBuy ? quote : base, fill.inputFeeUnits);

  const outFee = fill.feeUnits;
  const inFee = fill.inputFeeUnits;
  const baseIntoVault = isBuy ? -(fill.baseUnits - outFee) : fill.baseUnits + inFee;
  const quoteIntoVault = isBuy ? fill.quoteUnits + inFee : -(fill.quoteUnits - outFee);
  add('fill', VAULT, base, -baseIntoVault);
  add('fill', VAULT, quote, -quoteIntoVault);
  return entries;
}

/** Refs of the postings of fills that are stored without entries and legs. */
type CompactFills = ReadonlySet<string>;

/**
 * Which fills of a generation are stored without entries and legs: those booked for the first time, whose entries and legs equal what is
 * derived when they are read. `names` are those that the postings are stored under.
 */
export function compactFills(
  { fills, entries }: Pick<GenerationWrite, 'fills' | 'entries'>,
  markets: readonly Market[],
  { names, operator }: { names: ReadonlyMap<string, string>; operator: Address },
): CompactFills {
  const booked = groupBy(entries, (entry) => entry.ref);
  const compact = new Set<string>();
  for (const one of fills) {
    const market = markets[one.fill.market]!;
    const ref = fillRef(market, one.fill.fillSeq);
    if (names.get(ref) !== ref || !areImplied(market, one.decomposition)) continue;
    const derived = fillEntries(market, one.fill, one.decomposition, operator);
    const lines = booked.get(ref) ?? [];
    if (lines.length === derived.length && derived.every((line, i) => isSameLine(line, lines[i]!))) compact.add(ref);
  }
  return compact;
}

/** Whether the legs follow from the parts of orders: `checkFills` has seen that each is the sum of its parts. */
function areImplied(market: Market, { legs }: Decomposition): boolean {
  return legs.every(
    (leg) => leg.orders.length > 0 && leg.quoteUnits === quoteUnitsFloor(market, leg.priceTicks, leg.baseUnits),
  );
}

function isSameLine(a: LedgerEntry, b: LedgerEntry): boolean {
  return a.kind === b.kind && a.account === b.account && a.token === b.token && a.amountUnits === b.amountUnits;
}

/** Stores the entries of a generation under their names, except those of compact fills. */
export async function insertEntries(
  tx: Knex.Transaction,
  { generation, entries }: Pick<GenerationWrite, 'generation' | 'entries'>,
  { names, compact }: { names: ReadonlyMap<string, string>; compact: CompactFills },
): Promise<void> {
  const stored = entries.filter(({ ref }) => !compact.has(ref));
  await insertAll(
    tx,
    'entries',
    toRows(stored, generation, (ref) => names.get(ref)!),
  );
}

function toRows(
  entries: readonly LedgerEntry[],
  generation: number,
  nameOf: (ref: string) => string,
): Stored<'entries'>[] {
  const lines = new Map<string, number>();
  return entries.map((entry) => {
    const line = lines.get(entry.ref) ?? 0;
    lines.set(entry.ref, line + 1);
    return {
      ref: nameOf(entry.ref),
      line,
      generation,
      kind: entry.kind,
      account: entry.account,
      token: entry.token,
      amount_units: toColumn(entry.amountUnits),
    };
  });
}

/** Entries of the generations from one to another, both included, stored and derived, by generation, ref and line. */
export async function readEntries(
  q: Queryable,
  { from, to }: { from: number; to: number },
): Promise<Stored<'entries'>[]> {
  const stored = await sendForRows<Stored<'entries'>>(q, 'select * from entries where generation between ? and ?', [
    from,
    to,
  ]);
  const fills = await sendForRows<CompactRow>(
    q,
    'select * from fills where booked_by is not null and generation between ? and ? order by market, fill_seq',
    [from, to],
  );
  const all = [...stored, ...(await derivedEntries(q, fills))];
  return all.sort((a, b) => a.generation - b.generation || (a.ref < b.ref ? -1 : a.ref > b.ref ? 1 : a.line - b.line));
}

type CompactRow = Stored<'fills'> & { booked_by: Address };

/** The entries of compact fills, those of a market in their order. */
async function derivedEntries(q: Queryable, rows: readonly CompactRow[]): Promise<Stored<'entries'>[]> {
  if (rows.length === 0) return [];
  const markets = await readMarkets(q);
  const derived: Stored<'entries'>[] = [];
  for (const [market, own] of groupBy(rows, (row) => row.market)) {
    const fills: AttributedFill[] = await readAttributedFills(q, market, own);
    for (const [i, { fill, decomposition }] of fills.entries()) {
      const { generation, booked_by: operator } = own[i]!;
      derived.push(...toRows(fillEntries(markets[market]!, fill, decomposition, operator), generation, (ref) => ref));
    }
  }
  return derived;
}

/** Fills read at a time. */
const PAGE = 200;

/**
 * Stores the entries of the compact fills after a generation, so that a reversal has every line, and a second booking of the same fill
 * finds the first.
 */
export async function storeDerivedEntries(tx: Knex.Transaction, keptGeneration: number): Promise<void> {
  const sql =
    'select * from fills where market = ? and fill_seq > ? and generation > ? and booked_by is not null order by fill_seq limit ?';
  for (const { market } of await sendForRows<{ market: number }>(tx, 'select market from markets order by market')) {
    const first = 'select min(fill_seq) as first from fills where market = ? and generation > ?';
    const [found] = await sendForRows<{ first: number | null }>(tx, first, [market, keptGeneration]);
    if (found === undefined || found.first === null) continue;
    for (let after = found.first - 1; ;) {
      const rows = await sendForRows<CompactRow>(tx, sql, [market, after, keptGeneration, PAGE]);
      const last = rows.at(-1);
      if (last === undefined) break;
      await insertAll(tx, 'entries', await derivedEntries(tx, rows));
      after = last.fill_seq;
    }
  }
}

/** Which of these refs are postings of compact fills. */
export async function bookedByFills(q: Queryable, refs: readonly string[]): Promise<string[]> {
  const named = refs.flatMap((ref) => {
    const [, id, seq] = /^fill:([^:]+):(\d{1,15})$/.exec(ref) ?? [];
    return id === undefined || seq === undefined ? [] : [{ ref, id, seq }];
  });
  const booked: string[] = [];
  for (const [id, own] of groupBy(named, (one) => one.id)) {
    for (const part of chunks(own)) {
      const sql =
        'select fill.fill_seq from fills as fill join markets as listed on listed.market = fill.market ' +
        `where listed.id = ? and fill.booked_by is not null and fill.fill_seq in (${placeholders(part.length)})`;
      const seqs = part.map(({ seq }) => toSafeInt(BigInt(seq)));
      const rows = await sendForRows<{ fill_seq: number }>(q, sql, [id, ...seqs]);
      const found = new Set(rows.map((row) => row.fill_seq));
      booked.push(...part.filter((_one, i) => found.has(seqs[i]!)).map(({ ref }) => ref));
    }
  }
  return booked;
}
