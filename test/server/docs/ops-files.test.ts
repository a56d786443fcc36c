/** The files that watch a deployment agree with the program: roles, settings, metrics, alerts and their remedies. */
import { EDGE, edgeSettings } from '../../../cli/settings/edge.js';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { PROCESS_CONNECTIONS } from '../../../cli/commands/doctor/database.js';
import { settingsSchema } from '../../../cli/config.js';
import { ROLE_NAMES } from '../../../ledger/roles.js';
import { SETTINGS_DOC, settingsDoc } from '../../../cli/settings-doc.js';
import { createMetrics } from '../../../server/ops/metrics.js';
import { PROFILES, isOurs, ofProfile, services, type Profile } from '../../support/console/compose.js';
import { complaintsOf, haproxyProgram } from '../../support/nodes/haproxy.js';
import { SILENT_METRICS } from '../../support/api/silent-metrics.js';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

interface Rule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
}

interface Panel {
  title: string;
  targets: { expr: string; legendFormat: string }[];
}

const compose = parse(read('deploy/ops/compose.yaml'), { merge: true }) as {
  configs: Record<string, { content: string }>;
};
const alerts = (parse(read('deploy/ops/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);

const dashboards = ['dashboard.json', 'business.json'].map((name) => read(`deploy/ops/grafana/${name}`));
const panels = dashboards.flatMap((text) => (JSON.parse(text) as { panels: Panel[] }).panels);

/** Services that run this program. */
const ours = Object.entries(services).filter(([, service]) => isOurs(service));
const oursOf = (profile: Profile) => ofProfile(profile).filter(([, service]) => isOurs(service));

const haproxy = haproxyProgram();

describe('The files for operators', () => {
  it('run each role as often as the profile says, by the command that people use, with settings that exist', () => {
    const rolesOf = (profile: Profile) =>
      oursOf(profile).flatMap(([, { command = [] }]) =>
        command.includes('--roles') ? [command[command.indexOf('--roles') + 1]] : ROLE_NAMES,
      );
    expect(rolesOf('single')).to.have.members(ROLE_NAMES);
    expect(oursOf('single')).to.have.length(1);
    expect(rolesOf('roles')).to.have.members(ROLE_NAMES);
    expect(rolesOf('scaled')).to.have.members([...ROLE_NAMES, ...ROLE_NAMES, EDGE, EDGE]);
    for (const [name, { environment = {} }] of ours) {
      // What only `doctor` reads.
      const known = [...Object.keys(settingsSchema.shape), 'ALERT_WEBHOOK_URL'];
      expect(known, name).to.include.members(Object.keys(environment));
    }
  });

  it('start what each profile needs, and nothing that needs what the profile lacks', () => {
    for (const profile of PROFILES) {
      const names = ofProfile(profile).map(([name]) => name);
      expect(names, profile).to.include.members(['alertmanager', 'grafana']);
      expect(
        names.filter((name) => name.startsWith('prometheus')),
        profile,
      ).to.have.length(1);
      for (const [name, { depends_on: needs = {} }] of ofProfile(profile))
        expect(names, `${profile}: ${name}`).to.include.members(Object.keys(needs));
    }
    expect(ofProfile('scaled').map(([name]) => name)).to.include.members([
      ...['primary', 'replica', 'balancer'],
      ...['nats1', 'nats2', 'nats3'],
    ]);
    const unassigned = Object.entries(services).filter(([, { profiles }]) => profiles === undefined);
    expect(unassigned.map(([name]) => name)).to.deep.equal([]);
  });

  it('send everybody to edges that are ready, else to a gateway that is active, and readers to one that is ready while none is', () => {
    const config = read('deploy/ops/haproxy.cfg');
    const gateways = oursOf('scaled').filter(([name]) => name.startsWith('gateway'));
    const edges = oursOf('scaled').filter(([name]) => name.startsWith('edge'));
    for (const [backend, probe, behind] of [
      ['edges', '/ready', edges],
      ['active', '/active', gateways],
      ['ready', '/ready', gateways],
    ] as const) {
      const section = config.split(`\nbackend ${backend}\n`)[1]!.split('\nbackend ')[0]!;
      expect(section, backend)
        .to.include(`option httpchk GET ${probe}\n`)
        .and.include('http-check expect status 200\n');
      const servers = [...section.matchAll(/^ {2}server (\S+) (\S+)$/gm)].map(([, name, at]) => [name, at]);
      expect(servers, backend).to.deep.equal(
        behind.map(([name, { command }]) => [name, `${name}:${command![command!.indexOf('--port') + 1]}`]),
      );
    }
    expect(config).to.include(
      'use_backend edges if { nbsrv(edges) gt 0 } !{ path_beg -i /api/v1/ }\n  use_backend active if { nbsrv(active) gt 0 }\n  default_backend ready\n',
    );
    // An action that may have been stored must not be sent to another gateway, too.
    expect(/^ {2}retry-on (.*)$/m.exec(config)?.[1]).to.equal('conn-failure');
    for (const [name, { environment }] of [...edges, ...gateways])
      expect(environment?.['TRUST_PROXY'], name).to.equal('${TRUST_PROXY:-true}');
  });

  if (haproxy !== null)
    it('have a balancer that HAProxy starts with, and it complains of a mistake', () => {
      const path = fileURLToPath(new URL('../../../deploy/ops/haproxy.cfg', import.meta.url));
      expect(complaintsOf(haproxy, path)).to.equal('');
      const folder = mkdtempSync(join(tmpdir(), 'curvebook-haproxy-'));
      try {
        const wrong = join(folder, 'haproxy.cfg');
        for (const [right, mistake] of [
          ['default_backend ready', 'default_backend readers'],
          ['retry-on conn-failure', 'retry-on connection-failure'],
          ['option httpchk GET /active', 'option httpcheck GET /active'],
        ] as const) {
          writeFileSync(wrong, read('deploy/ops/haproxy.cfg').replace(right, mistake));
          expect(complaintsOf(haproxy, wrong), mistake).to.include('ALERT');
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

  it('let the servers of PostgreSQL take all connections that the processes of the profile may open', () => {
    for (const profile of PROFILES) {
      const servers = ofProfile(profile).filter(([, { image }]) => image?.startsWith('postgres:'));
      expect(servers, profile).to.have.length({ single: 0, roles: 1, scaled: 2 }[profile]);
      for (const [name, { command = [] }] of servers) {
        const set = command.find((word) => word.startsWith('max_connections='))?.split('=')[1];
        // What PostgreSQL has by itself, of which it keeps three back.
        const most = Number.parseInt(set ?? '100', 10) - 3;
        expect(most, `${profile}: ${name}`).to.be.at.least(oursOf(profile).length * PROCESS_CONNECTIONS);
      }
    }
  });

  it('name all servers of NATS to edges, to gateways, and to each other', () => {
    const servers = Object.entries(services).filter(([, { image }]) => image?.startsWith('nats:'));
    expect(servers.map(([, { environment }]) => environment?.['NATS_SERVER'])).to.deep.equal(
      servers.map(([name]) => name),
    );
    for (const [name, { environment }] of servers) {
      const routes = [...environment!['NATS_ROUTES']!.matchAll(/@(\w+):6222/g)].map(([, at]) => at);
      expect(routes, name).to.deep.equal(servers.map(([one]) => one));
    }
    const urls = servers.map(([name]) => `nats://${name}:4222`).join();
    for (const [name, { environment }] of oursOf('scaled').filter(([name]) => /^(?:edge|gateway)/.test(name)))
      expect(environment?.['NATS_URL'], name).to.equal(`\${NATS_URL:-${urls}}`);
  });

  it('let an operator set whatever can be set, the same for every role', () => {
    const fixed = ['PORT', 'HOST', 'ROLES', 'MANIFEST', 'DATABASE_URL', 'METRICS_PORT'];
    const own = [
      'POSTER_PRIVATE_KEY',
      'SETTLER_PRIVATE_KEY',
      'EXECUTOR_PRIVATE_KEY',
      'POSTER_KEYSTORE',
      'SETTLER_KEYSTORE',
      'EXECUTOR_KEYSTORE',
      'KEYSTORE_PASSWORD_FILE',
      'TRUST_PROXY',
      'PUBLIC_URL',
      'PUBLIC_RPC_URL',
      'EXPLORER_URL',
      ...Object.keys(edgeSettings),
    ];
    for (const [name, { environment = {} }] of ours) {
      const missing = Object.keys(settingsSchema.shape).filter((setting) => !(setting in environment));
      expect([...fixed, ...own], name).to.include.members(missing);
      // Edges are another user of NATS than gateways.
      const isOfEdges = (setting: string) =>
        name.startsWith('edge') && ['NATS_USER', 'NATS_PASSWORD'].includes(setting);
      for (const [setting, value] of Object.entries(environment)) {
        if (isOfEdges(setting)) expect(value, `${name}: ${setting}`).to.match(/^edge$|^\$\{NATS_EDGE_PASSWORD:/);
        else if (!fixed.includes(setting))
          expect(value, `${name}: ${setting}`).to.match(new RegExp(`^\\$\\{${setting}:`));
      }
    }
    for (const setting of own) {
      expect(
        ours.some(([, { environment = {} }]) => setting in environment),
        setting,
      ).to.equal(true);
    }
  });

  it('send alerts to whom the operator names, and a file of cases tries each of them', () => {
    const prometheus = parse(read('deploy/ops/prometheus.yml')) as {
      alerting: { alertmanagers: { static_configs: { targets: string[] }[] }[] };
    };
    const [
      {
        static_configs: [{ targets }],
      },
    ] = prometheus.alerting.alertmanagers as [{ static_configs: [{ targets: string[] }] }];
    expect(targets).to.deep.equal(['alertmanager:9093']);
    const manager = parse(compose.configs['alertmanager']!.content) as {
      route: { receiver: string };
      receivers: { name: string; webhook_configs: { url: string }[] }[];
    };
    expect(manager.receivers.map(({ name }) => name)).to.deep.equal([manager.route.receiver]);
    expect(manager.receivers[0]!.webhook_configs[0]!.url).to.match(/^\$\{ALERT_WEBHOOK_URL:\?/);
    const cases = parse(read('deploy/ops/alerts.test.yml')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
    };
    const tried = cases.tests.flatMap(({ alert_rule_test }) => alert_rule_test);
    for (const { alert } of alerts) {
      const mine = tried.filter(({ alertname }) => alertname === alert);
      expect(
        mine.some(({ exp_alerts = [] }) => exp_alerts.length > 0),
        `${alert} fires`,
      ).to.equal(true);
      expect(
        mine.some(({ exp_alerts = [] }) => exp_alerts.length === 0),
        `${alert} is silent`,
      ).to.equal(true);
    }
  });

  it('page for each reason for which the poster or the settler stops by itself, and say what each one means', () => {
    const reasonsOf = (keeper: string): string[] =>
      [...read(`keepers/${keeper}.ts`).matchAll(/(?:^const [A-Z_]+ =|return) '([a-z_]+)';$/gm)].map(([, one]) => one!);
    const [posting, settling] = [reasonsOf('poster/poster'), reasonsOf('settler/settler')];
    expect(posting).to.include.members(['budget_spent', 'not_poster', 'archive_fails', 'book_unreadable']);
    expect(settling).to.include.members(['not_settler', 'archive_fails']);
    const runbook = read('docs/runbook.md');
    const check = (alert: string, metric: string, reasons: readonly string[], others: readonly string[]): void => {
      const { expr } = alerts.find((rule) => rule.alert === alert)!;
      const [, operator, text] = new RegExp(`${metric}\\{reason(=~|!=)"([^"]*)"\\}`).exec(expr)!;
      const pages = (reason: string): boolean =>
        operator === '=~' ? new RegExp(`^(?:${text})$`).test(reason) : reason !== text;
      expect(
        reasons.filter((reason) => !pages(reason)),
        alert,
      ).to.deep.equal(others);
      const section = runbook.split(`\n## ${alert}\n`)[1]!.split('\n## ')[0]!;
      for (const reason of reasons) expect(section, `${alert}: ${reason}`).to.include(`\`${reason}\``);
    };
    // It comes with ArchiveFailing, which also tells of an archive that stops nothing.
    check('PostsBlocked', 'curvebook_post_blocked', posting, ['archive_fails']);
    check('SettlementsBlocked', 'curvebook_settle_blocked', settling, []);
  });

  it('scrape every process of the profile', () => {
    const prometheus = parse(read('deploy/ops/prometheus.yml')) as {
      scrape_configs: { file_sd_configs?: { files: string[] }[]; static_configs?: { targets: string[] }[] }[];
    };
    const files = prometheus.scrape_configs.flatMap((job) => (job.file_sd_configs ?? []).flatMap((one) => one.files));
    expect(files).to.deep.equal(['targets.yml']);
    const others = prometheus.scrape_configs.flatMap((job) =>
      (job.static_configs ?? []).flatMap((one) => one.targets.map((target) => target.split(':')[0])),
    );
    expect(others).to.deep.equal(['machine']);
    for (const profile of PROFILES) expect(ofProfile(profile).map(([name]) => name)).to.include.members(others);
    for (const profile of PROFILES) {
      const [, watches] = ofProfile(profile).find(([name]) => name.startsWith('prometheus'))!;
      const mounted = watches.volumes!.find((volume) => volume.endsWith(':/etc/prometheus/targets.yml:ro'))!;
      const [{ targets }] = parse(read(`deploy/ops/${mounted.split(':')[0]}`)) as [{ targets: string[] }];
      expect(targets, profile).to.have.members(
        oursOf(profile).map(([name, { environment }]) => `${name}:${environment?.['METRICS_PORT']}`),
      );
    }
  });

  it('ask for metrics that exist, and for labels that they have', async () => {
    const { registry } = createMetrics(SILENT_METRICS);
    const known = new Set((await registry.getMetricsAsJSON()).map((metric) => metric.name));
    const asked = [read('deploy/ops/alerts.yml'), ...dashboards].join().match(/curvebook_\w+/g);
    const names = new Set((asked ?? []).map((name) => name.replace(/_bucket$/, '')));
    expect(names.size).to.be.greaterThan(10);
    expect([...known]).to.include.members([...names]);

    const labelsOf = (metric: string): readonly string[] =>
      (registry.getSingleMetric(metric.replace(/_bucket$/, '')) as unknown as { labelNames: string[] }).labelNames;
    const asks = [
      ...alerts.map(({ alert, expr, annotations }) => ({
        where: alert,
        expr,
        text: Object.values(annotations).join().replaceAll('$labels.', ''),
      })),
      ...panels.flatMap(({ title, targets }) =>
        targets.map(({ expr, legendFormat }) => ({ where: title, expr, text: legendFormat })),
      ),
    ];
    let found = 0;
    for (const { where, expr, text } of asks) {
      const metrics = expr.match(/curvebook_\w+/g) ?? [];
      // What Prometheus adds by itself, and what the text of an alert may say beside labels.
      const has = new Set([...metrics.flatMap(labelsOf), 'job', 'instance', 'le', '$value']);
      // Those of node_exporter.
      if (expr.includes('node_filesystem_')) for (const label of ['device', 'fstype']) has.add(label);
      const selected = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(
        ([, list]) => list!.match(/\w+(?=\s*(?:=|!))/g) ?? [],
      );
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/));
      const told = [...text.matchAll(/\{\{\s*([$\w]+)\s*\}\}/g)].map(([, label]) => label!);
      for (const label of [...selected, ...grouped, ...told]) expect([...has], `${where}: ${label}`).to.include(label);
      // An aggregate keeps nothing but what it groups by.
      if (/\b(sum|min|max)\b/.test(expr)) expect([...grouped, '$value'], where).to.include.members(told);
      found += selected.length + grouped.length + told.length;
    }
    expect(found).to.be.greaterThan(30);
  });

  it('show each of our own metrics to somebody: on the dashboard, or in an alert', async () => {
    const shown = new Set(
      [read('deploy/ops/alerts.yml'), ...dashboards]
        .join()
        .match(/curvebook_\w+/g)
        ?.map((name) => name.replace(/_bucket$/, '')),
    );
    const { registry } = createMetrics(SILENT_METRICS);
    const own = (await registry.getMetricsAsJSON())
      .map(({ name }) => name)
      .filter((name) => !/^curvebook_(process|nodejs)_/.test(name));
    expect(own.length).to.be.greaterThan(30);
    expect(own.filter((name) => !shown.has(name))).to.have.members([
      // Blocks and generations are shown as lags and ages; the rest is for whoever looks for a cause.
      'curvebook_chain_head_block',
      'curvebook_generation',
      'curvebook_folded_order_row',
      'curvebook_signature_backend',
      'curvebook_order_reverts_hour_gas',
      'curvebook_http_request_seconds',
    ]);
  });

  it('show the growth of the database per day', () => {
    const growth = panels.find(({ title }) => title === 'Growth of the database per day');
    expect(growth?.targets.map(({ expr }) => expr)).to.deep.equal(['max(delta(curvebook_database_bytes[1d]))']);
  });

  it('say what to do about each alert, and about no other', () => {
    const sections = [...read('docs/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).to.deep.equal(alerts.map((rule) => rule.alert));
  });

  it('say what each metric means', async () => {
    const { registry } = createMetrics(SILENT_METRICS);
    const metrics = registry.getMetricsAsArray() as unknown as { name: string; help: string; labelNames: string[] }[];
    const rows = metrics
      .filter(({ name }) => !/^curvebook_(process|nodejs)_/.test(name))
      .map(({ name, help, labelNames }) => [
        name.replace('curvebook_', ''),
        labelNames.map((label) => `\`${label}\``).join(', '),
        help,
      ]);
    const [, section = ''] = read('docs/operators.md').split('\n### Metrics\n');
    const listed = [...section.split('\n### ')[0]!.matchAll(/^\| `(\w+)` \|(.*?)\| (.*) \|$/gm)];
    expect(listed.map(([, name, labels, help]) => [name, labels!.trim(), help])).to.deep.equal(rows);
  });

  it('name the ports that the compose file publishes', () => {
    const doors = { single: 'curvebook', roles: 'gateway', scaled: 'balancer' };
    for (const profile of PROFILES) {
      const published = ofProfile(profile).flatMap(([name, { ports = [] }]) =>
        ports.map((port) => `${name.replace(/^prometheus-.*/, 'prometheus')} ${port}`),
      );
      expect(published, profile).to.have.members([
        `${doors[profile]} 0.0.0.0:\${PORT:-8080}:8080`,
        'prometheus 127.0.0.1:9090:9090',
        'alertmanager 127.0.0.1:9093:9093',
        'grafana 127.0.0.1:3000:3000',
      ]);
    }
    const guide = read('docs/operators.md');
    for (const row of [
      '| curvebook, gateway, balancer | 8080 | `PORT`, all interfaces |',
      '| prometheus | 9090 | 127.0.0.1:9090 |',
      '| alertmanager | 9093 | 127.0.0.1:9093 |',
      '| grafana | 3000 | 127.0.0.1:3000 |',
      '| every role | 9464, metrics and probes | – |',
    ])
      expect(guide).to.include(row);
    for (const [name, { environment }] of ours) expect(environment?.['METRICS_PORT'], name).to.equal('9464');
  });

  it('list every setting', () => {
    expect(readFileSync(SETTINGS_DOC, 'utf8'), 'run npm run docs:settings').to.equal(settingsDoc());
  });
});
