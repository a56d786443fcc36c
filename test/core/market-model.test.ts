import { expect } from 'chai';
import fc from 'fast-check';
import { leastGainUnits, orderFillsOf, replayCurve, type RaisedUnits } from '../../core/attribution.js';
import { createBook } from '../../core/book/create-book.js';
import { decodeEffects, decodeTrims, encodeEffects, encodeTrims } from '../../core/json.js';
import { snapshotHash, snapshotOf, snapshotSide } from '../../core/snapshot.js';
import type {
  Decomposition,
  Hex,
  Market,
  MarketSnapshot,
  OrderFill,
  OrderLogRow,
  Side,
  Trim,
} from '../../core/types.js';
import { fcOptions } from '../support/fc.js';
import { coarseMarkets, MAKERS } from '../support/markets.js';
import {
  createWorld,
  gainsByCurve,
  type World,
  type WorldFill,
  type WorldStep,
} from '../support/worlds/market-world.js';

const SIDES: readonly Side[] = ['ask', 'bid'];

const stepOf = (marketCount: number): fc.Arbitrary<WorldStep> => {
  const market = fc.nat(marketCount - 1);
  const maker = fc.nat(2);
  const side = fc.constantFrom(...SIDES);
  const away = fc.bigInt(-2n, 8n);
  const sizeLots = fc.bigInt(1n, 25n);
  const mode = fc.constantFrom('buyExactIn', 'buyExactOut', 'sellExactIn', 'sellExactOut');
  const record = <T extends WorldStep>(weight: number, fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
    weight,
    arbitrary: fc.record(fields) as unknown as fc.Arbitrary<WorldStep>,
  });
  type Kind<K extends WorldStep['kind']> = Extract<WorldStep, { kind: K }>;
  return fc.oneof(
    record<Kind<'open'>>(3, { kind: fc.constant('open'), maker, market, side, away, sizeLots }),
    record<Kind<'requote'>>(4, {
      kind: fc.constant('requote'),
      maker,
      market,
      side,
      levels: fc.array(fc.record({ away, sizeLots }), { minLength: 1, maxLength: 4 }),
    }),
    // More levels than the curve has knots, which no chord follows.
    record<Kind<'requote'>>(3, {
      kind: fc.constant('requote'),
      maker,
      market,
      side,
      levels: fc.array(fc.record({ away: fc.bigInt(1n, 90n), sizeLots: fc.bigInt(1n, 4n) }), {
        minLength: 9,
        maxLength: 16,
      }),
    }),
    record<Kind<'cancel'>>(1, { kind: fc.constant('cancel'), pick: fc.nat() }),
    record<Kind<'publish'>>(5, {
      kind: fc.constant('publish'),
      mask: fc.integer({ min: 1, max: 2 ** marketCount - 1 }),
    }),
    record<Kind<'land'>>(5, { kind: fc.constant('land'), market, pick: fc.nat(3) }),
    record<Kind<'touch'>>(1, { kind: fc.constant('touch'), market }),
    record<Kind<'expire'>>(1, { kind: fc.constant('expire'), market, pick: fc.nat() }),
    record<Kind<'swap'>>(7, { kind: fc.constant('swap'), market, mode, permille: fc.bigInt(1n, 1000n) }),
    record<Kind<'scan'>>(3, { kind: fc.constant('scan') }),
    record<Kind<'withdraw'>>(1, {
      kind: fc.constant('withdraw'),
      maker,
      base: fc.boolean(),
      permille: fc.bigInt(1n, 600n),
    }),
  );
};

const run = (markets: readonly Market[], steps: readonly WorldStep[]): World => {
  const world = createWorld(markets, MAKERS.slice(0, 3), (ok, what) => {
    if (!ok) expect.fail(what);
  });
  for (const step of steps) world.step(step);
  world.step({ kind: 'scan' });
  return world;
};

