export * from './abis.js';
export { KNOWN_DEPLOYMENTS } from './addresses.js';
export type { KnownDeployment } from './addresses.js';
