import type { InfoHandler } from './types.js';

/** There are no perpetuals here; clients load this at start. */
export const META = { universe: [], marginTables: [], collateralToken: 0 } as const;

export const meta: InfoHandler = () => ({ ...META });
