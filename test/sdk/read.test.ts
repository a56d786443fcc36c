import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { CurvebookError, createReadClient } from '../../sdk/src/index.js';

describe('the read client', () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
    server = null;
  });

  /** Behind a prefix, where answers may differ from what the API's document says. */
  async function start(listener: RequestListener): Promise<string> {
    const mine = createServer(listener);
    server = mine;
    await new Promise<void>((resolve) => mine.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(mine.address() as AddressInfo).port}/behind/`;
  }

  async function errorOf(asked: Promise<unknown>): Promise<CurvebookError> {
    const error: unknown = await asked.catch((thrown: unknown) => thrown);
    if (!(error instanceof CurvebookError)) throw new Error(`no CurvebookError: ${String(error)}`);
    return error;
  }

  it('asks for what has a tag by it, and keeps its copy while that is true', async () => {
    const seen: (string | undefined)[] = [];
    const url = await start((request, response) => {
      seen.push(request.headers['if-none-match']);
      if (seen.length === 2) return void response.writeHead(304, { etag: '"one"' }).end();
      const tag = seen.length === 1 ? '"one"' : '"two"';
      response.writeHead(200, { etag: tag, 'content-type': 'application/json' }).end(`[${seen.length}]`);
    });
    const client = createReadClient(url);
    const answers = [await client.pairs(), await client.pairs(), await client.pairs()];
    expect(seen).to.deep.equal([undefined, '"one"', '"one"']);
    expect(answers).to.deep.equal([[1], [1], [3]]);
  });

  it('writes parameters so that none becomes a part of the path', async () => {
    const paths: string[] = [];
    const url = await start((request, response) => {
      paths.push(request.url ?? '');
      response.end('{}');
    });
    await createReadClient(url).book('../A-B?x');
    await createReadClient(url).fills('A&limit=9', 3);
    expect(paths).to.deep.equal(['/behind/v0/book/..%2FA-B%3Fx', '/behind/v0/fills?pair=A%26limit%3D9&limit=3']);
  });

  it('says by a code what went wrong, and when to come back', async () => {
    const answers: [number, Record<string, string>, string][] = [
      [429, { 'retry-after': '7' }, '{"error":{"code":"RATE_LIMITED","message":"too many"}}'],
      [503, {}, 'standby: another process owns the log'],
      [500, {}, '<html>'],
      [200, {}, '<html>'],
    ];
    const url = await start((_request, response) => {
      const [status, headers, body] = answers.shift() ?? [200, {}, '{}'];
      response.writeHead(status, headers).end(body);
    });
    const client = createReadClient(url);
    const limited = await errorOf(client.pairs());
    expect([limited.code, limited.retryAfterSec, limited.status]).to.deep.equal(['RATE_LIMITED', 7, 429]);
    expect(limited.remedy).to.match(/retryAfterSec/);
    expect((await errorOf(client.pairs())).code).to.equal('standby');
    expect((await errorOf(client.pairs())).code).to.equal('HTTP_ERROR');
    expect((await errorOf(client.pairs())).code).to.equal('NOT_JSON');
  });

  it('waits for no silent server and reads no endless answer', async () => {
    let isEndless = false;
    const url = await start((_request, response) => {
      if (!isEndless) return;
      const chunk = Buffer.alloc(1024 * 1024, 0x20);
      const more = (): void => {
        if (!response.destroyed) response.write(chunk, () => setImmediate(more));
      };
      more();
    });
    const client = createReadClient(url, { timeoutMs: 100 });
    expect((await errorOf(client.pairs())).code).to.equal('NO_ANSWER');
    isEndless = true;
    expect((await errorOf(createReadClient(url, { timeoutMs: 60_000 }).pairs())).code).to.equal('TOO_LONG');
  });
});
