import type { Address } from '../../core/types.js';
import { WireError } from '../../core/wire/errors.js';
import { readSignedRequest } from '../../core/wire/request.js';
import type { SignedRequest } from '../../core/wire/types.js';
import { networkOf } from '../rate-limit.js';
import { isTooLong } from './actions/order.js';
import { createFailureLimit } from './failures.js';
import { standingRefusal, type SignedEntry } from './plan.js';
import { createRecoveryQueue, type Outcome, type RecoveryQueueOptions } from './recovery-queue.js';
import { RateLimitedError, REFUSALS } from './refusals.js';
import type { SignerStanding } from './signers.js';
import type { GatewayConfig } from './types.js';
import { resolveAgain, verifyApproval, verifyRequest, type ConnectionHint, type VerifiedAction } from './verify.js';

/** Requests up to this length are parsed at once: recovering their signer takes longer than parsing. */
const SHORT_REQUEST_BYTES = 16 * 1024;

/** A request whose signer may act, or the reason why it is refused as a whole, before any nonce is checked. */
type Authenticated = { maker: Address; entry: SignedEntry } | { refusal: string };

/**
 * Finds the signer of requests. Requests of unproven clients take turns: while others keep the gateway busy, a maker's request waits a
 * little, but is never refused because of them, whatever address they come from.
 */
interface Authenticator {
  /** Parses a JSON text. A long one of an unproven connection waits for its turn and gives a promise. Throws SyntaxError. */
  parse(text: string, hint: ConnectionHint): unknown;
  /** Reads the envelope of a request of `bytes` bytes. Throws WireError for another shape. */
  read(body: unknown, hint: ConnectionHint, bytes: number): SignedRequest;
  /**
   * Recovers the signer of a request of `bytes` bytes. Throws WireError for a malformed action, and RateLimitedError for a signature of an
   * unknown account from an address that sent too many of those.
   */
  authenticate(request: SignedRequest, hint: ConnectionHint, bytes: number): Promise<Authenticated>;
}

interface AuthenticatorDeps {
  config: Pick<GatewayConfig, 'sources' | 'signatureChainIds' | 'failuresPerMinute'>;
  resolveSigner(signer: Address): SignerStanding;
  /** The standing of an account itself, not of one that it is an agent of: an agent can't approve agents. */
  resolveAccount(account: Address): SignerStanding;
  /** Reads the operator log again. */
  refreshOperator(): Promise<void>;
  /** Unix milliseconds. */
  clock(): number;
  queue?: RecoveryQueueOptions;
}

/** Result of the work that needs no database. */
type Recovered =
  | { kind: 'refused'; refusal: string; isFailure: boolean }
  | { kind: 'action'; verified: VerifiedAction }
  | { kind: 'approval'; entry: SignedEntry; standing: SignerStanding };

