import type { InfoHandler } from './types.js';

/** There are no outcome markets here; clients load this at start. */
export const outcomeMeta: InfoHandler = () => ({ outcomes: [], questions: [] });
