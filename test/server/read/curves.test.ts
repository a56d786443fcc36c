/** What `/v0/curves` shows of the book behind a curve, over a ledger whose curves are hit, prolonged by touches and replaced. */
import { expect } from 'chai';
import type { z } from 'zod';
import { curveSchema } from '../../../server/read/curve.js';
import { fillsPage } from '../../../ledger/market-data/history.js';
import { forOneDatabase } from '../../support/db.js';
import { WETH_USDC } from '../../support/markets.js';
import { startReadServer } from '../../support/api/read-server.js';
import { drawer } from '../../support/random.js';
import { createTradedLedger } from '../../support/worlds/traded-ledger.js';

type Curve = z.infer<typeof curveSchema>;

const STEPS = 25;

forOneDatabase((name, open) =>
  describe(`the book behind a curve, ${name}`, () => {
    it('is hidden while a touch of the curve can be executed, and shown once none can', async () => {
      const db = await open();
      const ledger = await createTradedLedger(db, [WETH_USDC], drawer(7));
      const server = await startReadServer(db, [WETH_USDC]);
      const read = async (seq: number): Promise<Curve | null> => {
        const { status, body } = await server.get(`/v0/curves/${WETH_USDC.pair}/${seq}`);
        return status === 404 ? null : curveSchema.parse(body);
      };
      const hidden = new Set<number>();
      const shown = new Set<number>();
      try {
        for (let step = 0; step < STEPS; step += 1) {
          await ledger.step();
          const hit = new Set((await fillsPage(db.reads, { market: 0, limit: 12 })).map((fill) => fill.curveSeq));
          const newest = Math.max(0, ...hit) + 12;
          const curves: Curve[] = [];
          for (let seq = Math.max(1, Math.min(...hit)); seq <= newest; seq += 1) {
            const curve = await read(seq);
            if (curve !== null) curves.push(curve);
          }
          const live = curves.find(({ state }) => state === 'landed')?.prepared?.snapshot_hash;
          for (const { curve_seq, state, prepared, snapshot } of curves.filter((one) => hit.has(one.curve_seq))) {
            const isLive = prepared?.snapshot_hash === live;
            expect(snapshot === null, `curve ${curve_seq}, ${state}, step ${step}`).to.equal(isLive);
            if (snapshot !== null) shown.add(curve_seq);
            else if (state !== 'landed') hidden.add(curve_seq);
          }
        }
      } finally {
        await server.close();
      }
      expect(hidden.size, 'hidden by a touch').to.be.greaterThan(0);
      expect([...hidden].filter((seq) => shown.has(seq)).length, 'of them shown later').to.be.greaterThan(0);
    });
  }),
);
