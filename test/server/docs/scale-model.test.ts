/** The model of docs/scale.md, and that the guide says what it computes. */
import { expect } from 'chai';
import fc from 'fast-check';
import { documentedTables, scaleTables } from '../../../bench/scale/doc.js';
import { figureValues, measuredFigures } from '../../../bench/scale/figures.js';
import { edgeShares } from '../../../bench/scale/edges.js';
import {
  costOf,
  inventoryFactor,
  limitsOf,
  MOST_USE,
  SCENARIOS,
  tokenGroups,
  TODAY,
  type Figures,
} from '../../../bench/scale/model.js';
import { simulate } from '../../../bench/scale/simulate.js';

/** Round figures, so that what follows from them can be told without the model. */
const FIGURES: Figures = {
  modify50Ms: 2,
  modify50DatabaseMs: 1,
  limitsMs: 0.5,
  limitsDatabaseMs: 0.1,
  fillMs: 4,
  fillDatabaseMs: 2,
  scanMs: 10,
  quietScanDatabaseMs: 6,
  curveSideMs: 1,
  listedMarketMs: 0.25,
  listedMarketDatabaseMs: 0.1,
  postRoundMs: 5,
  postRoundDatabaseMs: 2,
  postMarketMs: 1.5,
  postMarketDatabaseMs: 0.4,
  batchBytes: 1_000,
  fillBytes: 3_000,
  scanBytes: 500,
  publicationBytes: 5_000,
  heapPerOrderBytes: 1_000,
  postGas: 60_000,
  postPerMarketGas: 30_000,
  touchPerMarketGas: 9_000,
  postBytes: 300,
  postPerMarketBytes: 200,
};

/** `closeTo` is not for fractions in a process that has loaded the matchers of Hardhat. */
const near = (value: number, difference: number): [number, number] => [value - difference, value + difference];

describe('the model of scale', () => {
  it('adds up what today costs', () => {
    const cost = costOf(TODAY, FIGURES);
    // 500 batches a second at 2 ms, and 100 requests at 0.5 ms.
    expect(cost.batchesPerSec).to.equal(500);
    expect(cost.gatewayCores).to.be.within(...near(1.05, 1e-9));
    expect(cost.gateways).to.equal(2);
    // 20,000 fills a day at 4 ms, and half a scan a second at 10 ms.
    expect(cost.watcherCores).to.be.within(...near((20_000 / 86_400) * 0.004 + 0.005, 1e-9));
    // Every 2 s a round, and four markets: two sides of 1 ms, 1.5 ms for each that is posted, and 0.25 ms for each that is listed.
    expect(cost.posterCores).to.be.within(...near((5 + 4 * (2 + 1.5 + 0.25)) / 2_000, 1e-9));
    // Batches, requests and fills; every 2 s a scan, a round, and four markets.
    const everyBlockMs = 6 + 2 + 4 * (0.1 + 0.4);
    expect(cost.databaseCores).to.be.within(
      ...near(0.5 + 0.01 + (20_000 / 86_400) * 0.002 + everyBlockMs / 2_000, 1e-9),
    );
    expect(cost.heapBytes).to.equal(5_000_000);
    // Of each gateway the newest rows, and all of 72 hours where these are fewer.
    expect(cost.orderLogBytes).to.equal(2 * 2_000_000 * 1_000);
    const slow = { ...TODAY, makers: 1, busyMakers: 1 };
    expect(costOf(slow, FIGURES).orderLogBytes).to.equal(5 * 72 * 3_600 * 1_000);
    expect(cost.keptPerDayBytes).to.equal(20_000 * 3_000 + 43_200 * (500 + 4 * 5_000));
    expect(cost.gasPerBlock).to.equal(150_000);
    expect(cost.gasPerDay).to.equal(150_000 * 43_200);
    expect(cost.l1BytesPerDay).to.equal(900 * 43_200);
  });

  it('grows with each of its causes, and with nothing else', () => {
    const more = fc.integer({ min: 1, max: 500 });
    fc.assert(
      fc.property(more, more, more, (makers, markets, extra) => {
        const load = { ...TODAY, makers, busyMakers: makers, markets };
        const before = costOf(load, FIGURES);
        const moreMakers = costOf({ ...load, makers: makers + extra, busyMakers: makers + extra }, FIGURES);
        const moreMarkets = costOf({ ...load, markets: markets + extra }, FIGURES);
        expect(moreMakers.gatewayCores).to.be.greaterThan(before.gatewayCores);
        expect(moreMakers.gasPerDay).to.equal(before.gasPerDay);
        expect(moreMarkets.gasPerDay).to.be.greaterThan(before.gasPerDay);
        expect(moreMarkets.gatewayCores).to.equal(before.gatewayCores);
        expect(before.gatewayCores / before.gateways).to.be.at.most(MOST_USE);
      }),
    );
    expect(() => costOf({ ...TODAY, busyMakers: 101 }, FIGURES)).to.throw(RangeError);
    expect(() => costOf({ ...TODAY, markets: 0 }, FIGURES)).to.throw(RangeError);
  });

  it('ends where one thread or a block ends', () => {
    const limits = limitsOf(FIGURES, 300_000);
    expect(limits.batchesPerSec).to.be.within(...near(350, 1e-9));
    expect(limits.busyMakers).to.be.within(...near(70, 1e-9));
    expect(limits.fillsPerSec).to.be.within(...near(175, 1e-9));
    expect(limits.marketsByCpu).to.be.within(...near((700 / 3.75) * 2, 1e-9));
    expect(limits.marketsByGas).to.be.within(...near(9, 1e-9));
  });

  it('says what edges take off the gateway, and how many it takes to keep it busy', () => {
    const alone = edgeShares({ edges: 0, gatewayMs: 1.4, edgesMs: 0, natsMs: 0, databaseMs: 0.1 });
    expect([alone.gatewayShare, alone.edgesNeeded]).to.deep.equal([1, 0]);
    expect(alone.ordersPerSec).to.be.within(...near(500, 1e-9));
    // 2,000 orders a second of 0.8 ms are 1.6 cores, of which each edge has 0.7.
    const two = edgeShares({ edges: 2, gatewayMs: 0.35, edgesMs: 0.8, natsMs: 0.05, databaseMs: 0.1 });
    expect(two.ordersPerSec).to.be.within(...near(2_000, 1e-9));
    expect(two.gatewayShare).to.be.within(...near(0.35 / 1.2, 1e-9));
    expect(two.edgesNeeded).to.equal(3);
  });

  it('groups markets that share a token, unless every group holds it by itself', () => {
    const markets = [
      ['WETH', 'USDC'],
      ['cbBTC', 'USDC'],
      ['EURC', 'DAI'],
      ['WETH', 'DAI'],
      ['AERO', 'VIRTUAL'],
    ] as const;
    expect(tokenGroups(markets)).to.deep.equal([[0, 1, 2, 3], [4]]);
    expect(tokenGroups(markets, new Set(['USDC']))).to.deep.equal([[0, 2, 3], [1], [4]]);
    expect(tokenGroups(markets, new Set(['USDC', 'DAI']))).to.deep.equal([[0, 3], [1], [2], [4]]);
    expect(tokenGroups([['DAI', 'USDC'], ...markets], new Set(['USDC', 'DAI']))[0], 'of held ones alone').to.deep.equal(
      [0],
    );
  });

  it('divides every market into one group, and no token over two', () => {
    const token = fc.constantFrom(...'ABCDEFGHIJ');
    fc.assert(
      fc.property(fc.array(fc.tuple(token, token), { maxLength: 12 }), (markets) => {
        const groups = tokenGroups(markets);
        expect(groups.flat().sort((a, b) => a - b)).to.deep.equal(markets.map((_, index) => index));
        const groupOf = new Map<string, number>();
        for (const [group, own] of groups.entries()) {
          for (const one of own.flatMap((index) => markets[index]!))
            expect(groupOf.get(one) ?? group, one).to.equal(groupOf.set(one, groupOf.get(one) ?? group).get(one));
        }
      }),
    );
    expect(inventoryFactor(1)).to.equal(1);
    expect(inventoryFactor(4)).to.equal(2);
  });
});

