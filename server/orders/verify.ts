import { readAction } from '../../core/wire/action.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import { recoverAddress } from '../../core/wire/recover.js';
import type { SignedRequest, SourceLetter, WireAction } from '../../core/wire/types.js';
import type { Address } from '../../core/types.js';
import type { SignerStanding } from './signers.js';

/** What a connection remembers between requests: the source letter that last named somebody is tried first. */
export interface ConnectionHint {
  source?: SourceLetter;
}

export interface VerifiedAction {
  action: WireAction;
  signer: Address;
  standing: SignerStanding;
}

export interface VerifyOptions {
  sources: readonly SourceLetter[];
  resolve: (signer: Address) => SignerStanding;
  hint: ConnectionHint;
}

/**
 * Recovers who signed. Every accepted source letter is tried on the canonical form of the action, then on its strings as they
 * came, until the recovered address is somebody; a wrong attempt recovers an unrelated address. When nobody is found the first
 * attempt's address is returned as unknown; null means that no address can be recovered at all. Throws WireError for a malformed
 * action.
 */
export function verifyRequest(request: SignedRequest, options: VerifyOptions): VerifiedAction | null {
  const action = readAction(request.action);
  const letters = orderedSources(options);
  let first: Address | null = null;
  for (const bytes of encodings(action, request)) {
    const id = connectionId(bytes, request);
    for (const source of letters) {
      const signer = recoverAddress(agentDigest(source, id), request.signature);
      if (signer === null) continue;
      first ??= signer;
      const standing = options.resolve(signer);
      if (standing.kind === 'unknown') continue;
      options.hint.source = source;
      return { action, signer, standing };
    }
  }
  return first === null ? null : { action, signer: first, standing: { kind: 'unknown' } };
}

function orderedSources({ sources, hint }: VerifyOptions): SourceLetter[] {
  const last = hint.source;
  if (last === undefined || !sources.includes(last)) return [...sources];
  return [last, ...sources.filter((source) => source !== last)];
}

/** The bytes that may have been signed: the canonical form, then the strings as received when they differ. */
function* encodings(action: WireAction, request: SignedRequest): Generator<Uint8Array> {
  const canonical = encodeAction(action);
  yield canonical;
  const received = encodeAction(readAction(request.action, 'received'));
  if (Buffer.compare(canonical, received) !== 0) yield received;
}
