import type { InfoHandler } from './types.js';

/** Nobody can approve a builder fee here. */
export const maxBuilderFee: InfoHandler = () => 0;
