/**
 * What a client can check of what a server says, without trusting it. What it can't: that a checkpoint is complete, that others are shown the
 * same one, that an order that was left out existed, and whatever is not on-chain or hashed. Events are the chain's: compare them yourself.
 */
export { marketOf, tokenOf, trusted, trustedToken } from './deployment.js';
export type { Deployment, TrustedContracts, TrustedToken } from './deployment.js';
export { amountsOf, reconcile, rederive, snapshotOf, verifyCurve } from './verify/decomposition.js';
export { rootOf, verifyProof } from './verify/proof.js';
export type { ProvenBalance } from './verify/proof.js';
