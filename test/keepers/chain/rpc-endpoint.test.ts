/** One RPC endpoint: its credentials, and what a server may have it do. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { pino } from 'pino';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { createRpc, RpcUnavailableError } from '../../../keepers/chain/rpc.js';

describe('an RPC endpoint', () => {
  it('gets name and password of its URL as a header, whatever characters they have', async () => {
    const asked: unknown[] = [];
    const server = createServer((request, response) => {
      asked.push([request.url, request.headers.authorization]);
      response.end('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const at = `127.0.0.1:${port}/v2?key=a`;
      for (const who of ['', 'me:pass@', 'm%40e:a%3Ab@', 'me:100%@'])
        expect(await createRpc(`http://${who}${at}`).call('eth_chainId')).to.equal('0x1');
    } finally {
      server.closeAllConnections();
      server.close();
    }
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    expect(asked).to.deep.equal(
      [undefined, basic('me:pass'), basic('m@e:a:b'), basic('me:100%')].map((header) => ['/v2?key=a', header]),
    );
  });

  describe('of a server', () => {
    let asked: string[];
    let answer: (path: string) => { status: number; headers?: Record<string, string> };
    let server: Server;
    let at: string;

    beforeEach(async () => {
      asked = [];
      server = createServer((request, response) => {
        asked.push(request.url!);
        const { status, headers = {} } = answer(request.url!);
        response.writeHead(status, headers).end('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });

    afterEach(() => {
      server.closeAllConnections();
      server.close();
    });

    for (const status of [301, 302, 307, 308]) {
      it(`that answers ${status} is not followed elsewhere, and passed over`, async () => {
        answer = (path) => (path === '/' ? { status, headers: { location: `${at}/other` } } : { status: 200 });
        const rpcs = createRpcPool([`${at}/`, `${at}/second`], {
          nowMs: () => 0,
          logger: pino({ level: 'silent' }),
        });
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(asked).to.deep.equal(['/', '/second', '/second']);
        expect(rpcs.health().map(({ healthy, failures }) => [healthy, failures])).to.deep.equal([
          [false, 1],
          [true, 0],
        ]);
        expect(rpcs.health()[0]!.problem).to.match(/redirect/);
      });
    }

    for (const [what, said, waitMs] of [
      ['7', () => '7', 7_000],
      ['0', () => '0', 0],
      ['86400', () => '86400', 30_000],
      ['a date in an hour', () => new Date(Date.now() + 3_600_000).toUTCString(), 30_000],
      ['a date long ago', () => 'Thu, 01 Jan 1970 00:00:00 GMT', 0],
      ['soon', () => 'soon', 0],
    ] as const) {
      it(`that is busy and says "${what}" gets no request for ${waitMs} ms`, async () => {
        let nowMs = 1_000;
        let isBusy = true;
        answer = () => (isBusy ? { status: 429, headers: { 'retry-after': said() } } : { status: 200 });
        const rpc = createRpc(at, 5_000, () => nowMs);
        const rpcs = createRpcPool(['one'], {
          nowMs: () => nowMs,
          logger: pino({ level: 'silent' }),
          connect: () => rpc,
        });
        await rpcs.call('eth_chainId').catch(() => undefined);
        isBusy = false;
        if (waitMs > 0) {
          nowMs += waitMs - 1;
          const error = await rpcs.call('eth_chainId').catch((thrown: unknown) => thrown);
          expect(error).to.be.an.instanceOf(RpcUnavailableError);
          expect(asked).to.have.length(1);
          expect(rpcs.health()[0]!.healthy).to.equal(false);
          nowMs += 1;
        }
        expect(await rpcs.call('eth_chainId')).to.equal('0x1');
        expect(asked).to.have.length(2);
      });
    }
  });
});
