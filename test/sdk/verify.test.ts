import { expect } from 'chai';
import { amountsOf, reconcile, rederive, snapshotOf, verifyCurve } from '../../sdk/src/verify.js';
import { WETH_USDC as MARKET } from '../support/markets.js';
import { createWorld, deployment, PAIR, type Curve, type Explained, type Fill, type Lies } from './verify-world.js';

type World = ReturnType<typeof createWorld>;

const ASKS: [number, number, number, number][] = [
  [1, 0, 250_000, 30],
  [2, 1, 250_000, 50],
  [3, 2, 250_100, 40],
  [4, 0, 250_300, 90],
];
const BIDS: [number, number, number, number][] = [
  [5, 1, 249_900, 60],
  [6, 2, 249_700, 80],
];

/** Curves 1, 2 with its touches 3 and 4, and 5, with fills 1 to 7 on 1, 2, 4 and 5. The book of curve 2 lacks fills 2 and 3. */
function worldOf(): World {
  const world = createWorld();
  world.post(ASKS, BIDS);
  world.hit('ask', 105);
  world.hit('ask', 203);
  world.hit('bid', 71);
  // Cut before fills 2 and 3 were known.
  world.post(ASKS, BIDS, 1);
  world.hit('ask', 66);
  world.touch();
  world.touch();
  world.hit('ask', 49);
  world.hit('bid', 33);
  world.post(ASKS.slice(1), BIDS, world.count(), 'partial');
  world.hit('ask', 512);
  world.post([], []);
  return world;
}

const problemsOf = (lies: Lies, fillSeq = 5, world = worldOf()) => rederive(world.reader(lies), PAIR, fillSeq);

async function codeOf(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    (value) => value,
    (error: unknown) => (error as { code?: unknown }).code ?? String(error),
  );
}

