import { formatUnits } from '../../../core/amounts.js';
import { defineRole } from '../role.js';
import { runPoster, warmPoster } from './start.js';
import { posterSettings } from './settings.js';

/** Least that any post costs: one market, a word per side. */
const LEAST_POST_GAS = 60_000n;
const GWEI_DECIMALS = 9;

/** Posts the book of each market as a curve. */
export const poster = defineRole({
  name: 'poster',
  signs: true,
  settings: posterSettings,
  problems(settings, isPlayed) {
    const { FEE_CEILING_GWEI: ceilingWei, POST_BUDGET_GWEI_PER_HOUR: budgetWei } = settings;
    const gwei = (wei: bigint): string => formatUnits(wei, GWEI_DECIMALS);
    const leastPostWei = LEAST_POST_GAS * ceilingWei;
    const judgements: [isWrong: boolean, problem: string][] = [
      [settings.TOUCH_BEFORE_SEC >= settings.CURVE_TTL_SEC, 'TOUCH_BEFORE_SEC: must be less than CURVE_TTL_SEC'],
      [
        settings.CUT_BEFORE_BLOCK_MS >= settings.CURVE_TTL_SEC * 1_000,
        'CUT_BEFORE_BLOCK_MS: must be less than CURVE_TTL_SEC, and should be less than the time between two blocks',
      ],
      [
        settings.MAX_CURVE_ERROR_MILLI_BPS < settings.CURVE_ERROR_MILLI_BPS,
        'MAX_CURVE_ERROR_MILLI_BPS: must not be less than CURVE_ERROR_MILLI_BPS, or curves leave out depth that more knots would offer',
      ],
      [
        isPlayed && budgetWei > 0n && budgetWei < leastPostWei,
        `POST_BUDGET_GWEI_PER_HOUR: ${gwei(budgetWei)} does not pay for one post of ${LEAST_POST_GAS} gas at FEE_CEILING_GWEI ` +
          `(${gwei(leastPostWei)}); raise it, or lower the ceiling`,
      ],
    ];
    return judgements.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
  },
  status({ curves }) {
    const preparedMs = curves.map((curve) => curve.preparedMs ?? 0).reduce((a, b) => Math.max(a, b), 0);
    return { lastActMs: preparedMs === 0 ? null : preparedMs };
  },
  prepare: warmPoster,
  start: (run) => runPoster(run),
});
