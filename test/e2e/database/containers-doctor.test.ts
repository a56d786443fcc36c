/** `curvebook doctor` in the containers of the compose file, by the commands of docs/operators.md as they stand there: it judges what each will use. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Code, Finding, Level } from '../../../cli/commands/doctor/finding.js';
import {
  commandInImage,
  containerOf,
  isOurs,
  ofProfile,
  services,
  startNatsServers,
  PROFILES,
  type Profile,
  startChainOf,
} from '../../support/console/compose.js';
import { blocksOf } from '../../support/console/docs.js';
import { runProgram } from '../../support/console/program.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { natsProgram, type Nats } from '../../support/nodes/nats.js';
import { forPostgresUrl, type TestDatabase } from '../../support/stack.js';

const OPTIONS = ['--env-file', '.env', '--file', 'deploy/ops/compose.yaml', '--profile'];

interface Invocation {
  profile: string;
  verb: string;
  args: string[];
}

/** What the guide has Docker do, in its order: the shell says which words there are. */
const invocations: Invocation[] = (() => {
  const text = readFileSync(new URL('../../../docs/operators.md', import.meta.url), 'utf8');
  const section = text.slice(text.indexOf('\n### Containers\n')).split(/\n### (?!Containers)/)[0]!;
  const block = blocksOf(section).find(({ code }) => code.includes(' doctor'))!;
  const script = `docker() { printf '%s\\0' "$@"; echo; }\n${block.code}`;
  const said = execFileSync('bash', ['-e', '-c', script], { encoding: 'utf8' });
  return said
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [compose, ...words] = line.split('\0').slice(0, -1);
      expect([compose, ...words.slice(0, OPTIONS.length)]).to.deep.equal(['compose', ...OPTIONS]);
      const [profile = '', verb = '', ...args] = words.slice(OPTIONS.length);
      return { profile, verb, args };
    });
})();

const program = natsProgram();

forPostgresUrl((name, open) =>
  describe(`doctor in containers, ${name}`, function () {
    this.timeout(300_000);
    let chain: ManualChain;
    let folder: string;
    let receiver: Server;
    let database: TestDatabase;
    let nats: Nats[] = [];

    before(async () => {
      await runProgram(['node', 'scripts/curvebook.mjs', '--version'], {});
      database = await open();
      folder = mkdtempSync(join(tmpdir(), 'curvebook-containers-'));
      mkdirSync(join(folder, 'data'));
      receiver = createServer((_, response) => response.end());
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
      chain = await startChainOf(folder);
    });
    after(async () => {
      await Promise.all(nats.map((server) => server.close()));
      await chain?.close();
      receiver?.close();
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** What an operator's `.env` has, with the database that `init` writes, which no container uses. */
    const settings = (): Record<string, string> => ({
      DATABASE_URL: `sqlite:${join(folder, 'of-the-host.sqlite')}`,
      MANIFEST: join(folder, 'manifest.json'),
      DATABASE_PASSWORD: 'none',
      RPC_URL: chain.rpcUrl,
      OPERATOR_ADDRESS: chain.address('owner'),
      ALERT_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      FEE_CEILING_GWEI: '50',
      POSTER_PRIVATE_KEY: chain.wallet('poster').privateKey,
      SETTLER_PRIVATE_KEY: chain.wallet('settler').privateKey,
      EXECUTOR_PRIVATE_KEY: chain.wallet('executor').privateKey,
      NATS_URL: nats.map(({ url }) => url).join(),
      NATS_PASSWORD: 'none',
      NATS_EDGE_PASSWORD: 'none-of-edges',
      EDGE_SECRET: 'a-secret-of-tests-which-protects-nothing',
    });

    /** Doctor's findings in a container of its own. */
    async function judge(service: string, args: readonly string[], changes: Record<string, string> = {}) {
      const { env } = containerOf(
        services[service]!,
        { ...settings(), ...changes },
        { databaseUrl: database.url, volumes: folder, port: 0, metricsPort: 0 },
      );
      // In a network of its own every port is free.
      const { output } = await runProgram(commandInImage(...args, '--json'), { ...env, PORT: '0' });
      const { findings } = JSON.parse(output) as { findings: Finding[] };
      const of = (code: Code, level: Level): Finding[] =>
        findings.filter((one) => one.code === code && one.level === level);
      return { findings, of };
    }

    async function startNats(profile: Profile): Promise<void> {
      if (profile === 'scaled' && program !== null && nats.length === 0)
        nats = await startNatsServers(program, settings());
    }

    for (const profile of PROFILES)
      it(`judges each role of the profile ${profile} by what its container has, and nothing is in the way`, async () => {
        await startNats(profile);
        const mine = invocations.filter((one) => one.profile === profile);
        const runs = mine.filter(({ verb }) => verb === 'run');
        const names = ofProfile(profile)
          .filter(([, service]) => isOurs(service))
          .map(([one]) => one.replace(/2$/, '1'));
        expect(
          runs.map(({ args: [remove, service] }) => [remove, service]),
          'each of them',
        ).to.have.deep.members([...new Set(names)].map((one) => ['--rm', one]));
        // Doctor asks for what the containers need at their start, so that runs before it.
        for (const { verb, args } of mine.filter((one) => !runs.includes(one))) {
          expect([verb, args[0]]).to.deep.equal(['up', '--wait']);
          expect(ofProfile(profile).map(([one]) => one)).to.include.members(args.slice(1));
          expect(mine[0]!.verb).to.equal('up');
        }
        for (const { args } of runs) {
          const [, service = '', ...command] = args;
          const { findings, of } = await judge(service, command);
          const failed = findings.filter(
            ({ level, code }) => level === 'fail' && (program !== null || code !== 'NATS'),
          );
          expect(failed, service).to.deep.equal([]);
          const kind = profile === 'single' ? /^\/.*\/data\/curvebook\.sqlite$/ : /^postgres:/;
          expect(of('DATABASE', 'ok').map(({ subject }) => subject)[0], service).to.match(kind);
          expect(JSON.stringify(findings), service).to.not.include('of-the-host');
          expect(of('ALERTS', 'ok'), service).to.have.length(1);
          const signing = ['poster', 'settler', 'executor'];
          const role = service.replace(/1$/, '');
          expect(
            of('ROLES', 'ok').map(({ subject }) => subject),
            service,
          ).to.deep.equal(profile === 'single' ? signing : signing.filter((one) => one === role));
          const usesNats = profile === 'scaled' && ['gateway', 'edge'].includes(role) && program !== null;
          expect(of('NATS', 'ok'), service).to.have.length(usesNats ? 3 : 0);
        }
      });

    it('says so where a container would fail: no key, a database of another host, no receiver', async () => {
      const { args: [, service = '', ...command] = [] } = invocations.find(({ args }) => args[1] === 'settler')!;
      const without = await judge(service, command, { SETTLER_PRIVATE_KEY: '' });
      expect(without.of('SETTINGS', 'fail').map(({ message }) => message)).to.deep.equal([
        'SETTLER_PRIVATE_KEY: required for the settler role, the manifest names no settler account',
      ]);
      const gone = await judge(service, command, { ALERT_WEBHOOK_URL: 'http://127.0.0.1:1/' });
      expect(gone.of('ALERTS', 'fail')).to.have.length(1);
      const { env } = containerOf(
        services[service]!,
        { ...settings(), DATABASE_HOST: 'elsewhere' },
        { databaseUrl: (written) => written, volumes: folder, port: 0, metricsPort: 0 },
      );
      expect(env['DATABASE_URL']).to.equal('postgres://curvebook:none@elsewhere:5432/curvebook');
    });
  }),
);
