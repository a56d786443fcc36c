import type { InfoHandler } from './types.js';

/** Lists of what does not exist here: vaults, sub-accounts, funding, time-weighted orders, candles. */
export const emptyList: InfoHandler = () => [];

/** Single things that do not exist here. */
export const nothing: InfoHandler = () => null;
