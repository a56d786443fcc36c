import { readSignedRequest } from '../../core/wire/request.js';
import { readAction } from '../../core/wire/action.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import { createRecovery } from '../../core/wire/recover.js';
import { verifyRequest } from '../../server/orders/verify.js';
import { cpuUs, interleaved } from './measure.js';
import type { Row } from './measure.js';
import { orderBodies } from './requests.js';

const COUNT = 400;

/** Bare loops that whole requests are compared with, run between them: CPU microseconds per item. */
export interface Baselines {
  /** CPU time of one bare native recovery, as measured in the rounds of this file. */
  recoverUs: number;
  /** One bare native recovery. */
  recover: () => Promise<number>;
  /** Parsing and verifying one order. */
  verify: () => Promise<number>;
}

/** G1 and G2: parsing and verifying against a bare recovery, and the fallback against the native library. */
export async function measureVerify(): Promise<{ rows: Row[]; baselines: Baselines }> {
  const native = await createRecovery('native');
  const wasm = await createRecovery('wasm');
  const single = orderBodies(COUNT, 1);
  const batch = orderBodies(COUNT / 4, 20);
  const digests = single.map((body) => {
    const request = readSignedRequest(JSON.parse(body));
    const digest = agentDigest('a', connectionId(encodeAction(readAction(request.action)), request));
    return { digest, signature: request.signature };
  });
  const options = { sources: ['a'] as const, resolve: () => ({ kind: 'active', maker: '0x', sinceMs: 0 }) as const };
  const verifyAll = (bodies: readonly string[]) => () => {
    for (const body of bodies) verifyRequest(readSignedRequest(JSON.parse(body)), { ...options, hint: {} });
  };
  const recoverAll = (): void => digests.forEach(({ digest, signature }) => void native(digest, signature));
  const us = await interleaved({
    recover: () => cpuUs(recoverAll),
    wasm: () => cpuUs(() => digests.forEach(({ digest, signature }) => wasm(digest, signature))),
    single: () => cpuUs(verifyAll(single)),
    batch: () => cpuUs(verifyAll(batch)),
  });
  const recoverUs = us.recover / COUNT;
  const verifyUs = us.single / COUNT;
  const wasmVerifyUs = verifyUs - recoverUs + us.wasm / COUNT;
  return {
    baselines: {
      recoverUs,
      recover: async () => (await cpuUs(recoverAll)) / COUNT,
      verify: async () => (await cpuUs(verifyAll(single))) / COUNT,
    },
    rows: [
      { goal: '', what: 'bare native recovery', value: recoverUs, unit: 'us', bound: null },
      {
        goal: 'G1',
        what: 'parse + verify 1 order / recover',
        value: recoverUs / verifyUs,
        unit: 'x',
        bound: { atLeast: 0.6 },
      },
      {
        goal: 'G1',
        what: 'parse + verify 20 orders / recover',
        value: recoverUs / (us.batch / (COUNT / 4)),
        unit: 'x',
        bound: { atLeast: 0.4 },
      },
      {
        goal: 'G2',
        what: 'verify with WASM / with native',
        value: verifyUs / wasmVerifyUs,
        unit: 'x',
        bound: { atLeast: 0.3 },
      },
    ],
  };
}
