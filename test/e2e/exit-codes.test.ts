/** What the exit code of `curvebook serve` says: 0 it was told to stop, 1 a restart won't help, 75 start it again. */
import { expect } from 'chai';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDb } from '../../ledger/db/db.js';
import { hasEveryTest } from '../support/db.js';
import { startFaultProxy } from '../support/nodes/fault-proxy.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { runProgram, startProgram, type Program } from '../support/console/program.js';
import { forEachDatabaseUrl, until, type TestDatabase } from '../support/stack.js';

const SERVE = ['node', 'scripts/curvebook.mjs', 'serve'];
const LIMIT_MS = 150_000;

forEachDatabaseUrl((database, open) => {
  describe(`The exit code of serve, on ${database}`, function () {
    this.timeout(180_000);
    let chain: ManualChain;
    let folder: string;
    let db: TestDatabase;
    const started: Program[] = [];
    /** Whether what no database decides is tried here. */
    const isOnce = hasEveryTest(database);

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'curvebook-exit-'));
      chain = await startManualChain();
      await chain.provider.send('evm_setIntervalMining', [500]);
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify(chain.manifest));
    });

    after(async () => {
      await chain?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    beforeEach(async () => {
      db = await open();
    });

    afterEach(async () => {
      for (const program of started.splice(0)) {
        program.kill('SIGKILL');
        await program.ended;
      }
      await db.drop();
    });

    const settings = (more: Record<string, string> = {}): Record<string, string> => ({
      MANIFEST: join(folder, 'manifest.json'),
      DATABASE_URL: db.url,
      PORT: '0',
      LOG_LEVEL: 'info',
      ...more,
    });

    function serve(more: Record<string, string> = {}): Program {
      const program = startProgram(SERVE, settings(more));
      started.push(program);
      return program;
    }

    async function says(program: Program, text: string): Promise<void> {
      await until(
        `"${text}"`,
        async () => {
          if (program.exitCode() !== null) throw new Error(`it ended:\n${program.output()}`);
          return program.output().includes(text);
        },
        LIMIT_MS,
      );
    }

    async function withPortTaken(run: (port: number) => Promise<void>): Promise<void> {
      const other: Server = createServer();
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      try {
        await run((other.address() as AddressInfo).port);
      } finally {
        other.close();
      }
    }

    it('is 0 for one that was told to stop', async () => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) {
        const program = serve();
        await says(program, 'serving watcher');
        program.kill(signal);
        expect(await program.ended, program.output()).to.equal(0);
      }
    });

    /** An endpoint in front of the chain that names another one, with the methods that it was asked. */
    async function withOtherChain(run: (url: string, asked: Set<string>) => Promise<void>): Promise<void> {
      const proxy = await startFaultProxy(chain.rpcUrl);
      const asked = new Set<string>();
      proxy.fault = ({ method }) => {
        asked.add(method);
        return method === 'eth_chainId' ? { result: '0x2a' } : 'pass';
      };
      try {
        await run(proxy.url, asked);
      } finally {
        await proxy.close();
      }
    }

    const keys = { EXECUTOR_PRIVATE_KEY: `0x${'22'.repeat(32)}`, SETTLER_PRIVATE_KEY: `0x${'11'.repeat(32)}` };

    if (isOnce) {
      it('is 1 when every endpoint serves another chain, which each role by itself names, asking for nothing else', async () => {
        await withOtherChain(async (url, asked) => {
          for (const roles of ['watcher', 'gateway', 'poster', 'settler', 'executor']) {
            const { code, output } = await runProgram(SERVE, settings({ RPC_URL: url, ...keys, ROLES: roles }));
            expect(code, output).to.equal(1);
            expect(output, roles).to.contain('every endpoint serves chain 42');
          }
          expect([...asked]).to.deep.equal(['eth_chainId']);
        });
      });

      it('is none when another endpoint serves the chain: the first one is asked for nothing but its id, by any role', async () => {
        await withOtherChain(async (url, asked) => {
          const program = serve({ RPC_URL: `${url},${chain.rpcUrl}` });
          await says(program, 'serving watcher');
          // Long enough for rounds of each keeper.
          const from = await chain.provider.getBlockNumber();
          await until('some blocks', async () => (await chain.provider.getBlockNumber()) > from + 4, LIMIT_MS);
          expect([...asked]).to.deep.equal(['eth_chainId']);
          expect(program.output()).to.contain('an RPC endpoint serves another chain');
          program.kill('SIGTERM');
          expect(await program.ended, program.output()).to.equal(0);
        });
      });

      it('is 1 when somebody else has the port, which it names', async () => {
        await withPortTaken(async (port) => {
          for (const setting of ['PORT', 'METRICS_PORT']) {
            const { code, output } = await runProgram(SERVE, settings({ [setting]: `${port}` }));
            expect(code, output).to.equal(1);
            expect(output).to.match(new RegExp(`Port ${port} .* is in use.* set ${setting} to a free port`));
          }
        });
      });
    }

    it('is 1 for a database of a newer version, which it names', async () => {
      const first = serve();
      await says(first, 'serving watcher');
      first.kill('SIGTERM');
      await first.ended;
      const known = await openDb(db.url);
      await known.knex('knex_migrations').insert({ name: '9999-from-the-future', batch: 9 });
      await known.close();
      const { code, output } = await runProgram(SERVE, settings());
      expect(code, output).to.equal(1);
      expect(output).to.contain('A newer version of Curvebook changed this database (9999-from-the-future)');
    });

    it("is 1 for another deployment's database, of which nothing is changed", async () => {
      const first = serve();
      await says(first, 'serving watcher');
      first.kill('SIGTERM');
      await first.ended;
      const other = join(folder, 'other.json');
      writeFileSync(other, JSON.stringify({ ...chain.manifest, deploymentId: '0123456789abcdef' }));
      const { code, output } = await runProgram(SERVE, settings({ MANIFEST: other }));
      expect(code, output).to.equal(1);
      expect(output).to.include(`This database belongs to deployment ${chain.manifest.deploymentId}`);
      const again = serve();
      await says(again, 'serving watcher');
    });

    if (isOnce) {
      it('is 1 for a manifest that is missing and for settings that are wrong, all of them named', async () => {
        const { code, output } = await runProgram(SERVE, settings({ PORT: '-1', POLL_INTERVAL_MS: '1' }));
        expect(code).to.equal(1);
        expect(output).to.include('PORT:').and.include('POLL_INTERVAL_MS:');
        const missing = await runProgram(SERVE, settings({ MANIFEST: join(folder, 'none.json') }));
        expect(missing.code).to.equal(1);
        expect(missing.output).to.include('MANIFEST:');
        expect((await runProgram([...SERVE, '--no-such-option'], settings())).code).to.equal(1);
      });
    }

    it('is 75 when a log is lost to another process', async () => {
      const first = serve();
      await says(first, 'serving watcher');
      if (database === 'PostgreSQL') await dropLocks(db.url);
      else await says(serve(), 'serving watcher');
      expect(await first.ended, first.output()).to.equal(75);
      expect(first.output()).to.match(/The \w+ log was lost/);
    });

    if (isOnce) {
      it('is 75 after an error that nothing expected', async () => {
        const preload = join(folder, 'throw.mjs');
        const write = `const write = process.stdout.write.bind(process.stdout);
        process.stdout.write = (text) => {
          if (text.startsWith('serving ')) setImmediate(() => { throw new Error('out of nothing'); });
          return write(text);
        };`;
        writeFileSync(preload, write);
        const program = serve({ NODE_OPTIONS: `--import=${preload}` });
        expect(await program.ended, program.output()).to.equal(75);
        expect(program.output()).to.include('out of nothing');
      });
    }

    if (database === 'SQLite') {
      it('is 75 when the database does not answer, and 1 when it is none, in a line each', async () => {
        const plain = join(folder, 'plain.txt');
        writeFileSync(plain, 'hello '.repeat(1_000));
        const cases: [url: string, code: number, reason: RegExp][] = [
          [
            'postgres://me:secret@127.0.0.1:1/x',
            75,
            /^The database postgres:\/\/me@127.0.0.1:1\/x does not answer: .*\n?$/,
          ],
          [`sqlite:${plain}`, 1, /^The database .* can't be used: file is not a database\n?$/],
        ];
        for (const [DATABASE_URL, code, reason] of cases) {
          const ran = await runProgram(SERVE, settings({ DATABASE_URL }));
          expect(ran.output).to.match(reason);
          expect(ran.code).to.equal(code);
        }
      });
    }

    if (database === 'PostgreSQL') {
      it('is 0 for one that was told to stop while it waited for its logs', async () => {
        const first = serve();
        await says(first, 'serving watcher');
        const second = serve();
        await says(second, 'on standby');
        second.kill('SIGTERM');
        expect(await second.ended, second.output()).to.equal(0);
        expect(first.exitCode()).to.equal(null);
      });
    }
  });
});

/** Ends the connections that hold the advisory locks of this schema's logs, as a crash of their network would. */
async function dropLocks(url: string): Promise<void> {
  const db = await openDb(url);
  try {
    const schema = new URL(url).searchParams.get('schema');
    const ended = await db.knex.raw<{ rows: unknown[] }>(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and pid <> pg_backend_pid()
       and (classid::bigint << 32 | objid::bigint) in (select hashtextextended('curvebook:' || ? || ':writer:' || log, 0) from ??.writers)`,
      [schema, schema],
    );
    expect(ended.rows).to.have.length.greaterThan(0);
  } finally {
    await db.close();
  }
}
