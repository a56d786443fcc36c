import { expect } from 'chai';
import { createApp } from '../../server/app.js';
import { listen, type Listening } from '../../server/listen.js';
import { createMetrics, type MetricSources } from '../../server/ops/metrics.js';
import { probeRoutes, metricsRoutes, type Probes } from '../../server/ops/probes.js';
import Router from '@koa/router';
import { conform } from '../support/api/openapi.js';

const NOW_MS = 1_700_000_010_000;

const SOURCES: MetricSources = {
  readiness: () => ({ ready: false, reason: 'stale_ledger' }),
  ledger: () => ({
    head: 120,
    nextBlock: 118,
    headTimestampMs: NOW_MS - 2_000,
    scannedMs: NOW_MS - 7_500,
    generation: 44,
  }),
  tokens: () => [
    { token: 'USDC', quarantined: true, doubted: false },
    { token: 'WETH', quarantined: false, doubted: true },
  ],
  solvency: () => [
    { token: 'USDC', differenceUnits: -1n },
    { token: 'WETH', differenceUnits: 0n },
  ],
  proofs: () => ({ proven: 12, unconfirmed: 1, unreadableHeaders: 0, unreadableReceipts: 2, wrongLogs: 3 }),
  transfers: () => [
    { token: 'USDC', isUneven: true },
    { token: 'WETH', isUneven: false },
    { token: 'NEW', isUneven: null },
  ],
  orderReverts: () => Promise.resolve({ count: 2, gasUsed: 157_000n }),
  swapProfits: () =>
    Promise.resolve([
      {
        token: 'USDC',
        filled: 3,
        feesWei: 9n * 10n ** 12n,
        filledCostWei: 7n * 10n ** 12n,
        revertedCostWei: 10n ** 12n,
        gaveWayCostWei: 5n * 10n ** 11n,
        worstWei: -(10n ** 11n),
      },
    ]),
  executors: () =>
    Promise.resolve([
      { signer: '0xe', isFunded: false },
      { signer: '0xf', isFunded: true },
    ]),
  unattributed: () => Promise.resolve([{ token: 'USDC', units: 10n ** 30n }]),
  suspense: () =>
    Promise.resolve({ items: [{ kind: 'fill', count: 2 }], units: [{ token: 'USDC', units: -(10n ** 30n) }] }),
  operator: () =>
    Promise.resolve([
      { token: 'USDC', balanceUnits: -1n, floorUnits: 0n, isBelow: true },
      { token: 'WETH', balanceUnits: 5n, floorUnits: -(10n ** 30n), isBelow: false },
    ]),
  pairs: () =>
    Promise.resolve([
      { maker: '0xa', taker: 'all', token: 'USDC', gainUnits: -7n, losing: true },
      { maker: '0xa', taker: '0xb', token: 'USDC', gainUnits: -6n, losing: false },
    ]),
  business: () => Promise.resolve(null),
  signers: () => [
    {
      role: 'poster',
      address: '0xabc',
      balanceWei: 5n * 10n ** 17n,
      lowBalance: true,
      unminedCount: 2,
      oldestSentMs: NOW_MS - 3_000,
      gapTransfers: 4,
      nonceDoubts: 6,
    },
    {
      role: 'settler',
      address: '0xdef',
      balanceWei: null,
      lowBalance: false,
      unminedCount: 0,
      oldestSentMs: null,
      gapTransfers: 0,
      nonceDoubts: 0,
    },
  ],
  endpoints: () => [
    { user: 'watcher', name: 'a.example', healthy: false, counts: { silent: 1, contradiction: 2, wrongChain: 0 } },
  ],
  heads: () => ({ wakes: 9, endpoints: [{ name: 'b.example', connected: true, heads: 11, failures: 2 }] }),
  hints: () => ({ connected: false, received: 5, lost: 1 }),
  settler: () => ({ blockedBy: 'not_settler', archive: null }),
  poster: () => null,
  storage: () => Promise.resolve({ bytes: 4_096_000, foldedOrderSeq: 12 }),
  replication: () => null,
  replica: () => ({ lagMs: 2_500, isBehind: false }),
  gateway: () => ({
    ...{ active: true, sockets: 3, openOrders: 17, queued: 5, signatureBackend: 'wasm' },
    edges: { batches: 4, actions: 90, refused: 2, busy: 1 },
  }),
  nats: () => true,
  edge: () => ({
    ...{ connected: true, sequencer: false, lost: 1 },
    ...{ waiting: 6, batches: 7, actions: 80, resent: 3, unknown: 1 },
  }),
  nowMs: () => NOW_MS,
};

