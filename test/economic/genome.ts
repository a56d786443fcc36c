/** How strategies are drawn, changed and mixed. */
import type { TradeMode } from '../../core/curve/walk.js';
import type { Side } from '../../core/types.js';
import type { Random } from '../support/random.js';
import { SETTINGS } from './setting.js';
import type { Amount, Ladder, Step } from './steps.js';

/** A setting and what happens in it. */
export interface Strategy {
  setting: string;
  steps: readonly Step[];
}

const MAX_STEPS = 60;
const SIDES: readonly Side[] = ['ask', 'bid'];
const MODES: readonly TradeMode[] = ['buyExactIn', 'buyExactOut', 'sellExactIn', 'sellExactOut'];

/** Where a strategy is mostly at work: most of its steps concern the same maker, market and side. */
interface Focus {
  maker: number;
  market: number;
  side: Side;
}

const chance = (random: Random, percent: number): boolean => random.int(1, 100) <= percent;
/** Small numbers as likely as large ones. */
const small = (random: Random, bits: number): number => Number(random.magnitude(bits));

const drawFocus = (random: Random): Focus => ({
  maker: random.int(0, 1),
  market: random.int(0, 1),
  side: random.pick(SIDES),
});

/** The focus, or somewhere else. */
const near = (random: Random, focus: Focus): Focus => (chance(random, 70) ? focus : drawFocus(random));

/** Where a strategy that is to be changed is at work. */
function focusOf(random: Random, steps: readonly Step[]): Focus {
  const quotes = steps.filter((step) => step.kind === 'quote');
  if (quotes.length === 0) return drawFocus(random);
  const { maker, market, side } = random.pick(quotes);
  return { maker, market, side };
}

function drawLadder(random: Random): Ladder {
  return {
    levels: random.pick([1, 1, 1, 2, 3, 8, 16, 33, 40, 60]),
    awayBps: random.pick([0, 0, 0, 1, 2, 5, 20, 100, 1_000]),
    awayTicks: random.pick([0, 1, 1, 1, 2, 5]),
    spanBps: random.pick([0, 1, 10, 50, 300, 1_000, 4_000, 9_000, 15_000]),
    gapPermille: random.pick([600, 900, 1_000, 1_000, 1_200, 1_500, 2_000]),
    size: random.pick([-1, -1, 0, 1, 10, 100, 1_000, 1_000, 5_000, 20_000, 100_000, 500_000]),
    sizePermille: random.pick([500, 700, 900, 1_000, 1_000, 1_150, 1_300, 1_500, 2_000]),
  };
}

function drawAmount(random: Random): Amount {
  const more = random.pick([0, 0, 0, 1, -1, small(random, 20)]);
  switch (random.int(0, 9)) {
    case 0:
    case 1:
    case 2:
      return { kind: 'worst' };
    case 3:
    case 4:
      return { kind: 'permille', of: random.pick([1, 10, 100, 500, 900, 1_000, 1_000]) };
    case 5:
    case 6:
      return { kind: 'knot', index: small(random, 5), more };
    case 7:
    case 8:
      return { kind: 'order', index: small(random, 6), more };
    default:
      return { kind: 'units', units: 1 + small(random, 30) };
  }
}

/** Off-chain acts and requests, one at a time. */
function drawAct(random: Random, focus: Focus): Step {
  const { maker, market, side } = near(random, focus);
  const roll = random.int(1, 100);
  if (roll <= 52)
    return { kind: 'quote', maker, market, side, ladder: drawLadder(random), replace: chance(random, 75) };
  if (roll <= 60) return { kind: 'modify', maker, pick: small(random, 6), ladder: drawLadder(random) };
  if (roll <= 68) return { kind: 'cancel', maker, market, side, pick: chance(random, 50) ? null : small(random, 6) };
  if (roll <= 74) return { kind: 'schedule', maker, sec: chance(random, 25) ? null : random.int(5, 14) };
  if (roll <= 80) return { kind: 'honestQuote', maker, market, ladder: drawHonest(random) };
  if (roll <= 84) return { kind: 'suspend', maker, back: chance(random, 50) };
  if (roll <= 85) return { kind: 'pace', on: chance(random, 50) };
  if (roll <= 86) return { kind: 'floor', token: random.int(0, 2), on: chance(random, 50) };
  if (roll <= 90) return drawGasless(random, focus);
  return drawCustody(random, maker);
}

