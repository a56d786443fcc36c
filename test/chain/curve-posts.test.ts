import { expect } from 'chai';
import { getCreateAddress } from 'ethers';
import { buildCurve } from '../../core/curve/build.js';
import { MAX_EXACT_KNOTS, raisedConsumption } from '../../core/curve/carry.js';
import { encodePost, wordChanges, type BlockRef, type FullPost, type PostRecord } from '../../core/curve/post.js';
import { trade, type Consumed, type TradeMode } from '../../core/curve/walk.js';
import { VOLUME_MODULUS } from '../../core/curve/words.js';
import { createMarket } from '../../core/market.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { deployCurvebook, type Deployment } from '../../deploy/deploy.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { snapshotOfLevels } from '../support/books.js';
import { startTestChain, type TestChain } from '../support/chain.js';
import { randomConsumed } from '../support/worlds/random-curves.js';
import { seededRandom } from '../support/random.js';

const MODES: readonly TradeMode[] = ['buyExactIn', 'buyExactOut', 'sellExactIn', 'sellExactOut'];
const GRID = { tickSize: '0.01', lotSize: '0.0001' };

describe('curves on-chain are those that were built', function () {
  this.timeout(60_000);
  let chain: TestChain;
  let deployment: Deployment;
  let markets: Market[];

  before(async () => {
    chain = await startTestChain();
    const deployer = chain.signers[0]!;
    const from = await deployer.getAddress();
    const tokens = [
      { symbol: 'WETH', decimals: 18 },
      { symbol: 'USDC', decimals: 6 },
      { symbol: 'DAI', decimals: 18 },
    ].map((token, nonce) => ({ ...token, address: getCreateAddress({ from, nonce }) }));
    for (const { symbol, decimals } of tokens) {
      await (await new MintableToken__factory(deployer).deploy(symbol, symbol, decimals)).waitForDeployment();
    }
    const pairs = ['USDC', 'DAI'].map((quote) => ({ pair: `WETH-${quote}`, ...GRID, maxTtlSec: 60 }));
    deployment = await deployCurvebook({
      deployer,
      owner: from,
      curvePosters: [from],
      claimPosters: [from],
      withdrawDelaySec: 0,
      tokens,
      markets: pairs,
      log: () => undefined,
    });
    const [base, ...quotes] = tokens.map((token) => ({ ...token, address: token.address.toLowerCase() as Address }));
    markets = quotes.map((quote, index) =>
      createMarket({
        index,
        base: base!,
        quote,
        lotUnits: 10n ** 14n,
        tickLotUnits: 10n ** BigInt(quote.decimals - 6),
        maxTtlSec: 60,
      }),
    );
  });
  after(() => chain.close());

  async function headBlock(): Promise<BlockRef & { timestamp: number }> {
    const block = (await chain.provider.getBlock('latest'))!;
    return { number: block.number, hash: block.hash as Hex, timestamp: block.timestamp };
  }

  async function eventsOf(post: Promise<{ wait(): Promise<{ logs: readonly unknown[] } | null> }>) {
    const receipt = await (await post).wait();
    const { interface: abi } = deployment.curveBook;
    return receipt!.logs.map((log) => abi.parseLog(log as Parameters<typeof abi.parseLog>[0])!);
  }

  /** A book of as many levels a side as a curve of `knots` needs, each of a size that one knot holds exactly, and its curve. */
  function randomBuilt(market: Market, knots: number, seed: number) {
    const random = seededRandom(seed);
    const side = (best: bigint, step: bigint) =>
      Array.from({ length: knots }, (_, i) => ({
        priceTicks: best + step * BigInt(i),
        lots: random.big(1n, 4_095n),
      }));
    const snapshot = snapshotOfLevels(side(300_000n, 7n), side(299_990n, -7n));
    return buildCurve(market, { ...snapshot, market: market.index }, { maxKnots: 31 });
  }

  const fullPost = (
    market: Market,
    built: ReturnType<typeof randomBuilt>,
    seq: number,
    deadlineSec: number,
  ): FullPost => ({
    kind: 'full',
    marketId: market.id,
    seq,
    deadlineSec,
    snapAskUnits: 0n,
    snapBidUnits: 0n,
    exactAskKnots: built.exactAskKnots,
    exactBidKnots: built.exactBidKnots,
    askWords: built.askWords,
    bidWords: built.bidWords,
  });

  async function expectPreviews(
    market: Market,
    built: ReturnType<typeof randomBuilt>,
    consumed: Consumed,
    seed: number,
  ) {
    const random = seededRandom(seed);
    for (const mode of MODES) {
      const [tokenIn, tokenOut] = mode.startsWith('buy') ? [market.quote, market.base] : [market.base, market.quote];
      const inBase = mode === 'buyExactOut' || mode === 'sellExactIn';
      for (const amount of [1n, random.magnitude(inBase ? 72 : 60), random.magnitude(100), 2n ** 256n - 1n]) {
        const answer = await deployment.curveBook.preview(
          tokenIn.address,
          tokenOut.address,
          amount,
          mode.endsWith('Out'),
        );
        const ours = trade(market, built, consumed, mode, amount) ?? { baseUnits: 0n, quoteUnits: 0n };
        const { baseUnits, quoteUnits } = ours;
        const expected = mode.startsWith('buy') ? [quoteUnits, baseUnits] : [baseUnits, quoteUnits];
        expect([...answer], `${market.pair} ${mode} ${amount}`).to.deep.equal(expected);
      }
    }
  }

  it('for 31, 15, 7, 6, 1 and 0 knots, one after the other', async () => {
    const { curveBook } = deployment;
    const market = markets[0]!;
    for (const [i, knots] of [31, 15, 7, 6, 1, 0].entries()) {
      const built = randomBuilt(market, knots, i);
      expect([built.asks.length, built.bids.length]).to.deep.equal([knots, knots]);
      const { timestamp, ...block } = await headBlock();
      const deadline = timestamp + 50;
      const [event] = await eventsOf(curveBook.post(encodePost(block, [fullPost(market, built, i + 1, deadline)])));
      expect(event!.name).to.equal('CurvePosted');
      expect([...event!.args]).to.deep.equal([market.id, BigInt(i + 1), BigInt(deadline), 0n, 0n, built.wordsHash]);
      const [askWords, bidWords] = await curveBook.curveWords(market.id);
      expect([[...askWords], [...bidWords]]).to.deep.equal([built.askWords, built.bidWords]);
      await expectPreviews(market, built, { askUnits: 0n, bidUnits: 0n }, i);
    }
  });

  it('in a batch of two markets, with what a snapshot claims to reflect, and after a touch', async () => {
    const { curveBook } = deployment;
    const built = markets.map((market, i) => randomBuilt(market, 15, 100 + i));
    const { timestamp, ...block } = await headBlock();
    const records = markets.map((market, i) => ({
      ...fullPost(market, built[i]!, 50, timestamp + 30),
      // A snapshot ahead of the chain by five units: that side wraps to no depth.
      ...(i === 1 ? { snapBidUnits: 5n } : {}),
    }));
    const events = await eventsOf(curveBook.postBatch(encodePost(block, records)));
    expect(events.map(({ name }) => name)).to.deep.equal(['CurvePosted', 'CurvePosted']);
    await expectPreviews(markets[0]!, built[0]!, { askUnits: 0n, bidUnits: 0n }, 7);
    await expectPreviews(markets[1]!, built[1]!, { askUnits: 0n, bidUnits: 2n ** 92n - 5n }, 8);

    const { timestamp: now, ...head } = await headBlock();
    const touch: PostRecord = { kind: 'touch', marketId: markets[0]!.id, seq: 51, deadlineSec: now + 40, baseSeq: 50 };
    const [touched] = await eventsOf(curveBook.post(encodePost(head, [touch])));
    expect([touched!.name, ...touched!.args]).to.deep.equal([
      'CurveTouched',
      markets[0]!.id,
      51n,
      50n,
      BigInt(now + 40),
    ]);
    const state = await curveBook.marketState(markets[0]!.id);
    expect([state.seq, state.deadline]).to.deep.equal([51n, BigInt(now + 40)]);
    await expectPreviews(markets[0]!, built[0]!, { askUnits: 0n, bidUnits: 0n }, 9);
  });

  it('and are entered where core says after late fills, in full and in part, whatever they name as exact', async () => {
    const { curveBook } = deployment;
    const market = markets[0]!;
    const random = seededRandom(77);
    const knots = [0, 1, 7, 8, 15, 16, 31];
    const seen = { raised: 0, exact: 0, unmoved: 0 };
    let live = randomBuilt(market, 15, 1_000);
    for (let seq = 100; seq < 150; seq++) {
      const built = randomBuilt(market, random.pick(knots), seq);
      const carry = { asks: randomConsumed(random, built.asks), bids: randomConsumed(random, built.bids) };
      const exact = { asks: random.int(0, MAX_EXACT_KNOTS), bids: random.int(0, MAX_EXACT_KNOTS) };
      const { timestamp, ...block } = await headBlock();
      const body = {
        ...fullPost(market, built, seq, timestamp + 50),
        // Nothing was ever taken here: such a snapshot makes so much consumed.
        snapAskUnits: (VOLUME_MODULUS - carry.asks) % VOLUME_MODULUS,
        snapBidUnits: (VOLUME_MODULUS - carry.bids) % VOLUME_MODULUS,
        exactAskKnots: exact.asks,
        exactBidKnots: exact.bids,
      };
      const record: PostRecord =
        seq === 100 || random.int(0, 1) === 0
          ? body
          : {
              ...body,
              kind: 'partial',
              baseSeq: seq - 1,
              askChanges: wordChanges(live.askWords, built.askWords),
              bidChanges: wordChanges(live.bidWords, built.bidWords),
            };
      const [event] = await eventsOf(curveBook.post(encodePost(block, [record])));
      const consumed = (['asks', 'bids'] as const).map((side) => {
        const entered = raisedConsumption(built[side], exact[side], carry[side]);
        const inExact = built[side].slice(0, exact[side]).reduce((sum, { lengthUnits }) => sum + lengthUnits, 0n);
        seen[entered !== carry[side] ? 'raised' : carry[side] > 0n && carry[side] <= inExact ? 'exact' : 'unmoved'] +=
          1;
        return entered;
      });
      const volumes = consumed.map((units) => (VOLUME_MODULUS - units) % VOLUME_MODULUS);
      expect([...event!.args].slice(3), `${record.kind} ${seq}`).to.deep.equal([...volumes, built.wordsHash]);
      if (seq % 10 === 0) await expectPreviews(market, built, { askUnits: consumed[0]!, bidUnits: consumed[1]! }, seq);
      live = built;
    }
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.above(9);
  });

  it('only on the chain that they were computed from', async () => {
    const { curveBook } = deployment;
    const { timestamp, ...block } = await headBlock();
    const other: BlockRef = { ...block, hash: `0x${'11'.repeat(32)}` };
    const data = encodePost(other, [fullPost(markets[0]!, randomBuilt(markets[0]!, 1, 1), 160, timestamp + 30)]);
    let refusal = 'none';
    try {
      await curveBook.post.staticCall(data);
    } catch (error) {
      refusal = curveBook.interface.parseError((error as { data: string }).data)?.name ?? 'unknown';
    }
    expect(refusal).to.equal('OrphanedBlock');
  });
});
