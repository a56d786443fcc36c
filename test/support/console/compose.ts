/** The containers of deploy/ops/compose.yaml as processes of this machine: their commands, and their environments from the settings of a deployment. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { freePort } from '../../../deploy/sandbox/ports.js';
import { startManualChain, type ManualChain } from '../keeper-stack.js';
import { startNats, type Nats } from '../nodes/nats.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const ops = join(root, 'deploy', 'ops');

export const PROFILES = ['single', 'roles', 'scaled'] as const;
export type Profile = (typeof PROFILES)[number];

export interface Service {
  profiles?: string[];
  user?: string;
  entrypoint?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  depends_on?: Record<string, { condition: string }> | never[];
  image?: string;
  configs?: object[];
  command?: string[];
  environment?: Record<string, string>;
  restart?: string;
  healthcheck?: { test: string[] };
  volumes?: string[];
  ports?: string[];
}

/** As they are written, with what they share merged in. */
export const { services } = parse(readFileSync(join(ops, 'compose.yaml'), 'utf8'), { merge: true }) as {
  services: Record<string, Service>;
};

/** The servers of NATS that the file starts, on ports of this machine, with routes between them. */
export async function startNatsServers(program: string, settings: Readonly<Record<string, string>>): Promise<Nats[]> {
  const named = Object.entries(services).filter(([, { image }]) => image?.startsWith('nats:'));
  const routePorts = new Map<string, number>();
  for (const [name] of named) routePorts.set(name, await freePort('127.0.0.1'));
  const written = readFileSync(join(ops, 'nats.conf'), 'utf8').replace(/^(?:listen|http): .*$/gm, '');
  const servers: Nats[] = [];
  for (const [name, { environment = {} }] of named) {
    const config = written.replace('"0.0.0.0:6222"', `"127.0.0.1:${routePorts.get(name)!}"`);
    const env = Object.entries(environment).map(([setting, value]) => [
      setting,
      interpolate(value, settings).replace(/@(\w+):6222/g, (_, at: string) => `@127.0.0.1:${routePorts.get(at)!}`),
    ]);
    servers.push(await startNats(program, config, Object.fromEntries(env) as Record<string, string>));
  }
  return servers;
}

/** What Compose starts with a profile. */
export const ofProfile = (profile: Profile): [string, Service][] =>
  Object.entries(services).filter(([, { profiles }]) => profiles === undefined || profiles.includes(profile));

const recipe = readFileSync(join(ops, 'Dockerfile'), 'utf8');
const entrypoint = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(recipe)![1]!) as string[];

/** Puts into `folder` what the image has, from this build; packages are linked. */
export function unpackImage(folder: string): void {
  const [, last = ''] = recipe.split(/^FROM .*(?<! AS build)$/m);
  const copied = [...last.matchAll(/^COPY --from=build (.+) \.\/(\S*)$/gm)].flatMap(([, sources]) =>
    sources!.split(' '),
  );
  if (copied.length === 0) throw new Error('the image copies nothing from its build');
  for (const source of copied.map((path) => path.replace('/app/', ''))) {
    mkdirSync(dirname(join(folder, source)), { recursive: true });
    if (source === 'node_modules') symlinkSync(join(root, source), join(folder, source));
    else cpSync(join(root, source), join(folder, source), { recursive: true });
  }
}

/** What the containers have of their own, and processes of one machine have not. */
interface Machine {
  /** What stands in for the server that the file starts, or what makes it of the URL in the file; SQLite's file is where its volume is. */
  databaseUrl: string | ((written: string) => string);
  /** Folder for named volumes. */
  volumes: string;
  /** In place of the published port. */
  port: number;
  metricsPort: number;
}

interface Container {
  command: string[];
  env: Record<string, string>;
  /** Ends with 0 while the container is healthy. */
  probe: string[];
}

/** Whether a service runs this program. */
export const isOurs = ({ command }: Service): boolean => command?.[0] === 'serve';

/** What Compose would start for a service, from the settings that `--env-file` names. Throws for a setting that the file requires. */
export function containerOf(
  { command = [], environment = {}, volumes = [], healthcheck }: Service,
  settings: Readonly<Record<string, string>>,
  machine: Machine,
): Container {
  const mounts = volumes.map((volume) => mountOf(interpolate(volume, settings), machine.volumes));
  const env = Object.fromEntries(
    Object.entries(filled(environment, settings)).map(([name, value]) => [
      name,
      mounts.find(({ target }) => target === value)?.source ?? value,
    ]),
  );
  const { databaseUrl } = machine;
  const sqlite = mounts.find(({ target }) => env['DATABASE_URL']?.startsWith(`sqlite:${target}/`));
  const [kind, ...probe] = healthcheck?.test ?? [];
  if (kind !== 'CMD') throw new Error('a service needs a health check of its own');
  return {
    command: [...entrypoint, ...command.map((word) => (word === '8080' ? `${machine.port}` : word))],
    env: {
      ...env,
      DATABASE_URL:
        sqlite !== undefined
          ? env['DATABASE_URL']!.replace(sqlite.target, sqlite.source)
          : typeof databaseUrl === 'string'
            ? databaseUrl
            : databaseUrl(env['DATABASE_URL'] ?? ''),
      METRICS_PORT: `${machine.metricsPort}`,
    },
    probe,
  };
}

/** Values of a service's environment as Compose fills them in. */
export const filled = (
  environment: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, interpolate(value, settings)]));

/** What `docker compose run` starts for a service of ours in place of its command. */
export const commandInImage = (...args: string[]): string[] => [...entrypoint, ...args];

function mountOf(volume: string, volumes: string): { source: string; target: string } {
  const [source = '', target = ''] = volume.split(':');
  return { source: source.startsWith('/') ? source : join(volumes, source), target };
}

/** `${NAME}`, and with a default (`:-`), an alternative (`:+`) or a complaint (`:?`) behind the name. */
function interpolate(text: string, settings: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)(?::([-+?])([^}]*))?\}/g, (_, name: string, kind: string | undefined, rest = '') => {
    const value = settings[name] ?? '';
    if (kind === '-') return value === '' ? rest : value;
    if (kind === '+') return value === '' ? '' : rest;
    if (kind === '?' && value === '') throw new Error(`${name}: ${rest}`);
    return value;
  });
}

/** A chain as of a real deployment: its manifest, in `folder`, has no accounts, so that each key must come from the environment. */
export async function startChainOf(folder: string): Promise<ManualChain> {
  const chain = await startManualChain();
  await chain.provider.send('evm_setIntervalMining', [500]);
  const { accounts: _, ...manifest } = chain.manifest;
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  return chain;
}
