import type { InfoHandler } from './types.js';

/** The venue's clock. */
export const exchangeStatus: InfoHandler = (_request, { clock }) => ({ time: clock(), specialStatuses: null });
