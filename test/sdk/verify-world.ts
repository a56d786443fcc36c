/** A market with curves and fills as an honest server has them, read through the server's own handlers; and lies that a test puts in between. */
import type { RouterMiddleware } from '@koa/router';
import { attributeFill, openSide, orderFillsOf, type SideState } from '../../core/attribution.js';
import { buildCurve } from '../../core/curve/build.js';
import { raisedConsumption } from '../../core/curve/carry.js';
import { stringify } from '../../core/json.js';
import { snapshotHash } from '../../core/snapshot.js';
import type { Address, ChainFill, Decomposition, Hex, MarketSnapshot, OrderFill, Side } from '../../core/types.js';
import { curveHandler } from '../../server/read/curve.js';
import { decompositionHandler } from '../../server/read/decomposition.js';
import type { PostedCurve, ReadDeps } from '../../server/read/deps.js';
import { fillJson } from '../../server/read/fills.js';
import type { ReadClient, Schemas } from '../../sdk/src/read/client.js';
import type { Deployment } from '../../sdk/src/deployment.js';
import { MAKERS, USDC, WETH, WETH_USDC as MARKET } from '../support/markets.js';

export type Fill = Schemas['Fill'];
export type Curve = Schemas['PostedCurve'];
export type Explained = Schemas['Decomposition'];

