/**
 * A deployment in virtual time: batches arrive at random, are served by edges and then by the sequencer of their shard, in order, and are
 * committed in groups, as the group commit does: whatever waits when a commit ends goes into the next one. It shows how long answers take when the model
 * says how busy each part is. Pure: a seed gives the same run.
 */

interface SimulatedParts {
  /** Shards, each with a sequencer. A batch is of one of them. */
  shards: number;
  /** Edges that all shards share; 0 when the sequencer does all by itself. */
  edges: number;
  /** CPU milliseconds per batch on an edge, and on the sequencer. */
  edgeMs: number;
  sequencerMs: number;
  /** How long a commit takes, which costs the sequencer no time. */
  commitMs: number;
}

export interface SimulatedRun {
  batches: number;
  /** Share of the time in which a sequencer, and an edge, is busy: the busiest one. */
  sequencerUse: number;
  edgeUse: number;
  /** Milliseconds from a batch's arrival to the commit that acknowledges it. */
  p50Ms: number;
  p99Ms: number;
  /** Batches that were not served when the time was over. */
  waiting: number;
  /** Batches per commit, on average. */
  perCommit: number;
}

/** Numbers from 0 to 1, the same for a seed: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Servers of which each does one thing after the other; each thing goes to the one that is free first. */
function createServers(count: number) {
  const freeAtMs = Array.from({ length: count }, () => 0);
  const busyMs = Array.from({ length: count }, () => 0);
  return {
    /** When it is done. */
    serve(atMs: number, takesMs: number, own?: number): number {
      const at = own ?? freeAtMs.indexOf(Math.min(...freeAtMs));
      const doneMs = Math.max(atMs, freeAtMs[at]!) + takesMs;
      freeAtMs[at] = doneMs;
      busyMs[at]! += takesMs;
      return doneMs;
    },
    use: (seconds: number): number => Math.max(0, ...busyMs) / (seconds * 1_000),
  };
}

/** Runs so many seconds of arrivals at a rate. Throws RangeError for none. */
export function simulate(parts: SimulatedParts, batchesPerSec: number, seconds: number, seed: number): SimulatedRun {
  if (!(batchesPerSec > 0 && seconds > 0 && parts.shards > 0))
    throw new RangeError('a run has arrivals, time and shards');
  const random = randomOf(seed);
  const edges = createServers(Math.max(parts.edges, 1));
  const sequencers = createServers(parts.shards);
  const commits = Array.from({ length: parts.shards }, () => ({ nextMs: 0, count: 0, waiting: 0 }));
  const endMs = seconds * 1_000;
  // A batch reaches its sequencer in the order in which edges are done with it.
  const arrivals: { atMs: number; arrivedMs: number; shard: number }[] = [];
  for (let atMs = 0; ;) {
    atMs += (-Math.log(1 - random()) * 1_000) / batchesPerSec;
    if (atMs >= endMs) break;
    const reachedMs = parts.edges === 0 ? atMs : edges.serve(atMs, parts.edgeMs);
    arrivals.push({ atMs: reachedMs, arrivedMs: atMs, shard: Math.floor(random() * parts.shards) });
  }
  arrivals.sort((a, b) => a.atMs - b.atMs);
  const times: number[] = [];
  let waiting = 0;
  for (const { atMs, arrivedMs, shard } of arrivals) {
    const judgedMs = sequencers.serve(atMs, parts.sequencerMs, shard);
    const commit = commits[shard]!;
    // The commit in progress takes nothing more: what is judged after it has begun waits for the next one.
    if (judgedMs > commit.nextMs) {
      commit.nextMs = Math.max(judgedMs, commit.nextMs + parts.commitMs);
      commit.count += 1;
    }
    const answeredMs = commit.nextMs + parts.commitMs;
    if (answeredMs > endMs) waiting += 1;
    else times.push(answeredMs - arrivedMs);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  return {
    batches: arrivals.length,
    sequencerUse: sequencers.use(seconds),
    edgeUse: parts.edges === 0 ? 0 : edges.use(seconds),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    waiting,
    perCommit:
      arrivals.length /
      Math.max(
        1,
        commits.reduce((sum, { count }) => sum + count, 0),
      ),
  };
}
