/** The files that watch a deployment agree with the program: roles, settings, metrics, alerts and their remedies. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ROLES, settingsSchema } from '../../cli/config.js';
import { SETTINGS_DOC, settingsDoc } from '../../cli/settings-doc.js';
import { createMetrics } from '../../server/ops/metrics.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Service {
  command?: string[];
  environment?: Record<string, string>;
}

interface Rule {
  alert: string;
  expr: string;
}

const compose = parse(read('deploy/ops/compose.yaml'), { merge: true }) as { services: Record<string, Service> };
const alerts = (parse(read('deploy/ops/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);

/** Services that run this program. */
const ours = Object.entries(compose.services).filter(([, { command }]) => command?.[0] === 'serve');

describe('The files for operators', () => {
  it('run each role exactly once, by the command that people use, with settings that exist', () => {
    const roles = ours.map(([, { command }]) => command?.[command.indexOf('--roles') + 1]);
    expect(roles).to.have.members([...ROLES]);
    for (const [name, { environment = {} }] of ours) {
      expect(Object.keys(settingsSchema.shape), name).to.include.members(Object.keys(environment));
    }
  });

  it('scrape every one of them', () => {
    const prometheus = parse(read('deploy/ops/prometheus.yml')) as {
      scrape_configs: { static_configs: { targets: string[] }[] }[];
    };
    const targets = prometheus.scrape_configs.flatMap((job) => job.static_configs.flatMap((one) => one.targets));
    expect(targets).to.have.members(ours.map(([name, { environment }]) => `${name}:${environment?.['METRICS_PORT']}`));
  });

  it('ask for metrics that exist', async () => {
    const { registry } = createMetrics({
      readiness: () => ({ ready: true, reason: null }),
      ledger: () => null,
      unattributed: () => Promise.resolve([]),
      operator: () => Promise.resolve([]),
      signers: () => [],
      poster: () => null,
      storage: () => Promise.resolve({ bytes: 0, foldedOrderSeq: 0 }),
      gateway: () => null,
      nowMs: () => 0,
    });
    const known = new Set((await registry.getMetricsAsJSON()).map((metric) => metric.name));
    const asked = (read('deploy/ops/alerts.yml') + read('deploy/ops/grafana/dashboard.json')).match(/curvebook_\w+/g);
    const names = new Set((asked ?? []).map((name) => name.replace(/_bucket$/, '')));
    expect(names.size).to.be.greaterThan(10);
    expect([...known]).to.include.members([...names]);
  });

  it('say what to do about each alert, and about no other', () => {
    const sections = [...read('docs/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(sections).to.deep.equal(alerts.map((rule) => rule.alert));
  });

  it('list every setting', () => {
    expect(readFileSync(SETTINGS_DOC, 'utf8'), 'run npm run docs:settings').to.equal(settingsDoc());
  });
});
