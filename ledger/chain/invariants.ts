/** What must hold of a generation before it is committed. Pure; every violation is a LedgerInvariantError. */
import type { Address, Market, OrderFill } from '../../core/types.js';
import { LedgerInvariantError, type InvariantCode } from '../errors.js';
import { groupBy } from '../db/lists.js';
import {
  isAddress,
  SUSPENSE,
  VAULT,
  type AttributedFill,
  type BalanceRow,
  type GenerationRow,
  type GenerationWrite,
  type LedgerEntry,
  type MarketProgress,
} from '../types.js';

function violated(code: InvariantCode, message: string): never {
  throw new LedgerInvariantError(code, message);
}

const total = <T>(items: readonly T[], units: (item: T) => bigint): bigint =>
  items.reduce((sum, item) => sum + units(item), 0n);

/** The scan continues where the last one ended, block by block, on the same chain. */
export function checkBlocks(write: GenerationWrite, head: GenerationRow | null): void {
  const { generation, blocks, fromBlock, toBlock } = write;
  const expected = (head?.generation ?? 0) + 1;
  if (generation !== expected) violated('generation_gap', `generation ${generation} follows ${expected - 1}`);
  if (head !== null && fromBlock !== head.toBlock + 1) {
    violated(
      'blocks_broken',
      `generation ${generation} begins at block ${fromBlock}, the last one ended at ${head.toBlock}`,
    );
  }
  let before = head === null ? null : { number: head.toBlock, hash: head.blockHash };
  for (const block of blocks) {
    if (block.number < fromBlock || (before !== null && block.number <= before.number)) {
      violated('blocks_broken', `block ${block.number} is out of order in ${fromBlock}..${toBlock}`);
    }
    if (before !== null && block.number === before.number + 1 && block.parentHash !== before.hash) {
      violated('blocks_broken', `block ${block.number} has parent ${block.parentHash}, not ${before.hash}`);
    }
    before = block;
  }
  if (blocks.length === 0 || before?.number !== toBlock) violated('blocks_broken', `block ${toBlock} is missing`);
}

/** Markets are listed in the order of their indexes, without gaps. */
export function checkListed(listed: readonly Market[], known: number): void {
  listed.forEach((market, i) => {
    if (market.index !== known + i)
      violated('market_order', `${market.pair} has index ${market.index}, not ${known + i}`);
  });
}

/**
 * Fills are numbered without gaps per market, and their parts add up. Returns the progress of the markets that had a fill.
 * `before` holds the progress of each market so far, by index.
 */
export function checkFills(
  fills: readonly AttributedFill[],
  markets: readonly Market[],
  before: ReadonlyMap<number, MarketProgress>,
): MarketProgress[] {
  const progress = new Map<number, MarketProgress>();
  for (const attributed of fills) {
    const { fill } = attributed;
    if (markets[fill.market] === undefined)
      violated('market_order', `a fill names market ${fill.market}, which is not listed`);
    const last = progress.get(fill.market) ?? before.get(fill.market) ?? noProgress(fill.market);
    if (fill.fillSeq !== last.fillSeq + 1)
      violated('fill_gap', `fill ${fill.fillSeq} of market ${fill.market} follows ${last.fillSeq}`);
    checkParts(attributed);
    progress.set(fill.market, {
      market: fill.market,
      fillSeq: fill.fillSeq,
      askVolumeUnits: last.askVolumeUnits + (fill.side === 'ask' ? fill.baseUnits : 0n),
      bidVolumeUnits: last.bidVolumeUnits + (fill.side === 'bid' ? fill.baseUnits : 0n),
    });
  }
  return [...progress.values()].sort((a, b) => a.market - b.market);
}

function noProgress(market: number): MarketProgress {
  return { market, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n };
}