describe('what a server says of fills', () => {
  it('is derived again to the same, on curves, on what prolongs them, and after late fills', async () => {
    const world = worldOf();
    for (let seq = 1; seq <= world.count(); seq += 1)
      expect(await problemsOf({}, seq, world), `fill ${seq}`).to.deep.equal([]);
  });

  it('may be derived of fills that only hit what prolongs a curve', async () => {
    const world = createWorld();
    world.post(ASKS, BIDS);
    for (let i = 0; i < 200; i += 1) world.touch();
    world.hit('ask', 66);
    world.touch();
    world.hit('ask', 66);
    world.post([], []);
    expect([await problemsOf({}, 1, world), await problemsOf({}, 2, world)]).to.deep.equal([[], []]);
  });

  it('has every fill since the book, once and in order', async () => {
    const without = (...gone: number[]) => ({
      fills: (all: Fill[]) => all.filter(({ fill_seq }) => !gone.includes(fill_seq)),
    });
    expect(await problemsOf(without(3))).to.deep.equal(['fill 3 is missing']);
    expect(await problemsOf(without(4))).to.deep.equal(['fill 4 is missing']);
    expect(await problemsOf(without(2, 4))).to.deep.equal(['fill 2 is missing']);
    expect(await problemsOf(without(1, 2)), 'the oldest of few').to.deep.equal(['fill 2 is missing']);
    expect(await problemsOf(without(6)), 'a later one').to.deep.equal([]);
    const twice = { fills: (all: Fill[]) => all.flatMap((one) => (one.fill_seq === 4 ? [one, one] : [one])) };
    expect(await problemsOf(twice)).to.deep.equal(['fill 4 is listed twice or out of order']);
    const swapped = { fills: ([a, b, c, ...rest]: Fill[]) => [a!, c!, b!, ...rest] };
    expect(await problemsOf(swapped)).to.deep.equal(['fill 2 is missing']);
    const huge = {
      fills: (all: Fill[]) => all.map((one) => (one.fill_seq === 5 ? { ...one, fill_seq: 2 ** 52 } : one)),
    };
    expect(await problemsOf(huge, 2 ** 52)).to.include('fill 5 is missing');
  });

  it('is too old only where the list is as long as was asked for', async () => {
    const world = createWorld();
    world.post(ASKS, BIDS);
    world.hit('ask', 5);
    world.post(ASKS, BIDS);
    for (let i = 0; i < 255; i += 1) world.hit('ask', 1);
    world.post([], []);
    expect(await problemsOf({}, 1, world)).to.deep.equal([]);
    world.post(ASKS, BIDS, 0);
    world.hit('ask', 5);
    world.post([], []);
    expect(await codeOf(problemsOf({}, 1, world))).to.equal('TOO_OLD');
    expect(await codeOf(problemsOf({}, 257, world))).to.equal('TOO_OLD');
  });

  it('is of fills of the market, on curves that were there, of a book that was cut before them', async () => {
    const other = {
      fills: (all: Fill[]) => all.map((one) => (one.fill_seq === 3 ? { ...one, pair: 'WETH-DAI' } : one)),
    };
    expect(await problemsOf(other)).to.deep.equal(['fill 3 is of WETH-DAI']);
    const late = { curve: (curve: Curve) => ({ ...curve, block_number: 1_000 }) };
    expect((await problemsOf(late)).join()).to.match(/curve 4 landed in block 1000, after fill 5/);
    const own = { curve: (curve: Curve) => ({ ...curve, curve_seq: 9 }) };
    expect(await codeOf(problemsOf(own))).to.equal('BAD_CURVE');
    const foreign = { curve: (curve: Curve) => ({ ...curve, pair: 'WETH-DAI' }) };
    expect(await codeOf(problemsOf(foreign))).to.equal('BAD_CURVE');
    const known = worldOf();
    const newest = await known.server.curve(5);
    const newer = { curve: (curve: Curve) => ({ ...newest, curve_seq: curve.curve_seq, base_seq: curve.curve_seq }) };
    expect((await problemsOf(newer, 5, known)).join()).to.match(/the book is of fill 6, fill 5 is no later one/);
  });

  it('adds up for each late fill, too, from whose parts the rest is derived', async () => {
    const lie = (change: (explained: Explained) => Explained): Lies => ({
      decomposition: (explained) => (explained.fill_seq === 2 ? change(explained) : explained),
    });
    expect((await problemsOf(lie((explained) => ({ ...explained, legs: explained.legs.slice(1) })))).join()).to.match(
      /fill 2: the legs have another base amount/,
    );
    expect((await problemsOf(lie((explained) => ({ ...explained, fill_seq: 1 })))).join()).to.match(
      /fill 2: it is of another/,
    );
  });

  it('prolongs one curve: the touches before a fill lead to one post of the same book', async () => {
    const lie = (of: number, change: (curve: Curve) => Curve): Lies => ({
      curve: (curve) => (curve.curve_seq === of ? change(curve) : curve),
    });
    const asFull = lie(4, (curve) => ({ ...curve, prepared: { ...curve.prepared!, kind: 'full' } }));
    expect((await problemsOf(asFull)).join()).to.match(/curve 4 is said to be a full post, and to prolong curve 3/);
    const asTouch = lie(5, (curve) => ({ ...curve, prepared: { ...curve.prepared!, kind: 'touch' } }));
    expect((await problemsOf(asTouch, 7)).join()).to.match(/curve 5 is said to be a touch, and to prolong no curve/);
    const upwards = lie(4, (curve) => ({ ...curve, base_seq: 5 }));
    expect((await problemsOf(upwards)).join()).to.match(/curve 4 is said to prolong the later curve 5/);
    const another = lie(3, (curve) => ({
      ...curve,
      prepared: { ...curve.prepared!, snapshot_hash: `0x${'1'.repeat(64)}` },
    }));
    expect((await problemsOf(another)).join()).to.match(/curve 4 prolongs curve 3, which is another/);
    const endless = worldOf();
    const third = await endless.server.curve(4);
    const many = {
      curve: (curve: Curve) =>
        curve.curve_seq > 1_000 ? { ...third, curve_seq: curve.curve_seq, base_seq: curve.curve_seq - 1 } : curve,
      fills: (all: Fill[]) => all.map((one) => (one.fill_seq === 5 ? { ...one, curve_seq: 2_000 } : one)),
    };
    const reader = endless.reader(many);
    const curve = async (pair: string, seq: number) =>
      seq > 1_000 ? many.curve({ ...third, curve_seq: seq }) : endless.reader().curve(pair, seq);
    expect((await rederive({ ...reader, curve }, PAIR, 5)).join()).to.match(/more than 64 touches/);
  });

  it('says the same in the fill and in its decomposition', async () => {
    const world = worldOf();
    const fill = world.server.fills()[1]!;
    const explained = await world.server.decomposition(2);
    expect(reconcile(deployment, fill, explained)).to.deep.equal([]);
    const wrong: [RegExp, Partial<Explained>][] = [
      [/another fill/, { curve_seq: 7 }],
      [/another fill/, { direction: 'sell' }],
      [/another fill/, { fill_seq: 1 }],
      [/not final/, { status: 'pending' }],
      [/fee/, { fee: { ...explained.fee, amount: '0' } }],
      [/rounding/, { rounding: '0.000001', compression_residual: '0.000004' }],
      [/size/, { legs: explained.legs.map((leg) => ({ ...leg, size: '1' })) }],
    ];
    for (const [what, change] of wrong)
      expect(reconcile(deployment, fill, { ...explained, ...change }).join()).to.match(what);
    const turned = { ...fill, token_in: fill.token_out, token_out: fill.token_in };
    expect(reconcile(deployment, turned, explained).join()).to.match(/tokens/);
  });

  it('is a problem where nothing can be reckoned with it, and no error of JavaScript', async () => {
    const world = worldOf();
    const fill = world.server.fills()[1]!;
    const explained = await world.server.decomposition(2);
    const [leg] = explained.legs;
    const wrong: unknown[] = [
      ...[null, 5, {}, { ...explained, legs: null }, { ...explained, legs: [null] }, { ...explained, residual: null }],
      ...['1e3', 'x', '-1', 5, null].map((price) => ({ ...explained, legs: [{ ...leg, price }] })),
      { ...explained, legs: [{ ...leg, base_amount: `0.${'1'.repeat(19)}` }] },
      { ...explained, legs: [{ ...leg, orders: undefined }] },
      { ...explained, fee: null },
    ];
    for (const lie of wrong) {
      const what = JSON.stringify(lie);
      expect(reconcile(deployment, fill, lie as Explained).join(), what).to.match(/can not be read/);
      const read = { ...world.reader(), decomposition: () => Promise.resolve(lie as Explained) };
      expect((await rederive(read, PAIR, 2)).join(), what).to.match(/can not be read/);
    }
    for (const lie of [{ amount_in: 'x' }, { amount_out: '1e3' }, { fee: null }] as Partial<Fill>[]) {
      expect(reconcile(deployment, { ...fill, ...lie }, explained).join()).to.match(/can not be read/);
      expect(() => amountsOf(MARKET, { ...fill, ...lie }))
        .to.throw(/can not be read/)
        .with.property('code', 'BAD_CURVE');
      const told = { fills: (all: Fill[]) => all.map((one) => ({ ...one, ...lie })) };
      expect((await problemsOf(told)).join(), JSON.stringify(lie)).to.match(/can not be read/);
    }
    for (const list of [null, {}, 5, 'x', [null]]) {
      const read = { ...world.reader(), fills: () => Promise.resolve(list as Fill[]) };
      expect((await rederive(read, PAIR, 2)).join(), JSON.stringify(list)).to.match(/can not be read/);
    }
    const curve = await world.server.curve(2);
    const books: object[] = [{ prepared: 5 }, { snapshot: { ...curve.snapshot, asks: 5 } }, { snapshot: 5 }];
    for (const lie of books) {
      const told = { curve: (one: Curve) => ({ ...one, ...lie }) };
      expect(await codeOf(problemsOf(told, 2)), JSON.stringify(lie)).to.equal('BAD_CURVE');
    }
    const none = { ...world.reader(), curve: () => Promise.resolve(null as never) };
    expect((await rederive(none, PAIR, 2)).join()).to.match(/can not be read/);
    const raised = { curve: (one: Curve) => ({ ...one, raised_ask: 'x' }) };
    expect((await problemsOf(raised)).join()).to.match(/can not be read/);
  });

  it('is asked for: errors of the network come as they are, and what describes no deployment is said so', async () => {
    const world = worldOf();
    const down = new TypeError('fetch failed');
    for (const name of ['deployment', 'fills', 'curve', 'decomposition'] as const)
      for (const fails of [
        () => Promise.reject(down),
        () => {
          throw down;
        },
      ]) {
        const asked = rederive({ ...world.reader(), [name]: fails }, PAIR, 5);
        expect(await asked.catch((error: unknown) => error), name).to.equal(down);
      }
    const other = { ...world.reader(), deployment: () => Promise.resolve({ ok: true } as never) };
    expect(await codeOf(rederive(other, PAIR, 5))).to.equal('HTTP_ERROR');
  });

  it('has numbers: none that compares with nothing hides a fill, or when a curve landed', async () => {
    const hidden = (change: object) => ({
      fills: (all: Fill[]) => all.map((one) => (one.fill_seq === 4 ? { ...one, ...change } : one)),
    });
    for (const wrong of ['x', '4', {}, [4], true, 4.5])
      for (const name of ['fill_seq', 'curve_seq', 'block_number'] as const)
        expect((await problemsOf(hidden({ [name]: wrong }))).join(), `${name} ${JSON.stringify(wrong)}`).to.match(
          /a fill has no (fill_seq|curve_seq|block_number)/,
        );
    const late = { curve: (curve: Curve) => ({ ...curve, block_number: 'x' as never }) };
    expect((await problemsOf(late)).join()).to.match(/curve 4 has no block_number/);
    const endless = { curve: (curve: Curve) => ({ ...curve, base_seq: 'x' as never }) };
    expect((await problemsOf(endless)).join()).to.match(/curve 4 has no base_seq/);
  });
});

