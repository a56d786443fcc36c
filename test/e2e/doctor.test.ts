/** `curvebook doctor`: silent about what is right, and it names each thing that is wrong by its code. */
import { chmodSync, existsSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { REMEDIES, createReport, type Code, type Finding, type Level } from '../../cli/commands/doctor/finding.js';
import { EXIT_UNFIT } from '../../cli/exit-codes.js';
import { checkEndpoints } from '../../cli/commands/doctor/endpoints.js';
import { checkDatabase } from '../../cli/commands/doctor/database.js';
import { writeManifest } from '../../deploy/manifest.js';
import { SANDBOX_MARKETS } from '../../deploy/sandbox/sandbox.js';
import { bindDeployment } from '../../ledger/db/db.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { forOneDatabase, locationOf } from '../support/db.js';
import { natsProgram, startNats } from '../support/nodes/nats.js';
import { startFaultProxy } from '../support/nodes/fault-proxy.js';
import { runCurvebook } from '../support/console/terminal.js';
import { doctorOf } from '../support/console/doctor.js';

/** What was seen by any test; the last one compares it with what there is. */
const seen = new Map<Code, Set<Level>>();
const nats = natsProgram();

forOneDatabase((name, open, openBare) =>
  describe(`curvebook doctor, ${name}`, function () {
    this.timeout(120_000);
    const suite = doctorOf(openBare);
    const { serve } = suite;

    async function examine(
      changes: Record<string, string> = {},
      ...args: string[]
    ): Promise<{ code: number; findings: Finding[]; of(code: Code, level?: Level): Finding[] }> {
      const file = join(suite.folder, 'env');
      const set = Object.entries({ ...suite.env, ...changes }).map(([key, value]) => `${key}='${value}'`);
      if (!existsSync(file)) writeFileSync(file, '', { mode: 0o600 });
      writeFileSync(file, set.join('\n'));
      const { code, output, errors } = await runCurvebook(['doctor', '--json', '--env', file, ...args]);
      expect(errors).to.equal('');
      const { findings, ok } = JSON.parse(output) as { findings: Finding[]; ok: boolean };
      expect(code, output).to.equal(ok ? 0 : EXIT_UNFIT);
      for (const one of findings) {
        seen.set(one.code, (seen.get(one.code) ?? new Set()).add(one.level));
        expect(one.remedy).to.equal(one.level === 'ok' ? null : REMEDIES[one.code]);
      }
      const of = (wanted: Code, level?: Level): Finding[] =>
        findings.filter((one) => one.code === wanted && (level === undefined || one.level === level));
      return { code, findings, of };
    }

    it('finds nothing in the way of a deployment that is right', async () => {
      const { code, findings, of } = await examine();
      expect(findings.filter(({ level }) => level === 'fail')).to.deep.equal([]);
      expect(code).to.equal(0);
      expect(of('ROLES', 'ok').map(({ subject }) => subject)).to.deep.equal(['poster', 'settler', 'executor']);
      expect(of('BALANCE', 'ok')).to.have.length(3);
      expect(of('BALANCE')[0]!.message).to.match(/has \d+(\.\d+)? ether: (\d+ h|more than a year) of gas/);
      for (const one of [
        'SETTINGS',
        'MANIFEST',
        'ENDPOINT',
        'ENDPOINT_CHAIN',
        'ENDPOINT_HEADER',
        'CONTRACTS',
        'OWNER',
      ] as const)
        expect(of(one, 'ok'), one).to.not.deep.equal([]);
      for (const one of [
        'PERMIT2',
        'LIFETIME',
        'FEE_CEILING',
        'POST_BUDGET',
        'DATABASE',
        'PORT',
        'ALERTS',
        'ARCHIVE',
        'CHAIN_AGE',
        'SECRETS',
      ] as const)
        expect(of(one, 'ok'), one).to.not.deep.equal([]);
      expect(of('ENDPOINTS', 'warn'), 'one endpoint is believed').to.have.length(1);
    });

    it('says the same in lines that people read', async () => {
      const file = join(suite.folder, 'env');
      writeFileSync(
        file,
        Object.entries(suite.env)
          .map(([key, value]) => `${key}='${value}'`)
          .join('\n'),
        { mode: 0o644 },
      );
      const { output } = await runCurvebook(['doctor', '--env', file]);
      expect(output).to.match(/^OK +ENDPOINT +127\.0\.0\.1:\d+: answers$/m);
      expect(output).to.match(/^WARN SECRETS .*others may read it \(mode 644\)\n +→ chmod 600/m);
      expect(output).to.match(/\n\d+ ok, \d+ to look at, \d+ in the way\n$/);
      expect(output).to.not.include('\u001b');
    });

    it('judges endpoints: silent, of another chain, behind, lying, without end, or meaning harm', async () => {
      const elsewhere = await startFaultProxy(suite.chain.rpcUrl);
      elsewhere.fault = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : 'pass');
      const forked = await startFaultProxy(suite.chain.rpcUrl);
      const head = (await suite.chain.provider.send('eth_getBlockByNumber', ['latest', false])) as Record<
        string,
        string
      >;
      forked.fault = ({ method, params }) => {
        if (method === 'eth_getBlockReceipts' || method === 'eth_getProof')
          return { error: { code: -32_601, message: 'none \u001b[2J here' } };
        if (method === 'eth_getBalance' || method === 'eth_getLogs')
          return { error: { code: -32_000, message: 'x'.repeat(5_000) } };
        if (method !== 'eth_getBlockByNumber') return 'pass';
        const number = params[0] === 'latest' ? Number(head['number']) - 5 : Number(params[0]);
        return { result: { ...head, number: `0x${number.toString(16)}`, hash: `0x${'ab'.repeat(32)}` } };
      };
      const endless = await serve((_, response) => {
        const block = Buffer.alloc(2 ** 20, ' ');
        const more = (): void => {
          if (!response.closed && response.socket?.destroyed === false) response.write(block, () => setImmediate(more));
        };
        more();
      });
      const nonsense = await serve((_, response) =>
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { a: 'b' } })),
      );
      const urls = [suite.chain.rpcUrl, elsewhere.url, forked.url, endless, nonsense, 'http://127.0.0.1:1'];
      const { code, of, findings } = await examine({ RPC_URL: urls.join() });
      await Promise.all([elsewhere.close(), forked.close()]);
      expect(code).to.equal(EXIT_UNFIT);
      const host = (url: string): string => new URL(url).host;
      expect(of('ENDPOINT_CHAIN', 'fail')).to.deep.include.members([]).and.have.length(1);
      expect(of('ENDPOINT_CHAIN', 'fail')[0]).to.include({
        subject: host(elsewhere.url),
        message: 'serves chain 1, not 8453',
      });
      expect(of('ENDPOINT', 'fail').map(({ subject }) => subject)).to.have.members(
        [endless, nonsense, urls[5]!].map(host),
      );
      expect(of('ENDPOINT', 'fail').find(({ subject }) => subject === host(endless))!.message).to.match(
        /more than \d+ bytes/,
      );
      expect(of('ENDPOINT_LAG', 'fail').map(({ subject }) => subject)).to.deep.equal([host(forked.url)]);
      expect(of('ENDPOINT_HEADER', 'warn').map(({ subject }) => subject)).to.deep.equal([host(forked.url)]);
      expect(of('ENDPOINTS_AGREE', 'fail')[0]!.message).to.match(/ against .* name different hashes/);
      for (const one of ['ENDPOINT_RECEIPTS', 'ENDPOINT_PROOFS', 'ENDPOINT_STATE', 'ENDPOINT_LOGS'] as const)
        expect(
          of(one, 'warn').map(({ subject }) => subject),
          one,
        ).to.include(host(forked.url));
      for (const { message } of findings) expect(message.length, message).to.be.below(310);
      expect(JSON.stringify(findings)).to.not.match(/\\u001b/);
    });

    it('finds endpoints that agree, and names where none is', async () => {
      const second = await startFaultProxy(suite.chain.rpcUrl);
      const third = await startFaultProxy(suite.chain.rpcUrl);
      third.fault = ({ method }) =>
        method === 'eth_getBlockReceipts' ? { result: [] } : method === 'eth_getProof' ? { result: {} } : 'pass';
      const { of } = await examine({ RPC_URL: [suite.chain.rpcUrl, second.url, third.url].join() });
      await Promise.all([second.close(), third.close()]);
      expect(of('ENDPOINTS_AGREE', 'ok')[0]!.message).to.equal('3 of 3 endpoints name one hash');
      expect(of('ENDPOINTS', 'ok')).to.have.length(1);
      const two = await examine({ RPC_URL: 'http://127.0.0.1:1,http://127.0.0.1:2' });
      expect([two.of('ENDPOINTS', 'warn').length, two.of('ENDPOINT', 'fail').length]).to.deep.equal([1, 2]);
    });

    it('compares clocks with what the endpoints say, and the age of the newest block', async () => {
      const clockOf = (byMs: number) =>
        serve((_, response) => {
          response.setHeader('date', new Date(Date.now() + byMs).toUTCString());
          response.end('{}');
        });
      expect((await examine({ RPC_URL: await clockOf(0) })).of('CLOCK')[0]).to.include({ level: 'ok' });
      expect((await examine({ RPC_URL: await clockOf(60_000) })).of('CLOCK')[0]!).to.include({ level: 'fail' });
      expect((await examine({ RPC_URL: await clockOf(60_000) })).of('CLOCK')[0]!.message).to.match(
        /^\d+\.\d s behind 1/,
      );
      expect((await examine({ RPC_URL: await clockOf(-4_000) })).of('CLOCK')[0]!).to.include({ level: 'warn' });
      const old = await startFaultProxy(suite.chain.rpcUrl);
      const head = (await suite.chain.provider.send('eth_getBlockByNumber', ['latest', false])) as Record<
        string,
        string
      >;
      const result = { ...head, timestamp: `0x${(Number(head['timestamp']) - 100).toString(16)}` };
      old.fault = ({ method }) => (method === 'eth_getBlockByNumber' ? { result } : 'pass');
      expect((await examine({ RPC_URL: old.url })).of('CHAIN_AGE', 'fail')[0]!.message).to.match(/1\d\d(\.\d)? s old/);
      await old.close();
    });

    it('takes the age of the newest block from when it was answered, however long other answers take', async () => {
      const slow = await startFaultProxy(suite.chain.rpcUrl);
      const head = (await suite.chain.provider.getBlock('latest'))!;
      let nowMs = head.timestamp * 1_000;
      slow.fault = ({ method }) => {
        if (method === 'eth_getProof') nowMs += 19_000;
        return 'pass';
      };
      const report = createReport();
      const expected = { chainId: null, deploymentBlock: null, contract: null, scanMaxBlocks: 1 };
      await checkEndpoints([slow.url], expected, report, () => nowMs);
      await slow.close();
      expect(nowMs - head.timestamp * 1_000).to.equal(19_000);
      expect(report.findings.filter(({ code }) => code === 'CHAIN_AGE')).to.deep.include.members([
        { level: 'ok', code: 'CHAIN_AGE', subject: 'chain', message: 'the newest block is 0 s old', remedy: null },
      ]);
    });

    it('holds keys against their rights on the chain, and against what they have for gas', async () => {
      const { of } = await examine({ POSTER_PRIVATE_KEY: Wallet.createRandom().privateKey });
      expect(of('ROLES', 'fail').map(({ subject }) => subject)).to.deep.equal(['poster']);
      expect(of('BALANCE', 'fail')[0]!.message).to.match(/has 0 ether: 0 min of gas, less than one transaction takes/);
      const swapped = await examine({
        POSTER_PRIVATE_KEY: suite.chain.wallet('settler').privateKey,
        SETTLER_PRIVATE_KEY: suite.chain.wallet('poster').privateKey,
      });
      expect(swapped.of('ROLES', 'fail')).to.have.length(2);
      expect(swapped.of('ROLES', 'warn').map(({ message }) => message.replace(/^\S+ /, ''))).to.deep.equal([
        'may act as the settler, too: one key must not both price and pay',
        'may act as the poster, too: one key must not both price and pay',
      ]);
      const poor = await examine({ LOW_BALANCE_ETHER: '1000000' });
      expect(poor.of('BALANCE', 'warn')).to.have.length(3);
    });

    it('holds the listed markets and the owner against the configuration', async () => {
      const { accounts, tokens } = suite.chain.manifest;
      const account = (role: string): string => accounts.find((one) => one.role === role)!.address;
      const configuration = {
        chainId: 8453,
        owner: account('owner'),
        withdrawDelaySec: 600,
        tokens,
        markets: SANDBOX_MARKETS.slice(0, 1),
        curvePosters: [account('poster')],
        claimPosters: [account('settler')],
        executors: [account('executor')],
      };
      const write = (changes: object): void =>
        writeFileSync(join(suite.folder, '8453.config.json'), JSON.stringify({ ...configuration, ...changes }));
      write({});
      const right = await examine();
      expect(right.of('MARKETS').map(({ level, message }) => [level, message])).to.deep.equal([
        ['ok', 'is listed with the grid that is configured'],
      ]);
      const [first] = SANDBOX_MARKETS;
      write({ owner: account('maker1'), markets: [{ ...first!, tickSize: '0.1' }] });
      const other = await examine({ CURVE_TTL_SEC: '60', TOUCH_BEFORE_SEC: '5' });
      expect(other.of('MARKETS', 'fail')[0]!.message).to.equal(
        'is listed with tick 0.01, lot 0.0001, configured with tick 0.1, lot 0.0001',
      );
      expect(other.of('OWNER', 'warn').map(({ subject }) => subject)).to.deep.equal([
        'custodian',
        'curveBook',
        'entrypoint',
        'orderSettler',
      ]);
      write({ markets: [] });
      expect((await examine()).of('MARKETS', 'warn')).to.have.length(1);
      write({ markets: [{ ...first!, pair: 'USDC-WETH', tickSize: '0.0001', lotSize: '1' }] });
      expect((await examine()).of('MARKETS', 'fail')[0]!.message).to.equal('is listed the other way round');
      const short = await startFaultProxy(suite.chain.rpcUrl);
      const marketState = CurveBook__factory.createInterface().getFunction('marketState').selector;
      short.fault = ({ method, params }) =>
        method === 'eth_call' && (params[0] as { data: string }).data.startsWith(marketState)
          ? { result: '0x' }
          : 'pass';
      expect((await examine({ RPC_URL: short.url })).of('MARKETS', 'fail'), 'nonsense ends one check').to.have.length(
        1,
      );
      await short.close();
      writeFileSync(join(suite.folder, '8453.config.json'), '{"chainId":8453}');
      expect((await examine()).of('CONFIGURATION', 'fail').length).to.be.above(2);
    });

    it('judges settings, manifest and contracts', async () => {
      const wrong = await examine({ POLL_INTERVAL_MS: 'soon', PORT: '-1' });
      expect(wrong.of('SETTINGS', 'fail')).to.have.length(2);
      expect(wrong.findings.every(({ code }) => code === 'SETTINGS')).to.equal(true);
      const joint = await examine({ TOUCH_BEFORE_SEC: '13', CURVE_TTL_SEC: '12' });
      expect(joint.of('SETTINGS', 'fail')).to.have.length(1);
      writeFileSync(join(suite.folder, 'bad.json'), '{}');
      expect((await examine({ MANIFEST: join(suite.folder, 'bad.json') })).of('MANIFEST', 'fail').length).to.be.above(
        2,
      );
      const moved = {
        ...suite.chain.manifest,
        contracts: { ...suite.chain.manifest.contracts, custodian: `0x${'12'.repeat(20)}` },
      };
      writeManifest(join(suite.folder, 'moved.json'), moved);
      expect(
        (await examine({ MANIFEST: join(suite.folder, 'moved.json') })).of('CONTRACTS', 'fail')[0]!.message,
      ).to.match(/no code at custodian 0x1212/);
      const bare = {
        ...suite.chain.manifest,
        contracts: { ...suite.chain.manifest.contracts, permit2: `0x${'34'.repeat(20)}` },
      };
      writeManifest(join(suite.folder, 'bare.json'), bare);
      expect((await examine({ MANIFEST: join(suite.folder, 'bare.json') })).of('PERMIT2', 'warn')).to.have.length(1);
      const router = {
        UNISWAP_V3_FACTORY: bare.contracts.permit2,
        UNISWAP_V3_ROUTER: bare.contracts.permit2,
        UNISWAP_V3_QUOTER: bare.contracts.permit2,
      };
      expect((await examine(router)).of('SWAPS', 'fail')).to.have.length(1);
    });

    it('judges how long withdrawals wait, but not those of a sandbox', async () => {
      const short = await startFaultProxy(suite.chain.rpcUrl);
      const custodian = Custodian__factory.createInterface();
      short.fault = ({ method, params }) =>
        method === 'eth_call' && (params[0] as { data: string }).data === custodian.encodeFunctionData('withdrawDelay')
          ? { result: custodian.encodeFunctionResult('withdrawDelay', [299]) }
          : 'pass';
      const sandbox = await examine({ RPC_URL: short.url });
      expect(sandbox.of('WITHDRAW_DELAY').map(({ level }) => level)).to.deep.equal(['ok']);
      const { accounts: _, ...manifest } = suite.chain.manifest;
      writeFileSync(join(suite.folder, 'real.json'), JSON.stringify(manifest));
      const real = {
        MANIFEST: join(suite.folder, 'real.json'),
        OPERATOR_ADDRESS: suite.chain.address('owner'),
        POSTER_PRIVATE_KEY: suite.chain.wallet('poster').privateKey,
        SETTLER_PRIVATE_KEY: suite.chain.wallet('settler').privateKey,
        EXECUTOR_PRIVATE_KEY: suite.chain.wallet('executor').privateKey,
      };
      const warned = await examine({ ...real, RPC_URL: short.url });
      expect(warned.of('WITHDRAW_DELAY').map(({ level }) => level)).to.deep.equal(['warn']);
      expect(warned.of('WITHDRAW_DELAY')[0]!.message).to.match(
        /^a settled withdrawal waits 299 s: .*`curvebook claim lower`/,
      );
      await short.close();
      expect((await examine(real)).of('WITHDRAW_DELAY').map(({ message }) => message)).to.deep.equal([
        'a settled withdrawal waits 600 s',
      ]);
    });

    it('judges the gas price, and says what an hour costs', async () => {
      const dearer = await startFaultProxy(suite.chain.rpcUrl);
      const head = (await suite.chain.provider.send('eth_getBlockByNumber', ['latest', false])) as Record<
        string,
        string
      >;
      const result = { ...head, baseFeePerGas: `0x${(100n * 10n ** 9n).toString(16)}` };
      dearer.fault = ({ method }) => (method === 'eth_getBlockByNumber' ? { result } : 'pass');
      const dear = await examine({ RPC_URL: dearer.url });
      expect(dear.of('FEE_CEILING', 'fail')).to.have.length(1);
      const { of } = await examine({
        RPC_URL: dearer.url,
        POST_BUDGET_GWEI_PER_HOUR: '600000000',
        FEE_CEILING_GWEI: '1000',
      });
      await dearer.close();
      expect(of('POST_BUDGET')[0]!.level).to.equal('warn');
      expect(of('COST', 'ok').map(({ subject }) => subject)).to.deep.equal(['running']);
      expect(of('COST')[0]!.message).to.match(/^\d+(\.\d+)? ether a day at most: posts of 1 markets/);
    });

    it('judges ports, metrics, heads, alerts and the archive', async () => {
      const health = (deploymentId: string) =>
        serve((_, response) => {
          for (const one of ['limit', 'remaining', 'reset']) response.setHeader(`x-ratelimit-${one}`, '1');
          response.setHeader('content-type', 'application/json');
          const said = { status: 'ok', version: '0.1.0', chain_id: 8453, deployment_id: deploymentId, block_number: 1 };
          response.end(JSON.stringify(said));
        });
      const other = await health('0123456789abcdef');
      const port = new URL(other).port;
      const taken = await examine({ PORT: port, HEADS_URL: `ws://127.0.0.1:${port}` });
      expect(taken.of('PORT', 'fail')[0]!.subject).to.equal(`127.0.0.1:${port}`);
      expect(taken.of('HEADS', 'warn')).to.have.length(1);
      const mine = await health(suite.chain.manifest.deploymentId);
      expect(
        (await examine({ PORT: new URL(mine).port, HEADS_URL: suite.chain.rpcUrl.replace('http', 'ws') })).of(
          'HEADS',
          'ok',
        ),
      ).to.have.length(1);
      expect((await examine({ PORT: new URL(mine).port })).of('PORT', 'fail')).to.deep.equal([]);
      expect((await examine({ METRICS_PORT: '', ARCHIVE_DIR: '' })).of('METRICS', 'warn')).to.have.length(1);
      expect((await examine({ ARCHIVE_DIR: join(suite.folder, 'absent') })).of('ARCHIVE', 'fail')).to.have.length(1);
      expect((await examine({ ALERT_WEBHOOK_URL: 'http://127.0.0.1:1/' })).of('ALERTS', 'fail')).to.have.length(1);
      expect((await examine({ ALERT_WEBHOOK_URL: '' })).of('ALERTS', 'warn')).to.have.length(1);
      const asked: string[] = [];
      const receiver = await serve((request, response) => {
        let body = '';
        request.on('data', (chunk) => (body += String(chunk)));
        request.on('end', () => {
          asked.push(`${request.method} ${body}`);
          response.statusCode = request.method === 'POST' ? 202 : 405;
          response.end();
        });
      });
      expect((await examine({ ALERT_WEBHOOK_URL: receiver })).of('ALERTS', 'ok')[0]!.message).to.equal('answers (405)');
      expect((await examine({ ALERT_WEBHOOK_URL: receiver }, '--test-alert')).of('ALERTS', 'ok')[0]!.message).to.equal(
        'took a test alert (202)',
      );
      const { alerts } = JSON.parse(asked.at(-1)!.slice('POST '.length)) as { alerts: { status: string }[] };
      expect([asked[0], alerts[0]!.status]).to.deep.equal(['HEAD ', 'firing']);
      const gone = await serve((_, response) => {
        response.statusCode = 404;
        response.end();
      });
      expect((await examine({ ALERT_WEBHOOK_URL: gone })).of('ALERTS', 'fail')[0]!.message).to.equal('answers 404');
    });

    it('judges each server of NATS by its login', async () => {
      if (nats === null) return;
      const server = await startNats(nats, 'authorization { user: curvebook, password: right }');
      try {
        const known = { EDGE_SECRET: 'x'.repeat(32), NATS_PASSWORD: 'right' };
        const { host } = new URL(server.url);
        const alone = await examine({ ...known, NATS_URL: server.url });
        expect(alone.of('NATS', 'ok').map(({ subject }) => subject)).to.deep.equal([host]);
        expect(alone.of('NATS', 'warn').map(({ subject }) => subject)).to.deep.equal(['NATS_URL']);
        const two = await examine({ ...known, NATS_URL: `${server.url},nats://127.0.0.1:1` });
        expect(two.of('NATS', 'ok').map(({ subject }) => subject)).to.deep.equal([host]);
        expect(two.of('NATS', 'fail').map(({ subject }) => subject)).to.deep.equal(['127.0.0.1:1']);
        const wrong = await examine({ ...known, NATS_URL: server.url, NATS_PASSWORD: 'wrong' });
        expect(wrong.of('NATS', 'fail')[0]!.message).to.match(/authorization violation/i);
        expect((await examine()).of('NATS')).to.deep.equal([]);
      } finally {
        await server.close();
      }
    });

    it('judges the database: absent, of another deployment, on memory, without a replica', async () => {
      const database = async (url: string, deploymentId: string | null = null): Promise<readonly Finding[]> => {
        const report = createReport();
        await checkDatabase({ url, deploymentId, requireReplica: false }, report);
        for (const one of report.findings) seen.set(one.code, (seen.get(one.code) ?? new Set()).add(one.level));
        return report.findings;
      };
      const levels = (findings: readonly Finding[], code: Code): Level[] =>
        findings.filter((one) => one.code === code).map(({ level }) => level);
      expect(levels(await database('postgres://nobody@127.0.0.1:1/none'), 'DATABASE')).to.deep.equal(['fail']);
      const file = join(suite.folder, 'deeper', 'new.sqlite');
      expect(levels(await database(`sqlite:${file}`), 'DATABASE')).to.deep.equal(['ok']);
      expect(existsSync(join(suite.folder, 'deeper')), 'nothing is created').to.equal(false);
      if (statfsSync('/dev/shm').type === 0x01021994)
        expect(levels(await database('sqlite:/dev/shm/curvebook.sqlite'), 'DURABILITY')).to.include('fail');
      writeFileSync(join(suite.folder, 'text.sqlite'), 'no database at all, but a text');
      expect(levels(await database(`sqlite:${join(suite.folder, 'text.sqlite')}`), 'DATABASE')).to.include('fail');
      const db = await open();
      const { url, schema } = locationOf(db);
      const at = schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
      await bindDeployment(db, '0123456789abcdef');
      expect(levels(await database(at, 'fedcba9876543210'), 'DATABASE')).to.include('fail');
      const right = await database(at, '0123456789abcdef');
      expect(levels(right, 'DATABASE')).to.include('ok').and.not.include('fail');
      expect(levels(right, 'DURABILITY')).to.deep.equal(
        db.kind === 'sqlite' ? levels(right, 'DURABILITY') : levels(right, 'DURABILITY').slice(0, 1),
      );
      if (db.kind === 'pg') {
        expect(levels(right, 'REPLICAS')).to.deep.equal(['warn']);
        expect(
          (await examine({ DATABASE_URL: at, REQUIRE_SYNC_REPLICA: 'true' })).of('REPLICAS', 'fail'),
        ).to.have.length(1);
      }
    });

    it('judges what can be judged before there is a deployment', async () => {
      const init = await runCurvebook([
        ...[
          'init',
          '--dir',
          suite.folder,
          '--new-keys',
          '--force',
          '--rpc',
          suite.chain.rpcUrl,
          '--owner',
          suite.chain.address('owner'),
        ],
        ...suite.chain.manifest.tokens
          .slice(0, 2)
          .flatMap(({ symbol, address, decimals }) => ['--token', `${symbol}=${address}:${decimals}`]),
        ...['--manifest', join(suite.folder, 'deployments', '8453.json')],
      ]);
      expect(init.code, init.errors).to.equal(0);
      const { output, code } = await runCurvebook(['doctor', '--json', '--env', join(suite.folder, '.env')]);
      const { findings } = JSON.parse(output) as { findings: Finding[] };
      for (const one of findings) seen.set(one.code, (seen.get(one.code) ?? new Set()).add(one.level));
      expect(code).to.equal(EXIT_UNFIT);
      const levels = (wanted: Code): Level[] => findings.filter((one) => one.code === wanted).map(({ level }) => level);
      expect([levels('MANIFEST'), levels('SETTINGS'), levels('CONFIGURATION'), levels('ROLES')]).to.deep.equal([
        ['warn'],
        ['ok'],
        ['ok'],
        ['ok', 'ok', 'ok'],
      ]);
      expect(levels('WITHDRAW_DELAY'), 'of the configuration').to.deep.equal(['ok']);
      expect(levels('BALANCE'), 'new keys have no ether').to.deep.equal(['fail', 'fail', 'fail']);
      expect(levels('SECRETS')).to.deep.equal(['ok', 'ok', 'ok', 'ok', 'ok']);
      const deployment = findings.find(({ subject }) => subject === 'deployment')!.message;
      expect(deployment).to.match(/^\d+(\.\d+)? ether for \d+ gas with 1 markets/);
      chmodSync(join(suite.folder, 'keys', 'password'), 0o644);
      const again = await runCurvebook(['doctor', '--json', '--env', join(suite.folder, '.env')]);
      seen.get('SECRETS')!.add('warn');
      expect((JSON.parse(again.output) as { findings: Finding[] }).findings).to.deep.include({
        level: 'warn',
        code: 'SECRETS',
        subject: join(suite.folder, 'keys', 'password'),
        message: 'others may read it (mode 644)',
        remedy: REMEDIES.SECRETS,
      });
    });
  }),
);