/** Nobody gives more than its snapshot says, whatever was filled on the curve itself and, late, on older ones. */
const expectWithinSnapshots = (markets: readonly Market[], { publications, attributed }: World): void => {
  for (const { market: index, seq, snapshot } of publications) {
    const after = attributed.filter(({ fill }) => fill.market === index && fill.fillSeq > snapshot.fillSeq);
    const own = after.filter(({ fill }) => fill.curveSeq === seq);
    if (own.length === 0) continue;
    const late = after.filter(({ fill }) => fill.curveSeq < seq);
    for (const side of SIDES) {
      const sum = (of: typeof after, matches: (fill: OrderFill) => boolean): bigint =>
        of
          .flatMap((one) => one.orderFills)
          .filter((fill) => fill.side === side && matches(fill))
          .reduce((total, fill) => total + fill.baseUnits, 0n);
      const orders = snapshotSide(snapshot, side);
      for (const { oid, sizeLots } of orders) {
        const has = sizeLots * markets[index]!.lotUnits;
        const before = sum(late, (fill) => fill.oid === oid);
        expect(sum(own, (fill) => fill.oid === oid) <= (has > before ? has - before : 0n), `order ${oid}`).to.equal(
          true,
        );
      }
      for (const maker of MAKERS) {
        const lots = orders
          .filter((order) => order.maker === maker)
          .reduce((total, order) => total + order.sizeLots, 0n);
        const has = lots * markets[index]!.lotUnits;
        const before = sum(late, (fill) => fill.maker === maker);
        expect(sum(own, (fill) => fill.maker === maker) <= (has > before ? has - before : 0n), maker).to.equal(true);
      }
    }
  }
};

/** Everything that is stored of a run, as text. */
const store = ({ rows, publications, attributed }: World): string[] => [
  JSON.stringify(rows.map((row) => ({ ...row, effects: encodeEffects(row.effects) }))),
  JSON.stringify(
    publications.map(({ market, seq, cut, trims, snapshotHash: hash, raised }) => ({
      market,
      seq,
      cut,
      trims: encodeTrims(trims),
      hash,
      raised: [`${raised.ask}`, `${raised.bid}`],
    })),
  ),
  JSON.stringify(
    attributed.map(({ fill }) => fill),
    (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value),
  ),
];

interface StoredPublication {
  market: number;
  seq: number;
  cut: { orderSeq: number; generation: number };
  trims: Trim[];
  hash: Hex;
  raised: RaisedUnits;
}

const revived = ([rowText, publicationText, fillText]: string[]) => ({
  rows: (JSON.parse(rowText!) as (Omit<OrderLogRow, 'effects'> & { effects: string })[]).map((row): OrderLogRow => ({
    ...row,
    effects: decodeEffects(row.effects),
  })),
  publications: (
    JSON.parse(publicationText!) as (Omit<StoredPublication, 'trims' | 'raised'> & {
      trims: string;
      raised: [string, string];
    })[]
  ).map(({ trims, raised: [ask, bid], ...one }): StoredPublication => ({
    ...one,
    trims: decodeTrims(trims),
    raised: { ask: BigInt(ask), bid: BigInt(bid) },
  })),
  fills: (JSON.parse(fillText!) as Record<string, string>[]).map((row) => ({
    ...(row as unknown as WorldFill),
    baseUnits: BigInt(row.baseUnits!),
    quoteUnits: BigInt(row.quoteUnits!),
    consumedBeforeUnits: BigInt(row.consumedBeforeUnits!),
  })),
});

