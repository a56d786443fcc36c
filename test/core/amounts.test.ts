import { expect } from 'chai';
import fc from 'fast-check';
import {
  AmountError,
  ceilDiv,
  floorDiv,
  formatUnits,
  maxBig,
  MAX_U128,
  minBig,
  parseUnits,
  saturateU128,
  toSafeInt,
} from '../../core/amounts.js';
import { fcOptions } from '../support/fc.js';

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof AmountError) return error.code;
    throw error;
  }
  return 'none';
};

describe('core/amounts', () => {
  it('parses plain decimals exactly', () => {
    expect(parseUnits('1', 18)).to.equal(10n ** 18n);
    expect(parseUnits('0.000000000000000001', 18)).to.equal(1n);
    expect(parseUnits('007.50', 6)).to.equal(7_500_000n);
    expect(parseUnits('1.2300000', 2)).to.equal(123n);
    expect(parseUnits('0', 0)).to.equal(0n);
    expect(parseUnits('115792089237316195423570985008687907853269984665640564039457.584007913129639935', 18)).to.equal(
      2n ** 256n - 1n,
    );
  });

  it('refuses everything else with a code', () => {
    const malformed = [
      '',
      ' 1',
      '1 ',
      '+1',
      '-1',
      '.5',
      '1.',
      '1e3',
      '0x10',
      '1_000',
      '1,5',
      'NaN',
      'Infinity',
      '١',
      '1'.repeat(121),
    ];
    for (const text of malformed)
      expect(
        codeOf(() => parseUnits(text, 18)),
        JSON.stringify(text),
      ).to.equal('bad_decimal');
    expect(codeOf(() => parseUnits('0.0000001', 6))).to.equal('too_many_decimals');
    expect(codeOf(() => parseUnits('1', -1))).to.equal('bad_decimals');
    expect(codeOf(() => formatUnits(1n, 1.5))).to.equal('bad_decimals');
  });

  it('formats without exponent and trailing zeros', () => {
    expect(formatUnits(0n, 18)).to.equal('0');
    expect(formatUnits(-0n, 6)).to.equal('0');
    expect(formatUnits(1n, 18)).to.equal('0.000000000000000001');
    expect(formatUnits(1_500_000n, 6)).to.equal('1.5');
    expect(formatUnits(-1_500_000n, 6)).to.equal('-1.5');
    expect(formatUnits(12_300n, 0)).to.equal('12300');
  });

  it('formats and parses back to the same amount', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 256n - 1n), fc.integer({ min: 0, max: 77 }), (units, decimals) => {
        const text = formatUnits(units, decimals);
        expect(text).to.match(/^(0|[1-9]\d*)(\.\d*[1-9])?$/);
        expect(parseUnits(text, decimals)).to.equal(units);
        expect(formatUnits(-units, decimals)).to.equal(units === 0n ? '0' : `-${text}`);
      }),
      fcOptions(300),
    );
  });

  it('divides towards minus and plus infinity', () => {
    const divisor = fc.bigInt(-(10n ** 20n), 10n ** 20n).filter((value) => value !== 0n);
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 200n), 2n ** 200n), divisor, (dividend, by) => {
        const low = floorDiv(dividend, by);
        const high = ceilDiv(dividend, by);
        const rest = dividend - low * by;
        expect(by > 0n ? rest >= 0n && rest < by : rest <= 0n && rest > by).to.equal(true);
        expect(high - low).to.equal(rest === 0n ? 0n : 1n);
      }),
      fcOptions(300),
    );
    expect(() => floorDiv(1n, 0n)).to.throw(RangeError);
  });

  it('bounds and saturates', () => {
    expect(minBig(3n, -1n, 2n)).to.equal(-1n);
    expect(maxBig(3n, -1n, 7n)).to.equal(7n);
    expect(saturateU128(MAX_U128 + 1n)).to.equal(MAX_U128);
    expect(saturateU128(MAX_U128)).to.equal(MAX_U128);
    expect(saturateU128(-1n)).to.equal(0n);
  });

  it('turns ids into safe integers or throws', () => {
    expect(toSafeInt(2n ** 53n - 1n)).to.equal(Number.MAX_SAFE_INTEGER);
    expect(toSafeInt('-42')).to.equal(-42);
    for (const bad of ['', '1.5', '1e3', '0x1', 'abc', '9007199254740992'])
      expect(() => toSafeInt(bad), bad).to.throw(RangeError);
    expect(() => toSafeInt(-(2n ** 53n))).to.throw(RangeError);
  });
});
