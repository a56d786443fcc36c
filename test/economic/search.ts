/**
 * The search: strategies drawn at random, and then the best of each setting changed and mixed, over and over. Equal seeds try equal
 * strategies in equal order, however fast the machine is.
 */
import { seededRandom, type Random } from '../support/random.js';
import { cross, drawStrategy, mutate, type Strategy } from './genome.js';
import { scoreOf, type Score } from './score.js';
import { settingNamed, SETTINGS, type CarryRule } from './setting.js';
import { createWorld, type World } from './world.js';

export interface Candidate {
  strategy: Strategy;
  score: Score;
}

interface SearchOptions {
  seed: number;
  carryRule: CarryRule;
  settings?: readonly string[];
  /** Asked after each strategy; the search ends when it says so. */
  isOver(progress: SearchProgress): boolean;
}

export interface SearchProgress {
  tried: number;
  /** Of each setting, the strategy that took most from the victims, and the one that brought in most. */
  best: ReadonlyMap<string, Candidate>;
  richest: ReadonlyMap<string, Candidate>;
  /** Strategies that broke something, each kind once, as they were found. */
  found: readonly Candidate[];
  /** Combinations of traits that came up. */
  combinations(): number;
  /** How often each situation came up, over all strategies. */
  seen: ReadonlyMap<string, number>;
}

/** Best strategies of a setting that are changed and mixed. */
const ELITE = 12;
/** One in so many is drawn anew. */
const FRESH = 4;
/** Most different violations that are kept. */
const MAX_FOUND = 20;
/** Situations that tell strategies apart: the best strategy of each combination that ever came up is changed, too. */
const TRAITS = [
  'carry ask',
  'carry bid',
  'raised',
  'carry kept',
  'partial',
  'touch',
  'older post landed',
  'trimmed',
  'maker left out',
  'several executable curves',
  'inventory short',
  'executed',
  'taker fee',
  'dust fill',
  'small change waits',
  'posting stopped',
  'withdrawal paced',
  'gasless filled',
  'gasless reverted',
];

/** Plays a strategy from the start. */
export function play(strategy: Strategy, carryRule: CarryRule): World {
  const world = createWorld(settingNamed(strategy.setting), carryRule);
  for (const step of strategy.steps) world.step(step);
  world.finish();
  return world;
}

/** Higher is better; of equals, the next one decides. */
type Rank = (score: Score) => readonly (bigint | null)[];

/** What is climbed, each in a list of its own: what was taken beyond what rounding may cost, and what it brought in after all costs. */
const RANKS: Readonly<Record<string, Rank>> = {
  taken: ({ taken, excess, profit }) => [taken, excess, profit],
  // Doing nothing costs nothing: what is taken counts twice, so that it is not crowded out.
  net: ({ profit, taken }) => [profit + taken, taken],
};
const RICHEST: Rank = ({ profit, taken }) => [profit, taken];
/** Among strategies of the same traits, the one with the curve that comes closest to a loss beyond its bound. */
const TIGHTEST: Rank = ({ excess, taken, profit }) => [excess, taken, profit];

function isBetter(rank: Rank, a: Score, b: Score): boolean {
  const [ofA, ofB] = [rank(a), rank(b)];
  const at = ofA.findIndex((value, i) => value !== ofB[i]);
  const [valueA, valueB] = [ofA[at], ofB[at]];
  return at !== -1 && valueA !== null && (valueB === null || valueA! > valueB!);
}

/** Violations as far as they are the same: without their numbers. */
const kindsOf = (score: Score): string =>
  [...new Set(score.violations.map((text) => text.replace(/\d+/g, '#')))].sort().join('; ');

