/** What the console computes of a fill by itself: sums without rounding, and where the legs and the pieces of the curve are drawn. */
import { expect } from 'chai';
import fc from 'fast-check';
import { fillGeometry } from '../../web/src/charts/fill-geometry.js';
import { basisPoints, exact, isEqual, middle, share, shown, sum, text } from '../../web/src/numbers.js';
import { inWords } from '../../web/src/proof.js';
import { offBook, sumsOf } from '../../web/src/sums.js';

type Decomposition = Parameters<typeof sumsOf>[1];
type Fill = Parameters<typeof sumsOf>[0];

const leg = (price: string, base: string, quote: string, maker = '0xaa') => ({
  maker,
  price,
  size: base,
  base_amount: base,
  quote_amount: quote,
  orders: [],
});

const decomposition = (change: Partial<Decomposition> = {}): Decomposition => ({
  pair: 'WETH-USDC',
  fill_seq: 1,
  status: 'final',
  curve_seq: 1,
  direction: 'sell',
  consumed_before: '0.5',
  legs: [leg('2504.01', '0.3991', '999.350391'), leg('2503.51', '0.4', '1001.404', '0xbb')],
  rounding: '0.000001',
  compression_residual: '-0.000392',
  residual: '-0.000391',
  operator_gain: '0.000391',
  fee: { taker: null, token: null, amount: '0' },
  ...change,
});

const fill = (change: Partial<Fill> = {}): Fill => ({
  pair: 'WETH-USDC',
  fill_seq: 1,
  curve_seq: 1,
  direction: 'sell',
  token_in: 'WETH',
  amount_in: '0.7991',
  token_out: 'USDC',
  amount_out: '2000.754',
  fee: { taker: '0xcc', token: 'USDC', amount: '0' },
  taker: '0xcc',
  recipient: '0xcc',
  block_number: 1,
  block_hash: '0x00',
  tx_hash: '0x00',
  timestamp_ms: 0,
  ...change,
});

