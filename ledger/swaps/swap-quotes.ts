/** Quotes of the swap log, each with a nonce of its owner's, which no other quote gets. */
import type { Knex } from 'knex';
import type { PartnerTerms } from '../../core/swap/partner.js';
import type { Address } from '../../core/types.js';
import { checkLimit, chunks, fromColumn, insertAll, toColumn } from '../db/columns.js';
import type { Stored } from '../db/tables.js';
import type { Db, Queryable, RoutingPreference, SwapKind } from '../types.js';

/** What was quoted. Amounts in base units of their token. */
export interface SwapQuote extends PartnerTerms {
  id: string;
  owner: Address;
  receiver: Address;
  sellToken: Address;
  buyToken: Address;
  kind: SwapKind;
  preference: RoutingPreference;
  slippageBps: number;
  /** The most that is taken of the sell token, fee included. */
  sellUnits: bigint;
  /** The amount that is taken if prices do not change. */
  expectedSellUnits: bigint;
  buyUnits: bigint;
  minBuyUnits: bigint;
  /** In the sell token. Of a limit order what it would have been when it was quoted. */
  feeUnits: bigint;
  /** Permit2's. */
  nonce: bigint;
  /** Last second in which the order may be executed. */
  validToSec: number;
  createdMs: number;
  /** Orders for this quote are accepted before. */
  expiresMs: number;
  /** JSON text of the quoted route. */
  route: string;
  /** JSON text of what the owner signs. */
  typedData: string;
  /**
   * A limit order waits until the market brings what was signed after the fee, which is that of its execution. Others are executed for what was
   * quoted, or wait shortly.
   */
  isLimit: boolean;
}

/** A quote before it has its nonce and typed data. */
export type SwapQuoteDraft = Omit<SwapQuote, 'nonce' | 'typedData'>;

/**
 * Appends quotes in one transaction, each with the next nonce of its owner. `complete` turns a draft into a quote; it gets the number of
 * nonces that the owner was given before.
 */
export async function appendQuotes<D extends { owner: Address }>(
  db: Db,
  drafts: readonly D[],
  complete: (draft: D, nonceIndex: number) => SwapQuote,
): Promise<SwapQuote[]> {
  return db.knex.transaction(async (tx) => {
    const next = await issueNonces(
      tx,
      drafts.map(({ owner }) => owner),
    );
    const quotes = drafts.map((draft) => {
      const index = next.get(draft.owner)!;
      next.set(draft.owner, index + 1);
      return complete(draft, index);
    });
    await insertAll(tx, 'swap_quotes', quotes.map(quoteRow));
    return quotes;
  });
}

/** First nonce index for each owner. Owners are locked in sorted order, so that two servers can't deadlock. */
async function issueNonces(tx: Knex.Transaction, owners: readonly Address[]): Promise<Map<Address, number>> {
  const counts = new Map<Address, number>();
  for (const owner of owners) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  const next = new Map<Address, number>();
  for (const [owner, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const rows = await tx('swap_nonces')
      .insert({ owner, issued: count })
      .onConflict('owner')
      .merge({ issued: tx.raw('?? + ?', ['swap_nonces.issued', count]) })
      .returning<{ issued: number }[]>('issued');
    next.set(owner, rows[0]!.issued - count);
  }
  return next;
}

/** One quote, null when there is none of that id. */
export async function readQuote(q: Queryable, id: string): Promise<SwapQuote | null> {
  const row = await q('swap_quotes').where({ id }).first();
  return row === undefined ? null : toQuote(row);
}

/**
 * Deletes quotes that expired from `fromMs` on and before `beforeMs` and were never used, at most `limit` of them, and the counters of owners of whom
 * nothing is left; returns how many quotes.
 */
export async function pruneQuotes(
  tx: Knex.Transaction,
  { fromMs, beforeMs }: { fromMs: number; beforeMs: number },
  limit: number,
): Promise<number> {
  const rows = await tx('swap_quotes as quote')
    .leftJoin('swap_orders as placed', 'placed.quote_id', 'quote.id')
    .where('quote.expires_ms', '>=', fromMs)
    .where('quote.expires_ms', '<', beforeMs)
    .whereNull('placed.id')
    .limit(checkLimit(limit))
    .select<{ id: string; owner: Address }[]>('quote.id', 'quote.owner');
  if (rows.length === 0) return 0;
  const deleted = await tx('swap_quotes')
    .whereIn(
      'id',
      rows.map(({ id }) => id),
    )
    .delete();
  await forgetOwners(tx, [...new Set(rows.map(({ owner }) => owner))]);
  return deleted;
}

/**
 * Whoever asks for quotes in others' names leaves no row behind for each. None of the nonces of an owner without a quote and without an order can be in
 * use, so they begin again. A quote that is stored meanwhile has changed the counter, which then stays.
 */
async function forgetOwners(tx: Knex.Transaction, owners: readonly Address[]): Promise<void> {
  const idle = await tx('swap_nonces as owned')
    .whereIn('owned.owner', owners)
    .whereNotExists(tx('swap_quotes as quote').whereRaw('quote.owner = owned.owner').select(tx.raw('1')))
    .whereNotExists(tx('swap_orders as placed').whereRaw('placed.owner = owned.owner').select(tx.raw('1')))
    .select<{ owner: Address; issued: number }[]>('owned.owner', 'owned.issued');
  for (const part of chunks(idle, 100))
    await tx('swap_nonces')
      .where((any) => {
        for (const one of part) void any.orWhere(one);
      })
      .delete();
}

function quoteRow(quote: SwapQuote): Stored<'swap_quotes'> {
  return {
    id: quote.id,
    owner: quote.owner,
    receiver: quote.receiver,
    sell_token: quote.sellToken,
    buy_token: quote.buyToken,
    kind: quote.kind,
    preference: quote.preference,
    slippage_bps: quote.slippageBps,
    sell_units: toColumn(quote.sellUnits),
    expected_sell_units: toColumn(quote.expectedSellUnits),
    buy_units: toColumn(quote.buyUnits),
    min_buy_units: toColumn(quote.minBuyUnits),
    fee_units: toColumn(quote.feeUnits),
    nonce: toColumn(quote.nonce),
    valid_to_sec: quote.validToSec,
    created_ms: quote.createdMs,
    expires_ms: quote.expiresMs,
    route: quote.route,
    typed_data: quote.typedData,
    is_limit: quote.isLimit ? 1 : 0,
    partner: quote.partner,
    partner_bps: quote.partnerBps,
    app_data: quote.appData,
  };
}

/** A quote as it is stored. */
export function toQuote(row: Stored<'swap_quotes'>): SwapQuote {
  return {
    id: row.id,
    owner: row.owner,
    receiver: row.receiver,
    sellToken: row.sell_token,
    buyToken: row.buy_token,
    kind: row.kind,
    preference: row.preference,
    slippageBps: row.slippage_bps,
    sellUnits: fromColumn(row.sell_units),
    expectedSellUnits: fromColumn(row.expected_sell_units),
    buyUnits: fromColumn(row.buy_units),
    minBuyUnits: fromColumn(row.min_buy_units),
    feeUnits: fromColumn(row.fee_units),
    nonce: fromColumn(row.nonce),
    validToSec: row.valid_to_sec,
    createdMs: row.created_ms,
    expiresMs: row.expires_ms,
    route: row.route,
    typedData: row.typed_data,
    isLimit: row.is_limit !== 0,
    partner: row.partner,
    partnerBps: row.partner_bps,
    appData: row.app_data,
  };
}
