import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import { openSide } from '../../core/attribution.js';
import { buildCurve } from '../../core/curve/build.js';
import { costPoints } from '../../core/curve/error.js';
import { sideLevels } from '../../core/curve/levels.js';
import { consumedUnits, depthUnits, quoteFloor, remaining } from '../../core/curve/walk.js';
import { decodeSide } from '../../core/curve/words.js';
import type { Segment } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { forEachKeepers } from '../support/manual-suite.js';
import { chainCurve, publicationsOf } from '../support/publications.js';
import { costliest } from './costliest.js';

const TAKER_FIRST = { maxPriorityFeePerGas: 5_000_000_000n, maxFeePerGas: 100_000_000_000n, gasLimit: 500_000n };

/** Forty orders of geometric sizes, farther apart than fifteen segments can follow. */
const LADDER = Array.from({ length: 40 }, (_, i) => ({
  side: 'ask' as const,
  priceTicks: 250_001n + BigInt(i) * 2_500n,
  sizeLots: (40n * 1_240n ** BigInt(i)) / 1_000n ** BigInt(i),
}));

forEachKeepers((begin) =>
  describe('a maker that exchanges one order for forty under a late fill', function () {
    this.timeout(60_000);

    it('and its taker get nothing out of contracts, watcher and poster', async () => {
      const { chain, stack, custody } = await begin();
      // The chain may have stood still for longer than a curve lives.
      await chain.mine();
      await stack.watcher.scan();
      const market = stack.markets[0]!;
      const [maker, operator] = [chain.address('maker1'), chain.address('owner')];
      const tokens = [custody.token('USDC'), custody.token('WETH')] as const;
      const operatorUnits = async (): Promise<bigint> => {
        const rows = await readBalances(stack.db.knex, { account: operator });
        return rows.find(({ token }) => token === market.quote.address)?.balanceUnits ?? 0n;
      };
      const block = async (): Promise<void> => {
        await chain.mine();
        await stack.watcher.scan();
      };
      const buy = (role: string, baseUnits: bigint) =>
        chain
          .entrypointAs(role)
          .swapExactOutput(...tokens, baseUnits, 10n ** 12n, chain.address(role), MaxUint256, TAKER_FIRST);

      // As much as the new curve is farthest from its book at.
      const asks = LADDER.map(({ priceTicks, sizeLots }, i) => ({ oid: i + 1, maker, priceTicks, sizeLots }));
      const empty = { market: 0, fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n, bids: [] };
      const levels = sideLevels('ask', asks);
      const curve = buildCurve(market, { ...empty, asks }, { maxKnots: 15 });
      const errors = costPoints(market, levels, curve.asks).map(({ units, exact, posted }) => ({
        units,
        error: posted - exact,
      }));
      const lateUnits = errors.reduce((worst, one) => (one.error > worst.error ? one : worst)).units;
      const [oid] = await stack.order(maker, [
        { side: 'ask', priceTicks: 250_001n, sizeLots: lateUnits / market.lotUnits },
      ]);
      await stack.poster.round();
      await block();

      await stack.order(maker, LADDER, [oid!]);
      await stack.poster.round();
      await buy('taker1', lateUnits);
      await block();
      const publication = (await publicationsOf(stack)).at(-1)!;
      const live = await chainCurve(chain, market);
      expect(live.seq, 'the curve after the fill').to.equal(2);
      const segments = decodeSide(market, 'ask', live.askWords);
      const consumed = consumedUnits(lateUnits, live.snapAskUnits);
      const snapshot = await createSnapshotStore(stack.markets).get(stack.db.knex, publication);
      const late = { oid: oid!, maker, market: 0, side: 'ask' as const, priceTicks: 250_001n, baseUnits: lateUnits };
      const left = openSide(market, snapshot, 'ask', [late]);
      const lossFrom = (units: bigint): bigint => lossOf(remaining(segments, units));
      const lossOf = (rest: readonly Segment[]): bigint => quoteFloor(market, costliest('ask', rest, left).lost);
      expect(
        lossFrom(lateUnits) > custody.units('USDC', '50'),
        `${lossFrom(lateUnits)} from where the fill ended`,
      ).to.equal(true);
      expect(lossFrom(consumed)).to.equal(0n);

      const depth = depthUnits(segments) - consumed;
      const before = await operatorUnits();
      await buy('taker1', depth / 3n);
      await block();
      await buy('taker2', depth - depth / 3n);
      await block();
      expect((await operatorUnits()) >= before, 'the operator').to.equal(true);
      expect(stack.watcher.status().halt).to.equal(null);
      await custody.expectSound();
      await stack.stop();
    });
  }),
);