describe('what the console computes of a fill', () => {
  it('adds up legs and what is left, to the unit', () => {
    expect(sumsOf(fill(), decomposition(), 'USDC').adds).to.equal(true);
    expect(sumsOf(fill({ amount_out: '2000.754001' }), decomposition(), 'USDC').adds).to.equal(false);
  });

  it('counts a fee in the quote token as part of what a seller got, and no other', () => {
    const taken = fill({ amount_out: '1999.754', fee: { taker: '0xcc', token: 'USDC', amount: '1' } });
    expect(sumsOf(taken, decomposition(), 'USDC').adds).to.equal(true);
    expect(sumsOf({ ...taken, fee: { ...taken.fee, token: 'WETH' } }, decomposition(), 'USDC').adds).to.equal(false);
  });

  it('holds a buyer to what it paid', () => {
    const bought = fill({ direction: 'buy', amount_in: '2000.754', amount_out: '0.7991' });
    expect(sumsOf(bought, decomposition({ direction: 'buy' }), 'USDC').adds).to.equal(true);
  });

  it('says who paid and who got, and on which side the operator was', () => {
    const said = (change: Partial<Fill>, residual: string): string => {
      const { direction = 'sell' } = change;
      return inWords(sumsOf(fill(change), decomposition({ direction, residual }), 'USDC'), direction, 'USDC');
    };
    const bought = { direction: 'buy', amount_in: '2000.754', amount_out: '0.7991' } as const;
    expect(said({}, '-0.000391')).to.equal(
      'makers paid 2,000.754391 − 0.000391 left for the operator = 2,000.754 USDC that the taker got ✓ computed in this browser',
    );
    expect(said({ amount_out: '2000.755' }, '0.000609')).to.contain('+ 0.000609 from the operator = 2,000.755');
    expect(said({ ...bought, amount_in: '2000.755' }, '0.000609')).to.equal(
      'makers got 2,000.754391 + 0.000609 left for the operator = 2,000.755 USDC that the taker paid ✓ computed in this browser',
    );
    expect(said(bought, '-0.000391')).to.contain('− 0.000391 from the operator = 2,000.754');
    expect(said(bought, '0')).to.contain('+ 0 left for the operator ≠ 2,000.754 USDC that the taker paid ✗');
  });

  it('draws legs side by side from where the fill began, and pieces of the curve from the touch', () => {
    const curve = {
      prepared: {
        asks: [],
        bids: [
          { size: '0.6', price: '2503.9' },
          { size: '1', price: '2503' },
        ],
      },
    };
    const drawn = fillGeometry(decomposition(), curve as never);
    if (drawn === null) throw new Error('nothing is drawn');
    const one = 10n ** 18n;
    expect([drawn.from, drawn.to]).to.deep.equal([one / 2n, (one * 12_991n) / 10_000n]);
    expect(drawn.legs.map((bar) => [bar.from, bar.to, bar.index])).to.deep.equal([
      [one / 2n, (one * 8_991n) / 10_000n, 0],
      [(one * 8_991n) / 10_000n, (one * 12_991n) / 10_000n, 1],
    ]);
    expect(drawn.curve.map((bar) => [bar.from, bar.to])).to.deep.equal([
      [0n, (one * 6n) / 10n],
      [(one * 6n) / 10n, (one * 16n) / 10n],
    ]);
    const { low, high } = drawn.prices;
    for (const bar of [...drawn.legs, ...drawn.curve]) expect(bar.price > low && bar.price < high).to.equal(true);
    expect(fillGeometry(decomposition({ legs: [] }), null)).to.equal(null);
  });

  it('draws what lies between a leg and the curve, whose areas are what is left for the operator', () => {
    const pieces = [
      { size: '0.6', price: '2503.9' },
      { size: '1', price: '2503.6' },
    ];
    const prepared = { asks: pieces, bids: pieces };
    const area = (direction: 'buy' | 'sell'): bigint =>
      fillGeometry(decomposition({ direction }), { prepared } as never)?.gaps.reduce(
        (all, { from, to, price, curve, isGain }) => {
          expect(isGain).to.equal(direction === 'buy' ? curve > price : price > curve);
          return all + (to - from) * (direction === 'buy' ? curve - price : price - curve);
        },
        0n,
      ) ?? 0n;
    // 0.1 at 0.11 and 0.2991 at 0.41 above the curve, 0.4 at 0.09 below it.
    const gained = (1_000n * 11n + 2_991n * 41n - 4_000n * 9n) * 10n ** 30n;
    expect(area('sell')).to.equal(gained);
    expect(area('buy')).to.equal(-gained);
    expect(fillGeometry(decomposition(), null)?.gaps).to.deep.equal([]);
  });

  it('draws the steps of the book only where the legs lie on them', () => {
    const grid = { tick_size: '0.01', lot_size: '0.0001' };
    const bid = (ticks: number, lots: number) => ({ oid: 1, maker: '0xaa', ticks, lots });
    const curve = (bids: object[]) => ({ prepared: null, snapshot: { asks: [], bids } }) as never;
    const given = decomposition();
    // 0.5 was taken before: it and the first leg lie on one step, the second leg on the next.
    const whole = [bid(250401, 5_000), bid(250401, 3_991), bid(250351, 4_000)];
    const drawn = fillGeometry(given, curve(whole), grid);
    expect(drawn?.book.map(({ from, to }) => to - from)).to.deep.equal([8_991n * 10n ** 14n, 4_000n * 10n ** 14n]);
    expect(fillGeometry(given, curve([bid(250401, 8_990), bid(250351, 9_000)]), grid)?.book).to.deep.equal([]);
    expect(fillGeometry(given, curve([]), grid)?.book).to.deep.equal([]);
    expect(fillGeometry(given, null, grid)?.book).to.deep.equal([]);
  });

  it('sums and shows decimals exactly', () => {
    const decimal = fc.tuple(fc.bigInt(-(10n ** 30n), 10n ** 30n), fc.integer({ min: 0, max: 20 }));
    fc.assert(
      fc.property(decimal, decimal, ([a, scaleA], [b, scaleB]) => {
        const [x, y] = [text({ digits: a, scale: scaleA }), text({ digits: b, scale: scaleB })];
        const total = sum([exact(x), exact(y)]);
        const wanted = { digits: a * 10n ** BigInt(scaleB) + b * 10n ** BigInt(scaleA), scale: scaleA + scaleB };
        expect(isEqual(total, wanted)).to.equal(true);
        expect(shown(x).replace('−', '-').replaceAll(',', '')).to.equal(x);
      }),
    );
    expect(shown('1234567.891', 2)).to.equal('1,234,567.89');
    expect(shown('-0.5')).to.equal('−0.5');
    expect(middle('2500.17', '2502.2')).to.equal('2501.185');
    expect(basisPoints('2500', '2501')).to.equal('4');
    expect(share(1n, 3n)).to.be.within(0.333333333, 0.333333334);
  });

  it('says how far a curve is from the book, by what all of it costs', () => {
    const book = [
      { price: '100', size: '1' },
      { price: '102', size: '1' },
    ];
    const line = (price: string, size: string) => [{ price, size }];
    // Two for 202 in the book; the average serves the same.
    expect(offBook(line('101', '2'), book, 'asks')).to.equal('0');
    expect(offBook(line('102.01', '2'), book, 'asks')).to.equal('100');
    expect(offBook(line('99.99', '2'), book, 'asks')).to.equal('-100');
    // Sellers want more, not less.
    expect(offBook(line('99.99', '2'), book, 'bids')).to.equal('100');
    // Only what both have counts, cut off after two places.
    expect(offBook(line('100.5', '1'), book, 'asks')).to.equal('50');
    expect(offBook(line('101', '0.5'), [{ price: '99', size: '7' }], 'asks')).to.equal('202.02');
    expect([offBook([], book, 'asks'), offBook(book, [], 'bids')]).to.deep.equal([null, null]);
  });
});
