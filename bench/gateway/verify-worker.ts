/** A worker that recovers the signers of all bodies in a message. */
import { parentPort } from 'node:worker_threads';
import type { SignerStanding } from '../../server/orders/signers.js';
import { readSignedRequest } from '../../core/wire/request.js';
import { verifyRequest } from '../../server/orders/verify.js';

const active: SignerStanding = { kind: 'active', maker: '0x', sinceMs: 0 };
const options = { sources: ['a'] as const, resolve: () => active };

parentPort?.on('message', (bodies: string[]) => {
  const signers = bodies.map(
    (body) => verifyRequest(readSignedRequest(JSON.parse(body)), { ...options, hint: {} })?.signer ?? null,
  );
  parentPort?.postMessage(signers);
});
