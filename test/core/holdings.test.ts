import { expect } from 'chai';
import { isRobbed, judgeHoldings, type HoldingsVerdict, type Said } from '../../core/holdings.js';

describe('what endpoints say of holdings', () => {
  const cases: [string, Said[], HoldingsVerdict][] = [
    ['one says what the ledger says', [10n], { kind: 'agreed' }],
    ['two do', [10n, 10n], { kind: 'agreed' }],
    ['one alone says more', [15n], { kind: 'doubt', differenceUnits: 5n }],
    ['one alone says less', [7n], { kind: 'doubt', differenceUnits: -3n }],
    ['two say more', [15n, 15n], { kind: 'different', differenceUnits: 5n }],
    ['two of three say less', [7n, 10n, 7n], { kind: 'different', differenceUnits: -3n }],
    ['two of three say what the ledger says', [10n, 15n, 10n], { kind: 'agreed' }],
    ['one says more and one what the ledger says', [15n, 10n], { kind: 'contradicted' }],
    ['two say more and two what the ledger says', [15n, 10n, 15n, 10n], { kind: 'contradicted' }],
    ['each says another surplus', [15n, 12n, 20n], { kind: 'doubt', differenceUnits: 2n }],
    ['one says more and one less', [15n, 7n], { kind: 'doubt', differenceUnits: -3n }],
    ['two and two say different surpluses', [15n, 15n, 12n, 12n], { kind: 'doubt', differenceUnits: 2n }],
    ['nobody answers', ['no_answer', 'no_answer'], { kind: 'silent', code: 'no_answer' }],
    ['nobody answers with a balance', ['bad_answer'], { kind: 'silent', code: 'bad_answer' }],
    ['one does not answer and one says what the ledger says', ['no_answer', 10n], { kind: 'agreed' }],
    ['one does not answer and one says less', ['no_answer', 7n], { kind: 'doubt', differenceUnits: -3n }],
  ];
  for (const [name, votes, verdict] of cases) {
    it(name, () => expect(judgeHoldings(votes, 10n)).to.deep.equal(verdict));
    it(`${name}, in any order`, () => expect(judgeHoldings([...votes].reverse(), 10n)).to.deep.equal(verdict));
  }
});

describe('tokens that transfers took out of the vault', () => {
  const whole = { expectedUnits: 9n, isShort: false, isQuarantined: false };
  const short = { ...whole, isShort: true };
  const silent = { ...whole, isQuarantined: true };
  const empty = { ...whole, expectedUnits: 0n };

  it('are the matter of their own markets as long as another one is whole', () => {
    for (const traded of [[], [whole], [short], [short, empty], [short, silent], [short, short, whole]])
      expect(isRobbed(traded)).to.equal(false);
  });

  it("are everybody's when several are short and none that the vault holds anything of is whole", () => {
    for (const traded of [
      [short, short],
      [short, short, empty],
      [short, short, silent],
    ])
      expect(isRobbed(traded)).to.equal(true);
  });
});