describe('the deployment in virtual time', () => {
  const PARTS = { shards: 4, edges: 0, edgeMs: 0, sequencerMs: 2, commitMs: 3 };

  it('is as busy as the model says, and the same for a seed', () => {
    const run = simulate(PARTS, 1_000, 20, 7);
    expect(run.batches).to.be.within(...near(20_000, 500));
    expect(run.sequencerUse).to.be.within(...near(0.5, 0.05));
    // Nobody is answered before being judged and committed.
    expect(run.p50Ms).to.be.greaterThan(PARTS.sequencerMs + PARTS.commitMs);
    expect(run.waiting).to.be.lessThan(50);
    expect(simulate(PARTS, 1_000, 20, 7)).to.deep.equal(run);
    expect(simulate(PARTS, 1_000, 20, 8)).not.to.deep.equal(run);
  });

  it('shows what does not fit, and what edges take off', () => {
    const over = simulate(PARTS, 2_400, 10, 1);
    expect(over.waiting, 'a fifth more than fits').to.be.greaterThan(2_000);
    const shared = simulate({ ...PARTS, edges: 8, edgeMs: 1.5, sequencerMs: 0.5 }, 2_400, 10, 1);
    expect(shared.waiting).to.be.lessThan(100);
    expect(shared.sequencerUse).to.be.within(...near(0.3, 0.05));
    expect(shared.edgeUse).to.be.within(...near(0.45, 0.05));
    expect(() => simulate(PARTS, 0, 1, 1)).to.throw(RangeError);
  });
});

describe('docs/scale.md', () => {
  it('has the tables that the model prints', () => {
    expect(documentedTables()).to.equal(scaleTables());
  });

  it('says where each figure is from, and none is missing', () => {
    const measured = measuredFigures();
    expect(Object.keys(measured).sort()).to.deep.equal(Object.keys(FIGURES).sort());
    for (const [name, { value, source, what }] of Object.entries(measured)) {
      expect(value, name).to.be.greaterThan(0);
      expect(source, name).to.match(/^bench:(scale|gas|curve|gateway)$|curvebook status/);
      expect(what, name).not.to.equal('');
    }
    for (const makers of [10, 100, 10_000])
      for (const markets of [4, 200, 1_000])
        expect(
          SCENARIOS.some(([, load]) => load.makers === makers && load.markets === markets),
          `${makers} x ${markets}`,
        ).to.equal(true);
    for (const [name, load] of SCENARIOS) expect(costOf(load, figureValues()).gateways, name).to.be.greaterThan(0);
  });
});