export const PAIR = MARKET.pair;
const LOT = MARKET.lotUnits;
const hash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`;
const TAKER: Address = `0x${'9'.repeat(40)}`;

export const deployment = {
  chain_id: 1,
  contracts: {},
  tokens: [WETH, USDC],
  markets: [
    { pair: PAIR, base: 'WETH', quote: 'USDC', tick_size: MARKET.tickSize, lot_size: MARKET.lotSize, asset: 10_000 },
  ],
} as unknown as Deployment;

/** Changes what the server answers. */
export interface Lies {
  fills?(fills: Fill[]): Fill[];
  curve?(curve: Curve): Curve;
  decomposition?(explained: Explained): Explained;
}

interface Root {
  seq: number;
  snapshot: MarketSnapshot;
  raised: Record<Side, bigint>;
  sides: Partial<Record<Side, SideState>>;
}

/** `[oid, maker, ticks, lots]`, best price first. */
type Row = [number, number, number, number];

const orders = (rows: readonly Row[]): MarketSnapshot['asks'] =>
  rows.map(([oid, maker, ticks, lots]) => ({
    oid,
    maker: MAKERS[maker]!,
    priceTicks: BigInt(ticks),
    sizeLots: BigInt(lots),
  }));

export function createWorld() {
  const posted = new Map<number, PostedCurve>();
  const roots = new Map<number, Root>();
  const fills: { fill: ChainFill; decomposition: Decomposition; parts: OrderFill[]; root: Root }[] = [];
  let seq = 0;
  let block = 100;

  const taken = (side: Side, upTo = fills.length): bigint =>
    fills.slice(0, upTo).reduce((sum, { fill }) => (fill.side === side ? sum + fill.baseUnits : sum), 0n);

  function land(root: Root, kind: 'full' | 'partial' | 'touch', baseSeq: number): number {
    const { snapshot } = root;
    const { askWords, bidWords, wordsHash, exactAskKnots, exactBidKnots } = buildCurve(MARKET, snapshot, {
      maxKnots: 2,
    });
    block += 1;
    posted.set(seq, {
      post: {
        ...{ market: 0, seq, era: 0, baseSeq, postedSeq: root.seq, deadlineSec: 2 * block, snapAskUnits: 0n },
        ...{ snapBidUnits: 0n, wordsHash: kind === 'touch' ? '0x' : wordsHash, blockNumber: block },
        ...{ blockTimestampSec: block, txHash: hash(block) },
      },
      publication: {
        ...{ market: 0, seq, baseSeq, kind, cut: { orderSeq: 1, generation: 1, timeMs: 1 }, blockNumber: block - 1 },
        ...{ blockHash: hash(block - 1), fillSeq: snapshot.fillSeq, trims: [], excluded: [] },
        ...{ askVolumeUnits: snapshot.askVolumeUnits, bidVolumeUnits: snapshot.bidVolumeUnits },
        ...{ snapshotHash: snapshotHash(snapshot), askWords, bidWords, wordsHash, askKnots: 2, bidKnots: 2 },
        ...{ compression: 1, maxErrorMilliBps: 0, exactAskKnots, exactBidKnots, askErrorPpb: 0, bidErrorPpb: 0 },
        ...{ deadlineSec: 2 * block, preparedMs: 1, txKey: '' },
      },
      raised: root.raised,
      snapshot: null,
      isProlonged: false,
      landedSeq: 0,
      headSec: 0,
    });
    return seq;
  }

  /** A curve of a book that was cut after `fillSeq`, and whose sides the contract raised for what was taken since. */
  function post(asks: readonly Row[], bids: readonly Row[], fillSeq = fills.length, kind: 'full' | 'partial' = 'full') {
    const snapshot: MarketSnapshot = {
      ...{ market: 0, fillSeq, askVolumeUnits: taken('ask', fillSeq), bidVolumeUnits: taken('bid', fillSeq) },
      ...{ asks: orders(asks), bids: orders(bids) },
    };
    const curve = buildCurve(MARKET, snapshot, { maxKnots: 2 });
    const raise = (side: Side): bigint => {
      const carry = taken(side) - taken(side, fillSeq);
      const [segments, exact] = side === 'ask' ? [curve.asks, curve.exactAskKnots] : [curve.bids, curve.exactBidKnots];
      return raisedConsumption(segments, exact, carry) - carry;
    };
    seq += 1;
    const root = { seq, snapshot, raised: { ask: raise('ask'), bid: raise('bid') }, sides: {} };
    roots.set(seq, root);
    return land(root, kind, seq);
  }

  /** Prolongs the newest curve. */
  function touch(): number {
    const root = roots.get(seq)!;
    seq += 1;
    roots.set(seq, root);
    return land(root, 'touch', seq - 1);
  }

  /** A fill of so many base units on the newest curve; a tenth of a lot is odd enough for every rounding. */
  function hit(side: Side, tenths: number): number {
    const root = roots.get(seq)!;
    const fillSeq = fills.length + 1;
    const late = fills.filter((one) => one.fill.fillSeq > root.snapshot.fillSeq && one.root !== root);
    const lateParts = late.flatMap(({ parts }) => parts);
    const before = root.sides[side] ?? openSide(MARKET, root.snapshot, side, lateParts, root.raised[side]);
    const baseUnits = (BigInt(tenths) * LOT) / 10n + 7n;
    const exact = attributeFill(MARKET, before, { side, baseUnits, quoteUnits: 0n }).decomposition;
    const legsUnits = exact.legs.reduce((sum, leg) => sum + leg.quoteUnits, 0n);
    const quoteUnits = side === 'ask' ? legsUnits + 5n : legsUnits - 5n;
    const { decomposition, state } = attributeFill(MARKET, before, { side, baseUnits, quoteUnits });
    root.sides[side] = state;
    block += 1;
    const fill: ChainFill = {
      ...{ market: 0, fillSeq, curveSeq: seq, side, baseUnits, quoteUnits, feeUnits: 3n, inputFeeUnits: 0n },
      ...{ consumedBeforeUnits: before.consumedUnits, taker: TAKER, recipient: TAKER, blockNumber: block },
      ...{ blockHash: hash(block), txHash: hash(block), logIndex: 0, timestampMs: block * 1_000 },
    };
    const curve = posted.get(seq)!;
    posted.set(seq, { ...curve, snapshot: root.snapshot });
    fills.push({ fill, decomposition, parts: orderFillsOf(MARKET, side, decomposition), root });
    return fillSeq;
  }

  const deps = {
    nowMs: () => 0,
    markets: () => [MARKET],
    store: {
      explainedFill: (_market: number, fillSeq: number) => Promise.resolve(fills[fillSeq - 1] ?? null),
      postedCurve: (_market: number, of: number) => {
        const curve = posted.get(of);
        return Promise.resolve(curve === undefined ? null : { ...curve, landedSeq: seq, headSec: 10 * block });
      },
    },
  } as unknown as ReadDeps;

  const json = <T>(value: unknown): T => {
    const parsed: unknown = JSON.parse(stringify(value));
    return parsed as T;
  };

  async function answer<T>(handler: RouterMiddleware, params: Record<string, string>): Promise<T> {
    // Of the requests that an address has a minute, as the server's limiter says it.
    const limited = { ip: '::1', response: { get: () => '6000' } };
    const ctx = { ...limited, params, query: { pair: PAIR }, body: null };
    await handler(ctx as never, () => Promise.resolve());
    return json<T>(ctx.body);
  }

  const server = {
    fills: () => json<Fill[]>(fills.map(({ fill }) => fillJson(MARKET, fill))),
    curve: (of: number) => answer<Curve>(curveHandler(deps), { pair: PAIR, curve_seq: `${of}` }),
    decomposition: (of: number) => answer<Explained>(decompositionHandler(deps), { fill_seq: `${of}` }),
  };

  /** A client of the server. */
  const reader = (lies: Lies = {}) =>
    ({
      deployment: () => Promise.resolve(deployment),
      fills: (_pair: string, limit = 256) => {
        const newest = server.fills().slice(-limit);
        return Promise.resolve(lies.fills?.(newest) ?? newest);
      },
      curve: async (_pair: string, of: number) => {
        const curve = await server.curve(of);
        return lies.curve?.(curve) ?? curve;
      },
      decomposition: async (_pair: string, of: number) => {
        const explained = await server.decomposition(of);
        return lies.decomposition?.(explained) ?? explained;
      },
    }) as unknown as ReadClient;

  return { post, touch, hit, reader, server, count: () => fills.length };
}