function drawSign(random: Random, { market, side }: Focus, taker = random.int(0, 2)): Step {
  const mode = side === 'ask' ? 'buyExactOut' : 'sellExactIn';
  return { kind: 'sign', taker, market, mode, amount: drawAmount(random), slippageBps: random.pick([0, 0, 50, 2_000]) };
}

/** What owners of signed orders and the executor do, one step at a time. */
function drawGasless(random: Random, focus: Focus): Step {
  const taker = random.int(0, 2);
  switch (random.int(0, 5)) {
    case 0:
    case 1:
      return drawSign(random, near(random, focus), taker);
    case 2:
      return { kind: 'executor' };
    case 3:
      return { kind: 'executed' };
    case 4:
      return { kind: 'spoil', taker };
    default:
      return drawTransfer(random, taker);
  }
}

const drawTransfer = (random: Random, taker: number, token = random.int(0, 2)): Step => ({
  kind: 'transfer',
  taker,
  to: (taker + random.int(1, 2)) % 3,
  token,
  permille: random.pick([500, 990, 1_000, 1_000]),
});

function drawCustody(random: Random, maker: number): Step {
  const token = random.int(0, 2);
  switch (random.int(0, 5)) {
    case 0:
      return { kind: 'deposit', maker, token, permille: random.int(1, 1_000) };
    case 1:
      return { kind: 'donate', taker: maker, token, units: 1 + small(random, 40) };
    case 2:
    case 3:
      return { kind: 'request', maker, token, permille: random.pick([0, 500, 1_000, 1_000]) };
    case 4:
      return { kind: 'settle', later: chance(random, 40) };
    default:
      return chance(random, 50) ? { kind: 'execute', maker, token } : { kind: 'settled' };
  }
}

/** Honest makers stay on their side of the fair price. */
function drawHonest(random: Random): Ladder {
  return {
    levels: random.int(1, 12),
    awayBps: random.int(1, 20),
    awayTicks: 1,
    spanBps: random.int(0, 200),
    gapPermille: random.pick([900, 1_000, 1_200]),
    size: random.pick([100, 1_000, 5_000]),
    sizePermille: random.pick([900, 1_000, 1_150]),
  };
}

function drawTrade(random: Random, focus: Focus): Step {
  const { market, side } = near(random, focus);
  if (chance(random, 8)) return { kind: 'honestTake', market, side, permille: random.int(1, 300) };
  const mode = random.pick(MODES.filter((one) => one.startsWith('buy') === (side === 'ask')));
  return { kind: 'swap', taker: random.int(0, 2), market, mode, amount: drawAmount(random) };
}

/** One block: orders, the poster's cut, and then swaps around what lands. */
function drawBlock(random: Random, focus: Focus): Step[] {
  const steps: Step[] = [];
  const repeat = (most: number, draw: () => Step): void => {
    for (let left = random.int(0, most); left > 0; left--) steps.push(draw());
  };
  repeat(2, () => drawAct(random, focus));
  if (chance(random, 85)) steps.push({ kind: 'post', amend: chance(random, 30) });
  repeat(2, () => drawTrade(random, focus));
  if (chance(random, 85)) steps.push({ kind: 'land', pick: chance(random, 80) ? 0 : 1 });
  repeat(2, () => drawTrade(random, focus));
  if (chance(random, 15)) steps.push(drawAct(random, focus));
  steps.push({ kind: 'block', sec: random.pick([2, 2, 2, 2, 4, 7, 14]), scan: chance(random, 92) });
  return steps;
}

