/** What a search found, as text. */
import { describe } from './steps.js';
import type { Candidate, SearchProgress } from './search.js';
import { play, shrink } from './search.js';
import { curveGains, scoreOf, type Score } from './score.js';
import { settingNamed, type CarryRule, type Setting } from './setting.js';

/** What a search must have seen to have tried anything. Those of the raise come about only with it. */
const REACH = [
  'full',
  'partial',
  'touch',
  'post reverted',
  'post replaced before it landed',
  'older post landed',
  'several executable curves',
  'block not scanned at once',
  'late fill',
  'carry ask',
  'carry bid',
  'several legs',
  'dust fill',
  'swap that fixes quote',
  'swap reverted',
  'taker fee',
  'entry refused',
  'scheduled cancel came due',
  'maker left out',
  'gateway closed orders',
  'inventory short',
  'trimmed',
  'depth left out',
  'donated',
  'deposited',
  'requested',
  'settled',
  'executed',
  'withdrawal waits',
  'withdrawal paced',
  'small change waits',
  'posting stopped',
  'gasless accepted',
  'gasless sum',
  'gasless refused',
  'gasless waits for the one before',
  'gasless plain',
  'gasless checked',
  'gasless filled',
  'gasless reverted',
  'gasless emptied',
  'gasless owner not trusted',
] as const;
const REACH_RAISED = ['raised', 'carry kept'] as const;

/** What never came about. */
export function unreached(seen: ReadonlyMap<string, number>, carryRule: CarryRule): string[] {
  const expected: readonly string[] = carryRule === 'raised' ? [...REACH, ...REACH_RAISED] : REACH;
  return expected.filter((what) => !seen.has(what));
}

/** An amount of the setting's measure in dollars, rounded towards zero. */
function dollars({ dollar }: Pick<Setting, 'dollar'>, value: bigint): string {
  const cents = (value * 100n) / dollar;
  const [sign, digits] = [cents < 0n ? '-' : '', (cents < 0n ? -cents : cents).toString().padStart(3, '0')];
  return `${sign}$${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** The shortest part of a strategy that does as much harm, as a list of steps with what came of it. */
export function explain(candidate: Candidate, carryRule: CarryRule): string[] {
  const isAsBad = ({ taken, profit, violations }: Score): boolean =>
    taken * 20n >= candidate.score.taken * 19n &&
    (candidate.score.profit <= 0n || profit * 20n >= candidate.score.profit * 19n) &&
    violations.length > 0 === candidate.score.violations.length > 0;
  const strategy = shrink(candidate.strategy, (shorter) => isAsBad(scoreOf(play(shorter, carryRule))));
  const world = play(strategy, carryRule);
  const score = scoreOf(world);
  const setting = settingNamed(strategy.setting);
  const amounts = `taken ${dollars(setting, score.taken)}, profit ${dollars(setting, score.profit)}`;
  return [
    `in ${strategy.setting}: ${amounts} (operator ${dollars(setting, -score.operatorLoss)})`,
    ...strategy.steps.map((step) => `  ${describe(step)}`),
    ...curveGains(world).map(
      ({ market, baseSeq, side, fills, legs, gainUnits }) =>
        `  = ${side}s of curve ${baseSeq} of market ${market}: ${fills} fills, ${legs} legs, operator ${gainUnits} quote units`,
    ),
    ...score.violations.map((text) => `  ! ${text}`),
    `  ${JSON.stringify(strategy)}`,
  ];
}

/** One line on how far a search has come. */
export function progressLine(progress: SearchProgress): string {
  const best = [...progress.best].map(([name, { score }]) => {
    const rich = progress.richest.get(name)!.score.profit;
    const setting = settingNamed(name);
    return `${name} taken ${dollars(setting, score.taken)} profit ${dollars(setting, rich)}`;
  });
  const counts = `${progress.tried} strategies, ${progress.combinations()} combinations, ${progress.found.length} found`;
  return `${counts}; ${best.join('; ')}`;
}
