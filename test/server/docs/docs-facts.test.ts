/** What the guides list is what the code has: endpoints, queries, reasons, commands, limits, log lines, and where links lead. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { settingsSchema } from '../../../cli/config.js';
import { REMEDIES } from '../../../cli/commands/doctor/finding.js';
import { COMMANDS } from '../../../cli/commands/list.js';
import { splitProRata } from '../../../core/attribution/pro-rata.js';
import { REMEMBERED_NONCES } from '../../../core/book/nonces.js';
import { ARMED_MARGIN_MS } from '../../../core/cut.js';
import type { Address } from '../../../core/types.js';
import { TODAY } from '../../../bench/scale/model.js';
import { LEAST_AGE_MS } from '../../../keepers/compactor.js';
import { FOLLOWED_HALTS } from '../../../ledger/chain/halts.js';
import { MAX_REORG_BLOCKS } from '../../../keepers/watcher/reconcile.js';
import {
  CATCH_UP_BLOCKS,
  MAX_HEAD_AGE_MS,
  MAX_LEDGER_AGE_MS,
  NOT_READY_REASONS,
} from '../../../keepers/watcher/status.js';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import * as orders from '../../../server/orders/limits.js';
import { bookSchema } from '../../../server/read/book.js';
import { checkpointSchema } from '../../../server/read/checkpoint.js';
import { decompositionSchema } from '../../../server/read/decomposition.js';
import { UNBOUNDED_UNITS } from '../../../server/read/costs.js';
import { READ_ENDPOINTS } from '../../../server/read/endpoints.js';
import { feesSchema } from '../../../server/read/fees.js';
import { FILLS_DEFAULT } from '../../../server/read/fills.js';
import { limitsSchema } from '../../../server/read/limits.js';
import { CUSTODY_EVENTS_LIMIT } from '../../../server/read/accounts/withdrawals.js';
import { ANSWER_LIMITS } from '../../../server/listen.js';
import { CLOSE, STREAM_LIMITS } from '../../../server/stream/limits.js';
import { SWAP_ENDPOINTS } from '../../../server/swap/endpoints.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const GUIDES = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** The text from a heading to the next one of its depth or less. */
function section(path: string, heading: string): string {
  const text = read(path);
  const start = text.indexOf(`\n${heading}\n`);
  expect(start, `${heading} in ${path}`).to.be.greaterThan(-1);
  const depth = heading.split(' ', 1)[0]!.length;
  const body = text.slice(start + heading.length + 2);
  const end = body.search(new RegExp(`^#{1,${depth}} `, 'm'));
  return end === -1 ? body : body.slice(0, end);
}

const captures = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, one]) => one!);
const thousands = (value: number): string => value.toLocaleString('en-US');

/** Says it in each of these words, in one text. */
function says(text: string, ...words: string[]): void {
  for (const word of words) expect(text).to.include(word);
}

