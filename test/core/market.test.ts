import { expect } from 'chai';
import fc from 'fast-check';
import { solidityPackedKeccak256 } from 'ethers';
import { formatUnits, parseUnits } from '../../core/amounts.js';
import {
  createMarket,
  gridExponents,
  lotsToSize,
  MarketError,
  marketId,
  priceToTicks,
  quoteUnitsFloor,
  sizeToLots,
  subticksToPrice,
  ticksToPrice,
  unitsToSize,
} from '../../core/market.js';
import type { Address, Token } from '../../core/types.js';
import { fcOptions } from '../support/fc.js';

const token = (symbol: string, digit: string, decimals: number): Token => ({
  symbol,
  address: `0x${digit.repeat(40)}`,
  decimals,
});
const weth = token('WETH', 'a', 18);
const usdc = token('USDC', '5', 6);
const listing = { index: 0, base: weth, quote: usdc, lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 60 };
const market = createMarket(listing);

describe('core/market', () => {
  it('derives id, name, tick and lot', () => {
    const [low, high] = [usdc.address, weth.address];
    expect(market.id).to.equal(solidityPackedKeccak256(['address', 'address'], [low, high]));
    expect(marketId(low, high)).to.equal(marketId(high.toUpperCase().replace('0X', '0x') as Address, low));
    expect(market.pair).to.equal('WETH-USDC');
    expect(market.tickSize).to.equal('0.01');
    expect(market.lotSize).to.equal('0.0001');
  });

  it('writes prices between ticks exactly', () => {
    expect(subticksToPrice(market, 256n * 250_000n)).to.equal(ticksToPrice(market, 250_000n));
    expect(subticksToPrice(market, 256n * 250_000n + 1n)).to.equal('2500.0000390625');
    const coarse = createMarket({ ...listing, quote: token('GUSD', 'e', 2), lotUnits: 1n, tickLotUnits: 5n });
    expect(subticksToPrice(coarse, 3n)).to.equal('585937500000000');
  });

  it('derives ticks of other shapes', () => {
    const btc = token('cbBTC', 'c', 8);
    const dai = token('DAI', 'd', 18);
    expect(createMarket({ ...listing, quote: dai, tickLotUnits: 10n ** 12n }).tickSize).to.equal('0.01');
    const btcUsdc = createMarket({ ...listing, base: btc, lotUnits: 1000n, tickLotUnits: 10n });
    expect([btcUsdc.tickSize, btcUsdc.lotSize]).to.deep.equal(['1', '0.00001']);
    const btcWeth = createMarket({ ...listing, base: btc, quote: weth, lotUnits: 1000n, tickLotUnits: 10n ** 10n });
    expect([btcWeth.tickSize, btcWeth.lotSize]).to.deep.equal(['0.001', '0.00001']);
    const coarse = createMarket({ ...listing, quote: token('GUSD', 'e', 2), lotUnits: 1n, tickLotUnits: 5n });
    expect(coarse.tickSize).to.equal('50000000000000000');
    expect(priceToTicks(coarse, '100000000000000000')).to.equal(2n);
  });

  it('refuses what the contract would refuse', () => {
    const refused = (change: Partial<typeof listing>): string => {
      try {
        createMarket({ ...listing, ...change });
      } catch (error) {
        if (error instanceof MarketError) return error.code;
        throw error;
      }
      return 'none';
    };
    expect(refused({ quote: weth })).to.equal('same_token');
    expect(refused({ quote: { ...usdc, address: '0x12' } })).to.equal('bad_address');
    for (const lotUnits of [0n, 20n, 10n ** 19n]) expect(refused({ lotUnits })).to.equal('bad_lot');
    for (const tickLotUnits of [0n, -1n, 1024n, 10n ** 35n]) expect(refused({ tickLotUnits })).to.equal('bad_tick');
    for (const maxTtlSec of [0, 256, 1.5]) expect(refused({ maxTtlSec })).to.equal('bad_ttl');
  });

  it('has exponents that give the grid back', () => {
    const mantissas = fc.bigInt(1n, 1023n);
    fc.assert(
      fc.property(
        mantissas,
        fc.integer({ min: 0, max: 31 }),
        fc.integer({ min: 0, max: 18 }),
        (mantissa, exponent, lot) => {
          const tickLotUnits = mantissa * 10n ** BigInt(exponent);
          const grid = gridExponents(10n ** BigInt(lot), tickLotUnits);
          expect(grid.lotExponent).to.equal(lot);
          expect(grid.tickLotMantissa * 10n ** BigInt(grid.tickLotExponent)).to.equal(tickLotUnits);
          expect(grid.tickLotMantissa <= 1023n && grid.tickLotExponent <= 31).to.equal(true);
        },
      ),
      fcOptions(200),
    );
  });

  it('accepts prices and sizes on the grid only', () => {
    expect(priceToTicks(market, '3000.01')).to.equal(300_001n);
    expect(priceToTicks(market, '3000.010')).to.equal(300_001n);
    expect(priceToTicks(market, '3000.001')).to.equal(null);
    expect(priceToTicks(market, '0')).to.equal(0n);
    expect(sizeToLots(market, '1.2345')).to.equal(12_345n);
    expect(sizeToLots(market, '1.23456')).to.equal(null);
    expect(sizeToLots(market, '0.0000000000000000001')).to.equal(null);
    expect(unitsToSize(market, 1n)).to.equal('0.000000000000000001');
  });

  it('prints prices and sizes that read back', () => {
    const amounts = fc.bigInt(0n, 2n ** 60n);
    fc.assert(
      fc.property(amounts, amounts, fc.bigInt(1n, 1023n), (ticks, lots, mantissa) => {
        const other = createMarket({ ...listing, tickLotUnits: mantissa });
        expect(priceToTicks(other, ticksToPrice(other, ticks))).to.equal(ticks);
        expect(sizeToLots(other, lotsToSize(other, lots))).to.equal(lots);
      }),
      fcOptions(200),
    );
  });

  it('floors quote units like the decimal product', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 9n), fc.bigInt(1n, 10n ** 24n), (ticks, units) => {
        const product = parseUnits(ticksToPrice(market, ticks), 2) * units;
        const exact = formatUnits(product, 20);
        const [whole = '0', fraction = ''] = exact.split('.');
        expect(quoteUnitsFloor(market, ticks, units)).to.equal(BigInt(whole + fraction.padEnd(6, '0').slice(0, 6)));
      }),
      fcOptions(200),
    );
  });
});
