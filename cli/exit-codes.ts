/** Exit codes of `curvebook` beside 0. Scripts and containers act on them: they never change their meaning. */

/** Refused or failed; of `serve`: the start can't succeed by trying again. */
export const EXIT_FAILED = 1;
/** `verify`: something that is stored is not what it should be. */
export const EXIT_DIFFERENCE = 2;
/** `reconcile`: asked for and not carried out yet; no watcher is running, it found the request out of date, or a newer one took its place. */
export const EXIT_PENDING = 3;
/** `resume`: there was no halt to put an end to. */
export const EXIT_NOT_HALTED = 4;
/** `resume`: the cause of a halt still exists. */
export const EXIT_CAUSE_STANDS = 5;
/** `doctor`: a check failed; do not deploy or serve before it is corrected. */
export const EXIT_UNFIT = 6;
/** `serve`: start this process again; what failed may work then. */
export const EXIT_RESTART = 75;
