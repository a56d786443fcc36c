import { expect } from 'chai';
import { pino } from 'pino';
import { createReplicaWatch } from '../../keepers/replica-lag.js';
import type { ReplicaLag } from '../../ledger/db/replica.js';

describe('the lag of a reader', () => {
  const setUp = () => {
    const told: boolean[] = [];
    const state: { nowMs: number; lag: ReplicaLag | Error } = { nowMs: 1_000, lag: { isReplica: true, lagMs: null } };
    const watch = createReplicaWatch({
      db: null as never,
      maxLagMs: 5_000,
      monotonicMs: () => state.nowMs,
      logger: pino({ level: 'silent' }),
      onChange: (isBehind) => void told.push(isBehind),
      read: () => (state.lag instanceof Error ? Promise.reject(state.lag) : Promise.resolve(state.lag)),
    });
    return { told, state, watch };
  };

  it('is behind until the database has said otherwise', async () => {
    const { told, watch } = setUp();
    expect([watch.isBehind(), watch.lagMs()]).to.deep.equal([true, null]);
    await watch.look();
    expect([watch.isBehind(), watch.lagMs(), told]).to.deep.equal([true, null, []]);
  });

  it('tells each change once, at the bound and beyond it', async () => {
    const { told, state, watch } = setUp();
    for (const [lagMs, isBehind] of [
      [5_000, false],
      [0, false],
      [5_001, true],
      [9_000, true],
      [4_999, false],
    ] as const) {
      state.lag = { isReplica: true, lagMs };
      await watch.look();
      expect([watch.isBehind(), watch.lagMs()]).to.deep.equal([isBehind, lagMs]);
    }
    expect(told).to.deep.equal([false, true, false]);
  });

  it('grows while the database does not answer, so that a dead one is not taken for a fresh one', async () => {
    const { told, state, watch } = setUp();
    state.lag = { isReplica: true, lagMs: 100 };
    await watch.look();
    state.lag = new Error('gone');
    state.nowMs += 4_900;
    await watch.look().catch(() => undefined);
    expect([watch.isBehind(), watch.lagMs()]).to.deep.equal([false, 5_000]);
    state.nowMs += 1;
    expect(watch.isBehind(), 'before the next look, too').to.equal(true);
    await watch.look().catch(() => undefined);
    expect(told).to.deep.equal([false, true]);
  });
});
