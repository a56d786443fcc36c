import { expect } from 'chai';
import { gainByMaker, isLosing, type PairTotals } from '../../../core/attribution/gains.js';
import type { Address } from '../../../core/types.js';
import { commitGeneration } from '../../../ledger/chain/ledger-log.js';
import { pairGains } from '../../../ledger/migrations/0017-0026-columns.js';
import { derivePairGains } from '../../../ledger/migrations/pair-sums.js';
import { ALL_TAKERS, readPairGains, readWorstPairs, sumPairGains } from '../../../ledger/chain/pair-gains.js';
import { reverseGenerations } from '../../../ledger/chain/reversals.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';
import { storeAsOlder } from '../../support/older-fills.js';
import { OPERATOR, TAKER, blockOf, deposit, fillOf, generationOf, withFills } from '../../support/generations.js';
import { MAKERS, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const [alice, bob] = MAKERS as [Address, Address];
const MARKETS = [WETH_USDC, WETH_DAI];
const WEI = 10n ** 18n;

const settledBy = (owner: Address) => ({
  owner,
  nonce: 1n,
  recipient: owner,
  tokenIn: WETH_USDC.quote.address,
  tokenOut: WETH.address,
  amountInUnits: 1n,
  amountOutUnits: 1n,
  feeUnits: 0n,
  feeInSwap: true,
  partner: null,
  appData: null,
  blockNumber: 104,
});

describe('what fills brought the operator, by maker and taker', () => {
  it('is shared out by quote amount, to the unit', () => {
    const leg = (maker: Address, quoteUnits: bigint, baseUnits = 1n) => ({ maker, quoteUnits, baseUnits });
    const gains = (operatorGainUnits: bigint, ...legs: ReturnType<typeof leg>[]) =>
      gainByMaker({ legs, operatorGainUnits }).map(({ maker, gainUnits }) => [maker, gainUnits]);
    expect(gains(-10n, leg(bob, 200n), leg(alice, 100n))).to.deep.equal([
      [alice, -3n],
      [bob, -7n],
    ]);
    expect(gains(7n, leg(alice, 50n), leg(bob, 200n), leg(alice, 50n))).to.deep.equal([
      [alice, 2n],
      [bob, 5n],
    ]);
    expect(gains(-3n, leg(alice, 0n, 2n), leg(bob, 0n, 1n)), 'legs of less than a quote unit').to.deep.equal([
      [alice, -2n],
      [bob, -1n],
    ]);
    expect(gains(5n)).to.deep.equal([]);
  });

  it('is systematic beyond chance, rounding and a bps', () => {
    const pair: PairTotals = { fills: 10, legs: 30, quoteUnits: 10_000_000n, gainUnits: -1_031n };
    expect(isLosing(pair)).to.equal(true);
    expect(isLosing({ ...pair, fills: 9 })).to.equal(false);
    expect(isLosing({ ...pair, gainUnits: -1_030n }), 'rounding and dust').to.equal(false);
    expect(isLosing({ ...pair, quoteUnits: 10_310_000n }), 'a bps').to.equal(false);
    expect(isLosing({ ...pair, gainUnits: 1_031n })).to.equal(false);
  });

  forEachDatabase((_name, open) => {
    it('is added up by each generation, taken back by a reversal, and derived for an older database', async () => {
      const db = await open();
      const writer = await acquireWriter(db, 'ledger');
      const commit = (write: Parameters<typeof commitGeneration>[2]) =>
        writer.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
      const part = (maker: Address, oid: number) => ({ maker, oid, priceTicks: 250_000n, baseUnits: WEI / 10n });
      await commit(generationOf(1, { listed: MARKETS }));
      const deposits = [deposit(2, 0, alice, WETH.address, 9n * WEI), deposit(2, 1, bob, WETH.address, 9n * WEI)];
      await commit(
        generationOf(2, {
          custody: deposits.flatMap((one) => one.custody),
          entries: deposits.flatMap((one) => one.entries),
          netCapital: deposits.flatMap((one) => one.netCapital),
        }),
      );
      const fill = (n: number, seq: number, residualUnits: bigint, market = WETH_USDC, makers = [alice, bob]) =>
        fillOf(
          n,
          market,
          seq,
          'ask',
          makers.map((maker, i) => part(maker, i + 1)),
          { residualUnits },
        );
      await commit(generationOf(3, withFills(MARKETS, [fill(3, 1, -90n), fill(3, 2, -10n, WETH_USDC, [bob])])));
      const kept = await readPairGains(db.knex);
      const worst = async () =>
        (await readWorstPairs(db.knex, 3)).map(({ maker, taker, token, fills, gainUnits }) => [
          ...[maker, taker === TAKER, token, fills, gainUnits],
        ]);
      const { quote } = WETH_USDC;
      const before = [
        [bob, true, quote.address, 2, -55n],
        [bob, false, quote.address, 2, -55n],
        [alice, true, quote.address, 1, -45n],
      ];
      expect(await worst()).to.deep.equal(before);
      const more = [fill(4, 3, -1_000n, WETH_USDC, [alice]), fill(4, 1, -7n, WETH_DAI, [alice])];
      await commit(generationOf(4, withFills(MARKETS, more)));
      expect((await worst())[0]).to.deep.equal([alice, true, quote.address, 2, -1_045n]);
      expect((await worst()).map(([, , token]) => token)).to.include(WETH_DAI.quote.address);
      expect(await readPairGains(db.knex)).to.deep.equal(await sumPairGains(db.knex));
      expect((await readPairGains(db.knex)).get(`${alice}:${ALL_TAKERS}:${quote.address}`)).to.include({
        fills: 2,
        legs: 2,
      });

      const block = blockOf(103);
      const at = { number: block.number, hash: block.hash, timestampMs: block.timestampSec * 1_000 };
      const reversal = { headGeneration: 4, keptGeneration: 3, block: at, depth: 1 };
      await writer.tx((tx) => reverseGenerations(tx, reversal, { operatorSeq: 1, timeMs: 5 }));
      expect(await worst()).to.deep.equal(before);
      expect(await readPairGains(db.knex)).to.deep.equal(kept);

      await storeAsOlder(db);
      await db.knex.schema.dropTable('pair_gains');
      await db.knex.transaction((tx) => pairGains.up(tx));
      expect(await readPairGains(db.knex)).to.deep.equal(kept);

      // A signed order counts for its owner, whatever sent the swap.
      const gasless = fill(4, 3, -300n, WETH_USDC, [alice]);
      const order = { ...settledBy(bob), txHash: gasless.fill.txHash, logIndex: gasless.fill.logIndex + 1 };
      await commit({
        ...generationOf(4, { ...withFills(MARKETS, [gasless]), settledOrders: [order] }),
        generation: 6,
      });
      expect((await readPairGains(db.knex)).get(`${alice}:${bob}:${quote.address}`)?.gainUnits).to.equal(-300n);
      expect(await readPairGains(db.knex)).to.deep.equal(await sumPairGains(db.knex));
      const stored = await readPairGains(db.knex);
      await db.knex('pair_gains').delete();
      await derivePairGains(db.knex, true);
      expect(await readPairGains(db.knex), 'as the migration derives it').to.deep.equal(stored);
    });
  });
});
