/** Checks the books of a stack from outside: compares answers of the read API and of the exchange client with the chain's own events. */
import { expect } from 'chai';
import type { z } from 'zod';
import { parseUnits } from '../../core/amounts.js';
import { decompositionSchema } from '../../server/read/decomposition.js';
import { fillsSchema } from '../../server/read/fills.js';
import { limitsSchema } from '../../server/read/limits.js';
import { accountOf, contractsOf, exchangeClient, read, tokenOf } from './stack.js';
import type { Stack } from './stack.js';

export const PAIR = 'WETH-USDC';
export const MAKERS = ['maker1', 'maker2'] as const;
export type MakerRole = (typeof MAKERS)[number];

export type Decomposition = z.infer<typeof decompositionSchema>;
export type FillJson = z.infer<typeof fillsSchema>[number];
export type Limits = z.infer<typeof limitsSchema>;

/** Base units of a signed decimal. */
const units = (decimal: string, decimals: number): bigint =>
  decimal.startsWith('-') ? -parseUnits(decimal.slice(1), decimals) : parseUnits(decimal, decimals);
export const wei = (decimal: string): bigint => units(decimal, 18);
export const micros = (decimal: string): bigint => units(decimal, 6);
/** floor(price x size) in USDC units, from first principles. */
const worth = (price: string, sizeWei: bigint): bigint => (parseUnits(price, 2) * sizeWei) / 10n ** 14n;
const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((a, b) => a + b, 0n);

/** Limits of an address, in their shape. */
export async function limitsAt(stack: Stack, address: string): Promise<Limits> {
  return limitsSchema.parse((await read(stack, `/v0/makers/${address}/limits`)).body);
}

/** Ledger balance of a token in its units. */
export function balanceOf(stack: Stack, { ledger }: Limits, symbol: string): bigint {
  const row = ledger.balances.find(({ token }) => token === symbol);
  if (row === undefined) throw new Error(`no row for ${symbol}`);
  return units(row.balance, tokenOf(stack, symbol).decimals);
}

/** The newest fills, in their shape. */
export async function fillsNow(stack: Stack): Promise<FillJson[]> {
  return fillsSchema.parse((await read(stack, `/v0/fills?pair=${PAIR}`)).body);
}

/** A fill's decomposition, in its shape. */
export async function decompositionOf(stack: Stack, fillSeq: number | string): Promise<Decomposition> {
  return decompositionSchema.parse((await read(stack, `/v0/fills/${fillSeq}/decomposition?pair=${PAIR}`)).body);
}

/** Legs + residual = the curve's quote amount, and each leg is its price times its size, floored. */
export function expectReconciled(row: FillJson, decomposition: Decomposition): void {
  const isBuy = row.direction === 'buy';
  for (const leg of decomposition.legs) {
    expect(leg.size).to.equal(leg.base_amount);
    expect(micros(leg.quote_amount)).to.equal(worth(leg.price, wei(leg.size)));
  }
  const curveQuote = isBuy ? micros(row.amount_in) : micros(row.amount_out) + micros(row.fee.amount);
  const curveBase = isBuy ? wei(row.amount_out) + wei(row.fee.amount) : wei(row.amount_in);
  const legsQuote = sum(decomposition.legs.map((leg) => micros(leg.quote_amount)));
  expect(decomposition.status).to.equal('final');
  expect(legsQuote + micros(decomposition.residual)).to.equal(curveQuote);
  expect(sum(decomposition.legs.map((leg) => wei(leg.base_amount)))).to.equal(curveBase);
  expect(micros(decomposition.rounding) + micros(decomposition.compression_residual)).to.equal(
    micros(decomposition.residual),
  );
  expect(micros(decomposition.operator_gain)).to.equal(micros(decomposition.residual) * (isBuy ? 1n : -1n));
  expect(decomposition.fee).to.deep.equal(row.fee);
  expect([decomposition.curve_seq, decomposition.direction]).to.deep.equal([row.curve_seq, row.direction]);
}

/** What the legs of a fill change for one maker. */
export function changeByLegs(decomposition: Decomposition, maker: string): { WETH: bigint; USDC: bigint } {
  const sign = decomposition.direction === 'buy' ? 1n : -1n;
  const legs = decomposition.legs.filter((leg) => leg.maker === maker);
  return {
    WETH: sum(legs.map((leg) => -sign * wei(leg.size))),
    USDC: sum(legs.map((leg) => sign * worth(leg.price, wei(leg.size)))),
  };
}

