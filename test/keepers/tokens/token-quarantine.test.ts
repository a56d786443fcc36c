/** One token of several goes wrong, in every way that can be seen from outside: its own markets stop, and nothing else. */
import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { BELOW_FLOOR, TOKEN_QUARANTINED } from '../../../keepers/poster/prepare.js';
import { standingCauses } from '../../../keepers/watcher/halt-causes.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { readClaim } from '../../../ledger/chain/claims.js';
import { insertAll } from '../../../ledger/db/columns.js';
import { insertHalt } from '../../../ledger/chain/halts.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { startTokenWorld } from '../../support/worlds/token-world.js';
import { doubtedTokens, WETH, USDC, WETH_USDC, WETH_DAI, CASES } from '../../support/worlds/doubted-tokens.js';

/** One case of each code: what differs is how a token is read, which has nothing to do with the database. */
const firstOfEach = (cases: typeof CASES): typeof CASES =>
  cases.filter(([, { code }], i) => cases.findIndex(([, one]) => one.code === code) === i);

forEachDatabase((name, open: OpenTestDb) =>
  describe(`tokens that can't be trusted, ${name}`, function () {
    this.timeout(30_000);
    const suite = doubtedTokens(open);
    const { start, quote, posted, liesEverywhere, truth, codes } = suite;

    const fills = async (): Promise<number> =>
      ((await suite.world.stack.db.knex('fills').select('fill_seq')) as unknown[]).length;
    async function live(market: number): Promise<{ ask_words: string; bid_words: string }> {
      return (await suite.world.stack.db.knex('publications').where({ market }).orderBy('seq', 'desc').first()) as {
        ask_words: string;
        bid_words: string;
      };
    }
    const verify = async () => {
      const { curveBook, entrypoint, orderSettler } = suite.world.chain.manifest.contracts as unknown as Record<
        string,
        Address
      >;
      return verifyLedger({
        db: suite.world.stack.db,
        deploymentId: 'double',
        deploymentBlock: 1,
        operator: suite.world.chain.address('owner'),
        contracts: { custodian: suite.world.vault, curveBook: curveBook!, entrypoint: entrypoint!, orderSettler },
        rpc: null,
        onProgress: () => undefined,
      });
    };

    for (const [what, one] of name === 'SQLite' ? CASES : firstOfEach(CASES)) {
      it(`${what}: its market stops, all else goes on, and it is over by itself`, async () => {
        await start(one.reverts === undefined ? {} : { reverts: one.reverts });
        liesEverywhere('DAI', one);
        await suite.world.step(2);
        expect(await codes('DAI')).to.deep.equal([`quarantined ${one.code}`]);
        expect([await codes('WETH'), await codes('USDC'), await suite.world.haltCode()]).to.deep.equal([
          [],
          [],
          undefined,
        ]);
        expect(suite.world.stack.watcher.status().findings.map(({ token }) => token)).to.deep.equal([
          suite.world.token('DAI'),
        ]);

        // An empty curve once for its own market, and the other one as ever.
        await quote(WETH_USDC, 299_900n);
        expect(await posted()).to.have.members(['WETH-USDC', 'WETH-DAI']);
        expect((await live(WETH_DAI)).ask_words).to.equal('[]');
        expect((await live(WETH_USDC)).ask_words).not.to.equal('[]');
        await quote(WETH_DAI, 299_800n);
        await quote(WETH_USDC, 299_700n);
        expect(await posted()).to.deep.equal(['WETH-USDC']);
        expect(suite.world.stack.poster.status().skipped[TOKEN_QUARANTINED]).to.be.greaterThan(0);
        expect(suite.world.stack.poster.status().skipped[BELOW_FLOOR] ?? 0).to.equal(0);

        const before = await fills();
        await suite.world.sell('taker1', 'USDC', 'WETH', 1_000n * USDC);
        await suite.world.custody('maker2', 'requestWithdraw', suite.world.token('USDC'), 10n * USDC);
        await suite.world.custody('maker2', 'requestWithdraw', suite.world.token('DAI'), 10n * WETH);
        await suite.world.step();
        expect(await fills()).to.equal(before + 1);
        const { settlements } = await suite.world.stack.settler.round();
        expect(settlements.map(({ token }) => token)).to.deep.equal([suite.world.token('USDC')]);
        await suite.world.step();
        expect(
          (await readClaim(suite.world.stack.db.knex, { maker: suite.other, token: suite.world.token('USDC') }))
            .claimUnits,
        ).to.equal(10n * USDC);
        await verify();

        truth();
        await suite.world.step();
        await suite.world.wait(70);
        await suite.world.step(2);
        expect(await codes('DAI'), 'over').to.deep.equal([]);
        await quote(WETH_DAI, 299_600n);
        expect(await posted()).to.include('WETH-DAI');
        expect((await live(WETH_DAI)).ask_words).not.to.equal('[]');
        const later = await suite.world.stack.settler.round();
        expect(later.settlements.map(({ token }) => token)).to.include(suite.world.token('DAI'));
        await suite.world.step();
        expect(await suite.world.haltCode()).to.equal(undefined);
      });
    }

    it('two of three tokens that an issuer takes back at once: their markets stop, what is backed is traded and paid', async () => {
      await start();
      await suite.world.rob('DAI', 3n);
      await suite.world.rob('USDC', 2n);
      await suite.world.step(2);
      expect([
        await codes('DAI'),
        await codes('USDC'),
        await codes('WETH'),
        await suite.world.haltCode(),
      ]).to.deep.equal([['quarantined shortfall'], ['quarantined shortfall'], [], undefined]);
      expect(suite.world.stack.watcher.status().findings).to.have.length(2);
      // Neither of its markets may stay open, and nobody is paid from what is missing.
      await posted();
      expect([(await live(WETH_USDC)).ask_words, (await live(WETH_DAI)).ask_words]).to.deep.equal(['[]', '[]']);
      for (const token of ['WETH', 'USDC', 'DAI'])
        await suite.world.custody('maker2', 'requestWithdraw', suite.world.token(token), 10n);
      await suite.world.step();
      const { settlements } = await suite.world.stack.settler.round();
      expect(settlements.map(({ token }) => token)).to.deep.equal([suite.world.token('WETH')]);
      await verify();

      // What is paid in ends it, token by token.
      await suite.world.give('DAI', 3n);
      await suite.world.wait(70);
      await suite.world.step();
      await suite.world.wait(70);
      await suite.world.step();
      expect([await codes('DAI'), await codes('USDC')]).to.deep.equal([[], ['quarantined shortfall']]);
      await quote(WETH_DAI, 299_000n);
      expect(await posted()).to.deep.equal(['WETH-DAI']);
    });

    it('the third of three that transfers take is one too many: nothing is backed any more', async () => {
      await start();
      await suite.world.rob('DAI', 3n);
      await suite.world.rob('USDC', 2n);
      await suite.world.step(2);
      expect(await suite.world.haltCode()).to.equal(undefined);
      await suite.world.rob('WETH', 1n);
      await suite.world.step(2);
      expect(await suite.world.haltCode()).to.equal('shortfall');
    });

    it('a reorganisation while a token is short halts nothing for longer than itself', async () => {
      await start();
      await suite.world.rob('DAI', 3n);
      await suite.world.step(2);
      const { curveBook, custodian, entrypoint } = suite.world.chain.manifest.contracts as unknown as Record<
        string,
        Address
      >;
      const causes = async (): Promise<string[]> =>
        (
          await standingCauses({
            ...{
              db: suite.world.stack.db,
              rpc: suite.world.pool,
              deploymentBlock: 1,
              operator: null,
              nowMs: Date.now(),
            },
            contracts: { curveBook: curveBook!, custodian: custodian!, entrypoint: entrypoint! },
          })
        ).map(({ halt }) => halt.code);
      const writer = await acquireWriter(suite.world.stack.db, 'operator');
      await writer.tx((tx) =>
        insertHalt(tx, { code: 'canonical_mismatch', message: 'block 9 is another one', timeMs: 1 }),
      );
      await writer.release();
      expect(await causes(), 'one token is its own matter').to.deep.equal([]);
    });

    it('whoever makes a token lie gains nothing: no number of withdrawals in it holds up those in others', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await suite.world.step(2);
      await suite.world.custody('maker2', 'requestWithdraw', suite.world.token('USDC'), 10n * USDC);
      await suite.world.step();
      // As many strangers as one round looks at, with balances and older requests in the token whose owner they are.
      const { generation } = { generation: suite.world.stack.watcher.status().inventoryRevision };
      const strangers = Array.from(
        { length: 1_001 },
        (_, i) => `0x${'e'.repeat(36)}${i.toString(16).padStart(4, '0')}`,
      );
      await suite.world.stack.stop();
      const writer = await acquireWriter(suite.world.stack.db, 'ledger');
      await writer.tx(async (tx) => {
        const token = suite.world.token('DAI');
        const row = { token, generation };
        const balances = strangers.map((account) => ({
          ...row,
          ...{ account, balance_units: '1', reserved_units: '1', net_capital_units: '1' },
        }));
        await insertAll(tx, 'balances', balances);
        const claims = strangers.map((one) => ({
          ...row,
          ...{ maker: one, claim_units: '0', basis: '0', outstanding_units: '1', advance_units: '0' },
          ...{ ready_at_sec: null, pending_since_block: 1 },
        }));
        await insertAll(tx, 'claims', claims);
      });
      await writer.release();
      suite.world = await startTokenWorld(suite.world.stack.db, { endpoints: 2, chain: suite.world.chain });
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await suite.world.step();
      const { settlements } = await suite.world.stack.settler.round();
      expect(settlements.map(({ maker: to, token }) => [to, token])).to.deep.equal([
        [suite.other, suite.world.token('USDC')],
      ]);
    });
  }),
);
