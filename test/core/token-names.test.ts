/** Tokens say what they like of themselves; what they are called is unique, and fit for a path, a query, a label and a setting. */
import { expect } from 'chai';
import { AbiCoder, encodeBytes32String } from 'ethers';
import fc from 'fast-check';
import { operatorStandings, unusedFloors } from '../../core/operator-row.js';
import { decodeSymbol, nameMarkets, nameTokens } from '../../core/token-names.js';
import type { Address, Hex, Token } from '../../core/types.js';
import { WETH_USDC } from '../support/markets.js';

const at = (n: number): Address => `0x${n.toString(16).padStart(2, '0').repeat(20)}`;
const token = (symbol: string, n: number): Token => ({ symbol, address: at(n), decimals: 18 });
const namesOf = (...symbols: string[]): string[] =>
  nameTokens(symbols.map((symbol, i) => token(symbol, i + 1))).map(({ symbol }) => symbol);

describe('names of tokens', () => {
  it('are their symbols, with the address behind one that is taken, and the address where a symbol is unfit', () => {
    expect(namesOf('WETH', 'USDC', 'USDC', 'usdc', 'USDC.e')).to.deep.equal([
      ...['WETH', 'USDC', 'USDC.03030303', 'usdc.04040404', 'USDC.e'],
    ]);
    const unfit = [
      '',
      ' ',
      'A-B',
      'A/B',
      '🚀',
      'USD₮0',
      'A'.repeat(64),
      'x'.repeat(33),
      '<b>',
      'a=b',
      'a,b',
      '%2F',
      at(9),
      'é',
    ];
    expect(namesOf(...unfit)).to.deep.equal(unfit.map((_, i) => at(i + 1)));
    expect(namesOf('1INCH', 'constructor', '__proto__', 'x'.repeat(32))).to.deep.equal([
      ...['1INCH', 'constructor', '__proto__', 'x'.repeat(32)],
    ]);
    expect(namesOf('x'.repeat(32), 'x'.repeat(32))[1]).to.equal(`${'x'.repeat(23)}.02020202`);
    expect(namesOf('A.03030303', 'A', 'A'), 'the name with the suffix is taken, too').to.deep.equal([
      'A.03030303',
      'A',
      at(3),
    ]);
  });

  it('are unique in any letter case, never depend on what comes later, and stay when given again', () => {
    const symbols = fc.array(fc.oneof(fc.constantFrom('A', 'a', 'A.02020202', 'B', '', 'A-B', at(2)), fc.string()), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(symbols, fc.nat(12), (all, count) => {
        const tokens = all.map((symbol, i) => token(symbol, i + 1));
        const named = nameTokens(tokens);
        expect(new Set(named.map(({ symbol }) => symbol.toLowerCase())).size).to.equal(all.length);
        for (const { symbol } of named) expect(symbol).to.match(/^[A-Za-z0-9._]{1,42}$/);
        expect(nameTokens(tokens.slice(0, count))).to.deep.equal(named.slice(0, count));
        expect(nameTokens(named)).to.deep.equal(named);
        expect(named.map(({ address }) => address)).to.deep.equal(tokens.map(({ address }) => address));
      }),
    );
  });

  it('name the pairs of markets, in the order of listing', () => {
    const other = { ...WETH_USDC, index: 1, base: token('WETH', 7), quote: token('A-B', 8), pair: 'WETH-A-B' };
    const again = { ...WETH_USDC, index: 2, quote: token('USDT', 9), pair: 'WETH-USDT' };
    const named = nameMarkets([WETH_USDC, other, again]);
    expect(named.map(({ pair }) => pair)).to.deep.equal(['WETH-USDC', `WETH.07070707-${at(8)}`, 'WETH-USDT']);
    expect(named[0]).to.equal(WETH_USDC);
  });

  it('are read from whatever a token answers', () => {
    const abi = AbiCoder.defaultAbiCoder();
    expect(decodeSymbol(abi.encode(['string'], ['USD₮0']) as Hex)).to.equal('USD₮0');
    expect(decodeSymbol(encodeBytes32String('MKR') as Hex)).to.equal('MKR');
    expect(decodeSymbol(abi.encode(['string'], ['']) as Hex)).to.equal('');
    const word = (n: bigint): string => n.toString(16).padStart(64, '0');
    const broken = [
      '0x',
      '0x12',
      `0x${word(2n ** 255n)}${word(1n)}`,
      `0x${word(32n)}${word(2n ** 64n)}`,
      `0x${word(64n)}${word(0n)}`,
    ];
    for (const data of broken) expect(decodeSymbol(data as Hex), data).to.equal('');
  });

  it('are no way into the settings of others', () => {
    const tokens = [token('constructor', 1), token('toString', 2), token('__proto__', 3)];
    expect(operatorStandings(tokens, {}, () => 0n).map(({ floorUnits }) => floorUnits)).to.deep.equal([
      -1000n,
      -1000n,
      -1000n,
    ]);
    expect(unusedFloors(tokens, { constructor: '1' })).to.deep.equal([]);
  });
});
