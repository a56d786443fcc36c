/** What can happen in the world of the economic search, step by step. A strategy is a list of steps; it is plain data, so that it can be printed and played again. */
import type { TradeMode } from '../../core/curve/walk.js';
import type { Side } from '../../core/types.js';

/**
 * Prices and sizes of a row of orders, best first. The first price is `awayBps` hundredths of a percent from the fair price, plus
 * `awayTicks`; the last one is `spanBps` farther; each gap is `gapPermille` thousandths of the one before, each size `sizePermille`
 * thousandths.
 */
export interface Ladder {
  levels: number;
  awayBps: number;
  awayTicks: number;
  spanBps: number;
  gapPermille: number;
  /** Of the first order, in thousandths of a usual order; 0 is the least that is admitted, and -1 an even part of all that the maker has. */
  size: number;
  sizePermille: number;
}

/** How much a taker takes. */
export type Amount =
  /** Thousandths of what is left of the side. */
  | { kind: 'permille'; of: number }
  /** Up to the end of that segment, counted from what is taken already, and some units more or less. */
  | { kind: 'knot'; index: number; more: number }
  /** As much as that order of the live curve's book has, wherever it stands in it. */
  | { kind: 'order'; index: number; more: number }
  /** A few units of whatever the mode fixes. */
  | { kind: 'units'; units: number }
  /** What costs the operator most, as everybody can compute from public data. */
  | { kind: 'worst' };

export type Step =
  /** A colluding maker replaces its orders on a side, or adds to them. */
  | { kind: 'quote'; maker: number; market: number; side: Side; ladder: Ladder; replace: boolean }
  /** One of its orders gets another price and size; its client id stays. */
  | { kind: 'modify'; maker: number; pick: number; ladder: Ladder }
  /** Cancels its orders on a side, or with a pick one of them. */
  | { kind: 'cancel'; maker: number; market: number; side: Side; pick: number | null }
  /** Arms a scheduled cancel so many seconds ahead, or disarms it. */
  | { kind: 'schedule'; maker: number; sec: number | null }
  /** An honest maker quotes anew around the fair price. */
  | { kind: 'honestQuote'; maker: number; market: number; ladder: Ladder }
  /** An honest taker takes a part of a side at the price that it was quoted. */
  | { kind: 'honestTake'; market: number; side: Side; permille: number }
  /** The poster's round, if a scan came since its last one. `amend` sends changed words alone wherever that is possible, cheaper or not. */
  | { kind: 'post'; amend: boolean }
  /** One of the signed posts that nothing replaced yet gets into the block. */
  | { kind: 'land'; pick: number }
  | { kind: 'swap'; taker: number; market: number; mode: TradeMode; amount: Amount }
  | { kind: 'deposit'; maker: number; token: number; permille: number }
  /** A colluding taker signs an order for that much of the base token. */
  | { kind: 'sign'; taker: number; market: number; mode: TradeMode; amount: Amount; slippageBps: number }
  /** The executor's look at signed orders; what it sends gets into the block by `executed`. */
  | { kind: 'executor' }
  | { kind: 'executed' }
  /** A colluding taker uses up the nonce of its oldest signed order. */
  | { kind: 'spoil'; taker: number }
  /** A part of a colluding taker's wallet goes to another. */
  | { kind: 'transfer'; taker: number; to: number; token: number; permille: number }
  | { kind: 'donate'; taker: number; token: number; units: number }
  | { kind: 'request'; maker: number; token: number; permille: number }
  /** The settler's round; what it sends gets into the block, or waits for a later `settled`. */
  | { kind: 'settle'; later: boolean }
  | { kind: 'settled' }
  | { kind: 'execute'; maker: number; token: number }
  | { kind: 'suspend'; maker: number; back: boolean }
  /** Whether small changes of a book wait. */
  | { kind: 'pace'; on: boolean }
  /** The operator asks for more of a token than its row has, or for nothing any more. */
  | { kind: 'floor'; token: number; on: boolean }
  /** The block ends; the watcher scans it at once, or with the next one. */
  | { kind: 'block'; sec: number; scan: boolean };