/** Longer courses of events that are seldom drawn step by step. */
function drawCourse(random: Random, focus: Focus): Step[] {
  const [maker, token] = [random.int(0, 1), random.int(0, 2)];
  const quiet: Step[] = [
    { kind: 'post', amend: chance(random, 30) },
    { kind: 'land', pick: 0 },
    { kind: 'block', sec: random.int(2, 5), scan: true },
  ];
  if (chance(random, 25)) return drawOrders(random, focus, quiet);
  if (chance(random, 50)) return [...quiet, ...quiet, ...quiet, ...(chance(random, 50) ? quiet : [])];
  return [
    { kind: 'request', maker, token, permille: random.pick([500, 1_000]) },
    { kind: 'block', sec: 2, scan: true },
    ...quiet,
    { kind: 'settle', later: chance(random, 20) },
    ...drawBlock(random, focus),
    { kind: 'settled' },
    ...drawBlock(random, focus),
    ...quiet,
    { kind: 'execute', maker, token },
    ...drawBlock(random, focus),
  ];
}

/** Signed orders of one owner, sent, and perhaps spoiled before they land. */
function drawOrders(random: Random, focus: Focus, quiet: readonly Step[]): Step[] {
  const taker = random.int(0, 2);
  // What the first market sells on that side; the second one has a token of its own.
  const token = focus.market === 1 ? random.int(1, 2) : focus.side === 'ask' ? 0 : 1;
  const signs = Array.from({ length: random.int(1, 4) }, () => drawSign(random, focus, taker));
  if (chance(random, 50)) signs.unshift(drawTransfer(random, taker, token));
  const rounds = Array.from({ length: random.int(1, 4) }, (): Step[] => [
    { kind: 'executor' },
    ...(chance(random, 40) ? [random.pick<Step>([{ kind: 'spoil', taker }, drawTransfer(random, taker, token)])] : []),
    ...(chance(random, 25) ? drawBlock(random, focus) : []),
    { kind: 'executed' },
    ...(chance(random, 20) ? [drawTrade(random, focus)] : []),
    ...(chance(random, 30) ? [drawSign(random, focus, taker)] : []),
    ...(chance(random, 50) ? quiet : []),
  ]);
  return [...signs, ...rounds.flat()];
}

export function drawStrategy(random: Random, settings: readonly string[] = SETTINGS.map(({ name }) => name)): Strategy {
  const blocks = random.int(1, 5);
  const focus = drawFocus(random);
  return {
    setting: random.pick(settings),
    steps: Array.from({ length: blocks }, () =>
      chance(random, 15) ? drawCourse(random, focus) : drawBlock(random, focus),
    ).flat(),
  };
}

function tweakLadder(random: Random, ladder: Ladder): Ladder {
  const fresh = drawLadder(random);
  const names = Object.keys(ladder) as (keyof Ladder)[];
  const name = random.pick(names);
  if (chance(random, 30)) return { ...ladder, [name]: fresh[name] };
  const factor = random.pick([random.int(900, 1_100), random.int(500, 2_000)]);
  const scaled = Math.max(name === 'levels' ? 1 : 0, Math.floor((ladder[name] * factor) / 1_000));
  return { ...ladder, [name]: name === 'levels' ? Math.min(scaled, 100) : Math.min(scaled, 1_000_000) };
}

function tweakAmount(random: Random, amount: Amount): Amount {
  if (chance(random, 40) || amount.kind === 'worst') return drawAmount(random);
  if (amount.kind === 'permille')
    return { kind: 'permille', of: Math.min(1_000, Math.floor((amount.of * random.int(500, 2_000)) / 1_000)) };
  if (amount.kind === 'units')
    return { kind: 'units', units: Math.max(1, Math.floor((amount.units * random.int(500, 2_000)) / 1_000)) };
  return chance(random, 50)
    ? { ...amount, index: small(random, 6) }
    : { ...amount, more: amount.more + random.int(-2, 2) };
}

