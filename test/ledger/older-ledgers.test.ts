/**
 * Databases that earlier states of the project made open, are brought up to date, verify, and go on: whatever migrations have come since.
 */
import { expect } from 'chai';
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { HDNodeWallet } from 'ethers';
import { SANDBOX_MNEMONIC } from '../../deploy/sandbox/accounts.js';
import type { Leg } from '../../core/types.js';
import { depositEntries } from '../../keepers/watcher/derive/postings.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { verifyLedger, type VerifyReport } from '../../keepers/verify/verify.js';
import { commitGeneration, lastGeneration, readBalances, readMarkets } from '../../ledger/chain/ledger-log.js';
import { boundDeployment, migrate, prepareDb } from '../../ledger/db/db.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { migrations } from '../../ledger/migrations/index.js';
import { readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import type { Db } from '../../ledger/types.js';
import { fillSeqs, fillWithLegs } from '../../ledger/views/reads.js';
import { SPOT_ASSET_BASE } from '../../server/orders/limits.js';
import { forEachDatabase } from '../support/db.js';
import { startGateway } from '../support/gateway.js';
import { nothingWritten } from '../support/generations.js';
import { closeOlderLedger, olderLedgers, openOlderLedger, type OlderLedger } from '../support/worlds/older-ledgers.js';
import { layoutOf } from '../support/worlds/layout.js';

forEachDatabase((name, _open, openBare) =>
  describe(`ledgers of earlier states on ${name}`, function () {
    this.timeout(60_000);
    const kind = name === 'SQLite' ? 'sqlite' : 'pg';
    const ledgers = olderLedgers(kind);

    it('are there', () => expect(ledgers).not.to.have.lengthOf(0));

    for (const ledger of ledgers)
      describe(ledger.name, () => {
        let db: Db;

        beforeEach(async () => {
          db = await openOlderLedger(ledger, openBare);
          await prepareDb(db, ledger.deploymentId);
        });
        afterEach(() => closeOlderLedger(db));

        it('was made before some of the migrations, and has the tables of a new database after them', async () => {
          const copy = await openOlderLedger(ledger, openBare);
          const ran = await copy.knex<{ name: string }>('knex_migrations').orderBy('id').pluck('name');
          expect(ran.at(-1)).to.equal(ledger.migration);
          expect(await boundDeployment(copy)).to.equal(ledger.deploymentId);
          await closeOlderLedger(copy);
          const now = await db.knex<{ name: string }>('knex_migrations').pluck('name');
          expect(now).to.have.members(migrations.map((step) => step.name));
          const fresh = await openBare();
          await migrate(fresh);
          expect(await layoutOf(db)).to.deep.equal(await layoutOf(fresh));
        });

        it('verifies, with all that it held', async () => {
          expect(await verify(db, ledger)).to.deep.include(ledger.holds);
          const balances = await readBalances(db.knex);
          expect(balances.map((row) => `${row.account} ${row.token} ${row.balanceUnits}`)).to.deep.equal(
            ledger.balances,
          );
          const { market, fillSeq, legs } = ledger.fill;
          const { decomposition } = (await fillWithLegs(db.knex, market, fillSeq))!;
          expect(decomposition.legs.map(textOf)).to.deep.equal(legs);
          // Books that were JSON are packed, the same in what they say: curves were verified against them.
          const books = await db.knex('snapshots').select<{ payload: string }[]>('payload');
          expect(books).not.to.have.lengthOf(0);
          for (const { payload } of books) expect(payload).not.to.match(/^\{/);
        });

        it('takes orders, a deposit and a checkpoint, and verifies after them', async () => {
          const before = await lastGeneration(db.knex);
          await trade(db, ledger);
          await depositOne(db, ledger);
          await cutCheckpoint(db);
          const report = await verify(db, ledger);
          const { holds } = ledger;
          expect(report).to.include({
            generation: before!.generation + 1,
            fills: holds.fills,
            checkpoints: holds.checkpoints! + 1,
          });
        });
      });
  }),
);

const textOf = ({ maker, priceTicks, baseUnits, quoteUnits, orders }: Leg): string =>
  [maker, priceTicks, baseUnits, quoteUnits, orders.map((one) => `${one.oid}:${one.baseUnits}`).join(',')].join(' ');

const verify = (db: Db, { deploymentId, deploymentBlock, operator, contracts }: OlderLedger): Promise<VerifyReport> =>
  verifyLedger({ db, deploymentId, deploymentBlock, operator, contracts, rpc: null, onProgress: () => undefined });

/** The gateway finds the maker's orders open, cancels one if there is any, and takes another. */
async function trade(db: Db, { maker }: OlderLedger): Promise<void> {
  const running = await startGateway(db, (writer) => writer, { referencePrices: {} });
  try {
    const transport = new HttpTransport({ apiUrl: running.url });
    const wallet = [...Array(20).keys()]
      .map((index) => HDNodeWallet.fromPhrase(SANDBOX_MNEMONIC, undefined, `m/44'/60'/0'/0/${index}`))
      .find(({ address }) => address.toLowerCase() === maker.address)!;
    const exchange = new ExchangeClient({ transport, wallet });
    const info = new InfoClient({ transport });
    const open = await info.openOrders({ user: maker.address });
    expect(open).to.have.lengthOf(maker.openOrders);
    const cancels = open.slice(0, 1).map(({ oid }) => ({ a: SPOT_ASSET_BASE, o: oid }));
    if (cancels.length > 0) await exchange.cancel({ cancels });
    const order = { a: SPOT_ASSET_BASE, b: true, p: '1000', s: '1', r: false, t: { limit: { tif: 'Gtc' as const } } };
    const { response } = await exchange.order({ orders: [order], grouping: 'na' });
    const [status] = response.data.statuses;
    if (typeof status !== 'object' || !('resting' in status)) throw new Error(`not resting: ${JSON.stringify(status)}`);
    expect(status.resting.oid).to.be.greaterThan(Math.max(0, ...open.map(({ oid }) => oid)));
    expect(await info.openOrders({ user: maker.address })).to.have.lengthOf(open.length - cancels.length + 1);
  } finally {
    await running.stop();
  }
}

/** The next generation, with a deposit of the maker in its block. */
async function depositOne(db: Db, { maker, operator }: OlderLedger): Promise<void> {
  const head = (await lastGeneration(db.knex))!;
  const [market] = await readMarkets(db.knex);
  const token = market!.quote.address;
  const unitsOf = async (): Promise<bigint> =>
    (await readBalances(db.knex)).find((row) => row.account === maker.address && row.token === token)!.balanceUnits;
  const units = await unitsOf();
  const number = head.toBlock + 1;
  const block = {
    ...{ number, hash: `0x${'b'.repeat(64)}` as const, parentHash: head.blockHash },
    timestampSec: Math.floor(head.blockTimestampMs / 1_000) + 2,
  };
  const txHash = `0x${'d'.repeat(64)}` as const;
  const amountUnits = 12_345_678n;
  const writer = await acquireWriter(db, 'ledger');
  const write = {
    ...nothingWritten(),
    ...{ generation: head.generation + 1, fromBlock: number, toBlock: number, blocks: [block] },
    ...{ scannedMs: head.scannedMs + 1, observedHead: number, observedHeadTimestampMs: block.timestampSec * 1_000 },
    custody: [
      {
        ...{ kind: 'deposited' as const, maker: maker.address, token, amountUnits, basis: null, readyAtSec: null },
        ...{ settlementNo: null, paidGas: 0n, blockNumber: number, txHash, logIndex: 0 },
      },
    ],
    entries: depositEntries(`deposited:${txHash}:0`, maker.address, token, amountUnits),
    netCapital: [{ account: maker.address, token, deltaUnits: amountUnits }],
  };
  await writer.tx((tx) => commitGeneration(tx, db, write, { operator }));
  await writer.release();
  expect(await unitsOf()).to.equal(units + amountUnits);
}

/** The settler's next checkpoint, on the state that the stored ones add up to. */
async function cutCheckpoint(db: Db): Promise<void> {
  const checkpointer = createCheckpointer(db);
  const changed = await readBalancesSince(db.knex, await checkpointer.generation());
  expect(changed, 'no balance changed since').not.to.have.lengthOf(0);
  const view = {
    head: (await lastGeneration(db.knex))!,
    changed,
    ackFillSeqs: Object.fromEntries(await fillSeqs(db.knex)),
  };
  const cut = await checkpointer.cut(view, Date.now());
  const writer = await acquireWriter(db, 'settlement');
  await checkpointer.commit(cut, (store) => writer.tx(store));
  await writer.release();
}