function checkParts({ fill, decomposition, orderFills }: AttributedFill): void {
  const { legs, residualUnits, roundingUnits, compressionResidualUnits, operatorGainUnits, missingBaseUnits } =
    decomposition;
  const name = `fill ${fill.fillSeq} of market ${fill.market}`;
  if (missingBaseUnits < 0n || legs.some((leg) => leg.baseUnits < 0n || leg.quoteUnits < 0n)) {
    violated('fill_base', `${name} has a negative part`);
  }
  if (total(legs, (leg) => leg.baseUnits) + missingBaseUnits !== fill.baseUnits) {
    violated('fill_base', `the base of the legs of ${name} does not add up to ${fill.baseUnits}`);
  }
  if (total(legs, (leg) => leg.quoteUnits) + residualUnits !== fill.quoteUnits) {
    violated('fill_quote', `legs and residual of ${name} do not add up to ${fill.quoteUnits}`);
  }
  if (roundingUnits + compressionResidualUnits !== residualUnits || roundingUnits < 0n) {
    violated('fill_quote', `the residual of ${name} is not its rounding and compression`);
  }
  if (operatorGainUnits !== (fill.side === 'ask' ? residualUnits : -residualUnits)) {
    violated('fill_quote', `the operator's gain on ${name} is not its residual`);
  }
  checkOrderFills(name, fill, legs, orderFills);
}

/** The parts of orders are those of the legs, in their order, and each leg is the sum of its parts. */
function checkOrderFills(
  name: string,
  fill: AttributedFill['fill'],
  legs: AttributedFill['decomposition']['legs'],
  orderFills: AttributedFill['orderFills'],
): void {
  let next = 0;
  for (const leg of legs) {
    let sum = 0n;
    for (const { oid, baseUnits } of leg.orders) {
      const part = orderFills[next++];
      if (part !== undefined && (part.market !== fill.market || part.side !== fill.side)) {
        violated('fill_parts', `${name} fills order ${part.oid} elsewhere`);
      }
      if (part === undefined || part.oid !== oid || part.baseUnits !== baseUnits || !isOfLeg(part, leg)) {
        violated('fill_parts', `the orders of ${name} are not those of its legs`);
      }
      sum = sum === 0n ? baseUnits : sum + baseUnits;
    }
    if (sum !== leg.baseUnits) violated('fill_parts', `the orders of ${name} do not add up to its legs`);
  }
  if (next !== orderFills.length) violated('fill_parts', `${name} fills orders that no leg of it names`);
}

function isOfLeg(part: OrderFill, leg: AttributedFill['decomposition']['legs'][number]): boolean {
  return part.maker === leg.maker && part.priceTicks === leg.priceTicks;
}

/** Ref of a fill's postings. */
export function fillRef(market: Pick<Market, 'id'>, fillSeq: number): string {
  return `fill:${market.id}:${fillSeq}`;
}

/** Ref of the posting that books an item in suspense to an account. */
export function assignmentRef(item: string): string {
  return `assign:${item}`;
}

/** The entries of every ref sum to zero per token, and every fill moves exactly its legs between its makers' accounts. */
export function checkEntries(write: GenerationWrite, markets: readonly Market[], operator: Address): void {
  const byRef = groupBy(write.entries, (entry) => entry.ref);
  for (const [ref, entries] of byRef) {
    for (const [token, sum] of sumBy(entries, (entry) => entry.token)) {
      if (sum !== 0n) violated('unbalanced_ref', `${ref} is out of balance by ${sum} units of ${token}`);
    }
  }
  for (const attributed of write.fills) {
    const market = markets[attributed.fill.market]!;
    checkFillEntries(attributed, market, byRef.get(fillRef(market, attributed.fill.fillSeq)) ?? [], operator);
  }
  checkSuspense(write);
}