/** An authenticator with a queue and a budget per address of its own. */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const { config, resolveSigner, resolveAccount, refreshOperator, clock } = deps;
  const failures = createFailureLimit(config.failuresPerMinute, clock);
  const queue = createRecoveryQueue(deps.queue);

  /** Does the work for a request: at once for proven or trusted clients, else in turns. */
  async function inTurn<T>(hint: ConnectionHint, bytes: number, work: () => Outcome<T>): Promise<T> {
    const { address, isProven } = hint;
    if (address === undefined || isProven === true) return work().value;
    const network = networkOf(address);
    if (failures.isTrusted(network)) return work().value;
    // Long requests have a queue key of their own, so that a short one need not wait behind all long ones of its address.
    const key = bytes > SHORT_REQUEST_BYTES ? `${network} long` : network;
    return queue.run({ key, bytes, isSpent: failures.spentSec(network) > 0 }, work);
  }

  const fail = (hint: ConnectionHint, bytes: number): void => {
    hint.isProven = false;
    if (hint.address !== undefined) failures.failed(networkOf(hint.address), bytes);
  };

  function succeed(hint: ConnectionHint): void {
    if (hint.isProven !== true && hint.address !== undefined) failures.known(networkOf(hint.address));
    hint.isProven = true;
  }

  /** A malformed request has no known signer, and counts as a failure all the same. */
  function countMalformed(error: unknown, hint: ConnectionHint, bytes: number): void {
    if (error instanceof WireError || error instanceof SyntaxError) fail(hint, bytes);
  }

  const parse = (text: string, hint: ConnectionHint): unknown =>
    text.length <= SHORT_REQUEST_BYTES || hint.isProven === true ? JSON.parse(text) : parseInTurn(text, hint);

  async function parseInTurn(text: string, hint: ConnectionHint): Promise<unknown> {
    try {
      return await inTurn(hint, text.length, () => ({ value: JSON.parse(text) as unknown, isKnown: false }));
    } catch (error) {
      countMalformed(error, hint, text.length);
      throw error;
    }
  }

  function read(body: unknown, hint: ConnectionHint, bytes: number): SignedRequest {
    try {
      return readSignedRequest(body);
    } catch (error) {
      countMalformed(error, hint, bytes);
      throw error;
    }
  }

  function recover(request: SignedRequest, hint: ConnectionHint): Recovered {
    if (isTooLong(request.action)) return { kind: 'refused', refusal: REFUSALS.batchTooLarge(), isFailure: true };
    if (request.action.type === 'approveAgent') return recoverApproval(request);
    const verified = verifyRequest(request, { sources: config.sources, resolve: resolveSigner, hint });
    if (verified === null) return { kind: 'refused', refusal: REFUSALS.badSignature(), isFailure: true };
    return { kind: 'action', verified };
  }

  /** A master signs its approvals itself: an agent can't approve agents. */
  function recoverApproval(request: SignedRequest): Recovered {
    const verified = verifyApproval(request, config);
    if ('refusal' in verified) {
      const { refusal } = verified;
      return { kind: 'refused', refusal, isFailure: refusal === REFUSALS.badSignature() };
    }
    const { action, signer } = verified;
    return { kind: 'approval', entry: { type: 'signed', request, action, signer }, standing: resolveAccount(signer) };
  }

  const standingOf = (recovered: Exclude<Recovered, { kind: 'refused' }>): SignerStanding =>
    recovered.kind === 'action' ? recovered.verified.standing : recovered.standing;

  /** An approval may be newer than the last read of the operator log, so the log is read again before an account counts as unknown. */
  async function lookAgain(recovered: Recovered, hint: ConnectionHint): Promise<Recovered> {
    if (recovered.kind === 'refused' || standingOf(recovered).kind === 'active') return recovered;
    await refreshOperator();
    if (recovered.kind === 'approval') return { ...recovered, standing: resolveAccount(recovered.entry.signer) };
    const options = { sources: config.sources, resolve: resolveSigner, hint };
    return { kind: 'action', verified: resolveAgain(recovered.verified, options) };
  }

  async function authenticate(request: SignedRequest, hint: ConnectionHint, bytes: number): Promise<Authenticated> {
    const recovered = await recoverInTurn(request, hint, bytes);
    if (recovered.kind === 'refused') {
      if (recovered.isFailure) refuseSpent(hint, bytes);
      return { refusal: recovered.refusal };
    }
    const standing = standingOf(recovered);
    if (standing.kind !== 'active') refuseSpent(hint, bytes);
    else succeed(hint);
    if (request.vaultAddress !== null) return { refusal: REFUSALS.vault(request.vaultAddress) };
    const { signer } = recovered.kind === 'action' ? recovered.verified : recovered.entry;
    if (standing.kind !== 'active') {
      return { refusal: standingRefusal(standing, signer, recovered.kind === 'approval') };
    }
    if (recovered.kind === 'approval') return { maker: standing.maker, entry: recovered.entry };
    const { action } = recovered.verified;
    return { maker: standing.maker, entry: { type: 'signed', request, action, signer } };
  }

  async function recoverInTurn(request: SignedRequest, hint: ConnectionHint, bytes: number): Promise<Recovered> {
    try {
      const recovered = await inTurn(hint, bytes, () => {
        const value = recover(request, hint);
        return { value, isKnown: value.kind !== 'refused' && standingOf(value).kind === 'active' };
      });
      return await lookAgain(recovered, hint);
    } catch (error) {
      countMalformed(error, hint, bytes);
      throw error;
    }
  }

  /** Counts a failure. Throws RateLimitedError when the address had used up its budget before. */
  function refuseSpent(hint: ConnectionHint, bytes: number): void {
    const seconds = hint.address === undefined ? 0 : failures.spentSec(networkOf(hint.address));
    fail(hint, bytes);
    if (seconds > 0) throw new RateLimitedError(seconds);
  }

  return { parse, read, authenticate };
}