/** What a maker has taken out by executing its claims, as the chain tells it. */
async function withdrawn(stack: Stack, maker: string, symbol: string): Promise<bigint> {
  const { custodian } = contractsOf(stack, 'taker1');
  const executed = custodian.filters.WithdrawExecuted(maker, tokenOf(stack, symbol).address);
  return sum((await custodian.queryFilter(executed, 0)).map(({ args }) => args.amount));
}

/**
 * Every Swap event of the chain is one final, reconciled fill; every maker has its deposits, less what it took out, plus what its legs say; `userFills` splits the
 * same legs, each part under one id; and all balances add up to what the custodian holds. Returns the number of fills. Trading must
 * have stopped, and all fills must be attributed.
 */
export async function auditBooks(stack: Stack, deposits: { WETH: bigint; USDC: bigint }): Promise<number> {
  const { entrypoint, custodian, balanceOf: onChain } = contractsOf(stack, 'taker1');
  const events = await entrypoint.queryFilter(entrypoint.filters.Swap(), 0);
  const rows = await fillsNow(stack);
  expect(rows.map((row) => row.fill_seq)).to.deep.equal(events.map((_, index) => index + 1));
  const decompositions: Decomposition[] = [];
  for (const [index, row] of rows.entries()) {
    const args = events[index]?.args;
    const [base, quote] = row.direction === 'buy' ? [row.amount_out, row.amount_in] : [row.amount_in, row.amount_out];
    expect(row.tx_hash).to.equal(events[index]?.transactionHash);
    expect([wei(base), micros(quote), row.direction]).to.deep.equal([
      args?.baseAmount,
      args?.quoteAmount,
      args?.isBuy ? 'buy' : 'sell',
    ]);
    const decomposition = await decompositionOf(stack, row.fill_seq);
    expectReconciled(row, decomposition);
    decompositions.push(decomposition);
  }
  const limits = new Map<string, Limits>();
  for (const role of MAKERS) {
    const { address } = accountOf(stack, role);
    limits.set(address, await limitsAt(stack, address));
    for (const symbol of ['WETH', 'USDC'] as const) {
      const paid = await withdrawn(stack, address, symbol);
      const expected = deposits[symbol] - paid + sum(decompositions.map((one) => changeByLegs(one, address)[symbol]));
      expect(balanceOf(stack, limits.get(address)!, symbol), `${role} ${symbol}`).to.equal(expected);
    }
    await expectSameParts(stack, role, rows, decompositions);
  }
  const operator = accountOf(stack, 'owner').address;
  limits.set(operator, await limitsAt(stack, operator));
  const inputFees = (isBuy: boolean): bigint =>
    sum(events.flatMap(({ args }) => (args.isBuy === isBuy ? [args.inputFee] : [])));
  const gains = sum(decompositions.map((one) => micros(one.operator_gain)));
  expect(balanceOf(stack, limits.get(operator)!, 'USDC'), 'operator USDC').to.equal(gains + inputFees(true));
  expect(balanceOf(stack, limits.get(operator)!, 'WETH'), 'operator WETH').to.equal(inputFees(false));
  for (const symbol of ['WETH', 'USDC']) {
    const owed = sum([...limits.values()].map((one) => balanceOf(stack, one, symbol)));
    expect(owed, symbol).to.equal(await onChain(symbol, await custodian.getAddress()));
  }
  return rows.length;
}

/** The maker's own list of fills splits its legs: same sizes per fill and price, no id twice. */
async function expectSameParts(
  stack: Stack,
  role: MakerRole,
  rows: readonly FillJson[],
  decompositions: readonly Decomposition[],
): Promise<void> {
  const { info, user } = exchangeClient(stack, role);
  const parts = await info.userFills({ user });
  expect(new Set(parts.map((part) => part.tid)).size, `${role}: trade ids`).to.equal(parts.length);
  const sizes = (entries: readonly (readonly [string, bigint])[]): Record<string, string> => {
    const totals = new Map<string, bigint>();
    for (const [key, size] of entries) totals.set(key, (totals.get(key) ?? 0n) + size);
    return Object.fromEntries([...totals].map(([key, size]) => [key, size.toString()]));
  };
  const listed = sizes(parts.map((part) => [`${part.hash} ${part.side} ${parseUnits(part.px, 2)}`, wei(part.sz)]));
  const attributed = sizes(
    decompositions.flatMap(({ direction, legs }, index) =>
      legs
        .filter((leg) => leg.maker === user)
        .map((leg) => {
          const side = direction === 'buy' ? 'A' : 'B';
          return [`${rows[index]?.tx_hash} ${side} ${parseUnits(leg.price, 2)}`, wei(leg.size)] as const;
        }),
    ),
  );
  expect(listed, role).to.deep.equal(attributed);
}
