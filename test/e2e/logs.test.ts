/** What a server that trades says of itself: its log, JSON, one line per event and no secret in any of them; and its metrics, as they move. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpTransport, ExchangeClient } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import { Contract, Wallet } from 'ethers';
import { WebSocket } from 'ws';
import { freePort } from '../../deploy/sandbox/ports.js';
import { createMetrics, type MetricSources } from '../../server/ops/metrics.js';
import { MAKERS, micros, wei } from '../support/audit.js';
import {
  accountOf,
  contractsOf,
  forOneDatabaseUrl,
  startStack,
  tokenOf,
  until,
  type Stack,
  type TestDatabase,
} from '../support/stack.js';
import { signQuote, type OrderAnswer, type QuoteAnswer } from '../support/swap-stack.js';
import { FIRST_ASSET, swap } from '../support/trading.js';

const RPC_KEY = 'k3y-of-the-first-endpoint';
const OTHER_RPC_KEY = 'k3y-of-an-endpoint-that-is-down';

interface Line {
  level: number;
  time: number;
  msg: string;
  [field: string]: unknown;
}

const DEBUG = 20;
const INFO = 30;
/** Hints of commits, which SQLite does not send. */
const OF_POSTGRESQL_ONLY = ['curvebook_hints_connected', 'curvebook_hints_received'];
/** Of a reader's replica, which test/e2e/database/reader.test.ts reads, and of edges, which test/e2e/edge/edge.test.ts reads. */
const OF_OTHERS = /nodejs_|process_|replica_(lag_seconds|behind)$|curvebook_(edge_|nats_|sequencer_)/;

