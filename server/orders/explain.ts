import Router from '@koa/router';
import { bytesToHex } from '../../core/hash.js';
import { readAction } from '../../core/wire/action.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction, preimage } from '../../core/wire/encode.js';
import { WireError } from '../../core/wire/errors.js';
import { recoverAddress, signatureBackend } from '../../core/wire/recover.js';
import { readSignedRequest } from '../../core/wire/request.js';
import type { SignedRequest } from '../../core/wire/types.js';
import { digestOfApproveAgent, readApproveAgent } from '../../core/wire/user-signed.js';
import { badRequest } from '../errors.js';
import { BodyError, readJsonBody } from './body.js';
import type { Gateway } from './engine.js';
import type { GatewayConfig } from './types.js';

interface ExplainDeps {
  gateway: Pick<Gateway, 'resolve'>;
  config: Pick<GatewayConfig, 'sources'>;
}

/**
 * POST /sandbox/signature explains a body of POST /exchange: for every way in which it may have been signed the bytes, the hash, and the
 * signer that this gives. Nothing is judged or stored. Only a sandbox serves it.
 */
export function explainRoutes(deps: ExplainDeps): Router {
  const router = new Router();
  router.post('/sandbox/signature', async (ctx) => {
    try {
      ctx.body = explain(await readJsonBody(ctx.req), deps);
    } catch (error) {
      if (error instanceof WireError || error instanceof BodyError) throw badRequest(error.message);
      throw error;
    }
  });
  return router;
}

function explain(body: unknown, deps: ExplainDeps): object {
  const request = readSignedRequest(body);
  const isApproval = request.action.type === 'approveAgent';
  return {
    signature_backend: signatureBackend,
    attempts: isApproval ? [explainApproval(request, deps)] : explainAction(request, deps),
  };
}

function explainApproval(request: SignedRequest, deps: ExplainDeps): object {
  const action = readApproveAgent(request.action);
  const digest = digestOfApproveAgent(action);
  return {
    signed_for: `${action.hyperliquidChain}, chain ${action.signatureChainId}`,
    message: {
      hyperliquidChain: action.hyperliquidChain,
      agentAddress: action.agentAddress,
      agentName: action.agentName,
      nonce: action.nonce,
    },
    digest: bytesToHex(digest),
    ...recovered(digest, request, deps),
  };
}

/** In the order in which the gateway tries them: every source letter on the canonical form, then on the form as received. */
function explainAction(request: SignedRequest, deps: ExplainDeps): object[] {
  return (['canonical', 'received'] as const).flatMap((strings) => {
    const action = readAction(request.action, strings);
    const bytes = encodeAction(action);
    const id = connectionId(bytes, request);
    return deps.config.sources.map((source) => {
      const digest = agentDigest(source, id);
      return {
        strings,
        source,
        action,
        msgpack: bytesToHex(bytes),
        preimage: bytesToHex(preimage(bytes, request)),
        connection_id: bytesToHex(id),
        digest: bytesToHex(digest),
        ...recovered(digest, request, deps),
      };
    });
  });
}

/** The address, null when none can be recovered (or s is in its upper half), and whom it acts for. */
function recovered(digest: Uint8Array, { signature }: SignedRequest, { gateway }: ExplainDeps): object {
  const signer = recoverAddress(digest, signature);
  if (signer === null) return { signer: null, standing: 'unrecoverable', maker: null };
  const standing = gateway.resolve(signer);
  return { signer, standing: standing.kind, maker: 'maker' in standing ? standing.maker : null };
}
