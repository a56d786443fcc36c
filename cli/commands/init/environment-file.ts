/** The text of `.env`: what was set, and every other setting as a comment, with its default. */
import { settingRows } from '../../settings-doc.js';
import { ConfigError } from '../../errors.js';

/** What compose wants beside the settings of `serve`. */
const OF_COMPOSE: Readonly<Record<string, string>> = {
  DATABASE_PASSWORD: "password of compose's database",
  DATABASE_HOST: "which of compose's databases is the primary",
  GRAFANA_PASSWORD: "password of Grafana's admin",
  NATS_EDGE_PASSWORD: "password of edges at compose's NATS; NATS_PASSWORD is of gateways",
  ALERT_WEBHOOK_URL: 'where alerts are posted to, as JSON',
  DEPLOY_RPC_URL: 'endpoint of `npm run deploy`; its key is never written here',
};

/**
 * Values are quoted so that a shell, Docker, systemd and Node read the same. Throws ConfigError for one that can't be.
 */
export function environmentText(settings: Readonly<Record<string, string>>): string {
  const rows = settingRows();
  const described = new Map([
    ...rows.map(({ name, description }) => [name, description] as const),
    ...Object.entries(OF_COMPOSE),
  ]);
  const set = Object.entries(settings).map(
    ([name, value]) => `# ${described.get(name) ?? ''}\n${name}=${quoted(name, value)}\n`,
  );
  const others = rows
    .filter(({ name }) => settings[name] === undefined && !name.endsWith('_PRIVATE_KEY'))
    .map(({ name, fallback, description }) => `# ${description}\n#${name}=${fallback ?? ''}\n`);
  return [
    '# Settings of this deployment: for `curvebook --env`, `docker compose --env-file` and systemd. Keep it to yourself.\n',
    ...set,
    '# What follows is the default.\n',
    ...others,
  ].join('\n');
}

function quoted(name: string, value: string): string {
  if (/^[\w.,:/@=+-]*$/.test(value)) return value;
  if (/['\r\n\\]/.test(value))
    throw new ConfigError([
      `${name}: has a quote, a backslash or a line break, which .env can't hold; encode it as in URLs`,
    ]);
  return `'${value}'`;
}
