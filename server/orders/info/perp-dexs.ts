import type { InfoHandler } from './types.js';

/** Only the default one, which this wire writes as null. */
export const perpDexs: InfoHandler = () => [null];
