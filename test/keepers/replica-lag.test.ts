import { expect } from 'chai';
import { pino } from 'pino';
import { createReplicaWatch } from '../../keepers/replica-lag.js';
import { until } from '../support/stack.js';
import type { ReplicaLag } from '../../ledger/db/replica.js';

describe('the lag of a reader', () => {
  const setUp = () => {
    const told: boolean[] = [];
    const state: { nowMs: number; lag: ReplicaLag | Error | null } = {
      nowMs: 1_000,
      lag: { isReplica: true, lagMs: null },
    };
    const watch = createReplicaWatch({
      db: null as never,
      maxLagMs: 5_000,
      monotonicMs: () => state.nowMs,
      logger: pino({ level: 'silent' }),
      onChange: (isBehind) => void told.push(isBehind),
      read() {
        if (state.lag === null) return new Promise<never>(() => undefined);
        return state.lag instanceof Error ? Promise.reject(state.lag) : Promise.resolve(state.lag);
      },
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

  it('is told while the database says nothing at all', async () => {
    const { told, state, watch } = setUp();
    state.lag = { isReplica: true, lagMs: 0 };
    await watch.look();
    state.lag = null;
    const silent = watch.look().catch((error: unknown) => error);
    state.nowMs += 5_001;
    await until('those who are served to be told', () => Promise.resolve(told.length === 2));
    expect(told).to.deep.equal([false, true]);
    expect(await silent).to.be.instanceOf(Error);
  });
});
