/**
 * Checks of a server's answers that need no trust in the server. They can't show that a checkpoint is complete, that others get the same
 * checkpoint, or that no order was left out, nor anything that is neither on-chain nor hashed. Compare events with those of the chain yourself.
 */
export { marketOf, tokenOf, trusted, trustedToken } from './deployment.js';
export type { Deployment, TrustedContracts, TrustedToken } from './deployment.js';
export { snapshotOf, verifyCurve } from './verify/curve.js';
export { amountsOf, reconcile, rederive } from './verify/decomposition.js';
export { rootOf, verifyProof } from './verify/proof.js';
export type { ProvenBalance } from './verify/proof.js';