forOneDatabaseUrl((database, open) => {
  describe(`The log and the metrics, on ${database}`, function () {
    this.timeout(300_000);
    let db: TestDatabase;
    let stack: Stack;
    let metricsPort: number;
    let archive: string;
    const signatures: string[] = [];

    before(async () => {
      db = await open();
      metricsPort = await freePort('127.0.0.1');
      archive = mkdtempSync(join(tmpdir(), 'curvebook-archive-'));
      stack = await startStack({
        databaseUrl: db.url,
        pools: true,
        env: (rpcUrl) => ({
          LOG_LEVEL: 'debug',
          METRICS_PORT: `${metricsPort}`,
          ARCHIVE_DIR: archive,
          RPC_URL: `${rpcUrl}/v2/${RPC_KEY},http://127.0.0.1:9/v2/${OTHER_RPC_KEY}`,
          HEADS_URL: `${rpcUrl.replace(/^http/, 'ws')}/v2/${RPC_KEY}`,
        }),
      });
    });

    after(async () => {
      await stack?.close();
      await db?.drop();
      rmSync(archive, { recursive: true, force: true });
    });

    /** A published client whose signatures are remembered. */
    function client(role: string): ExchangeClient {
      const wallet = new Wallet(accountOf(stack, role).privateKey);
      const sign = wallet.signTypedData.bind(wallet);
      // The client knows a wallet by the three parameters of its method.
      wallet.signTypedData = async (domain, types, value) => {
        const signature = await sign(domain, types, value);
        signatures.push(signature);
        return signature;
      };
      return new ExchangeClient({ transport: new HttpTransport({ apiUrl: stack.manifest.serverUrl }), wallet });
    }

    const lines = (): Line[] => stack.logLines().map((line) => JSON.parse(line) as Line);
    const called = (msg: string): Line[] => lines().filter((line) => line.msg === msg);

    async function api<T>(method: string, path: string, body?: object): Promise<T> {
      const init = { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
      const response = await fetch(`${stack.manifest.serverUrl}${path}`, body === undefined ? {} : init);
      return (await response.json()) as T;
    }

    /** All samples, by name and labels. */
    async function scrape(): Promise<Map<string, number>> {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      return new Map(
        samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
      );
    }

    it('has one line per event', async () => {
      const [maker] = MAKERS;
      const { address } = accountOf(stack, maker);
      await stack.operate('maker', 'approve', address);
      const { custodian } = contractsOf(stack, maker);
      await until('the deposits', async () => called('deposit').length >= 4);
      const deposits = called('deposit').filter((line) => line.maker === address);
      expect(deposits.map((line) => [line.level, line.token, line.amountUnits])).to.deep.equal([
        [INFO, tokenOf(stack, 'WETH').address.toLowerCase(), `${wei('100')}`],
        [INFO, tokenOf(stack, 'USDC').address.toLowerCase(), `${micros('300000')}`],
      ]);
      await until('the ledger to be ready', async () => {
        const { ledger } = await api<{ ledger: { ready: boolean } }>('GET', `/v0/makers/${address}/limits`);
        return ledger.ready;
      });

      const exchange = client(maker);
      const order = (b: boolean, p: string, s: string) => ({
        a: FIRST_ASSET,
        b,
        p,
        s,
        r: false,
        t: { limit: { tif: 'Gtc' as const } },
      });
      const { response } = await exchange.order({
        orders: [order(false, '2501', '5'), order(true, '2499', '5'), order(false, '2700', '1')],
        grouping: 'na',
      });
      const oids = response.data.statuses.map((status) => (status as { resting: { oid: number } }).resting.oid);
      await exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oids[2]! }] });
      // What is written to another pipe may come in after the answer.
      const untilSaid = (msg: string, count: number): Promise<void> =>
        until(`${count} of "${msg}"`, async () => called(msg).length >= count);
      await untilSaid('action', 2);
      expect(
        called('action').map(({ level, kind, maker: of, opened, closed }) => [level, kind, of, opened, closed]),
      ).to.deep.equal([
        [DEBUG, 'order', address, oids, []],
        [DEBUG, 'cancel', address, [], [oids[2]]],
      ]);

      const stranger = new Wallet(Wallet.createRandom().privateKey);
      const forged = await stranger.signMessage('of nobody');
      signatures.push(forged);
      const signature = { r: forged.slice(0, 66), s: `0x${forged.slice(66, 130)}`, v: 27 };
      const action = { type: 'cancel', cancels: [{ a: FIRST_ASSET, o: oids[0]! }] };
      await api('POST', '/exchange', { action, nonce: Date.now(), signature });
      await untilSaid('action refused', 1);
      expect(called('action refused').map(({ level, code }) => [level, code])).to.deep.equal([
        [DEBUG, 'unknown_signer'],
      ]);

      await fetch(`${stack.manifest.serverUrl}/v0/pairs?signature=${forged}`);
      await fetch(`${stack.manifest.serverUrl}/no/such/path`);
      const count = (request: string): number =>
        called('request').filter(
          ({ method, path, status }) => `${String(method)} ${String(path)} ${String(status)}` === request,
        ).length;
      await until('the last request', async () => count('GET /no/such/path 404') > 0);
      expect(count('POST /exchange 200')).to.equal(3);
      expect(count('GET /v0/pairs 200')).to.equal(1);
      expect(count('GET /no/such/path 404')).to.equal(1);

      const hashes = [
        await swap(stack, 'taker1', 'USDC', 'WETH', micros('1000')),
        await swap(stack, 'taker2', 'WETH', 'USDC', wei('0.5')),
      ];
      const taker = new Wallet(accountOf(stack, 'taker3').privateKey);
      const quote = await api<QuoteAnswer>('POST', '/api/v1/quote', {
        chainId: stack.manifest.chainId,
        from: taker.address,
        sellToken: tokenOf(stack, 'WETH').address,
        buyToken: tokenOf(stack, 'USDC').address,
        kind: 'sell',
        sellAmountBeforeFee: `${wei('0.3')}`,
        signingScheme: 'eip712',
      });
      const permit = await signQuote(quote, taker);
      signatures.push(permit);
      const { orderId } = await api<OrderAnswer>('POST', '/api/v1/orders', { quoteId: quote.id, signature: permit });
      // Who sends it and who sees it filled are not told by each other.
      for (const msg of ['signed order accepted', 'sent an order', 'signed order filled']) await untilSaid(msg, 1);
      expect(called('signed order accepted').map((line) => [line.level, line.orderId])).to.deep.equal([
        [INFO, orderId],
      ]);
      expect(called('sent an order').map((line) => line.orderId)).to.deep.equal([orderId]);
      expect(called('signed order filled').map((line) => line.owner)).to.deep.equal([taker.address.toLowerCase()]);

      const { fills } = { fills: await api<{ fill_seq: number; tx_hash: string }[]>('GET', '/v0/fills') };
      expect(fills.map((fill) => fill.tx_hash)).to.include.members(hashes);
      await untilSaid('fill', fills.length);
      const told = called('fill');
      expect(told.map((line) => [line.level, line.pair, line.fillSeq, line.txHash])).to.deep.equal(
        fills.map((fill) => [INFO, 'WETH-USDC', fill.fill_seq, fill.tx_hash]),
      );

      await (await custodian.requestWithdraw(tokenOf(stack, 'USDC').address, 1_000_000n)).wait();
      await until('the settlement', async () => called('withdrawal settled').length > 0);
      for (const msg of ['withdrawal requested', 'withdrawal settled'])
        expect(
          called(msg).map((line) => [line.level, line.maker]),
          msg,
        ).to.deep.equal([[INFO, address]]);
    });

    it('has moved every metric', async () => {
      const atFirst = await scrape();
      const weth = new Contract(
        tokenOf(stack, 'WETH').address,
        ['function transfer(address, uint256)'],
        new Wallet(accountOf(stack, 'taker1').privateKey, stack.provider),
      );
      await (await weth.getFunction('transfer')(stack.manifest.contracts.custodian, 5n)).wait();
      const socket = new WebSocket(`${stack.manifest.serverUrl.replace('http', 'ws')}/ws`);
      await once(socket, 'open');
      let now = atFirst;
      const at = (name: string): number | undefined => now.get(`curvebook_${name}`);
      await until('the surplus to be seen', async () => {
        now = await scrape();
        const generation = at('generation');
        return (
          at('unattributed_units{token="WETH"}') === 5 &&
          generation !== undefined &&
          generation > atFirst.get('curvebook_generation')! &&
          // In memory a moment after it is in the database.
          at('holdings_in_doubt{token="WETH"}') === 0 &&
          // A scrape that falls into a pause of the machine says so, and rightly; what was traded is posted after it.
          at('ready{reason=""}') === 1 &&
          at('post_blocked{reason=""}') === 0 &&
          at('post_records_sent{kind="full"}')! > 1 &&
          at('post_transactions{outcome="landed"}')! > 1
        );
      });

      const names = [...now.keys()].map((name) => name.replace(/\{.*/, '').replace(/_(bucket|count|sum)$/, ''));
      const { registry } = createMetrics({} as MetricSources);
      const all = registry.getMetricsAsArray().map(({ name }) => name);
      expect(
        all.filter((metric) => !names.includes(metric) && !OF_OTHERS.test(metric)),
        'silent metrics',
      ).to.deep.equal(database === 'SQLite' ? OF_POSTGRESQL_ONLY : []);
      expect(at('pair_losing{maker="",taker="",token="USDC"}')).to.equal(0);
      expect(at('post_stopped{pair="WETH-USDC"}')).to.equal(0);

      // The chain and the ledger. Sums are read from the database, numbers of the scan from memory, a moment later.
      expect(at('chain_head_block')).to.be.greaterThan(atFirst.get('curvebook_chain_head_block')!);
      expect(at('chain_lag_blocks')).to.be.within(0, 50);
      const told = [...now].filter(([name]) => name.startsWith('curvebook_heads_told'));
      expect(
        told.map(([, heads]) => heads > 0),
        'told of heads',
      ).to.deep.equal([true]);
      for (const age of ['scan_age_seconds', 'chain_head_age_seconds']) expect(at(age), age).to.be.within(0, 60);
      expect(at('unattributed_units{token="USDC"}'), 'of which nothing came').to.equal(0);
      for (const token of ['WETH', 'USDC']) {
        expect(at(`solvency_difference_units{token="${token}"}`)).to.equal(0);
        expect(at(`token_quarantined{token="${token}"}`)).to.equal(0);
        expect(at(`holdings_in_doubt{token="${token}"}`)).to.equal(0);
      }
      expect(at('operator_units{token="USDC"}'), 'the residual of two swaps').to.not.equal(0);
      expect(at('operator_floor_units{token="USDC"}')).to.equal(-1000);
      expect(at('database_bytes')).to.be.greaterThan(100_000);
      expect(at('ready{reason=""}')).to.equal(1);

      // Posts.
      for (const kind of ['sign', 'landed'])
        expect(at(`post_${kind}_seconds{pair="WETH-USDC",quantile="p50"}`), kind).to.be.greaterThan(0);
      expect(at('post_gas_used')).to.be.within(21_000, 1_000_000);
      expect(at('post_fees_hour_gwei')).to.be.greaterThan(0);
      expect(at('post_records_sent{kind="full"}')).to.be.greaterThan(1);
      expect(at('post_transactions{outcome="landed"}')).to.be.greaterThan(1);
      expect(at('post_blocked{reason=""}')).to.equal(0);

      // Signers and what they have sent.
      for (const role of ['poster', 'settler', 'executor']) {
        const labels = `{role="${role}",signer="${accountOf(stack, role).address}"}`;
        expect(at(`signer_balance_gwei${labels}`), role).to.be.greaterThan(1e9);
        expect(at(`signer_low_balance${labels}`), role).to.equal(0);
        for (const name of ['unmined', 'oldest_seconds'])
          expect(at(`outbox_${name}${labels}`), role).to.be.within(0, 60);
      }

      // Orders: one placed three, one cancelled one of them; refusals are neither durable nor timed.
      expect(at('order_rows_total{kind="order"}')).to.equal(1);
      expect(at('order_rows_total{kind="cancel"}')).to.equal(1);
      expect(at('ack_seconds_count')).to.equal(2);
      expect(at('ack_seconds_sum')).to.be.greaterThan(0);
      expect(at('open_orders')).to.equal(2);
      expect(at('queued_actions')).to.equal(0);
      expect(at('gateway_active')).to.equal(1);
      expect(at('http_requests_total{method="POST",route="/exchange",status="200"}')).to.equal(3);
      expect([atFirst.get('curvebook_sockets'), at('sockets')]).to.deep.equal([0, 1]);
      socket.close();

      await stack.operate('halt');
      await until('the poster to notice', async () => called('nothing is published').length > 0);
      await until('the metrics to say so', async () => {
        now = await scrape();
        return (
          at('ready{reason="operator_halt"}') === 0 &&
          at('post_blocked{reason="operator_halt"}') === 1 &&
          at('sockets') === 0
        );
      });
      expect(now.has('curvebook_ready{reason=""}')).to.equal(false);
    });

    it('is JSON, and holds no signature, no private key and no key of an endpoint', async () => {
      await until('a line about the endpoint that is down', async () => called('an RPC endpoint failed').length > 0);
      for (const line of lines()) {
        expect(line.level).to.be.a('number');
        expect(line.time).to.be.a('number');
        expect(line.msg).to.be.a('string').and.not.equal('');
      }
      const text = stack.logLines().join('\n').toLowerCase();
      expect(signatures.length).to.be.greaterThan(3);
      const halves = signatures.flatMap((signature) => [signature.slice(2, 66), signature.slice(66, 130)]);
      const keys = stack.manifest.accounts.map(({ privateKey }) => privateKey.slice(2));
      for (const secret of [...halves, ...keys, RPC_KEY, OTHER_RPC_KEY]) {
        expect(secret).to.have.length.greaterThan(20);
        expect(text.includes(secret.toLowerCase()), secret).to.equal(false);
      }
    });
  });
});
