import type { InfoHandler } from './types.js';

/** Accounts have no modes here. */
export const userAbstraction: InfoHandler = () => 'default';
