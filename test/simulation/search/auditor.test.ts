import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openDb, prepareDb } from '../../../ledger/db/db.js';
import type { Db } from '../../../ledger/types.js';
import { createAuditor, type Auditor } from '../auditor.js';
import type { Backend } from '../processes.js';
import type { Simulation } from '../world.js';

const MAKER = `0x${'aa'.repeat(20)}` as const;
const TOKEN = `0x${'11'.repeat(20)}` as const;
const BLOCK_HASH = `0x${'b1'.repeat(32)}` as const;
const REORG_MS = 100_000;

describe('the auditor of the simulation', () => {
  let folder: string;
  let db: Db;
  let auditor: Auditor;
  let nowMs: number;
  let generation: number;
  let settlementNo: number;
  /** What the vault truly holds; null for a block that the chain does not have any more. */
  let held: bigint | null;
  const violations: string[] = [];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-auditor-'));
    const path = join(folder, 'audited.db');
    db = await openDb(`sqlite:${path}`);
    await prepareDb(db, 'audited');
    [nowMs, generation, settlementNo, held] = [0, 0, 0, null];
    violations.length = 0;
    const block = { number: 9, hash: BLOCK_HASH, parentHash: '0x', receipts: [] };
    const [custodian, curveBook, entrypoint, orderSettler] = ['0x01', '0x02', '0x03', '0x04'];
    const contracts = { custodian, curveBook, entrypoint, orderSettler };
    const world = {
      chain: {
        setting: { address: () => `0x${'00'.repeat(20)}`, manifest: { contracts } },
        byHash: (hash: string) => (hash === BLOCK_HASH ? block : undefined),
        at: () => (held === null ? undefined : block),
        held: () => held,
      },
      record: { count() {}, trace() {}, most() {}, violate: (what: string) => violations.push(what) },
      scheduler: { nowMs: () => nowMs },
    };
    const promises = { placed: new Map(), canceled: new Set<number>() };
    const backend = { config: { SWAP_MAX_SENDS: 9 } } as unknown as Backend;
    const isSilent = (): boolean => false;
    auditor = createAuditor(world as unknown as Simulation, backend, promises, () => REORG_MS, path, isSilent);
  });
  afterEach(async () => {
    auditor.close();
    await db.close();
    rmSync(folder, { recursive: true });
  });

  /** A settlement that is prepared at a time, as the auditor sees it after the commit. */
  async function settles(atMs: number, amountUnits: string, previousUnits: string): Promise<void> {
    nowMs = atMs;
    settlementNo += 1;
    const cut = { cut_generation: 1, cut_block: 1, checkpoint_seq: 1, prepared_ms: atMs };
    const row = { maker: MAKER, token: TOKEN, tx_key: `settle:${settlementNo}`, basis: '1', operator_seq: null };
    const amounts = { amount_units: amountUnits, previous_units: previousUnits };
    await db
      .knex('settlements')
      .insert({ settlement_no: settlementNo, ...cut, ...row, ...amounts, prepared_by: 'settler' });
    auditor.committed(new Set(['settlements']));
    auditor.afterStep();
  }

  /** A generation with balances of 100 and a claim of 110 units; with the halt that says so, unless it is false. */
  async function books(atMs: number, isHalted: boolean, claimUnits = '110'): Promise<void> {
    nowMs = atMs;
    generation += 1;
    if (generation === 1) {
      const claim = {
        maker: MAKER,
        token: TOKEN,
        claim_units: claimUnits,
        basis: '1',
        outstanding_units: '0',
        generation,
      };
      await db.knex('claims').insert(claim);
      for (const [account, balance_units] of [
        [MAKER, '100'],
        ['vault', '-100'],
      ] as const) {
        const row = { account, token: TOKEN, generation, balance_units, reserved_units: '0', net_capital_units: '0' };
        await db.knex('balances').insert(row);
      }
      if (isHalted)
        await db
          .knex('halts')
          .insert({ halt_no: 1, time_ms: atMs, code: 'unbacked_claim', message: '', generation, from_block: null });
    }
    const times = { block_timestamp_ms: atMs, scanned_ms: atMs, observed_head_timestamp_ms: atMs };
    const blocks = { from_block: generation, to_block: generation, observed_head: generation, block_hash: BLOCK_HASH };
    await db.knex('generations').insert({ generation, ...times, ...blocks });
    auditor.committed(new Set(['generations', 'halts']));
    auditor.afterStep();
  }

  describe('of claims after a reorganisation', () => {
    it('excuses a claim that was raised before, also while it is being lowered, for as long as the halt stands', async () => {
      await settles(REORG_MS - 5_000, '110', '0');
      await books(REORG_MS + 20_000, true);
      // The settler was out of reach, and lowers it at last: the block with that is still to come.
      await settles(REORG_MS + 60_000, '100', '110');
      await books(REORG_MS + 61_000, true);
      expect(violations).to.deep.equal([]);
    });

    it('finds a claim that was raised when everybody knew of the reorganisation', async () => {
      await settles(REORG_MS - 5_000, '90', '0');
      await settles(REORG_MS + 60_000, '110', '90');
      await books(REORG_MS + 61_000, true);
      expect(violations.join()).to.include('over-claim');
    });

    it('finds a claim above its balance that no halt tells', async () => {
      await settles(REORG_MS - 5_000, '110', '0');
      await books(REORG_MS + 20_000, false);
      expect(violations.join()).to.include('over-claim');
    });

    it('finds one for which the halt stands longer than a reorganisation explains', async () => {
      await settles(REORG_MS - 5_000, '110', '0');
      await books(REORG_MS + 20_000, true);
      await books(REORG_MS + 121_000, true);
      expect(violations.join()).to.include('over-claim');
    });
  });

  describe('of what the vault holds beyond the ledger', () => {
    /** Bookings without a claim, the vault with 30 units more. */
    async function looks(...timesMs: number[]): Promise<void> {
      held = 130n;
      for (const atMs of timesMs) await books(atMs, false, '0');
    }

    async function notes(table: 'halts' | 'reversals', row: object): Promise<void> {
      await db.knex(table).insert(row);
      auditor.committed(new Set([table]));
      auditor.afterStep();
    }

    it('lets it wait for the minute in which it is not booked again, and a scan, and no longer', async () => {
      await looks(REORG_MS, REORG_MS + 85_000);
      expect(violations).to.deep.equal([]);
      await looks(REORG_MS + 85_001);
      expect(violations.join()).to.include('conservation: the vault has 130').and.to.include('for 85001 ms');
    });

    it('counts no time in which the ledger was halted, or put back to an earlier block', async () => {
      const halt = { halt_no: 1, time_ms: 1, code: 'canonical_mismatch', message: '', generation: 1, from_block: 1 };
      await looks(REORG_MS);
      nowMs = REORG_MS + 50_000;
      await notes('halts', halt);
      const reversal = { generation: 2, kept_generation: 0, clears_halt_no: 1, from_block: 1, to_block: 1, depth: 1 };
      await notes('reversals', { ...reversal, time_ms: 1, operator_seq: 1 });
      generation = 2;
      await looks(REORG_MS + 90_000, REORG_MS + 175_000);
      expect(violations).to.deep.equal([]);
      await looks(REORG_MS + 175_001);
      expect(violations.join()).to.include('conservation');
    });
  });
});