describe('Metrics and probes', () => {
  let listening: Listening | null = null;

  afterEach(async () => {
    await listening?.close();
    listening = null;
  });

  async function start(sources: Partial<MetricSources> = {}, probes: Partial<Probes> = {}): Promise<string> {
    const metrics = createMetrics({ ...SOURCES, ...sources });
    const ops = probeRoutes({
      failure: () => null,
      ready: () => ({ ready: true, reason: null }),
      active: () => ({ active: true, reason: null }),
      ...probes,
    });
    const served = new Router();
    served.get('/things/:id', (ctx) => {
      ctx.body = { ok: true };
    });
    const silent = (): void => undefined;
    const app = createApp({
      routers: [served, metricsRoutes(metrics.registry), ops],
      logger: { info: silent, error: silent },
      observe: metrics.observe,
    });
    listening = await listen(app, 0, '127.0.0.1');
    return listening.url;
  }

  async function scrape(url: string): Promise<Map<string, string>> {
    const text = await (await fetch(`${url}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]));
  }

  it('reports the ledger, the signers and the gateway as they are at the scrape', async () => {
    const values = await scrape(await start());
    expect(values.get('curvebook_ready{reason="stale_ledger"}')).to.equal('0');
    expect(values.get('curvebook_chain_lag_blocks')).to.equal('3');
    expect(values.get('curvebook_scan_age_seconds')).to.equal('7.5');
    expect(values.get('curvebook_signer_balance_gwei{role="poster",signer="0xabc"}')).to.equal('500000000');
    expect(values.get('curvebook_signer_low_balance{role="poster",signer="0xabc"}')).to.equal('1');
    expect(values.get('curvebook_outbox_oldest_seconds{role="poster",signer="0xabc"}')).to.equal('3');
    expect(values.get('curvebook_unattributed_units{token="USDC"}')).to.equal('9007199254740991');
    expect(values.get('curvebook_suspense_items{kind="fill"}')).to.equal('2');
    expect(values.get('curvebook_suspense_units{token="USDC"}')).to.equal('-9007199254740991');
    expect(values.get('curvebook_solvency_difference_units{token="USDC"}')).to.equal('-1');
    expect(values.get('curvebook_solvency_difference_units{token="WETH"}')).to.equal('0');
    for (const [token, value] of Object.entries({ USDC: '1', WETH: '0', NEW: '-1' }))
      expect(values.get(`curvebook_token_uneven{token="${token}"}`)).to.equal(value);
    for (const [outcome, value] of Object.entries({
      proven: '12',
      unconfirmed: '1',
      unreadable_header: '0',
      unreadable_receipts: '2',
      wrong_logs: '3',
    }))
      expect(values.get(`curvebook_block_proofs{outcome="${outcome}"}`)).to.equal(value);
    expect(values.get('curvebook_order_reverts_hour')).to.equal('2');
    expect(values.get('curvebook_heads_connected{endpoint="b.example"}')).to.equal('1');
    expect(values.get('curvebook_heads_told{endpoint="b.example"}')).to.equal('11');
    expect(values.get('curvebook_heads_lost{endpoint="b.example"}')).to.equal('2');
    expect(values.get('curvebook_head_wakes')).to.equal('9');
    expect(values.get('curvebook_hints_connected')).to.equal('0');
    expect(values.get('curvebook_hints_received')).to.equal('5');
    expect(values.get('curvebook_order_reverts_hour_gas')).to.equal('157000');
    expect(values.get('curvebook_executor_funded{signer="0xe"}')).to.equal('0');
    expect(values.get('curvebook_executor_funded{signer="0xf"}')).to.equal('1');
    expect(values.get('curvebook_swap_orders_hour{token="USDC"}')).to.equal('3');
    expect(values.get('curvebook_swap_fees_hour_gwei{token="USDC"}')).to.equal('9000');
    expect(values.get('curvebook_swap_costs_hour_gwei{token="USDC",outcome="filled"}')).to.equal('7000');
    expect(values.get('curvebook_swap_costs_hour_gwei{token="USDC",outcome="reverted"}')).to.equal('1000');
    expect(values.get('curvebook_swap_costs_hour_gwei{token="USDC",outcome="gave_way"}')).to.equal('500');
    expect(values.get('curvebook_swap_worst_order_hour_gwei{token="USDC"}')).to.equal('-100');
    expect(values.get('curvebook_token_quarantined{token="USDC"}')).to.equal('1');
    expect(values.get('curvebook_token_quarantined{token="WETH"}')).to.equal('0');
    expect(values.get('curvebook_holdings_in_doubt{token="USDC"}')).to.equal('0');
    expect(values.get('curvebook_holdings_in_doubt{token="WETH"}')).to.equal('1');
    expect(values.get('curvebook_open_orders')).to.equal('17');
    expect(values.get('curvebook_queued_actions')).to.equal('5');
    expect(values.get('curvebook_signature_backend{backend="wasm"}')).to.equal('1');
    expect(values.get('curvebook_sockets')).to.equal('3');
    expect(values.get('curvebook_outbox_unmined{role="poster",signer="0xabc"}')).to.equal('2');
    expect(values.get('curvebook_settle_blocked{reason="not_settler"}')).to.equal('1');
    expect(values.get('curvebook_outbox_gap_transfers{role="poster",signer="0xabc"}')).to.equal('4');
    expect(values.get('curvebook_outbox_nonce_doubts{role="poster",signer="0xabc"}')).to.equal('6');
    expect(values.get('curvebook_rpc_healthy{user="watcher",endpoint="a.example"}')).to.equal('0');
    expect(values.get('curvebook_rpc_failures{user="watcher",endpoint="a.example",kind="contradiction"}')).to.equal(
      '2',
    );
    expect(values.get('curvebook_rpc_failures{user="watcher",endpoint="a.example",kind="wrong_chain"}')).to.equal('0');
    expect(values.get('curvebook_operator_units{token="USDC"}')).to.equal('-1');
    expect(values.get('curvebook_operator_below_floor{token="USDC"}')).to.equal('1');
    expect(values.get('curvebook_operator_below_floor{token="WETH"}')).to.equal('0');
    expect(values.get('curvebook_pair_gain_units{maker="0xa",taker="0xb",token="USDC"}')).to.equal('-6');
    expect(values.get('curvebook_pair_losing{maker="0xa",taker="all",token="USDC"}')).to.equal('1');
    expect(values.get('curvebook_operator_floor_units{token="WETH"}')).to.equal('-9007199254740991');
    expect(values.get('curvebook_database_bytes')).to.equal('4096000');
    expect(values.get('curvebook_folded_order_row')).to.equal('12');
  });

  it('says nothing about what it does not know', async () => {
    const values = await scrape(
      await start({ ledger: () => null, gateway: () => null, orderReverts: () => Promise.resolve(null) }),
    );
    const names = [...values.keys()];
    expect(names.filter((name) => /chain_lag|generation|sockets|gateway|post_|order_reverts/.test(name))).to.deep.equal(
      [],
    );
    expect(values.has('curvebook_signer_balance_gwei{role="settler",signer="0xdef"}')).to.equal(false);
    expect(values.has('curvebook_signer_low_balance{role="settler",signer="0xdef"}')).to.equal(true);
  });

  it('reports what posting takes: time, gas and money', async () => {
    const latency = { pair: 'A-B', orderToSignMs: { p50: 100, p99: 250 }, orderToLandedMs: { p50: null, p99: null } };
    const poster = {
      latency: [latency],
      sent: { full: 4 },
      transactions: { landed: 3 },
      missedBlocks: 1,
      archive: { files: 12, failures: 2, failing: true, waitingSinceMs: 0, dropped: 3 },
      crossing: [{ pair: 'WETH-USDC', orders: 2 }],
      pairs: ['WETH-USDC', 'A-B'],
      stopped: ['WETH-USDC'],
      leftOut: [{ pair: 'A-B', side: 'ask', reason: 'error', lots: 12n }],
      blockedBy: null as string | null,
      fees: { spentLastHourWei: 1_500n * 10n ** 9n, budgetWei: 10n ** 18n, lastGasUsed: 62_000 },
    };
    const url = await start({ poster: () => poster });
    const values = await scrape(url);
    expect(values.get('curvebook_post_sign_seconds{pair="A-B",quantile="p99"}')).to.equal('0.25');
    expect(values.has('curvebook_post_landed_seconds{pair="A-B",quantile="p99"}')).to.equal(false);
    expect(values.get('curvebook_post_gas_used')).to.equal('62000');
    expect(values.get('curvebook_post_records_sent{kind="full"}')).to.equal('4');
    expect(values.get('curvebook_post_transactions{outcome="landed"}')).to.equal('3');
    expect(values.get('curvebook_archive_files{role="poster"}')).to.equal('12');
    expect(values.get('curvebook_archive_failures{role="poster"}')).to.equal('2');
    expect(values.get('curvebook_archive_failing{role="poster"}')).to.equal('1');
    expect(Number(values.get('curvebook_archive_unarchived_seconds{role="poster"}'))).to.be.greaterThan(0);
    expect(values.get('curvebook_archive_dropped{role="poster"}')).to.equal('3');
    expect(values.get('curvebook_post_missed_blocks')).to.equal('1');
    expect(values.get('curvebook_post_crossing_orders{pair="WETH-USDC"}')).to.equal('2');
    expect(values.get('curvebook_post_stopped{pair="WETH-USDC"}')).to.equal('1');
    expect(values.get('curvebook_post_stopped{pair="A-B"}')).to.equal('0');
    expect(values.get('curvebook_post_left_out_lots{pair="A-B",side="ask",reason="error"}')).to.equal('12');
    expect(values.get('curvebook_post_blocked{reason=""}')).to.equal('0');
    poster.blockedBy = 'budget_spent';
    expect(values.get('curvebook_post_fees_hour_gwei')).to.equal('1500');
    expect(values.get('curvebook_post_budget_hour_gwei')).to.equal('1000000000');
    poster.fees = { ...poster.fees, lastGasUsed: null as never, budgetWei: null as never };
    const without = await scrape(url);
    const blocked = [...without].filter(([name]) => name.startsWith('curvebook_post_blocked'));
    expect(blocked).to.deep.equal([['curvebook_post_blocked{reason="budget_spent"}', '1']]);
    expect([without.has('curvebook_post_gas_used'), without.has('curvebook_post_budget_hour_gwei')]).to.deep.equal([
      false,
      false,
    ]);
  });

  it('follows what changes between two scrapes', async () => {
    let reason: string | null = 'startup_catch_up';
    const url = await start({ readiness: () => ({ ready: reason === null, reason }) });
    await scrape(url);
    reason = null;
    const values = await scrape(url);
    const ready = [...values].filter(([name]) => name.startsWith('curvebook_ready'));
    expect(ready).to.deep.equal([['curvebook_ready{reason=""}', '1']]);
  });

  it('counts requests by route, not by path', async () => {
    const url = await start();
    for (const pair of ['A-B', 'C-D', 'E-F']) await fetch(`${url}/things/${pair}`);
    await fetch(`${url}/nothing/here`);
    const values = await scrape(url);
    expect(values.get('curvebook_http_requests_total{method="GET",route="/things/:id",status="200"}')).to.equal('3');
    expect(values.get('curvebook_http_requests_total{method="GET",route="none",status="404"}')).to.equal('1');
    expect(values.get('curvebook_http_request_seconds_count{route="/things/:id"}')).to.equal('3');
  });

  it('tells apart whether to restart the process, to send it requests, and to send it actions', async () => {
    const ready = { ready: true, reason: null };
    const url = await start({}, { ready: () => ready, active: () => ({ active: false, reason: 'standby' }) });
    const ask = async (path: string): Promise<unknown[]> => {
      const response = await fetch(url + path);
      const body: unknown = await response.json();
      conform('GET', path, response.status, body);
      return [response.status, body];
    };
    expect(await ask('/live')).to.deep.equal([200, { live: true, problem: null }]);
    expect(await ask('/ready')).to.deep.equal([200, ready]);
    expect(await ask('/active')).to.deep.equal([503, { active: false, reason: 'standby' }]);
    await listening?.close();
    const failed = await start({}, { failure: () => 'the order log was lost' });
    expect((await fetch(`${failed}/live`)).status).to.equal(503);
  });

  it('sends requests and actions elsewhere once the process ends, whatever it was', async () => {
    const active = { active: true, reason: null };
    const ending = { failure: () => 'the order log was lost', ready: () => ({ ready: true, reason: null }) };
    const url = await start({}, { ...ending, active: () => active });
    for (const [path, name] of [
      ['/ready', 'ready'],
      ['/active', 'active'],
    ] as const) {
      const response = await fetch(url + path);
      expect([response.status, await response.json()]).to.deep.equal([503, { [name]: false, reason: 'ending' }]);
    }
  });
});
