import { expect } from 'chai';
import { loadConfig } from '../../cli/config.js';
import { ConfigError } from '../../cli/errors.js';
import { createMinOrderUnits, unusedMinOrderValues } from '../../core/min-order.js';
import { WETH_DAI, WETH_USDC } from '../support/markets.js';

describe('least value of an order', () => {
  it('is that of the pair, else of the quote token by address and by symbol, else a default; rounded up', () => {
    const { address } = WETH_USDC.quote;
    const of = (values: Record<string, string>) => createMinOrderUnits(values)(WETH_USDC);
    expect(of({})).to.equal(10_000_000n);
    expect(of({ USDC: '25' })).to.equal(25_000_000n);
    expect(of({ USDC: '25', [address]: '26' })).to.equal(26_000_000n);
    expect(of({ USDC: '25', [address]: '26', 'WETH-USDC': '0' })).to.equal(0n);
    expect(of({ USDC: '0.0000001' })).to.equal(1n);
    expect(createMinOrderUnits({ USDC: '25' })(WETH_DAI)).to.equal(10n * 10n ** 18n);
    const quote = { ...WETH_USDC.quote, symbol: 'EURX' };
    expect(createMinOrderUnits({})({ pair: 'WETH-EURX', quote }), 'nobody knows what it is worth').to.equal(0n);
    expect(
      unusedMinOrderValues([WETH_USDC], { USDC: '1', 'WETH-USDC': '1', WETH: '1', 'WETH-DAI': '1' }),
    ).to.deep.equal(['WETH', 'WETH-DAI']);
  });

  it('is read from MIN_ORDER_VALUES, which is refused when it is malformed or names one twice', () => {
    const problemsOf = (text: string): string => {
      try {
        loadConfig({ MIN_ORDER_VALUES: text }, { MANIFEST: '/nowhere/manifest.json' });
        return '';
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        return error.problems.join();
      }
    };
    for (const bad of ['USDC', '=1', 'USDC=', 'USDC=-1', 'USDC=1e3', 'USDC=1.', 'US DC=1', 'USDC=1,USDC=2']) {
      expect(problemsOf(bad), bad).to.match(/MIN_ORDER_VALUES/);
    }
    const upper = WETH_USDC.quote.address.toUpperCase().replace('0X', '0x');
    expect(problemsOf(`${upper}=1,${WETH_USDC.quote.address}=2`)).to.match(/MIN_ORDER_VALUES: names one twice/);
    expect(problemsOf(` WETH-USDC=12.5, USDC=1, ${upper}=2,`)).to.match(/^MANIFEST[^,]*$/);
  });
});
