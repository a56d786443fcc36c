import { expect } from 'chai';
import { operatorStandings, servedTokens, unusedFloors, type OperatorFloors } from '../../core/operator-row.js';
import { loadConfig } from '../../cli/config.js';
import { coarseMarkets } from '../support/markets.js';

const MARKETS = coarseMarkets();
const TOKENS = servedTokens(MARKETS);
const [base, quote] = [MARKETS[0]!.base, MARKETS[0]!.quote];

describe("the operator's row", () => {
  const standing = (symbol: string, floors: OperatorFloors, units: bigint) =>
    operatorStandings(TOKENS, floors, () => units).find(({ token }) => token.symbol === symbol)!;

  it('names each token once, however many pairs trade it', () => {
    const addresses = TOKENS.map(({ address }) => address);
    expect(new Set(addresses).size).to.equal(addresses.length);
    expect(addresses).to.include.members(MARKETS.flatMap((market) => [market.base.address, market.quote.address]));
  });

  it('is below its floor by the last unit, and not at it', () => {
    const floors = { [quote.symbol]: '2.5', [base.symbol]: '-1' };
    const floor = 25n * 10n ** BigInt(quote.decimals - 1);
    expect(standing(quote.symbol, floors, floor - 1n)).to.include({ isBelow: true, floorUnits: floor });
    expect(standing(quote.symbol, floors, floor).isBelow).to.equal(false);
    const debt = -(10n ** BigInt(base.decimals));
    expect(standing(base.symbol, floors, debt).isBelow).to.equal(false);
    expect(standing(base.symbol, floors, debt - 1n).isBelow).to.equal(true);
  });

  it('may owe the dust of rounding where no floor is set, and nothing more', () => {
    expect(standing(quote.symbol, {}, -1_000n)).to.include({ isBelow: false, floorUnits: -1_000n });
    expect(standing(quote.symbol, {}, -1_001n).isBelow).to.equal(true);
    expect(standing(quote.symbol, { [quote.symbol]: '0' }, -1n).isBelow, 'a floor of zero is one').to.equal(true);
  });

  it('stops posting only once it is below its floor, or below zero without one, by more than dust comes to', () => {
    const stops = (symbol: string, floors: OperatorFloors, units: bigint) =>
      standing(symbol, floors, units).stopsPosting;
    expect([stops(quote.symbol, { [quote.symbol]: '-2' }, -3_000_000n), quote.decimals]).to.deep.equal([false, 6]);
    expect(stops(quote.symbol, { [quote.symbol]: '-2' }, -3_000_001n)).to.equal(true);
    expect(stops(quote.symbol, { [quote.symbol]: '500' }, 499_999_999n), 'one sale below it').to.equal(false);
    expect([stops(quote.symbol, {}, -1_000_000n), stops(quote.symbol, {}, -1_000_001n)]).to.deep.equal([false, true]);
    const most = -(10n ** BigInt(base.decimals - 2));
    expect([stops(base.symbol, {}, most), stops(base.symbol, {}, most - 1n)]).to.deep.equal([false, true]);
  });

  it('rounds a floor of more decimals than the token has up', () => {
    const tiny = `0.${'0'.repeat(quote.decimals)}1`;
    expect(standing(quote.symbol, { [quote.symbol]: tiny }, 0n).floorUnits).to.equal(1n);
    expect(standing(quote.symbol, { [quote.symbol]: `-${tiny}` }, 0n).floorUnits).to.equal(0n);
  });

  it('is named by address before symbol, and says which floors name no token', () => {
    const floors = { [quote.address]: '7', [quote.symbol]: '9', WEHT: '1' };
    expect(standing(quote.symbol, floors, 0n).floorUnits).to.equal(7n * 10n ** BigInt(quote.decimals));
    expect(unusedFloors(TOKENS, floors)).to.deep.equal(['WEHT']);
  });

  it('reads its floors from OPERATOR_FLOORS, and refuses what is none', () => {
    const floorsOf = (text: string): OperatorFloors | string[] => {
      try {
        return loadConfig({ OPERATOR_FLOORS: text }, { MANIFEST: '/nowhere/manifest.json' }).OPERATOR_FLOORS;
      } catch (error) {
        return (error as { problems: string[] }).problems;
      }
    };
    const refused = floorsOf('USDC=1e3') as string[];
    expect(refused.some((problem) => problem.startsWith('OPERATOR_FLOORS'))).to.equal(true);
    for (const bad of ['USDC', '=1', 'USDC=', 'USDC=+1', 'USDC=1.', 'US DC=1', 'USDC=1=2']) {
      expect((floorsOf(bad) as string[]).join(), bad).to.match(/OPERATOR_FLOORS/);
    }
    const problems = floorsOf(` USDC=-1.5, ${base.address.toUpperCase().replace('0X', '0x')}=2,`) as string[];
    expect(problems.join(), 'only the manifest is missing').to.not.match(/OPERATOR_FLOORS/);
  });
});
