/** What the benchmark of the read API may not do: pass a missed goal, or count refusals. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { connectClient } from '../../bench/read/client.js';
import { judge, type Round } from '../../bench/read/judge.js';

const BARE = { requestsPerSec: 1_000, cpuUsPerRequest: 100 };
const roundOf = (rate: number, cpuUs: number, fewRate = rate): Round => ({
  bare: BARE,
  full: { requestsPerSec: rate, cpuUsPerRequest: cpuUs },
  few: { requestsPerSec: fewRate, cpuUsPerRequest: cpuUs },
});
const GOALS = { bare: 0.6, history: 0.6 };

describe('the verdict of the read benchmark', () => {
  it('holds only at the goal, in requests and in CPU time', () => {
    const holds = (...rounds: Round[]): boolean => judge(rounds, GOALS).holds;
    expect(holds(roundOf(600, 160))).to.equal(true);
    expect(holds(roundOf(599, 160)), 'too few requests').to.equal(false);
    expect(holds(roundOf(900, 170)), 'the client hid what the endpoint costs').to.equal(false);
    expect(holds(roundOf(600, 160, 1_001)), 'a long history costs too much').to.equal(false);
    expect(judge([roundOf(10, 9_000)], { ...GOALS, bare: null }).holds, 'without a goal').to.equal(true);
  });

  it('compares within a round, and leaves out what most rounds do not show', () => {
    // The machine is ten times slower in the second round, for both; a neighbour takes the third from the endpoint alone.
    const slow: Round = {
      bare: { requestsPerSec: 100, cpuUsPerRequest: 1_000 },
      full: { requestsPerSec: 70, cpuUsPerRequest: 1_400 },
      few: { requestsPerSec: 70, cpuUsPerRequest: 1_400 },
    };
    const judged = judge([roundOf(700, 140), slow, roundOf(10, 140, 700)], GOALS);
    expect([judged.ratio, judged.historyRatio, judged.holds]).to.deep.equal([0.7, 1, true]);
    expect(judged.cpuRatio).to.be.closeTo(100 / 140, 1e-9);
    expect(judge([roundOf(500, 140), slow, roundOf(500, 140)], GOALS).holds, 'most rounds miss it').to.equal(false);
  });
});

describe('the client of the read benchmark', () => {
  let server: Server;
  let asked = 0;

  before(async () => {
    server = createServer((request, response) => {
      asked += 1;
      if (request.url === '/unchanged') response.writeHead(304).end();
      else if (request.url === '/refused') response.writeHead(429).end('{}');
      else response.writeHead(200, { 'Content-Length': 100_000 }).end('x'.repeat(100_000));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  after(() => server.close());

  it('counts answers of the expected status, whole ones, and fails on any other', async () => {
    const client = await connectClient((server.address() as AddressInfo).port);
    try {
      for (const request of [{ path: '/large' }, { path: '/unchanged', status: 304 }]) {
        asked = 0;
        const startedMs = performance.now();
        const rate = await client.rate(request, 50);
        const counted = (rate * (performance.now() - startedMs)) / 1_000;
        expect(counted, request.path).to.be.closeTo(asked, asked / 10);
      }
      const failure = await client.rate({ path: '/refused' }, 50).catch((error: unknown) => (error as Error).message);
      expect(failure).to.match(/^\/refused: HTTP\/1\.1 429 /);
    } finally {
      client.close();
    }
  });
});
