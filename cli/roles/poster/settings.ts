import { z } from 'zod';
import { coin, digitsToInt, flag, integer, privateKey } from '../../settings/fields.js';

export const posterSettings = {
  POSTER_PRIVATE_KEY: privateKey.optional().describe("signs posts; default: the manifest's poster account"),
  STOP_BELOW_FLOOR: flag('true').describe(
    "take the curves off pairs with a token of which the operator's row is below its floor, or below zero where none is set, by more than 0.01 tokens and 1000000 smallest units (never more than 100 tokens)",
  ),
  CURVE_TTL_SEC: integer(2, 60, 12).describe('time from the head block to the deadline of a post'),
  TOUCH_BEFORE_SEC: integer(1, 59, 6).describe('an unchanged curve is touched when less than this remains'),
  MAX_KNOTS: z
    .preprocess(digitsToInt, z.union([z.literal(7), z.literal(15), z.literal(31)]))
    .default(31)
    .describe('most knots per side of a posted curve'),
  CURVE_ERROR_MILLI_BPS: integer(0, 1_000_000, 1_600).describe(
    'a side of a curve gets no more knots once its worst error is at most this, in 1/1000 bps',
  ),
  WORD_GAIN_MILLI_BPS: integer(0, 1_000_000, 10).describe(
    'what a further word of a side must take off its mean error, in 1/1000 bps',
  ),
  MAX_CURVE_ERROR_MILLI_BPS: integer(1_000, 1_000_000, 5_000).describe(
    'a side of a curve leaves out its farthest depth while its worst error is above this, in 1/1000 bps',
  ),
  SMALL_CHANGE_ORDERS: integer(0, 1_000_000, 10).describe(
    'a change of a book is small when less than this many least orders of its market came and less went; 0: none is',
  ),
  SMALL_CHANGE_INTERVAL_MS: integer(0, 60_000, 6_000).describe(
    'how long after the newest cut of a curve small changes of its book wait at most',
  ),
  CUT_BEFORE_BLOCK_MS: integer(0, 60_000, 500).describe(
    'how long before the next block is expected a post is out; it is cut earlier by as long as posting took lately',
  ),
  POST_BUDGET_GWEI_PER_HOUR: coin(9, '500000000').describe(
    'most that posting may cost in an hour, in gwei; beyond it nothing is posted; 0 for no limit',
  ),
};

export type PosterSettings = z.output<z.ZodObject<typeof posterSettings>>;
