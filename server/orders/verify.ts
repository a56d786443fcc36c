import { readAction } from '../../core/wire/action.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import { recoverAddress } from '../../core/wire/recover.js';
import type { SignedRequest, SourceLetter, WireAction } from '../../core/wire/types.js';
import { digestOfApproveAgent, readApproveAgent } from '../../core/wire/user-signed.js';
import type { ApproveAgentAction } from '../../core/wire/user-signed.js';
import type { Address } from '../../core/types.js';
import type { SignedEntry } from './plan.js';
import { REFUSALS } from './refusals.js';
import type { SignerStanding } from './signers.js';
import type { GatewayConfig } from './types.js';

/** What a connection remembers between requests: the source letter that last gave a known signer is tried first. */
export interface ConnectionHint {
  source?: SourceLetter;
  /** IP address of the client, by which failed recoveries are counted; requests without one are of this process itself. */
  address?: string;
  /** The last signature over the connection was of a signer that may act. */
  isProven?: boolean;
}

export interface VerifiedAction {
  action: WireAction;
  signer: Address;
  standing: SignerStanding;
  /** All signers that the signature may give, as far as was tried. */
  candidates: readonly Candidate[];
}

interface Candidate {
  signer: Address;
  source: SourceLetter;
}

interface VerifyOptions {
  sources: readonly SourceLetter[];
  resolve: (signer: Address) => SignerStanding;
  hint: ConnectionHint;
}

/**
 * Recovers the signer. Every accepted source letter is tried on the canonical form of the action, then on the form as received, until the
 * recovered address is known; a wrong attempt recovers an unrelated address. When none is known, the first attempt's address is returned as
 * unknown; null means that no address can be recovered at all. Throws WireError for a malformed action.
 */
export function verifyRequest(request: SignedRequest, options: VerifyOptions): VerifiedAction | null {
  const action = readAction(request.action);
  const letters = orderedSources(options);
  const candidates: Candidate[] = [];
  for (const bytes of encodings(action, request)) {
    const id = connectionId(bytes, request);
    for (const source of letters) {
      const signer = recoverAddress(agentDigest(source, id), request.signature);
      if (signer === null) continue;
      candidates.push({ signer, source });
      const standing = options.resolve(signer);
      if (standing.kind === 'unknown') continue;
      options.hint.source = source;
      return { action, signer, standing, candidates };
    }
  }
  const [first] = candidates;
  return first === undefined ? null : { action, signer: first.signer, standing: { kind: 'unknown' }, candidates };
}

/** Resolves the same request again after an account may have become known; nothing is recovered again. */
export function resolveAgain(verified: VerifiedAction, { resolve, hint }: VerifyOptions): VerifiedAction {
  for (const { signer, source } of verified.candidates) {
    const standing = resolve(signer);
    if (standing.kind === 'unknown') continue;
    hint.source = source;
    return { ...verified, signer, standing };
  }
  return verified;
}

function orderedSources({ sources, hint }: VerifyOptions): SourceLetter[] {
  const last = hint.source;
  if (last === undefined || !sources.includes(last)) return [...sources];
  return [last, ...sources.filter((source) => source !== last)];
}

/** The bytes that may have been signed: the canonical form, then the form as received if it differs. */
function* encodings(action: WireAction, request: Pick<SignedRequest, 'action'>): Generator<Uint8Array> {
  const canonical = encodeAction(action);
  yield canonical;
  const received = encodeAction(readAction(request.action, 'received'));
  if (Buffer.compare(canonical, received) !== 0) yield received;
}

/** What is to be judged of a request with a known signer. Throws WireError for a malformed action. */
export function entryOf(request: SignedRequest, signer: Address): SignedEntry {
  const { action } = request;
  return {
    type: 'signed',
    request,
    action: action.type === 'approveAgent' ? readApproveAgent(action) : readAction(action),
    signer,
  };
}

/** Whether the signature of a request may be this signer's. Throws WireError for a malformed action. */
export function isSignedBy(
  request: SignedRequest,
  signer: Address,
  config: Pick<GatewayConfig, 'sources' | 'signatureChainIds'>,
): boolean {
  if (request.action.type === 'approveAgent') {
    const verified = verifyApproval(request, config);
    return 'signer' in verified && verified.signer === signer;
  }
  const resolve = (one: Address): SignerStanding =>
    one === signer ? { kind: 'active', maker: one, sinceMs: 0 } : { kind: 'unknown' };
  return verifyRequest(request, { sources: config.sources, resolve, hint: {} })?.signer === signer;
}

/** An approval with its signer, or the reason why it is refused before any nonce is checked. */
type VerifiedApproval = { action: ApproveAgentAction; signer: Address } | { refusal: string };

/** Reads an agent approval and recovers its signer. The network names must be accepted like the letters that stand for them. */
export function verifyApproval(
  request: SignedRequest,
  { sources, signatureChainIds }: Pick<GatewayConfig, 'sources' | 'signatureChainIds'>,
): VerifiedApproval {
  const action = readApproveAgent(request.action);
  if (action.nonce !== request.nonce) return { refusal: REFUSALS.nonceMismatch() };
  const letter = action.hyperliquidChain === 'Mainnet' ? 'a' : 'b';
  if (!sources.includes(letter)) return { refusal: REFUSALS.wrongNetwork() };
  if (signatureChainIds !== null && !signatureChainIds.includes(action.signatureChainId)) {
    return { refusal: REFUSALS.wrongChain(action.signatureChainId) };
  }
  const signer = recoverAddress(digestOfApproveAgent(action), request.signature);
  return signer === null ? { refusal: REFUSALS.badSignature() } : { action, signer };
}
