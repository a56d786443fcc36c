/** `curvebook doctor` on a deployment whose settings a test changes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeManifest } from '../../../deploy/manifest.js';
import { locationOf } from '../db.js';
import { startManualChain, type ManualChain } from '../keeper-stack.js';
import type { OpenTestDb } from '../db.js';

/** Within a `describe`: one chain for all tests, an empty database and settings that are right for each. */
export function doctorOf(openBare: OpenTestDb) {
  let chain: ManualChain;
  let folder: string;
  let env: Record<string, string>;
  const servers: Server[] = [];

  before(async () => {
    chain = await startManualChain();
  });
  after(() => chain?.close());

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-doctor-'));
    const db = await openBare();
    const { url, schema } = locationOf(db);
    writeManifest(join(folder, '8453.json'), chain.manifest);
    await chain.mine();
    env = {
      MANIFEST: join(folder, '8453.json'),
      RPC_URL: chain.rpcUrl,
      DATABASE_URL: schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`,
      PORT: '0',
      METRICS_PORT: '0',
      ALERT_WEBHOOK_URL: await serve((_, response) => response.end()),
      ARCHIVE_DIR: folder,
      HEADS_URL: 'none',
      FEE_CEILING_GWEI: '50',
      POST_BUDGET_GWEI_PER_HOUR: '0',
    };
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(folder, { recursive: true });
  });

  async function serve(answer: Parameters<typeof createServer>[1] & object): Promise<string> {
    const server = createServer(answer);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  return {
    get chain() {
      return chain;
    },
    get folder() {
      return folder;
    },
    get env() {
      return env;
    },
    serve,
  };
}