const ladderText = (ladder: Ladder): string => {
  const { levels, awayBps, awayTicks, spanBps, gapPermille, size, sizePermille } = ladder;
  const from = `${awayBps} bps ${awayTicks === 0 ? '' : `and ${awayTicks} ticks `}off`;
  const sized = size < 0 ? 'all it has' : size === 0 ? 'the least' : `${size}/1000 of a usual order`;
  if (levels === 1) return `1 order ${from}, ${sized}`;
  return `${levels} orders from ${from} over ${spanBps} bps (gaps x${gapPermille}/1000), ${sized} (x${sizePermille}/1000 each)`;
};

const amountText = (amount: Amount): string => {
  const more = (units: number): string => (units === 0 ? '' : ` ${units > 0 ? '+' : '-'} ${Math.abs(units)} units`);
  switch (amount.kind) {
    case 'permille':
      return `${amount.of}/1000 of what is left`;
    case 'knot':
      return `to the end of segment ${amount.index}${more(amount.more)}`;
    case 'order':
      return `the size of order ${amount.index}${more(amount.more)}`;
    case 'units':
      return `${amount.units} units`;
    case 'worst':
      return 'what costs the operator most';
  }
};

/** A step as a line of text. */
export function describe(step: Step): string {
  switch (step.kind) {
    case 'quote':
      return `colluding maker ${step.maker} ${step.replace ? 'replaces' : 'adds'} ${step.side}s in market ${step.market}: ${ladderText(step.ladder)}`;
    case 'modify':
      return `colluding maker ${step.maker} modifies its order ${step.pick}: ${ladderText(step.ladder)}`;
    case 'cancel':
      return `colluding maker ${step.maker} cancels ${step.pick === null ? `its ${step.side}s in market ${step.market}` : `its order ${step.pick}`}`;
    case 'schedule':
      return `colluding maker ${step.maker} ${step.sec === null ? 'disarms its scheduled cancel' : `arms a scheduled cancel in ${step.sec} s`}`;
    case 'honestQuote':
      return `honest maker ${step.maker} requotes market ${step.market}: ${ladderText(step.ladder)} a side`;
    case 'honestTake':
      return `an honest taker takes ${step.permille}/1000 of the ${step.side}s of market ${step.market}`;
    case 'post':
      return `the poster cuts and signs${step.amend ? ', changed words only' : ''}`;
    case 'land':
      return `a signed post lands (${step.pick})`;
    case 'swap':
      return `colluding taker ${step.taker} swaps in market ${step.market}, ${step.mode}: ${amountText(step.amount)}`;
    case 'deposit':
      return `colluding maker ${step.maker} deposits ${step.permille}/1000 of its token ${step.token}`;
    case 'sign':
      return `colluding taker ${step.taker} signs an order in market ${step.market}, ${step.mode}: ${amountText(step.amount)}, ${step.slippageBps} bps slippage`;
    case 'executor':
      return 'the executor sends signed orders';
    case 'executed':
      return 'what the executor sent lands';
    case 'spoil':
      return `colluding taker ${step.taker} uses up the nonce of its oldest signed order`;
    case 'transfer':
      return `colluding taker ${step.taker} sends ${step.permille}/1000 of its token ${step.token} to colluding taker ${step.to}`;
    case 'pace':
      return `small changes ${step.on ? 'wait' : 'are posted at once'}`;
    case 'floor':
      return `the operator ${step.on ? 'asks for more of' : 'drops the floor of'} token ${step.token}`;
    case 'donate':
      return `colluding taker ${step.taker} sends ${step.units} units of token ${step.token} to the vault`;
    case 'request':
      return `colluding maker ${step.maker} requests ${step.permille}/1000 of its token ${step.token}`;
    case 'settle':
      return `the settler cuts and settles${step.later ? ', to land later' : ''}`;
    case 'settled':
      return 'the settlements that wait land';
    case 'execute':
      return `colluding maker ${step.maker} withdraws its claim in token ${step.token}`;
    case 'suspend':
      return `the operator ${step.back ? 'approves' : 'suspends'} colluding maker ${step.maker}`;
    case 'block':
      return `--- block ends, ${step.sec} s${step.scan ? '' : ', not scanned yet'}`;
  }
}