/** Explains every fill again from the stored text: replays the book up to each cut, then replays whole curves. */
const replay = (markets: readonly Market[], text: string[]): Decomposition[] => {
  const { rows, publications, fills } = revived(text);
  const explained = new Map<WorldFill, { decomposition: Decomposition; orderFills: OrderFill[] }>();

  const bookAtCut = ({ market: index, cut, trims, hash }: StoredPublication): MarketSnapshot => {
    const book = createBook(markets);
    for (const row of rows) if (row.orderSeq <= cut.orderSeq) book.apply(row);
    const progress = { fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n };
    for (const fill of fills.filter(({ generation }) => generation <= cut.generation)) {
      book.applyFills(explained.get(fill)!.orderFills);
      if (fill.market !== index) continue;
      progress.fillSeq = fill.fillSeq;
      if (fill.side === 'ask') progress.askVolumeUnits += fill.baseUnits;
      else progress.bidVolumeUnits += fill.baseUnits;
    }
    const snapshot = snapshotOf(book, markets[index]!, progress, trims);
    expect(snapshotHash(snapshot)).to.equal(hash);
    return snapshot;
  };

  const curves = new Map<string, WorldFill[]>();
  for (const fill of fills) {
    const name = `${fill.market}:${fill.curveSeq}`;
    curves.set(name, [...(curves.get(name) ?? []), fill]);
  }
  const replayed = new Set<string>();
  for (const { market: index, curveSeq } of fills) {
    const name = `${index}:${curveSeq}`;
    if (replayed.has(name)) continue;
    replayed.add(name);
    const market = markets[index]!;
    const publication = publications.find((one) => one.market === index && one.seq === curveSeq)!;
    const snapshot = bookAtCut(publication);
    const late = fills.filter(
      (one) => one.market === index && one.fillSeq > snapshot.fillSeq && one.curveSeq < curveSeq,
    );
    const own = curves.get(name)!;
    const lateFills = late.flatMap((one) => explained.get(one)!.orderFills);
    const { decompositions, mismatchUnits } = replayCurve(market, snapshot, lateFills, own, publication.raised);
    expect(mismatchUnits.every((units) => units === 0n)).to.equal(true);
    own.forEach((fill, at) => {
      const decomposition = decompositions[at]!;
      explained.set(fill, { decomposition, orderFills: orderFillsOf(market, fill.side, decomposition) });
    });
  }
  return fills.map((fill) => explained.get(fill)!.decomposition);
};

/** However late fills, landings and touches follow each other, no curve costs the operator more than the rounding of its legs. */
const expectNoLoss = (world: World): void => {
  for (const { curve, side, gainUnits, legs } of gainsByCurve(world)) {
    expect(gainUnits >= leastGainUnits(side, legs), `${gainUnits} on ${legs} legs of ${curve}`).to.equal(true);
  }
};

/** The sums over all runs of how often each situation came up. */
const holds = (markets: readonly Market[], runs: number): World['seen'] & { fills: number } => {
  const totals = { late: 0, trimmed: 0, older: 0, withdrawn: 0, raised: 0, fills: 0 };
  fc.assert(
    fc.property(fc.array(stepOf(markets.length), { minLength: 60, maxLength: 200, size: 'max' }), (steps) => {
      const world = run(markets, steps);
      expectWithinSnapshots(markets, world);
      expectNoLoss(world);
      for (const [account, units] of world.balances) expect(units >= 0n, account).to.equal(true);
      expect(replay(markets, store(world))).to.deep.equal(world.attributed.map((one) => one.decomposition));
      totals.late += world.seen.late;
      totals.trimmed += world.seen.trimmed;
      totals.older = Math.max(totals.older, world.seen.older);
      totals.withdrawn += world.seen.withdrawn;
      totals.raised += world.seen.raised;
      totals.fills += world.attributed.length;
    }),
    fcOptions(runs),
  );
  return totals;
};

const expectSeen = (seen: ReturnType<typeof holds>): void => {
  expect(seen.fills, 'fills').to.be.above(100);
  expect(seen.late, 'curves entered with late fills').to.be.above(5);
  expect(seen.raised, 'curves that landed inside a chord').to.be.above(20);
  expect(seen.trimmed, 'publications that were trimmed').to.be.above(50);
  expect(seen.older, 'most older executable publications').to.equal(3);
  expect(seen.withdrawn, 'withdrawals paid').to.be.above(3);
};

describe('market model: random books, posts, fills and late fills', function () {
  this.timeout(120_000 * Number.parseInt(process.env.RUNS ?? '1', 10));

  it('one market: nobody beyond its snapshot, no negative balance, no loss, the same result from stored rows', () => {
    expectSeen(holds(coarseMarkets().slice(0, 1), 150));
  });

  it('two markets with one base token', () => {
    expectSeen(holds(coarseMarkets().slice(0, 2), 150));
  });

  it('three markets, one of which quotes in the base token of the others', () => {
    expectSeen(holds(coarseMarkets(), 100));
  });
});
