/** Anybody may have rows in the ledger, for the gas of a deposit each. What each cut reads for them is the poster's cost. */
import { expect } from 'chai';
import { GAS } from '../../support/custody.js';
import { forEachDatabase } from '../../support/db.js';
import { forEachKeepers } from '../../support/manual-suite.js';

describe('rows of strangers', function () {
  this.timeout(60_000);

  forEachKeepers((begin) => {
    it('cost a deposit each, and a cut asks for none of them', async () => {
      const { chain, stack, custody } = await begin();
      await custody.mined();
      const [maker, stranger] = [chain.address('maker1'), chain.address('taker1')];
      const asked: string[][] = [];
      const note = ({ sql, bindings }: { sql: string; bindings: string[] }): void => {
        if (/from .?balances/.test(sql)) asked.push(bindings);
      };
      const connections = new Set([stack.db.knex, stack.db.reads]);
      /** The accounts of which a cut asks for balances. */
      const cut = async (priceTicks: bigint): Promise<string[]> => {
        await stack.order(maker, [{ side: 'ask', priceTicks, sizeLots: 1_000n }]);
        asked.length = 0;
        for (const one of connections) one.on('query', note);
        expect(await stack.poster.round()).to.not.equal(null);
        for (const one of connections) one.off('query', note);
        await custody.mined();
        expect(
          asked.every((bindings) => bindings.length > 0),
          'never for all',
        ).to.equal(true);
        return [...new Set(asked.flat())].filter((text) => /^0x[0-9a-f]{40}$/.test(text)).sort();
      };
      const before = await cut(300_000n);
      expect(before).to.include(maker);
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      await chain.tokenAs('WETH', 'taker1').getFunction('approve')(custodian, 1n, GAS);
      const sent = await custody.as('taker1').deposit(custody.token('WETH'), 1n, GAS);
      await custody.mined();
      const { gasUsed } = (await chain.provider.getTransactionReceipt(sent.hash))!;
      expect(gasUsed > 50_000n, `a row for ${gasUsed} gas`).to.equal(true);
      const after = await cut(300_100n);
      expect(after).to.deep.equal(before);
      expect(after).to.not.include(stranger);
      await custody.expectSound();
      await stack.stop();
    });
  }, forEachDatabase);
});