describe('the guides', () => {
  it('list every endpoint of the read API, and no other', () => {
    const listed = captures(section('docs/makers.md', '## Read API'), /^\| `GET (\/[^`?]*)(?:\?[^`]*)?` \|/gm);
    expect(listed).to.have.members(READ_ENDPOINTS.map(({ path }) => path));
  });

  it('list every endpoint of the swap API, and no other', () => {
    const listed = captures(read('docs/swap.md'), /^## ((?:GET|POST|DELETE) \/.+)$/gm);
    const known = SWAP_ENDPOINTS.map(({ method, path }) => `${method.toUpperCase()} ${path.replace('/api/v1', '')}`);
    expect(listed).to.have.members(known);
  });

  it('list every query of POST /info, and no other', () => {
    const [listed = ''] = section('docs/orders.md', '## Queries').split('. Any other type');
    expect(captures(listed, /`(\w+)`/g)).to.have.members([...INFO_TYPES]);
  });

  it('say why a ledger is not ready, reason by reason', () => {
    const health = section('docs/operators.md', '## Health');
    const [table = ''] = health.split('\n### ');
    expect(captures(table, /^\| `(\w+)` \|/gm)).to.have.members([...NOT_READY_REASONS]);
    says(table, `no successful scan for ${MAX_LEDGER_AGE_MS / 1_000} s`, `older than ${MAX_HEAD_AGE_MS / 1_000} s`);
    expect(CATCH_UP_BLOCKS).to.equal(2);
    says(table, 'more than two blocks behind');
  });

  it('say why nothing is posted, reason by reason', () => {
    const table = section('docs/operators.md', '### Posting');
    const source = read('keepers/poster/poster.ts');
    const reasons = captures(table, /^\| `(\w+)(?:: …)?` \| [^|]/gm).filter((reason) => reason !== 'blockedBy');
    expect(reasons).to.have.members([
      'halted',
      'budget_spent',
      'fee_ceiling',
      'not_poster',
      'archive_fails',
      'book_unreadable',
      'posts_revert',
    ]);
    for (const reason of reasons) expect(source).to.match(new RegExp(`['\`]${reason}`));
    says(table, `less than ${ARMED_MARGIN_MS / 1_000} s away`);
  });

  it('explain every reason of a signed order, and no other', () => {
    const rows = section('docs/swap.md', '## GET /orders/{orderId}').split('`reason.code`')[1]!;
    const listed = captures(rows, /^\| (`[A-Z_`, ]+`) \|/gm).flatMap((cell) => captures(cell, /`(\w+)`/g));
    const source = [
      'keepers/executor/executor',
      'keepers/executor/economics',
      'keepers/executor/limit-orders',
      'keepers/executor/refusals',
      'keepers/executor/risk',
      'server/swap/order',
    ]
      .map((name) => read(`${name}.ts`))
      .join('');
    expect(new Set(listed)).to.deep.equal(new Set(captures(source, /code: '(\w+)'/g)));
  });

  it('list every command', () => {
    const listed = captures(section('docs/operators.md', '## Commands'), /^\| (`.*?`) \|/gm).join(' ');
    expect(new Set(captures(listed, /`([a-z]+)/g))).to.deep.equal(new Set(Object.keys(COMMANDS)));
    expect(read('docs/operators.md')).to.include(`${MAX_REORG_BLOCKS} blocks`);
  });

  it('say which order rows are kept', () => {
    const { RETENTION_ROWS: rows } = settingsSchema.parse({});
    const growth = section('docs/operators.md', '## How the database grows');
    says(growth, `${thousands(rows)} rows`, `the last ${LEAST_AGE_MS / 60_000} minutes`);
    says(read('docs/scale.md'), `${thousands(rows)} at most (\`RETENTION_ROWS\`)`);
    expect(TODAY).to.include({ retentionRows: rows });
  });

  it('say how to repair every halt', () => {
    const listed = captures(section('docs/runbook.md', '## IntegrityHalt'), /^\| (`.*?`) \|/gm).join(' ');
    const errors = read('ledger/errors.ts').split('export type InvariantCode =')[1]!.split(';')[0]!;
    const sources = ['derive/attributor', 'derive/custody', 'derive/suspense', 'watcher', 'repair'].map((name) =>
      read(`keepers/watcher/${name}.ts`),
    );
    const found = sources.flatMap((source) => captures(source, /code: '(\w+)'/g));
    // What is found of a token there stops its own markets; only what is set as the halt is one.
    const ofHoldings = captures(read('keepers/watcher/tokens/holdings.ts'), /halt \?\?= \{ code: '(\w+)'/g);
    expect(ofHoldings).to.not.deep.equal([]);
    const codes = new Set([...captures(errors, /'(\w+)'/g), ...found, ...ofHoldings, ...FOLLOWED_HALTS]);
    expect(new Set(captures(listed, /`([a-z_]+)`/g))).to.deep.equal(codes);
  });

  it('name log lines that are written', () => {
    const table = section('docs/operators.md', '### Log');
    const sources = ['cli', 'keepers', 'server', 'ledger']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
      )
      .filter((name) => name.endsWith('.ts'))
      .map(read)
      .join('\n');
    const lines = captures(table, /`([a-z][\w ]+?)(?:: …)?`/g).filter(
      (line) => !/^(fatal|error|warn|info|debug|level|time|msg|code|pino)$/.test(line),
    );
    expect(lines.length).to.be.greaterThan(20);
    for (const line of lines) expect(sources, line).to.match(new RegExp(`['\`]${line}`));
  });

  it('give the limits of the WebSocket', () => {
    const table = section('docs/orders.md', '## WebSocket');
    const { maxConnections, maxConnectionsPerAddress, maxSubscriptions, maxAccountSubscriptions, maxPendingPosts } =
      STREAM_LIMITS;
    const { retainedEvents } = STREAM_LIMITS;
    says(table, `64 bits | ${thousands(maxConnectionsPerAddress)} | HTTP 503`);
    says(
      read('docs/operators.md'),
      `${thousands(maxConnections)} WebSocket connections of a process one address has at most ${thousands(maxConnectionsPerAddress)}`,
    );
    const { stallMs, answerMs, bytesPerSec, networkBytes } = ANSWER_LIMITS;
    says(
      read('docs/operators.md'),
      `nothing of an answer for ${stallMs / 1_000} to ${(2 * stallMs) / 1_000} s`,
      `after ${answerMs / 60_000} minutes and a second for each ${bytesPerSec / 1024} KiB`,
      `More than ${networkBytes / 2 ** 20} MiB of answers may not wait for one address`,
    );
    says(table, `close ${CLOSE.flood.code} when more than ${STREAM_LIMITS.maxRefused} had arrived`);
    says(read('docs/makers.md'), `(${thousands(UNBOUNDED_UNITS)} orders where nothing bounds it)`);
    says(table, `one address | ${thousands(maxAccountSubscriptions)} | error frame`);
    says(table, `| ${thousands(maxConnections)} |`, `| ${maxSubscriptions} |`, `| ${maxPendingPosts} |`);
    says(
      table,
      `| ${STREAM_LIMITS.maxMessageBytes / 2 ** 20} MiB | close 1009`,
      `| ${STREAM_LIMITS.maxQueueBytes / 2 ** 20} MiB |`,
    );
    says(table, `${thousands(retainedEvents)} events or ${STREAM_LIMITS.retainedMs / 60_000} minutes`);
    says(
      table,
      `| ${STREAM_LIMITS.idleMs / 1_000} s |`,
      `every ${STREAM_LIMITS.repeatMs / 1_000} s`,
      `${orders.MAX_BOOK_LEVELS} levels per side`,
    );
    for (const { code } of Object.values(CLOSE)) says(table, `close ${code}`);
  });

  it('give the limits of orders, nonces, agents and lists', () => {
    const wire = read('docs/orders.md');
    const makers = read('docs/makers.md');
    const open = thousands(orders.MAX_OPEN_ORDERS);
    says(wire, `${open} open orders per maker and ${thousands(orders.MAX_BATCH_ENTRIES)} entries per batch`);
    says(makers, `${open} open orders per maker, ${thousands(orders.MAX_BATCH_ENTRIES)} entries per batch`);
    says(
      wire,
      `at least ${orders.MIN_SCHEDULE_MS / 1_000} s ahead`,
      `hold the latest ${thousands(orders.MAX_USER_FILLS)} per maker`,
    );
    expect([orders.MAX_TRIGGERS_PER_DAY, orders.MAX_NAMED_AGENTS]).to.deep.equal([10, 3]);
    says(wire, 'Ten may come due per UTC day', `three with one of 1 to ${orders.MAX_AGENT_NAME} characters`);
    const days = (ms: number): number => ms / 86_400_000;
    says(wire, `at\nmost ${days(orders.AGENT_MAX_MS)} days ahead, ${days(orders.AGENT_DEFAULT_MS)} by default`);
    expect([days(orders.NONCE_PAST_MS), days(orders.NONCE_FUTURE_MS)]).to.deep.equal([2, 1]);
    says(wire, 'within two days back and one day ahead', `The ${REMEMBERED_NONCES}\nhighest are remembered`);
    says(makers, `the ${orders.MAX_NONCES} highest per signer are kept`, `the newest ${FILLS_DEFAULT} fills`);
    says(makers, `the newest ${CUSTODY_EVENTS_LIMIT} custody events`);
  });

  it('give the defaults of the swap API', () => {
    const defaults = settingsSchema.parse({});
    const {
      SWAP_QUOTES_PER_MINUTE: quotes,
      SWAP_ORDERS_PER_MINUTE: submissions,
      SWAP_READS_PER_MINUTE: reads,
    } = defaults;
    says(
      read('docs/swap.md'),
      `${quotes} quotes, ${submissions} submissions, ${reads} looks at orders, ${reads} token lists`,
    );
    says(read('docs/swap.md'), `${defaults.SWAP_TOLERANCE_BPS / 100} %`);
  });

  it('explain every field of limits, and those of checkpoints, fees and decompositions that are no plain facts', () => {
    const api = section('docs/makers.md', '## Read API');
    const table = captures(api, /^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| /gm).flatMap((cell) => captures(cell, /`(\w+)`/g));
    const { ledger } = limitsSchema.shape;
    const balance = ledger.shape.balances.element;
    const plain = ['deployment_id', 'capital_flow_start_block', 'balances', 'token'];
    const fields = [...Object.keys(ledger.shape), ...Object.keys(balance.shape)].filter((one) => !plain.includes(one));
    expect(table).to.have.members(fields);
    const prose: [{ shape: object }, string[]][] = [
      [checkpointSchema, ['seq', 'generation', 'ack_fill_seqs', 'root']],
      [decompositionSchema, ['residual', 'rounding', 'compression_residual', 'status', 'legs', 'consumed_before']],
      [feesSchema.element.shape.fees.element, ['accrued', 'balance']],
      [bookSchema, ['feed_live', 'age_ms']],
    ];
    const guide = read('docs/makers.md').replaceAll(/```[^]*?```/g, '');
    for (const [{ shape }, names] of prose) {
      expect(Object.keys(shape)).to.include.members(names);
      for (const name of names) expect(guide, name).to.match(new RegExp(`\\b${name}\\b`));
    }
  });

  it('say of money, risk and time what holds', () => {
    const makers = read('docs/makers.md').replaceAll(/\s+/g, ' ');
    const seconds = ARMED_MARGIN_MS / 1_000;
    says(makers, `left out of a cut from ${seconds} s before their scheduled cancel on`);
    says(
      read('docs/orders.md').replaceAll(/\s+/g, ' '),
      `From ${seconds} s before it on you are left out of new curves`,
    );
    const { SMALL_CHANGE_INTERVAL_MS, CLAIM_INTERVAL_SEC, SMALL_CLAIM_BPS } = settingsSchema.parse({});
    says(makers, `up to ${SMALL_CHANGE_INTERVAL_MS / 1_000} s (\`SMALL_CHANGE_INTERVAL_MS\`)`);
    says(
      makers,
      `${CLAIM_INTERVAL_SEC / 60} minutes after the last settlement`,
      `less than ${SMALL_CLAIM_BPS / 100} % of your`,
    );
    // The largest remainder takes what is left of the division, and of equal ones the lower address: two makers at a price, an odd unit.
    says(makers, 'largest remainders, ties to the lower maker address');
    const has = (['0x01', '0x02', '0x03'] as const).map((maker) => ({ maker: maker, units: 5n }));
    expect(splitProRata(7n, has, 15n), 'of three equal remainders the lowest address').to.deep.equal([3n, 2n, 2n]);
    const uneven = [
      { maker: '0x01' as Address, units: 2n },
      { maker: '0x02' as Address, units: 5n },
    ];
    expect(splitProRata(4n, uneven, 7n), 'the largest remainder, 6/7 beside 1/7').to.deep.equal([1n, 3n]);
  });

  it('name settings that exist', () => {
    const known = new Set([
      ...Object.keys(settingsSchema.shape),
      'DEPLOY_PRIVATE_KEY',
      'DEPLOY_RPC_URL',
      'EXPLORER_API_KEY',
      'GRAFANA_PASSWORD',
      'ALERT_WEBHOOK_URL',
      'DATABASE_HOST',
      'DATABASE_PASSWORD',
      'NATS_EDGE_PASSWORD',
      'NODE_OPTIONS',
      'RPC_PORT',
      'BLOCK_TIME_MS',
      'SANDBOX_DIR',
      // Codes of `curvebook doctor`.
      ...Object.keys(REMEDIES),
      // Of answers of endpoints.
      ...captures(read('keepers/chain/rpc.ts'), /readonly code = '(\w+)'/g),
      // Why an executor sends nothing.
      ...captures(read('keepers/executor/refusals.ts'), /\bcode: '([A-Z_]+)'/g),
      // Codes of the database.
      ...captures(read('ledger/errors.ts'), /^ {2}\| '(\w+)'/gm),
      ...captures(read('ledger/transactions/partition-locks.ts'), /^ {2}\| '(\w+)'/gm),
      // Of commands, of the owner's commands, and of the archive.
      ...captures(read('deploy/errors.ts'), /\| '(\w+)'/g),
      ...captures(read('cli/commands/command-error.ts'), /\| '(\w+)'/g),
      ...captures(read('keepers/archive/format.ts'), /'(ARCHIVE_[A-Z]+)'/g),
    ]);
    const ofCode = read('docs/operators.md').slice(0, read('docs/operators.md').indexOf('| code | meaning |'));
    for (const text of [ofCode, read('docs/runbook.md'), read('README.md')])
      for (const name of captures(text, /`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g))
        if (!/^(TOKEN_QUARANTINED|RESTORE_CONFLICT|READ_ONLY|REPLICA_LAG)$/.test(name))
          expect([...known], name).to.include(name);
  });

  it('explain every code of partitions, and no other', () => {
    const codes = captures(read('ledger/transactions/partition-locks.ts'), /^ {2}\| '(\w+)'/gm);
    const [, section = ''] = read('docs/operators.md').split('### Old posts out of the database');
    expect(captures(section.slice(0, section.indexOf('\n## ')), /^\| `(\w+)` \|/gm)).to.have.members(codes);
  });

  it('link to files and headings that exist', () => {
    const anchors = (path: string): string[] =>
      captures(read(path).replaceAll(/^```[^]*?^```/gm, ''), /^#{1,6} (.+)$/gm).map((title) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w\s-]/g, '')
          .replaceAll(' ', '-'),
      );
    let count = 0;
    for (const guide of GUIDES) {
      for (const link of captures(read(guide), /\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(link)) continue;
        const [file = '', anchor] = link.split('#');
        const target = file === '' ? guide : join(dirname(guide), file);
        expect(existsSync(join(root, target)), `${guide}: ${link}`).to.equal(true);
        if (anchor !== undefined) expect(anchors(target), `${guide}: ${link}`).to.include(anchor);
        count += 1;
      }
    }
    expect(count).to.be.greaterThan(20);
  });
});