describe('what a server says of a curve', () => {
  const changed = async (seq: number, change: (curve: Curve) => Partial<Curve>): Promise<string[]> => {
    const curve = await worldOf().server.curve(seq);
    return verifyCurve(deployment, { ...curve, ...change(curve) });
  };
  const prepared = (change: (of: NonNullable<Curve['prepared']>) => object) => (curve: Curve) => ({
    prepared: { ...curve.prepared!, ...change(curve.prepared!) },
  });

  it('is true of posts and of touches', async () => {
    for (const seq of [1, 2, 3, 4, 5, 6]) expect(await changed(seq, () => ({})), `curve ${seq}`).to.deep.equal([]);
  });

  it('is compared with the hash of its words whatever it is called', async () => {
    const words = { words_hash: `0x${'1'.repeat(64)}` };
    for (const kind of ['full', 'touch', 'partial'] as const) {
      const problems = await changed(1, (curve) => ({ ...words, ...prepared(() => ({ kind }))(curve) }));
      expect(problems, kind).to.include('the words have another hash');
    }
    const touch = await changed(1, (curve) => ({
      ...words,
      ...prepared(() => ({ kind: 'touch' }))(curve),
      base_seq: 0,
    }));
    expect(touch, 'with a hash of its own').to.include('the words have another hash');
    expect(await changed(1, () => ({ words_hash: '0x' }))).to.include('the words have another hash');
  });

  it('does not contradict itself', async () => {
    expect(
      await changed(
        1,
        prepared(() => ({ kind: 'touch' })),
      ),
    ).to.include('curve 1 is said to be a touch, and to prolong no curve');
    expect(
      await changed(
        4,
        prepared(() => ({ kind: 'full' })),
      ),
    ).to.include('curve 4 is said to be a full post, and to prolong curve 3');
    expect(await changed(4, () => ({ base_seq: 5 }))).to.include('curve 4 is said to prolong the later curve 5');
  });

  it('moves no word from one side to the other, and has no word that is none', async () => {
    const joined = prepared(({ ask_words, bid_words }) => ({
      ...{ ask_words: [...ask_words, ...bid_words], bid_words: [], bids: [], exact_bid_knots: 0 },
    }));
    expect(await changed(1, (curve) => ({ ...joined(curve), snapshot: null }))).to.deep.equal([
      'the asks have 2 words, of which the first says 1',
    ]);
    const cut = prepared(({ ask_words }) => ({ ask_words: ask_words.map((word) => word.slice(0, -2)) }));
    expect(await changed(1, cut)).to.deep.equal(['what is said to be a word is none']);
    // More words than there are.
    const short = prepared(({ ask_words }) => ({
      ask_words: ask_words.map((word) => `${word.slice(0, 2)}06${word.slice(4)}`),
    }));
    expect(await changed(1, short)).to.include('the asks have 1 words, of which the first says 3');
  });

  it('is a problem where nothing can be reckoned with it, and no error of JavaScript', async () => {
    const lies: ((curve: Curve) => object)[] = [
      ...['asks', 'bids', 'ask_words', 'bid_words'].map((name) => prepared(() => ({ [name]: undefined }))),
      ...['asks', 'bid_words'].map((name) => prepared(() => ({ [name]: [null] }))),
      prepared(({ ask_words }) => ({ ask_words: ask_words.map((word) => word.replace(/.{8}$/, 'f'.repeat(8))) })),
      () => ({ snapshot: 5 }),
      ...(['ask_volume', 'bid_volume'] as const).flatMap((name) =>
        ['x', '1e3', `0.${'1'.repeat(19)}`, null, 5].map((volume) => (curve: Curve) => ({
          snapshot: { ...curve.snapshot!, [name]: volume },
        })),
      ),
      ({ snapshot }) => ({ snapshot: { ...snapshot!, asks: null } }),
      ({ snapshot }) => ({ snapshot: { ...snapshot!, bids: [null] } }),
    ];
    for (const [i, lie] of lies.entries()) {
      expect(await changed(1, lie), `${i}`).not.to.deep.equal([]);
      const curve = await worldOf().server.curve(1);
      const told = { ...curve, ...lie(curve) };
      if (told.snapshot === curve.snapshot) continue;
      expect(() => snapshotOf(MARKET, told), `${i}`)
        .to.throw()
        .with.property('code', 'BAD_CURVE');
    }
    for (const none of [null, 5, []])
      expect(() => snapshotOf(MARKET, none as never), JSON.stringify(none))
        .to.throw()
        .with.property('code')
        .oneOf(['BAD_CURVE', 'NO_BOOK']);
    expect(verifyCurve(deployment, null as never).join()).to.match(/can not be read/);
  });

  it('has a book of orders in their order, none of which is text that only hashes alike', async () => {
    const asks = (change: (list: NonNullable<Curve['snapshot']>['asks']) => object[]) => (curve: Curve) => ({
      snapshot: { ...curve.snapshot!, asks: change(curve.snapshot!.asks) } as Curve['snapshot'],
    });
    const two = asks(([first, second, ...rest]) => [
      {
        ...second,
        oid: first!.oid,
        maker: `${first!.maker} ${first!.ticks} ${first!.lots}\nask ${second!.oid} ${second!.maker}`,
      },
      ...rest,
    ]);
    expect(await changed(1, two)).to.deep.equal(['the book has an order that is none']);
    expect(
      await changed(
        1,
        asks(([first, ...rest]) => [...rest, first!]),
      ),
    ).to.deep.equal(['the book is not in its order']);
    expect(
      await changed(
        1,
        asks(([first, ...rest]) => [first!, first!, ...rest]),
      ),
    ).to.deep.equal(['the book is not in its order']);
    expect(
      await changed(
        1,
        asks(([first, ...rest]) => [{ ...first!, lots: 0 }, ...rest]),
      ),
    ).to.deep.equal(['the book has an order that is none']);
    expect(
      await changed(
        1,
        asks((list) => list.slice(1)),
      ),
    ).to.deep.equal(['the book is not that of its hash']);
  });
});
