/** Mistakes that the claims must refute: the text of a contract, a wrong replacement, and the contract of claims that must notice it. */
const MATH = 'contracts/libraries/CurveMath.sol';

export const MISTAKES = [
  {
    path: MATH,
    correct: 'if (_isSell(direction) == 0) scaled += denominator - 1;',
    wrong: 'if (_isSell(direction) != 0) scaled += denominator - 1;',
    contract: 'Amounts',
  },
  {
    path: MATH,
    correct: 'return (amount * lotUnits * SUBTICKS_PER_TICK - _isSell(direction)) / numerator;',
    wrong: 'return (amount * lotUnits * SUBTICKS_PER_TICK) / numerator;',
    contract: 'Amounts',
  },
  {
    path: MATH,
    correct: 'if (_isSell(direction) != 0 || available != amount) base = 0;',
    wrong: 'if (_isSell(direction) != 0) base = 0;',
    contract: 'Amounts',
  },
  { path: MATH, correct: 'cost += left * price;', wrong: 'cost += left * price - 1;', contract: 'BaseWalk' },
  { path: MATH, correct: 'if (left <= length) {', wrong: 'if (left <= length + 1) {', contract: 'BaseWalk' },
  {
    path: MATH,
    correct: 'base += left / price + _isSell(direction);',
    wrong: 'base += left / price + 1;',
    contract: 'CostWalk',
  },
  { path: MATH, correct: 'if (left < cost) {', wrong: 'if (left <= cost) {', contract: 'CostWalk' },
  {
    path: MATH,
    correct: 'quoteAmount := add(quoteAmount, mul(left, price))',
    wrong: 'quoteAmount := add(quoteAmount, mul(sub(left, 1), price))',
    contract: 'StoredBaseWalk',
  },
  {
    path: MATH,
    correct: 'baseAmount := add(baseAmount, add(div(left, price), iszero(isBuy)))',
    wrong: 'baseAmount := add(baseAmount, add(div(left, price), isBuy))',
    contract: 'StoredCostWalk',
  },
  {
    path: MATH,
    correct: 'quoteAmount := div(\n                        add(',
    wrong: 'quoteAmount := div(\n                        sub(',
    contract: 'Assembly',
  },
  {
    path: MATH,
    correct: 'lots := div(add(units, sub(lotUnits, 1)), lotUnits)',
    wrong: 'lots := div(units, lotUnits)',
    contract: 'Raise',
  },
  {
    path: MATH,
    correct: 'raised := mul(sub(mul(total, lotUnits), consumed), and(gt(at, exactEnd), lt(at, end)))',
    wrong: 'raised := mul(sub(mul(total, lotUnits), consumed), and(gt(add(at, 4), exactEnd), lt(at, end)))',
    contract: 'Lanes',
  },
  {
    path: MATH,
    correct: 'raised := mul(sub(mul(total, lotUnits), consumed), and(iszero(exactKnots), lt(at, end)))',
    wrong: 'raised := mul(sub(mul(total, lotUnits), consumed), iszero(exactKnots))',
    contract: 'Lanes',
  },
  {
    path: MATH,
    correct: 'sums := add(sums, mul(15, and(',
    wrong: 'sums := add(sums, mul(7, and(',
    contract: 'Lanes',
  },
  {
    path: MATH,
    correct: 'if iszero(lt(total, lots)) {\n',
    wrong: 'if gt(total, lots) {\n',
    contract: 'Lanes',
  },
  {
    path: 'contracts/types/SideHead.sol',
    correct: 'return basePrice_ + direction_ * knot.priceOffset();',
    wrong: 'return basePrice_ - direction_ * knot.priceOffset();',
    contract: 'Words',
  },
];
