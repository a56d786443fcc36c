import { expect } from 'chai';
import type { Context } from 'koa';
import { ApiError } from '../../server/errors.js';
import { readerGuard } from '../../server/reader-guard.js';

describe('the guard of a server that only reads', () => {
  const answer = (isBehind: boolean, method: string, path: string): unknown => {
    const headers: Record<string, string> = {};
    const ctx = { method, path, set: (name: string, value: string) => void (headers[name] = value) };
    try {
      return readerGuard(() => isBehind)(ctx as unknown as Context, () => Promise.resolve('served'));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return [error.status, error.code, headers['Retry-After']];
    }
  };

  it('refuses what would be stored, and lets reads pass', async () => {
    for (const [method, path] of [
      ['POST', '/api/v1/quote'],
      ['POST', '/api/v1/orders'],
      ['DELETE', '/api/v1/orders/1'],
      ['POST', '/API/V1/quote'],
    ] as const)
      for (const isBehind of [false, true])
        expect(answer(isBehind, method, path), path).to.deep.equal([503, 'READ_ONLY', '1']);
    for (const [method, path] of [
      ['GET', '/api/v1/price'],
      ['HEAD', '/api/v1/orders'],
      ['POST', '/info'],
      ['POST', '/exchange'],
      ['GET', '/v0/pairs'],
    ] as const)
      expect(await answer(false, method, path), path).to.equal('served');
  });

  it('refuses data while it is too far behind, but for the status that says so', async () => {
    for (const [method, path] of [
      ['GET', '/v0/pairs'],
      ['GET', '/v0/status/x'],
      ['GET', '/V0/fills'],
      ['GET', '/api/v1/tokens'],
      ['POST', '/info'],
    ] as const)
      expect(answer(true, method, path), path).to.deep.equal([503, 'REPLICA_LAG', '1']);
    for (const path of ['/health', '/v0/status', '/v0/status/', '/V0/Status'])
      expect(await answer(true, 'GET', path), path).to.equal('served');
  });
});