describe('what doctor is made of', () => {
  it('has each check seen in both ways, and all of them are documented', () => {
    const doc = readFileSync('docs/operators.md', 'utf8');
    const listed = [
      ...doc
        .slice(doc.indexOf('### Doctor'))
        .split('\n## ')[0]!
        .matchAll(/^\| ((?:`[A-Z0-9_]+`(?:, )?)+) \|/gm),
    ];
    const codes = listed.flatMap(([, cell]) => [...cell!.matchAll(/`([A-Z0-9_]+)`/g)].map(([, code]) => code));
    expect(codes).to.have.members(Object.keys(REMEDIES));
    if (seen.size === 0) return;
    const was = (code: Code, ...levels: Level[]): boolean =>
      levels.some((level) => seen.get(code)?.has(level) === true);
    // A replica takes another server, a lack of room a small disk, a short life another chain; costs are a statement.
    const all = (Object.keys(REMEDIES) as Code[]).filter(
      (code) => !['REPLICAS', 'DISK', 'COST', 'LIFETIME', ...(nats === null ? ['NATS'] : [])].includes(code),
    );
    // What is right about metrics is said of their port; there are no pools to swap with on this chain.
    expect(
      all.filter((code) => !was(code, 'ok') && !['METRICS', 'SWAPS'].includes(code)),
      'never right',
    ).to.deep.equal([]);
    expect(
      all.filter((code) => !was(code, 'warn', 'fail')),
      'never wrong',
    ).to.deep.equal([]);
  });
});