export function search(options: SearchOptions): SearchProgress {
  const { carryRule, settings = SETTINGS.map(({ name }) => name) } = options;
  const random = seededRandom(options.seed);
  const elites = new Map<string, Candidate[]>();
  const eliteOf = (setting: string, rank: string): Candidate[] => {
    const key = `${setting} ${rank}`;
    const known = elites.get(key) ?? [];
    elites.set(key, known);
    return known;
  };
  const cells = new Map<string, Candidate>();
  const cellNames: string[] = [];
  const best = new Map<string, Candidate>();
  const richest = new Map<string, Candidate>();
  const found = new Map<string, Candidate>();
  const seen = new Map<string, number>();
  const progress = { tried: 0, best, richest, found: [] as Candidate[], combinations: () => cells.size, seen };

  /** A strategy to go on from. */
  function parent(): Strategy {
    if (random.int(1, 4) === 1) return cells.get(random.pick(cellNames))!.strategy;
    const elite = eliteOf(random.pick(settings), random.pick(Object.keys(RANKS)));
    return elite.length === 0 ? drawStrategy(random, settings) : pickFront(random, elite).strategy;
  }

  function next(): Strategy {
    if (progress.tried < ELITE * settings.length || random.int(1, FRESH) === 1) return drawStrategy(random, settings);
    return random.int(1, 5) === 1 ? mutate(random, cross(random, parent(), parent())) : mutate(random, parent());
  }

  function keepInCell(candidate: Candidate, world: World): void {
    const name = [candidate.strategy.setting, ...TRAITS.filter((trait) => world.seen.has(trait))].join();
    const known = cells.get(name);
    if (known === undefined) cellNames.push(name);
    if (known === undefined || isBetter(TIGHTEST, candidate.score, known.score)) cells.set(name, candidate);
  }

  function keep(candidate: Candidate): void {
    const { strategy, score } = candidate;
    for (const [name, rank] of Object.entries(RANKS)) {
      const elite = eliteOf(strategy.setting, name);
      // Equal scores would crowd out what differs.
      if (elite.some((other) => other.score.taken === score.taken && other.score.profit === score.profit)) continue;
      const worse = elite.findIndex((other) => isBetter(rank, score, other.score));
      elite.splice(worse === -1 ? elite.length : worse, 0, candidate);
      elite.length = Math.min(elite.length, ELITE);
    }
    best.set(strategy.setting, eliteOf(strategy.setting, 'taken')[0]!);
    const known = richest.get(strategy.setting);
    if (known === undefined || isBetter(RICHEST, score, known.score)) richest.set(strategy.setting, candidate);
  }

  do {
    const strategy = next();
    const world = play(strategy, carryRule);
    const score = scoreOf(world);
    for (const [what, times] of world.seen) seen.set(what, (seen.get(what) ?? 0) + times);
    const candidate = { strategy, score };
    keep(candidate);
    keepInCell(candidate, world);
    const kinds = kindsOf(score);
    if (kinds !== '' && !found.has(kinds) && found.size < MAX_FOUND) {
      found.set(kinds, candidate);
      progress.found = [...found.values()];
    }
    progress.tried += 1;
  } while (!options.isOver(progress));
  return progress;
}

/** The better, the likelier. */
function pickFront(random: Random, elite: readonly Candidate[]): Candidate {
  const draw = (): number => random.int(0, elite.length - 1);
  return elite[Math.min(draw(), draw(), draw())]!;
}

/**
 * The strategy without the steps that it can do without: `still` says whether what is left is as good. Steps are taken out in ever smaller
 * runs, so that few trials are needed.
 */
export function shrink(strategy: Strategy, still: (shorter: Strategy) => boolean): Strategy {
  let { steps } = strategy;
  for (let run = Math.ceil(steps.length / 2); run >= 1; run = run === 1 ? 0 : Math.floor(run / 2)) {
    for (let at = 0; at < steps.length;) {
      const shorter = [...steps.slice(0, at), ...steps.slice(at + run)];
      if (still({ ...strategy, steps: shorter })) steps = shorter;
      else at += run;
    }
  }
  return { ...strategy, steps };
}
