/** The server that `npm start` runs, and the commands that it advises: no list of processes shows a password. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { onDatabase } from '../../cli/sandbox/banner.js';
import { readSandboxConfig } from '../../cli/sandbox/config.js';
import { startServerProcess } from '../../cli/sandbox/processes.js';
import { writeManifest, type SandboxManifest } from '../../deploy/manifest.js';

const PASSWORD = 'se-cret-of-the-sandbox';

describe('the server of the sandbox', function () {
  this.timeout(60_000);
  let folder: string;
  let database: Server;
  const sockets = new Set<Socket>();

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-sandbox-server-'));
    database = createServer();
    await new Promise<void>((resolve) => database.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    database.close();
    rmSync(folder, { recursive: true });
  });

  function manifest(): SandboxManifest {
    const address = `0x${'12'.repeat(20)}`;
    const names = ['custodian', 'curveBook', 'entrypoint', 'orderSettler', 'permit2'] as const;
    const contracts = Object.fromEntries(names.map((name) => [name, address])) as Record<
      (typeof names)[number],
      string
    >;
    const accounts = ['owner', 'poster', 'settler', 'executor'].map((role) => {
      const { address, privateKey } = Wallet.createRandom();
      return { role, address, privateKey };
    });
    return {
      ...{ chainId: 8453, deploymentId: '0123456789abcdef', contracts, deploymentBlock: 1, tokens: [], markets: [] },
      ...{ rpcUrl: 'http://127.0.0.1:1', serverUrl: 'http://127.0.0.1:1', accounts },
      tokenList: {
        ...{ name: 'Sandbox', timestamp: '2026-01-01T00:00:00Z', version: { major: 1, minor: 0, patch: 0 } },
        tokens: [{ chainId: 8453, address, symbol: 'USDC', name: 'USDC', decimals: 6, logoURI: 'https://x.example/' }],
      },
    };
  }

  it('is given its database where no list of processes shows the password', async () => {
    // Never answers, so that the server that asks it can be looked at.
    const greeted = new Promise<string>((resolve) =>
      database.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined).once('data', (data) => resolve(data.toString('latin1')));
      }),
    );
    const { port } = database.address() as AddressInfo;
    const manifestPath = join(folder, 'server.json');
    writeManifest(manifestPath, manifest());
    const stop = new AbortController();
    const server = startServerProcess({
      ...{ manifest: manifest(), manifestPath, directory: folder, onLine: () => undefined, signal: stop.signal },
      environment: readSandboxConfig([], { DATABASE_URL: `postgres://someone:${PASSWORD}@127.0.0.1:${port}/sandbox` })!
        .serverEnvironment,
    });
    try {
      const greeting = await Promise.race([greeted, server.then(String)]);
      expect(greeting).to.include('user\0someone\0').and.include('database\0sandbox\0');
      const shown = execFileSync('ps', ['-A', '-ww', '-o', 'args='], { encoding: 'utf8', maxBuffer: 1e8 });
      expect(shown.split('\n').filter((line) => line.includes(manifestPath))).to.have.length(1);
      expect(shown).to.not.include(PASSWORD);
    } finally {
      stop.abort();
      await server.catch(() => undefined);
    }
  });

  it('is started again by a command whose words show no password either', () => {
    expect(onDatabase('sqlite:a b/x.sqlite', 'node x status')).to.equal(
      "node x status --database 'sqlite:a b/x.sqlite'",
    );
    expect(onDatabase('postgres://someone@host/x', 'node x status')).to.equal(
      'node x status --database postgres://someone@host/x',
    );
    expect(onDatabase(`postgres://someone:${PASSWORD}@host/x`, 'node x status')).to.equal(
      'DATABASE_URL="$DATABASE_URL" node x status',
    );
  });
});