/** The suspense account receives exactly the amounts of the items and pays exactly what is assigned; no other posting changes it. */
function checkSuspense({ suspense = [], entries, fills, assignments = [] }: GenerationWrite): void {
  const owed = suspense
    .flatMap(({ ref, token, units, otherToken, otherUnits }) => [
      { ref, token, amountUnits: units },
      { ref, token: otherToken, amountUnits: otherUnits },
    ])
    .filter(({ amountUnits }) => amountUnits !== 0n);
  const assigned = new Set(assignments.map(({ item }) => assignmentRef(item)));
  const key = (one: { ref: string; token: Address | null }): string => `${one.ref}:${one.token}`;
  const booked = entries.filter(({ account, ref }) => account === SUSPENSE && !assigned.has(ref));
  const [is, due] = [sumBy(booked, key), sumBy(owed, key)];
  for (const at of new Set([...is.keys(), ...due.keys()])) {
    if ((is.get(at) ?? 0n) === (due.get(at) ?? 0n)) continue;
    violated('suspense_entries', `${at} puts ${is.get(at) ?? 0n} units in suspense, not ${due.get(at) ?? 0n}`);
  }
  const held = suspense.filter(({ kind, maker }) => kind === 'fill' && maker === null).length;
  const found = fills.filter(({ suspended }) => suspended !== undefined).length;
  if (held !== found) violated('suspense_entries', `${found} fills are not explained, and ${held} are in suspense`);
  const sides = suspense.filter(({ kind, maker }) => kind === 'fill' && maker !== null).length;
  const lacking = fills.reduce((sum, { uncovered = [] }) => sum + uncovered.length, 0);
  if (sides !== lacking)
    violated('suspense_entries', `${lacking} sides of fills are not covered, and ${sides} are in suspense`);
}

function checkFillEntries(
  { fill, decomposition, uncovered = [] }: AttributedFill,
  market: Market,
  entries: readonly LedgerEntry[],
  operator: Address,
): void {
  const booked = sumBy(
    entries.filter(({ kind, account }) => kind === 'fill' && isAddress(account) && account !== operator),
    accountKey,
  );
  const sign = fill.side === 'ask' ? 1n : -1n;
  const owed = sumBy(
    decomposition.legs
      .flatMap(({ maker, baseUnits, quoteUnits }) => [
        { account: maker, token: market.base.address, amountUnits: -sign * baseUnits },
        { account: maker, token: market.quote.address, amountUnits: sign * quoteUnits },
      ])
      // What a maker's row does not cover is on the suspense account, as much as its item says.
      .filter(({ account }) => account !== operator && !uncovered.includes(account)),
    accountKey,
  );
  const agree = [...booked.keys(), ...owed.keys()].every((key) => (booked.get(key) ?? 0n) === (owed.get(key) ?? 0n));
  if (entries.length === 0 || !agree) {
    violated('fill_entries', `the postings of fill ${fill.fillSeq} of ${market.pair} are not those of its legs`);
  }
}

/**
 * The reservation for a withdrawal equals its outstanding amount, and the claim is at most that. `after` holds the rows after the
 * generation.
 */
export function checkClaims(write: GenerationWrite, after: ReadonlyMap<string, BalanceRow>): void {
  for (const { maker, token, claimUnits, outstandingUnits } of write.claims) {
    const reservedUnits = after.get(accountKey({ account: maker, token }))?.reservedUnits ?? 0n;
    if (claimUnits < 0n || claimUnits > outstandingUnits) {
      violated('claim_broken', `${maker} would claim ${claimUnits} of ${outstandingUnits} units of ${token}`);
    }
    if (reservedUnits !== outstandingUnits) {
      violated('claim_broken', `${maker} would reserve ${reservedUnits}, not ${outstandingUnits} units of ${token}`);
    }
  }
}

/**
 * The vault holds the sum of all balances, to the unit. Since every ref sums to zero per token, the vault's mirror account is that sum with
 * the opposite sign. A shortfall is committed with the halt that names it.
 */
export function checkHoldings(write: GenerationWrite, after: ReadonlyMap<string, BalanceRow>): void {
  for (const { token, units } of write.holdings) {
    const ledgerUnits = -(after.get(accountKey({ account: VAULT, token }))?.balanceUnits ?? 0n);
    if (ledgerUnits === units || write.halt?.code === 'shortfall') continue;
    violated('vault_mismatch', `the vault holds ${units} units of ${token}, the rows add up to ${ledgerUnits}`);
  }
}

/** Identity of one account's row in one token. */
export function accountKey(row: { account: string; token: string }): string {
  return `${row.account}:${row.token}`;
}

function sumBy<T extends { amountUnits: bigint }>(items: readonly T[], key: (item: T) => string): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const item of items) sums.set(key(item), (sums.get(key(item)) ?? 0n) + item.amountUnits);
  return sums;
}
