/**
 * Everything that chance decides in a simulation. Each draw depends on the seed, on what is decided and on how often that was decided before,
 * and on nothing else: one decision that is taken out leaves all others as they are, which is what makes a failing run shrink.
 */

export interface Decisions {
  readonly seed: number;
  /** Whether something out of the ordinary happens here. Only these are recorded, and only these can be taken out. */
  happens(what: string, probability: number): boolean;
  /** A whole number of `from..to`. */
  int(what: string, from: number, to: number): number;
  pick<T>(what: string, from: readonly T[]): T;
  /** A number of 0 up to 1 from a stream of its own. */
  unit(what: string): number;
  /** The same, for what is drawn often. */
  stream(what: string): () => number;
  /** What happened, as `what#n`, in order. */
  readonly taken: readonly string[];
}

/** With `only`, everything else that could happen does not. */
export function createDecisions(seed: number, only: ReadonlySet<string> | null = null): Decisions {
  const streams = new Map<string, { hash: number; drawn: number }>();
  const taken: string[] = [];

  function streamOf(what: string): { hash: number; drawn: number } {
    let stream = streams.get(what);
    if (stream === undefined) streams.set(what, (stream = { hash: hashed(what), drawn: 0 }));
    return stream;
  }

  function draw(what: string): { n: number; unit: number } {
    const stream = streamOf(what);
    const n = stream.drawn++;
    return { n, unit: mixed(seed, stream.hash, n) };
  }

  const int = (what: string, from: number, to: number): number => from + Math.floor(draw(what).unit * (to - from + 1));

  return {
    seed,
    taken,
    happens(what, probability) {
      const { n, unit } = draw(what);
      if (unit >= probability) return false;
      const key = `${what}#${n}`;
      if (only !== null && !only.has(key)) return false;
      taken.push(key);
      return true;
    },
    int,
    pick: (what, from) => from[int(what, 0, from.length - 1)]!,
    unit: (what) => draw(what).unit,
    stream(what) {
      const stream = streamOf(what);
      return () => mixed(seed, stream.hash, stream.drawn++);
    },
  };
}

function hashed(what: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < what.length; i += 1) hash = Math.imul(hash ^ what.charCodeAt(i), 0x01000193);
  return hash;
}

/** 32 well-mixed bits of a seed, the hash of a name, and a number, as a fraction. */
function mixed(seed: number, name: number, n: number): number {
  let hash = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(name, 0x27d4eb2f);
  hash = finished(hash);
  hash = Math.imul(hash ^ n, 0xcc9e2d51);
  return (finished(hash) >>> 0) / 2 ** 32;
}

function finished(value: number): number {
  let hash = value ^ (value >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
