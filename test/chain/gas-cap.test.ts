/** As many markets as one may list, posted on a chain that takes no transaction of more than 2^24 gas. */
import { expect } from 'chai';
import { getCreateAddress, toBeHex } from 'ethers';
import { buildCurve } from '../../core/curve/build.js';
import type { FullPost, PostRecord } from '../../core/curve/post.js';
import { createMarket, marketId } from '../../core/market.js';
import type { Address, Hex } from '../../core/types.js';
import { deployCurvebook, type Deployment } from '../../deploy/deploy.js';
import { postCalldata } from '../../keepers/poster/post-call.js';
import { gasLimitOf, MAX_TX_GAS, splitByGas } from '../../keepers/poster/gas.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { snapshotOfLevels } from '../support/books.js';
import { startTestChain, type TestChain } from '../support/chain.js';

const MARKETS = 200;
const GRID = { tickSize: '0.01', lotSize: '0.0001' };

describe('posts of 200 markets under the limit on the gas of a transaction', function () {
  this.timeout(240_000);
  let chain: TestChain;
  let deployment: Deployment;
  let ids: Hex[];
  let words: Pick<FullPost, 'askWords' | 'bidWords' | 'exactAskKnots' | 'exactBidKnots'>;

  before(async () => {
    chain = await startTestChain({ transactionGasCap: MAX_TX_GAS });
    const owner = chain.signers[0]!;
    const from = await owner.getAddress();
    const tokens = (['WETH', 'USDC'] as const).map((symbol, nonce) => ({
      symbol,
      decimals: symbol === 'WETH' ? 18 : 6,
      address: getCreateAddress({ from, nonce }),
    }));
    for (const { symbol, decimals } of tokens)
      await (await new MintableToken__factory(owner).deploy(symbol, symbol, decimals)).waitForDeployment();
    deployment = await deployCurvebook({
      deployer: owner,
      owner: from,
      curvePosters: [from],
      claimPosters: [await chain.signers[1]!.getAddress()],
      withdrawDelaySec: 0,
      tokens,
      markets: [{ pair: 'WETH-USDC', ...GRID, maxTtlSec: 255 }],
      log: () => undefined,
    });
    const [base, quote] = tokens.map((token) => ({ ...token, address: token.address.toLowerCase() as Address }));
    ids = [marketId(base!.address, quote!.address)];
    const { curveBook } = deployment;
    for (let i = 1; i < MARKETS; i++) {
      const other = toBeHex(0xc0de_0000 + i, 20) as Address;
      // Whether it is a token nobody asks before somebody trades.
      await chain.provider.send('hardhat_setCode', [other, '0x00']);
      await curveBook.listMarket(base!.address, other, 14, 1, 0, 255);
      ids.push(marketId(base!.address, other));
    }
    const lots = { lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 255 };
    const market = createMarket({ index: 0, base: base!, quote: quote!, ...lots });
    const side = (best: bigint, step: bigint) =>
      Array.from({ length: 31 }, (_, i) => ({ priceTicks: best + step * BigInt(i), lots: 4_000n - BigInt(i) }));
    words = buildCurve(market, snapshotOfLevels(side(300_000n, 7n), side(299_990n, -7n)), { maxKnots: 31 });
    expect([words.askWords.length, words.bidWords.length], 'the widest curve').to.deep.equal([4, 4]);
  });
  after(() => chain?.close());

  /** Sends what the poster would send, and returns the gas that each transaction took beside its limit. */
  async function post(
    seq: number,
    split = splitByGas<{ record: PostRecord }>,
  ): Promise<{ used: bigint; limit: bigint }[]> {
    const block = (await chain.provider.getBlock('latest'))!;
    const due = ids.map((id) => {
      const { askWords, bidWords, exactAskKnots, exactBidKnots } = words;
      const head = { kind: 'full' as const, marketId: id, seq, deadlineSec: block.timestamp + 250 };
      const record = { ...head, snapAskUnits: 0n, snapBidUnits: 0n, exactAskKnots, exactBidKnots, askWords, bidWords };
      return { record };
    });
    const to = await deployment.curveBook.getAddress();
    const sent: { used: bigint; limit: bigint }[] = [];
    for (const batch of split(due)) {
      const records = batch.map(({ record }) => record);
      const limit = gasLimitOf(records);
      const data = postCalldata({ number: block.number, hash: block.hash as Hex }, records);
      const receipt = await (await chain.signers[0]!.sendTransaction({ to, data, gasLimit: limit })).wait();
      expect(receipt!.status).to.equal(1);
      sent.push({ used: receipt!.gasUsed, limit });
    }
    for (const id of ids) expect((await deployment.curveBook.marketState(id)).seq, id).to.equal(BigInt(seq));
    return sent;
  }

  it('land in a few transactions, the first of their slots as well as later ones, each within its limit', async () => {
    expect(await deployment.curveBook.marketCount()).to.equal(BigInt(MARKETS));
    for (const seq of [1, 2]) {
      const sent = await post(seq);
      expect(sent.length).to.be.within(2, 5);
      for (const { used, limit } of sent)
        expect(used <= limit && limit <= MAX_TX_GAS, `${used} of ${limit}`).to.equal(true);
    }
  });

  it('are refused by the chain in one, so that the limit is a real one', async () => {
    const refused = await post(3, (due) => [[...due]]).then(
      () => 'it landed',
      (error: unknown) => (error as Error).message,
    );
    expect(refused).to.match(/gas/i);
    expect((await deployment.curveBook.marketState(ids[0]!)).seq).to.equal(2n);
  });
});
