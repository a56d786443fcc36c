import { readCapitalOrigin } from '../../ledger/capital-origin.js';
import { custodyEventsOf, readClaimsOf, readTakerFees } from '../../ledger/claims.js';
import { readTx } from '../../ledger/db.js';
import { fillSeqs, fillWithLegs, lastGeneration, makerBalances, recentFills } from '../../ledger/reads.js';
import type { Db } from '../../ledger/types.js';
import type { ReadStore } from './deps.js';

/** The read API's view of the database. What one answer says is one state, even while a generation commits. */
export function createReadStore(db: Db): ReadStore {
  return {
    accountState: (account) =>
      readTx(db, async (tx) => ({
        generation: await lastGeneration(tx),
        balances: await makerBalances(tx, account),
        fillSeqs: await fillSeqs(tx),
        capitalOrigin: await readCapitalOrigin(tx),
      })),
    recentFills: (market, limit) => recentFills(db.knex, market, limit),
    takerFees: () => readTakerFees(db.knex),
    withdrawals: (account, limit) =>
      readTx(db, async (tx) => ({
        claims: await readClaimsOf(tx, [account]),
        events: await custodyEventsOf(tx, account, limit),
      })),
    explainedFill: (market, fillSeq) => readTx(db, (tx) => fillWithLegs(tx, market, fillSeq)),
  };
}
