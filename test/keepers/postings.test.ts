import { expect } from 'chai';
import fc from 'fast-check';
import { attributeFill, openSide } from '../../core/attribution.js';
import type { Address, ChainFill, Hex, MarketSnapshot, Side } from '../../core/types.js';
import { depositEntries, executionEntries, surplusEntries } from '../../keepers/watcher/derive/postings.js';
import { fillEntries } from '../../ledger/chain/fill-postings.js';
import { VAULT, type LedgerEntry } from '../../ledger/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets } from '../support/markets.js';

const MAKERS: Address[] = ['0x00000000000000000000000000000000000000aa', '0x00000000000000000000000000000000000000bb'];
const WETH_USDC = coarseMarkets()[0]!;
const TAKER: Address = '0x00000000000000000000000000000000000000cc';
const OPERATOR: Address = '0x00000000000000000000000000000000000000dd';
const HASH: Hex = `0x${'11'.repeat(32)}`;

function sumsByToken(entries: readonly LedgerEntry[]): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { token, amountUnits } of entries) sums.set(token, (sums.get(token) ?? 0n) + amountUnits);
  return sums;
}

const amountOf = (entries: readonly LedgerEntry[], account: string, token: string): bigint =>
  entries
    .filter((entry) => entry.account === account && entry.token === token)
    .reduce((sum, entry) => sum + entry.amountUnits, 0n);

describe('postings', () => {
  const token = WETH_USDC.base.address;

  it('balance to zero for deposits, executions and surpluses', () => {
    for (const entries of [
      depositEntries('d', MAKERS[0]!, token, 5n),
      executionEntries('e', MAKERS[0]!, token, 5n),
      surplusEntries('s', token, 5n),
    ]) {
      expect([...sumsByToken(entries).values()]).to.deep.equal([0n]);
    }
    expect(amountOf(depositEntries('d', MAKERS[0]!, token, 5n), MAKERS[0]!, token)).to.equal(5n);
    expect(amountOf(executionEntries('e', MAKERS[0]!, token, 5n), MAKERS[0]!, token)).to.equal(-5n);
  });

  it('balance to zero for any fill, fees included, and move the vault by what the chain moved', () => {
    const order = fc.record({ maker: fc.nat(1), priceTicks: fc.bigInt(1n, 10_000n), sizeLots: fc.bigInt(1n, 500n) });
    fc.assert(
      fc.property(
        fc.constantFrom<Side>('ask', 'bid'),
        fc.array(order, { minLength: 1, maxLength: 6 }),
        fc.bigInt(1n, 10n ** 17n),
        fc.bigInt(0n, 1_000_000n),
        fc.bigInt(0n, 1_000n),
        fc.bigInt(0n, 1_000n),
        (side, orders, baseUnits, extraQuote, feeUnits, inputFeeUnits) => {
          const sorted = orders
            .map((one, i) => ({
              oid: i + 1,
              maker: MAKERS[one.maker]!,
              priceTicks: one.priceTicks,
              sizeLots: one.sizeLots,
            }))
            .sort((a, b) => {
              const byPrice = side === 'ask' ? a.priceTicks - b.priceTicks : b.priceTicks - a.priceTicks;
              if (byPrice !== 0n) return byPrice < 0n ? -1 : 1;
              return a.maker === b.maker ? a.oid - b.oid : a.maker < b.maker ? -1 : 1;
            });
          const snapshot: MarketSnapshot = {
            market: WETH_USDC.index,
            fillSeq: 0,
            askVolumeUnits: 0n,
            bidVolumeUnits: 0n,
            asks: side === 'ask' ? sorted : [],
            bids: side === 'bid' ? sorted : [],
          };
          const quoteUnits = extraQuote + 1n;
          const { decomposition } = attributeFill(WETH_USDC, openSide(WETH_USDC, snapshot, side), {
            side,
            baseUnits,
            quoteUnits,
          });
          const fill: ChainFill = {
            market: WETH_USDC.index,
            fillSeq: 1,
            curveSeq: 1,
            side,
            baseUnits,
            quoteUnits,
            feeUnits,
            inputFeeUnits,
            consumedBeforeUnits: 0n,
            taker: TAKER,
            recipient: TAKER,
            blockNumber: 1,
            blockHash: HASH,
            txHash: HASH,
            logIndex: 0,
            timestampMs: 0,
          };
          const entries = fillEntries(WETH_USDC, fill, decomposition, OPERATOR);
          for (const sum of sumsByToken(entries).values()) expect(sum).to.equal(0n);

          const [tokenIn, tokenOut] = side === 'ask' ? (['quote', 'base'] as const) : (['base', 'quote'] as const);
          const amounts = { base: baseUnits, quote: quoteUnits };
          const received = -amountOf(entries, VAULT, WETH_USDC[tokenIn].address);
          const paid = amountOf(entries, VAULT, WETH_USDC[tokenOut].address);
          expect(received).to.equal(amounts[tokenIn] + inputFeeUnits);
          expect(paid).to.equal(amounts[tokenOut] - feeUnits);
          expect(amountOf(entries, TAKER, WETH_USDC[tokenOut].address)).to.equal(feeUnits);
        },
      ),
      fcOptions(200),
    );
  });
});
