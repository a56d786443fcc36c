/** States of accounts from memory are those of the database, whatever was committed, reversed or restarted between two requests. */
import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { commitGeneration } from '../../../ledger/chain/ledger-log.js';
import { readCapitalOrigin, restartCapital } from '../../../ledger/chain/operator-capital.js';
import { reverseGenerations } from '../../../ledger/chain/reversals.js';
import { readTx } from '../../../ledger/db/db.js';
import { fillSeqs, lastGeneration, makerBalances } from '../../../ledger/views/reads.js';
import type { Db, GenerationWrite } from '../../../ledger/types.js';
import { createAccountStates } from '../../../server/read/account-states.js';
import type { AccountState } from '../../../server/read/deps.js';
import { forEachDatabase } from '../../support/db.js';
import { blockOf, deposit, fillOf, generationOf, OPERATOR, withFills } from '../../support/generations.js';
import { MAKERS, USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const MARKETS = [WETH_USDC, WETH_DAI];
const WEI = 10n ** 18n;
const [alice, bob, carol] = MAKERS as [Address, Address, Address];

describe('states of accounts from memory', () => {
  forEachDatabase((_name, open) => {
    let db: Db;
    let stateOf: (account: Address) => Promise<AccountState>;
    let statements: number;

    beforeEach(async () => {
      db = await open();
      stateOf = createAccountStates(db);
      statements = 0;
      db.reads.on('query', ({ sql }: { sql: string }) => {
        if (/^select/i.test(sql)) statements += 1;
      });
    });

    const commit = (n: number, change: Partial<GenerationWrite>): Promise<void> =>
      db.knex.transaction(async (tx) => {
        await commitGeneration(tx, db, generationOf(n, change), { operator: OPERATOR });
      });

    /** As they are read by themselves. */
    const stored = (account: Address): Promise<AccountState> =>
      readTx(db, async (tx) => ({
        generation: await lastGeneration(tx),
        balances: await makerBalances(tx, account),
        fillSeqs: await fillSeqs(tx),
        capitalOrigin: await readCapitalOrigin(tx),
      }));

    async function check(what: string): Promise<void> {
      for (const account of [alice, bob, carol, OPERATOR]) {
        expect(await stateOf(account), `${what}, ${account}`).to.deep.equal(await stored(account));
      }
    }

    const both = (n: number): Partial<GenerationWrite> => {
      const [one, other] = [
        deposit(n, 0, alice, WETH.address, 10n * WEI),
        deposit(n, 1, bob, USDC.address, 10n ** 12n),
      ];
      return {
        custody: [...one.custody, ...other.custody],
        entries: [...one.entries, ...other.entries],
        netCapital: [...one.netCapital, ...other.netCapital],
      };
    };
    const sale = (n: number, fillSeq: number): Partial<GenerationWrite> =>
      withFills(MARKETS, [
        fillOf(n, WETH_USDC, fillSeq, 'ask', [{ oid: 1, maker: alice, priceTicks: 250_000n, baseUnits: WEI }]),
      ]);

    it('follow generations, reversals and restarts of the counters', async () => {
      await check('before the first scan');
      await commit(1, { listed: MARKETS });
      await check('without a balance');
      await commit(2, both(2));
      await check('after deposits');
      await commit(3, sale(3, 1));
      await check('after a fill, which adds a row of another token');
      await commit(4, { ...deposit(4, 0, bob, USDC.address, 7n) });
      await db.knex.transaction(async (tx) => {
        const block = { number: 102, hash: blockOf(102).hash, timestampMs: blockOf(102).timestampSec * 1_000 };
        const request = { headGeneration: 4, keptGeneration: 2, block, depth: 2 };
        await reverseGenerations(tx, request, { operatorSeq: 1, timeMs: 5 });
      });
      await check('after a reversal');
      await db.knex.transaction(async (tx) => void (await restartCapital(tx, { operatorSeq: 2, timeMs: 6 })));
      await check('after a restart of the counters');
    });

    it('forget what another database had stored under the same numbers', async () => {
      await commit(1, { listed: MARKETS });
      await commit(2, both(2));
      await check('after deposits');
      await db.knex('generations').where('generation', 2).update('block_hash', blockOf(77).hash);
      await db
        .knex('balances')
        .where('account', alice)
        .update('balance_units', String(3n * WEI));
      const blocks = [{ ...blockOf(103), parentHash: blockOf(77).hash }];
      await commit(3, { ...deposit(3, 0, bob, USDC.address, 7n), blocks });
      await check('after a generation of the other database');
    });

    it('look once for all requests that come meanwhile, and read an account once', async () => {
      await commit(1, { listed: MARKETS });
      await commit(2, both(2));
      await stateOf(alice);
      await stateOf(bob);
      statements = 0;
      await Promise.all(Array.from({ length: 50 }, (_, i) => stateOf(i % 2 === 0 ? alice : bob)));
      expect(statements, 'one look by the first request, and one by all others').to.equal(2);
      await commit(3, sale(3, 1));
      statements = 0;
      const state = await stateOf(alice);
      expect(state.fillSeqs.get(WETH_USDC.index)).to.equal(1);
      const once = statements;
      statements = 0;
      await stateOf(bob);
      expect(statements, `after ${once} for the generation`).to.equal(1);
    });

    it('read an account once for all who ask for it at the same time', async () => {
      await commit(1, { listed: MARKETS });
      await commit(2, both(2));
      await stateOf(bob);
      statements = 0;
      await stateOf(carol);
      const alone = statements;
      statements = 0;
      const states = await Promise.all(Array.from({ length: 40 }, () => stateOf(alice)));
      expect(statements, 'and one more look by those that came during the first').to.be.at.most(2 * alone);
      for (const state of states) expect(state).to.deep.equal(await stored(alice));
    });

    it('never answer from before a commit that the request came after', async () => {
      await commit(1, { listed: MARKETS });
      await stateOf(alice);
      for (let n = 2; n < 8; n += 1) {
        const early = stateOf(alice);
        await commit(n, deposit(n, 0, alice, WETH.address, WEI));
        const late = await Promise.all([stateOf(alice), stateOf(alice)]);
        expect(late.map(({ generation }) => generation?.generation)).to.deep.equal([n, n]);
        expect(late[0]?.balances[0]?.balanceUnits).to.equal(BigInt(n - 1) * WEI);
        await early;
      }
    });

    it('are forgotten beyond their limit, least recently asked for first', async () => {
      await commit(1, { listed: MARKETS });
      await commit(2, both(2));
      stateOf = createAccountStates(db, 2);
      for (const account of [alice, bob, alice, carol]) await stateOf(account);
      statements = 0;
      await stateOf(alice);
      await stateOf(carol);
      expect(statements).to.equal(2);
      await stateOf(bob);
      expect(statements, 'read again').to.be.greaterThan(3);
    });
  });
});