/** Another step of the same kind. */
function tweak(random: Random, step: Step, focus: Focus): Step {
  switch (step.kind) {
    case 'quote':
      if (chance(random, 70)) return { ...step, ladder: tweakLadder(random, step.ladder) };
      return {
        ...step,
        ...near(random, focus),
        replace: chance(random, 75),
      };
    case 'modify':
      return { ...step, ladder: tweakLadder(random, step.ladder), pick: small(random, 6) };
    case 'swap':
      if (chance(random, 60)) return { ...step, amount: tweakAmount(random, step.amount) };
      return { ...step, taker: random.int(0, 2), market: random.int(0, 1), mode: random.pick(MODES) };
    case 'honestQuote':
      return { ...step, ladder: drawHonest(random) };
    case 'honestTake':
      return { ...step, side: random.pick(SIDES), permille: random.int(1, 300) };
    case 'cancel':
      return { ...step, side: random.pick(SIDES), pick: chance(random, 50) ? null : small(random, 6) };
    case 'schedule':
      return { ...step, sec: random.int(5, 14) };
    case 'land':
      return { ...step, pick: random.int(0, 2) };
    case 'block':
      return { ...step, sec: random.pick([2, 2, 4, 7, 14]), scan: chance(random, 85) };
    case 'sign':
      return chance(random, 60)
        ? { ...step, amount: tweakAmount(random, step.amount) }
        : { ...step, taker: random.int(0, 2), slippageBps: random.int(0, 200) };
    case 'transfer':
      return drawTransfer(random, step.taker);
    case 'spoil':
      return { ...step, taker: random.int(0, 2) };
    case 'executor':
    case 'executed':
      return drawGasless(random, focus);
    case 'pace':
    case 'floor':
      return { ...step, on: !step.on };
    case 'deposit':
    case 'request':
      return { ...step, token: random.int(0, 2), permille: random.int(0, 1_000) };
    case 'donate':
      return { ...step, units: 1 + small(random, 40) };
    case 'settle':
      return { ...step, later: !step.later };
    case 'suspend':
      return { ...step, back: !step.back };
    case 'execute':
      return { ...step, token: random.int(0, 2) };
    case 'post':
      return { ...step, amend: !step.amend };
    case 'settled':
      return drawAct(random, focus);
  }
}

/** A strategy with one to four changes. */
export function mutate(random: Random, { setting, steps }: Strategy): Strategy {
  const next = [...steps];
  const focus = focusOf(random, steps);
  for (let changes = random.pick([1, 1, 1, 2, 3, 4]); changes > 0; changes--) {
    const at = random.int(0, Math.max(0, next.length - 1));
    const roll = random.int(1, 100);
    if (roll <= 45 && next.length > 0) next[at] = tweak(random, next[at]!, focus);
    else if (roll <= 60) next.splice(at, 0, chance(random, 50) ? drawTrade(random, focus) : drawAct(random, focus));
    else if (roll <= 72 && next.length > 1) next.splice(at, 1);
    else if (roll <= 80 && next.length > 1) next.splice(random.int(0, next.length - 1), 0, ...next.splice(at, 1));
    else if (roll <= 88) next.splice(at, 0, ...next.slice(at, at + random.int(1, 6)));
    else next.splice(at, 0, ...(chance(random, 25) ? drawCourse(random, focus) : drawBlock(random, focus)));
  }
  return { setting, steps: next.slice(0, MAX_STEPS) };
}

/** The beginning of one and the end of another. */
export function cross(random: Random, a: Strategy, b: Strategy): Strategy {
  const steps = [...a.steps.slice(0, random.int(0, a.steps.length)), ...b.steps.slice(random.int(0, b.steps.length))];
  return { setting: a.setting, steps: steps.slice(0, MAX_STEPS) };
}
