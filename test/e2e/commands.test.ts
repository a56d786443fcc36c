/** Every operator command, as an operator types it: what it prints, what it changes, what it refuses. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import { COMMANDS } from '../../cli/commands/list.js';
import { writeManifest } from '../../deploy/manifest.js';
import { boundDeployment } from '../../ledger/db/db.js';
import type { Address } from '../../core/types.js';
import { readClaimsOf } from '../../ledger/chain/claims.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { insertSuspense } from '../../ledger/chain/suspense.js';
import { insertTokenFindings } from '../../ledger/chain/token-findings.js';
import type { Db, SuspenseItem, TokenFinding } from '../../ledger/types.js';
import { lastPublicationSeq } from '../../ledger/publications/publication-log.js';
import { lastCheckpoint } from '../../ledger/settlements/checkpoint-log.js';
import { readOperatorRows } from '../../ledger/operator/operator-log.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { copyDb } from '../support/worlds/copy-db.js';
import { forEachDatabase, hasEveryTest, locationOf } from '../support/db.js';
import { forksOf } from '../support/nodes/fork.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { runCurvebook, type Ran } from '../support/console/terminal.js';

forEachDatabase((name, open, openBare) =>
  describe(`operator commands, ${name}`, function () {
    this.timeout(60_000);
    /** What is said and refused before the database is read. */
    const once: (title: string, test: () => Promise<void>) => void = hasEveryTest(name) ? it : () => undefined;
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;
    let folder: string;
    let common: string[];

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
    });

    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      stack = await startKeepers(await open(), chain);
      custody = custodyOf(chain, stack);
      await custody.mined();
      folder = mkdtempSync(join(tmpdir(), 'curvebook-commands-'));
      writeManifest(join(folder, 'manifest.json'), chain.manifest);
      common = ['--manifest', join(folder, 'manifest.json'), '--database', urlOf(stack.db)];
    });

    function urlOf(db: Db): string {
      const { url, schema } = locationOf(db);
      return schema === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;
    }

    afterEach(async () => {
      await stack.stop();
      rmSync(folder, { recursive: true });
    });

    const run = (args: readonly string[], answer?: string): Promise<Ran> => runCurvebook([...args, ...common], answer);

    /** Runs a command that succeeds, with `--json`, and returns its value; it is all there is on the output. */
    async function json<T>(...args: string[]): Promise<T> {
      const { code, output, errors } = await run([...args, '--json']);
      expect([code, errors], args.join(' ')).to.deep.equal([0, '']);
      return JSON.parse(output) as T;
    }

    async function expectRefused(args: readonly string[], reason: RegExp): Promise<void> {
      const before = await readOperatorRows(stack.db.knex, { after: 0, limit: 1_000 });
      const { code, output, errors } = await run(args);
      expect([code, output], args.join(' ')).to.deep.equal([1, '']);
      expect(errors, args.join(' ')).to.match(reason);
      expect(await readOperatorRows(stack.db.knex, { after: 0, limit: 1_000 }), 'nothing was done').to.deep.equal(
        before,
      );
    }

    once('explain themselves, without a deployment', async () => {
      const usage = await runCurvebook(['--help']);
      for (const asked of [['help'], ['-h'], []]) expect(await runCurvebook(asked)).to.deep.equal(usage);
      const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
      for (const asked of ['--version', '-V', '-v', 'version'])
        expect(await runCurvebook([asked])).to.deep.equal({ code: 0, output: `curvebook ${version}\n`, errors: '' });
      expect((await runCurvebook(['help', 'serve'])).output).to.match(/^curvebook serve/);
      for (const [command, { help, summary }] of Object.entries(COMMANDS)) {
        const explained = await runCurvebook([command, '--help']);
        expect(explained).to.deep.equal({ code: 0, output: help, errors: '' });
        expect(await runCurvebook(['help', command])).to.deep.equal(explained);
        expect(help.startsWith(`curvebook ${command}`), command).to.equal(true);
        expect(help).to.include('--json').and.include('--database').and.include('--manifest');
        expect(usage.output).to.match(new RegExp(`^  ${command} +${summary}$`, 'm'));
      }
      for (const line of usage.output.split('\n')) expect(line.length, line).to.be.below(140);
      expect(usage.output)
        .to.match(/^ {2}serve /m)
        .and.include('75 `serve`');
      expect(Object.keys(COMMANDS)).to.have.members([
        ...[
          'maker',
          'claim',
          'status',
          'verify',
          'reconcile',
          'checkpoint',
          'outbox',
          'partitions',
          'halt',
          'resume',
          'suspense',
          'market',
          'archive',
          'token',
          'init',
          'doctor',
          'backup',
          'restore',
        ],
      ]);
    });

    once('refuse what they do not know', async () => {
      await expectRefused(['mkaer', 'list'], /unknown command: mkaer/);
      await expectRefused(['constructor'], /unknown command: constructor/);
      await expectRefused(['status', '--verbose'], /--verbose/);
      await expectRefused(['maker'], /maker takes approve, suspend, list$/m);
      // What a command does not take is not passed over in silence.
      const strange = {
        maker: ['list', '--rpc', 'http://x'],
        verify: ['--from', '7'],
        halt: ['--yes'],
        status: ['--port', '1'],
      };
      for (const [command, [...args]] of Object.entries(strange)) {
        const option = args.find((one) => one.startsWith('--'))!;
        await expectRefused(
          [command, ...args],
          new RegExp(`^${command} takes no ${option}; curvebook help ${command}`),
        );
      }
      // Nor what another of its verbs takes: `archive import --dry-run --yes` would import.
      const misplaced: [args: string[], reason: RegExp][] = [
        [['archive', 'import', '--dry-run', '--yes'], /^archive import takes no --dry-run: it is for prune$/m],
        [
          ['archive', 'export', '--before', '2026-01-31T12:00:00Z'],
          /^archive export takes no --before: it is for prune$/m,
        ],
        [['archive', 'list', '--yes'], /^archive list takes no --yes: it is for import and prune$/m],
        [
          ['archive', 'prune', '--signer', chain.address('maker1')],
          /^archive prune takes no --signer: it is for check/m,
        ],
        [['suspense', 'assign', '--all'], /^suspense assign takes no --all: it is for list$/m],
        [['token', 'list', '--yes'], /^token list takes no --yes: it is for reread$/m],
      ];
      for (const [args, reason] of misplaced) await expectRefused(args, reason);
      for (const command of ['status', 'verify', 'reconcile', 'checkpoint', 'resume', 'serve']) {
        await expectRefused([command, 'now'], /unexpected argument: now/);
      }
      expect(await runCurvebook(['help', 'mkaer'])).to.include({ code: 1, output: '' });
      const elsewhere = await runCurvebook(['status', '--manifest', join(folder, 'none.json'), ...common.slice(2)]);
      expect([elsewhere.code, elsewhere.errors]).to.satisfy(
        ([code, errors]: [number, string]) => code === 1 && /can't read .*none\.json/.test(errors),
      );
    });

    once('create no database, and say which one they can not use, on one line or as JSON', async () => {
      const file = join(folder, 'typo.sqlite');
      const plain = join(folder, 'plain.txt');
      writeFileSync(plain, 'hello '.repeat(1_000));
      const empty = await openBare();
      const unusable: [url: string, code: string, reason: RegExp][] = [
        [`sqlite:${file}`, 'DATABASE_MISSING', /There is no database .*typo\.sqlite; curvebook serve creates it/],
        [`sqlite:${plain}`, 'BAD_DATABASE', /plain\.txt can't be used: file is not a database/],
        [urlOf(empty), 'DEPLOYMENT_UNBOUND', /holds no ledger yet; curvebook serve creates it/],
        [
          'postgres://me:secret@127.0.0.1:1/x',
          'DATABASE_UNREACHABLE',
          /me@127.0.0.1:1\/x does not answer: .*ECONNREFUSED/,
        ],
      ];
      for (const [url, code, reason] of unusable) {
        for (const args of [['verify'], ['maker', 'approve', chain.address('maker1')], ['status']]) {
          const options = ['--manifest', join(folder, 'manifest.json'), '--database', url];
          const said = await runCurvebook([...args, ...options]);
          expect([said.code, said.output], said.errors).to.deep.equal([1, '']);
          expect(said.errors)
            .to.match(reason)
            .and.match(/^[^\n]+\n$/)
            .and.not.include('secret');
          const asJson = await runCurvebook([...args, ...options, '--json']);
          expect([asJson.code, asJson.errors]).to.deep.equal([1, '']);
          expect(JSON.parse(asJson.output)).to.include({ ok: false, code });
        }
      }
      expect(existsSync(file)).to.equal(false);
      expect(await boundDeployment(empty)).to.equal(null);
    });

    once('ask for no more than they use', async () => {
      const { accounts: _, rpcUrl: __, ...manifest } = chain.manifest;
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
      expect(await json('maker', 'approve', chain.address('maker1'))).to.include({ kind: 'approve' });
      const { output } = await run(['status']);
      expect(output)
        .to.include('operator: OPERATOR_ADDRESS names none')
        .and.include('chain: no endpoint is configured (RPC_URL)');
      await expectRefused(['verify'], /OPERATOR_ADDRESS: required/);
      await expectRefused(['reconcile'], /RPC_URL: required/);
    });

    it('delist and relist markets', async () => {
      const { pair } = stack.markets[0]!;
      const list = (status: string) => [{ pair, status }];
      expect(await json('market', 'list')).to.deep.equal(list('listed'));
      expect(await json('market', 'delist', pair)).to.include({ kind: 'delist', maker: null, market: 0 });
      expect(await json('market', 'list')).to.deep.equal(list('delisted'));
      expect((await run(['market', 'list'])).output).to.equal(`${pair} delisted\n`);
      expect((await run(['market', 'relist', pair])).output).to.equal(`${pair} is relisted\n`);
      expect(await json('market', 'list')).to.deep.equal(list('listed'));
      await expectRefused(['market'], /unknown command: market/);
      await expectRefused(['market', 'close', pair], /unknown command: market close/);
      await expectRefused(['market', 'delist'], /no such market: \(none given\)/);
      await expectRefused(['market', 'delist', 'DOGE-USDC'], /no such market: DOGE-USDC/);
      await expectRefused(['market', 'list', pair], /unexpected argument/);
    });

    it('keep publications in an archive, and bring them back', async () => {
      const dir = join(folder, 'archive');
      const archive = ['--archive', dir, '--rpc', chain.rpcUrl];
      await expectRefused(['archive'], /unknown command: archive/);
      await expectRefused(['archive', 'list'], /ARCHIVE_DIR: required/);
      expect((await run(['archive', 'list', ...archive])).output).to.equal('the archive is empty\n');
      await expectRefused(['archive', 'import', '--yes', ...archive], /the archive has no files/);
      await custody.mined(() => custody.as('maker1').deposit(custody.token('WETH'), custody.units('WETH', '10'), GAS));
      const backup = await open();
      await copyDb(stack.db, backup);
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 250_000n, sizeLots: 900n }]);
      await stack.poster.round();
      await custody.mined();
      expect(await json('archive', 'export', ...archive)).to.deep.equal({
        ok: true,
        exported: 1,
        lost: 0,
        settlements: 0,
      });
      expect(await json('archive', 'export', ...archive)).to.deep.equal({
        ok: true,
        exported: 0,
        lost: 0,
        settlements: 0,
      });
      expect(await json('archive', 'list', ...archive)).to.have.length(1);
      const checked = await json<{ files: number; signers: string[]; import: object }>('archive', 'check', ...archive);
      expect(checked).to.deep.include({ files: 1, signers: [chain.address('poster')] });
      expect(checked.import).to.include({ publications: 1, missing: 0 });
      await expectRefused(['archive', 'prune', ...archive], /--before: when the oldest backup was made/);
      await expectRefused(['archive', 'prune', '--before', '2999-01-01T00:00:00Z', ...archive], /--before/);
      const before = ['--before', '2026-01-31T12:00:00Z'];
      expect(await json('archive', 'prune', '--dry-run', ...before, ...archive)).to.deep.equal({
        ...{ ok: true, folders: [], removed: 0 },
        keeps: 'file 1 is in the newest folder',
      });
      await stack.stop();
      const restored = ['--manifest', join(folder, 'manifest.json'), '--database', urlOf(backup), ...archive];
      const asked = await runCurvebook(['archive', 'import', ...restored], 'n');
      expect(asked.code).to.equal(1);
      expect(asked.output).to.include('the database lacks 1 of 1 publications of the archive, of which 1 landed');
      expect(await lastPublicationSeq(backup.knex, 0)).to.equal(0);
      const done = await runCurvebook(['archive', 'import', '--yes', '--json', ...restored]);
      expect(JSON.parse(done.output)).to.include({ ok: true, imported: 1, reconcileSeq: null });
      expect(await lastPublicationSeq(backup.knex, 0)).to.equal(1);
    });

    it('approve, suspend and list makers', async () => {
      const [first, second] = [chain.address('maker1'), chain.address('maker2')];
      expect(await json('maker', 'list')).to.deep.equal([]);
      expect(await json('maker', 'approve', first.toUpperCase().replace('0X', '0x'))).to.include({
        kind: 'approve',
        maker: first,
      });
      expect((await run(['maker', 'approve', second])).output).to.equal(`${second} is approved\n`);
      expect((await run(['maker', 'suspend', second])).output).to.equal(`${second} is suspended\n`);
      const rows = [
        { maker: first, status: 'approved' },
        { maker: second, status: 'suspended' },
      ].sort((a, b) => (a.maker < b.maker ? -1 : 1));
      expect(await json('maker', 'list')).to.deep.equal(rows);
      expect((await run(['maker', 'list'])).output).to.equal(
        rows.map((row) => `${row.maker} ${row.status}\n`).join(''),
      );
      await expectRefused(['maker'], /unknown command: maker/);
      await expectRefused(['maker', 'promote', first], /unknown command: maker promote/);
      await expectRefused(['maker', 'approve'], /not an address: \(none given\)/);
      await expectRefused(['maker', 'approve', first.slice(0, -1)], /not an address/);
      await expectRefused(['maker', 'list', first], /unexpected argument/);
      await expectRefused(['maker', 'approve', first, second], /unexpected argument/);
    });

    it('halt and resume', async () => {
      interface Status {
        ready: boolean;
        reason: string | null;
        halt: { code: string; message: string } | null;
      }
      expect((await json<Status>('status')).halt).to.equal(null);
      expect((await run(['halt', 'looking', 'into', 'it'])).output).to.equal('halted: looking into it\n');
      const halted = await json<Status>('status');
      expect([halted.ready, halted.reason, halted.halt?.message]).to.deep.equal([
        false,
        'operator_halt',
        'looking into it',
      ]);
      expect((await run(['status'])).output).to.match(/^not ready: operator_halt\nhalted: operator: looking into it\n/);
      expect(await json('resume')).to.include({ kind: 'resume' });
      expect((await json<Status>('status')).halt).to.equal(null);
      expect(await json('halt')).to.include({ kind: 'halt', note: 'halted by the operator' });
      expect((await run(['resume'])).output).to.match(/^resumed/);
      expect(await run(['resume'])).to.include({ code: 4, output: 'nothing is halted\n' });

      // What the watcher found ends with it, too, and is named.
      await custody.mined(() =>
        custody.as('settler').settleWithdraw(chain.address('maker1'), custody.token('WETH'), 1n, 0n, GAS),
      );
      expect((await json<Status>('status')).reason).to.equal('integrity_halt');
      const refused = await run(['resume', '--json']);
      expect(refused.code).to.equal(5);
      expect(JSON.parse(refused.output)).to.include({ ok: false, code: 'CAUSE_STANDS' });
      expect((await run(['status'])).output).to.match(/^in suspense: 0 fills, 1 settlements, 0 payouts/m);
      const listed = (await run(['suspense', 'list'])).output;
      expect(listed).to.match(/^[0-9a-f]{16} block \d+ settlement: a claim of 1 units of 0x/);
      const item = listed.slice(0, 16);
      await expectRefused(['suspense', 'assign', item, 'operator'], /name an item, an account, and a reason/);
      await expectRefused(['suspense', 'assign', 'other', chain.address('maker1'), 'why'], /no open item is other/);
      const assigned = await run(['suspense', 'assign', item, chain.address('maker1'), 'tried', 'out', '--yes']);
      expect(assigned.output).to.match(/1 assigned to 0x\w+; the next scan books it/);
      await custody.mined();
      expect((await run(['suspense', 'list'])).output).to.equal('nothing is in suspense\n');
      expect((await run(['suspense', 'list', '--all'])).output).to.match(/, assigned to 0x\w+ by act \d+$/m);
      expect((await run(['resume'])).output).to.match(/^resumed; ended unexplained_settlement: /);
    });

    once('status --watch, until it is interrupted', async () => {
      let isHalted = false;
      const watch = ['status', '--watch', '--every', '1', '--json', ...common];
      const { code, output } = await runCurvebook(watch, undefined, (printed) => {
        const looks = printed.split('\n').length - 1;
        if (looks === 1 && !isHalted) {
          isHalted = true;
          void run(['halt', 'while somebody watches']);
        }
        return printed.includes('while somebody watches') || looks > 20;
      });
      expect(code).to.equal(0);
      const looks = output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { halt: { message: string } | null });
      expect(looks[0]!.halt).to.equal(null);
      expect(looks.at(-1)!.halt?.message).to.equal('while somebody watches');
      await expectRefused(['status', '--watch', '--every', '0'], /--every takes whole seconds from 1 to 3600: 0/);
      await expectRefused(['status', '--every', '5'], /--every goes with --watch/);
    });

    it('assign nothing that would leave less than a claim that stands, or that is signed already', async () => {
      const maker = chain.address('maker1');
      const weth = custody.token('WETH');
      // All that it has.
      await custody.mined(() => custody.as('maker1').requestWithdraw(weth, custody.units('WETH', '1000000'), GAS));
      const { generation, toBlock } = (await lastGeneration(stack.db.knex))!;
      const lower = (address: string): Address => address.toLowerCase() as Address;
      const item: SuspenseItem = {
        ...{ item: '00112233aabbccdd', kind: 'fill', code: 'missing_depth', message: 'tried', ref: 'suspense:tried' },
        ...{
          market: 0,
          seq: 1,
          maker: null,
          token: lower(weth),
          units: -50n,
          otherToken: lower(custody.token('USDC')),
        },
        ...{ otherUnits: 5n, blockNumber: toBlock, txHash: `0x${'5'.repeat(64)}` },
      };
      const insert = () => stack.db.knex.transaction((tx) => insertSuspense(tx, { generation, suspense: [item] }));
      const remove = () => stack.db.knex('suspense').where({ item: item.item }).delete();
      const assign = ['suspense', 'assign', item.item, maker, 'why', '--yes'];
      // Signed and not mined: the ledger knows of no claim yet.
      const [settlement] = (await stack.settler.round()).settlements;
      const all = settlement!.amountUnits;
      const refusal = new RegExp(
        `may withdraw ${all} units of 0x\\w+ and would have ${all - 50n}: lower the claim first`,
      );
      expect((await readClaimsOf(stack.db.knex, [maker])).map(({ claimUnits }) => claimUnits)).to.deep.equal([0n]);
      await insert();
      await expectRefused(assign, refusal);
      await remove();
      await custody.mined();
      expect((await readClaimsOf(stack.db.knex, [maker])).map(({ claimUnits }) => claimUnits)).to.deep.equal([all]);
      await insert();
      await expectRefused(assign, refusal);
      expect((await run([...assign.slice(0, 3), 'operator', 'why', '--yes'])).code, 'to the operator it may').to.equal(
        0,
      );
      await remove();
    });

    it('show what stands against tokens, and read one again when they are told to', async () => {
      const rpc = ['--rpc', chain.rpcUrl];
      const usdc = custody.token('USDC').toLowerCase() as Address;
      const of = async () =>
        (
          await json<{ token: string; state: string; pairs: string[]; said: object; findings: object[] }[]>(
            'token',
            'list',
          )
        ).find(({ token }) => token === 'USDC')!;
      expect(await of()).to.deep.include({ state: 'trusted', findings: [], said: { symbol: 'USDC', decimals: 6 } });
      const { generation, toBlock } = (await lastGeneration(stack.db.knex))!;
      const finding: TokenFinding = {
        ...{ token: usdc, cause: 'metadata', state: 'quarantined', code: 'symbol_changed', message: 'it says USDX' },
        ...{ blockNumber: toBlock, agreed: null, differenceUnits: null, timeMs: 1 },
      };
      await stack.db.knex.transaction((tx) => insertTokenFindings(tx, generation, [finding]));
      expect(await of()).to.deep.include({ state: 'quarantined' });
      expect((await run(['token', 'list'])).output).to.match(
        /^USDC 0x\w+ quarantined, said "USDC" with 6 decimals\nUSDC in quarantine, WETH-USDC stand still: symbol_changed since block \d+: it says USDX$/m,
      );
      await expectRefused(['token', 'reread', 'DOGE', ...rpc], /no listed pair trades DOGE/);
      await expectRefused(['token', 'list', 'USDC'], /unexpected argument: USDC/);
      const no = await run(['token', 'reread', 'USDC', ...rpc], 'n\n');
      expect([no.code, (await readOperatorRows(stack.db.knex, { after: 0, limit: 10 })).length]).to.deep.equal([1, 0]);
      const yes = await run(['token', 'reread', usdc, '--yes', ...rpc]);
      expect([yes.code, yes.output]).to.deep.equal([0, 'USDC is read again, as act 1: "USDC" with 6 decimals\n']);
      expect(yes.errors).to.match(/said "USDC" with 6 decimals, and says "USDC" with 6 decimals now/);
      const [row] = await readOperatorRows(stack.db.knex, { after: 0, limit: 10 });
      expect(row).to.deep.include({ kind: 'reread', reread: { token: usdc, symbol: 'USDC', decimals: 6 } });
    });

    it('lower a claim', async () => {
      const maker = chain.address('maker1');
      const settle = async (): Promise<string[]> => {
        await stack.settler.round();
        const events = await custody.mined();
        await stack.settler.round();
        return events;
      };
      await expectRefused(['claim', 'lower', maker, 'WETH', '1'], /does not lower it/);
      await custody.mined(() => custody.as('maker1').requestWithdraw(custody.token('WETH'), 10n ** 18n, GAS));
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 1']);
      for (const [args, reason] of [
        [['raise', maker, 'WETH', '2'], /unknown command: claim raise/],
        [[], /unknown command: claim/],
        [['lower'], /no listed pair trades \(no token given\)/],
        [['lower', maker, 'DOGE', '0'], /no listed pair trades DOGE/],
        [['lower', '0x1234', 'WETH', '0'], /not an address: 0x1234/],
        [['lower', maker, 'WETH'], /not an amount of WETH: \(none given\)/],
        [['lower', maker, 'WETH', '0.5e0'], /not an amount of WETH/],
        [['lower', maker, 'WETH', '0.0000000000000000001'], /not an amount of WETH/],
        [['lower', maker, 'WETH', '1'], /the claim is 1000000000000000000 units/],
        [['lower', maker, 'WETH', '0', 'now'], /unexpected argument: now/],
      ] as const) {
        await expectRefused(['claim', ...args], reason);
      }
      expect(await json('claim', 'lower', maker, 'WETH', '0.25')).to.deep.include({
        kind: 'lowerClaim',
        maker,
        lower: { token: custody.token('WETH'), amountUnits: 250_000_000_000_000_000 },
      });
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 0.25']);
      const told = await run(['claim', 'lower', maker, custody.token('WETH'), '0']);
      expect(told.output).to.match(/^asked the settler, as act \d+, to lower the claim of 0x[0-9a-f]{40} to 0 WETH\n$/);
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 0']);
      expect(await custody.standing('maker1', 'WETH')).to.include({ reserved: '0', claim: '0', available: '100' });
    });

    it('show the latest checkpoint', async () => {
      expect(await json('checkpoint')).to.equal(null);
      expect((await run(['checkpoint'])).output).to.equal('no checkpoint yet\n');
      await stack.settler.round();
      const head = (await lastCheckpoint(stack.db.knex))!;
      const shown = await json<{ root: string; rows: { account: string; balanceUnits: number }[] }>('checkpoint');
      expect(shown).to.include({ checkpointSeq: 1, root: head.root, generation: head.generation, leafCount: 4 });
      expect(shown.rows).to.have.length(4);
      const text = (await run(['checkpoint'])).output;
      expect(text).to.include(`root ${head.root}, 4 leaves`);
      expect(text).to.match(
        new RegExp(`${chain.address('maker1')} 0x[0-9a-f]{40} 100000000000000000000, 0 of it reserved`),
      );
    });

    it('show what keepers have signed', async () => {
      expect(await json('outbox', '--all')).to.deep.equal([]);
      expect((await run(['outbox'])).output).to.equal('no transactions\n');
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n }]);
      await stack.poster.round();
      const poster = chain.address('poster');
      const [waiting, ...others] =
        await json<{ signer: string; nonce: number; finished: boolean; txKey: string }[]>('outbox');
      expect(others).to.deep.equal([]);
      expect(waiting).to.include({ signer: poster, finished: false });
      expect((await run(['outbox', poster])).output).to.match(
        new RegExp(`^${poster} nonce \\d+ unmined post:\\S+ 0x[0-9a-f]{64} \\S+ max fee \\d+ wei\\n$`),
      );
      expect(await json('outbox', chain.address('settler'))).to.deep.equal([]);
      await custody.mined();
      await stack.poster.round();
      expect(await json('outbox')).to.deep.equal([]);
      expect((await json<{ finished: boolean }[]>('outbox', '--all')).map(({ finished }) => finished)).to.deep.equal([
        true,
      ]);
      await expectRefused(['outbox', 'poster'], /not an address: poster/);
      await expectRefused(['outbox', poster, poster], /unexpected argument/);
    });

    it("say where the ledger stands, the operator's row and its floor included", async () => {
      interface Status {
        generation: number;
        markets: object[];
        makers: object;
        operator: { address: string; tokens: { token: { symbol: string }; isBelow: boolean }[] };
        unusedNames: string[];
        pendingWithdrawals: number;
        lastReversal: null;
        chain: { head: number };
        storage: {
          shares: { name: string; count: number; lastDay: number; bytesEach: number; bytesLastDay: number }[];
        };
      }
      const status = await json<Status>('status');
      expect(status).to.deep.include({ pendingWithdrawals: 0, lastReversal: null, unusedNames: [] });
      expect(status.markets).to.deep.equal([{ pair: 'WETH-USDC', fillSeq: 0, preparedSeq: 0, landedSeq: 0 }]);
      expect(status.operator.address).to.equal(chain.address('owner'));
      expect(status.operator.tokens.map(({ token, isBelow }) => [token.symbol, isBelow])).to.deep.equal([
        ['WETH', false],
        ['USDC', false],
      ]);
      expect(status.chain.head).to.equal(await chain.provider.getBlockNumber());
      const scans = status.storage.shares.find((share) => share.name === 'scans');
      expect(scans).to.include({ count: status.generation, lastDay: status.generation });
      expect(scans?.bytesLastDay)
        .to.equal(status.generation * scans!.bytesEach)
        .and.greaterThan(0);
      process.env.OPERATOR_FLOORS = 'USDC=12.5,WHET=1';
      process.env.MIN_ORDER_VALUES = 'WETH-USDC=25,WHET=1';
      try {
        const { output } = await run(['status']);
        expect(output).to.include('operator: 0 WETH\n');
        expect(output).to.match(
          /^database: \d+\.\d MiB; order rows up to 0 are compacted; \d+\.\d MiB are of what hardly grows$/m,
        );
        expect(output).to.match(
          /^the last 24 hours added \d+\.\d MiB: \d+ order rows .*, \d+ scans \(\d+ bytes each\), /m,
        );
        expect(output).to.include('operator: 0 USDC, below its floor of 12.5: deposit USDC\n');
        expect(output).to.include('OPERATOR_FLOORS names WHET, which no listed pair trades\n');
        expect(output).to.include('MIN_ORDER_VALUES names WHET, which is no listed pair or quote token\n');
      } finally {
        delete process.env.OPERATOR_FLOORS;
        delete process.env.MIN_ORDER_VALUES;
      }
    });

    it('verify, with a bar, and exit with 2 at the first difference', async () => {
      await stack.settler.round();
      const verified = await run(['verify', '--rpc', chain.rpcUrl]);
      expect(verified.code).to.equal(0);
      expect(verified.output).to.match(/^verified up to generation \d+, .* 1 checkpoints, .* events of the chain\n$/);
      const bars = verified.errors.trim().split('\n');
      for (const check of ['blocks', 'postings', 'withdrawals', 'checkpoints', 'chain']) {
        const last = bars.filter((line) => line.startsWith(check)).at(-1);
        expect(last, check).to.match(/^\w+ +\[#{30}\] (\d+) of \1$/);
      }
      expect(await json('verify')).to.deep.include({ ok: true, checkpoints: 1, chainEvents: null });

      await stack.db.knex('checkpoints').update({ leaf_count: 5 });
      const found = await run(['verify']);
      expect([found.code, found.output]).to.deep.equal([
        2,
        'checkpoints: root and leaves of checkpoint 1: stored is ' +
          `${JSON.stringify([(await lastCheckpoint(stack.db.knex))!.root, 5])}, derived ` +
          `${JSON.stringify([(await lastCheckpoint(stack.db.knex))!.root, 4])}\n`,
      ]);
      const told = await run(['verify', '--json']);
      expect([told.code, told.errors]).to.deep.equal([2, '']);
      expect(JSON.parse(told.output)).to.include({ ok: false, check: 'checkpoints' });
    });

    it('reconcile after they asked: yes, no, and nobody there', async () => {
      const { order } = stack;
      const forks = forksOf(chain, stack);
      const [oid] = await order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 100_000n }]);
      await stack.poster.round();
      await custody.mined();
      expect((await run(['reconcile'])).output).to.equal('the ledger and the chain agree on every block and booking\n');
      const mark = await forks.mark();
      const taker = chain.address('taker1');
      const [usdc, weth] = [custody.token('USDC'), custody.token('WETH')];
      await custody.mined(
        () => custody.as('maker2').requestWithdraw(usdc, 5n, GAS),
        () =>
          chain.entrypointAs('taker1').swapExactOutput(usdc, weth, 10n ** 18n, MaxUint256, taker, MaxUint256, {
            gasLimit: 1_000_000n,
          }),
      );
      await forks.fork(mark);
      await stack.watcher.scan();

      const refused = await run(['reconcile']);
      expect([refused.code, refused.errors]).to.deep.equal([1, 'nobody to ask on this terminal; pass --yes\n']);
      for (const answer of ['n\n', '\n', 'yess\n', '']) {
        const no = await run(['reconcile'], answer);
        expect([no.code, no.errors], JSON.stringify(answer)).to.satisfy(
          ([code, errors]: [number, string]) => code === 1 && errors.includes('Reconcile? [y/N]'),
        );
      }
      expect(stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
      expect(await readOperatorRows(stack.db.knex, { after: 0, limit: 10 }), 'nothing was asked for').to.deep.equal([]);

      // The watcher of a running server does it; here it is driven meanwhile.
      let answered = false;
      const watcher = (async () => {
        while (!answered) await stack.watcher.scan().then(() => delay(20));
      })();
      const yes = await run(['reconcile'], 'y\n').finally(() => (answered = true));
      await watcher;
      expect([yes.code, yes.output.split('\n').at(-2)]).to.satisfy(
        ([code, last]: [number, string]) => code === 0 && last.startsWith('done; the ledger is at generation'),
      );
      expect(yes.output).to.match(/the chain has lost blocks (\d+) to \1 \(1 blocks\)/);
      expect(yes.output).to.include('1 fills are lost, with what makers were told of them:');
      expect(yes.output, 'an orphaned notification').to.match(
        new RegExp(`    ${chain.address('maker1')} order ${oid} tid \\d+ 1000000000000000000 base units`),
      );
      expect(yes.output).to.match(new RegExp(`  requested ${chain.address('maker2')} 5 units of ${usdc} in 0x`));
      const lost = await json<{
        lastReversal: { orphans: { fills: { notifications: object[] }[]; custody: object[] } };
      }>('status');
      expect(lost.lastReversal.orphans.fills[0]?.notifications).to.have.length(1);
      expect(lost.lastReversal.orphans.custody).to.have.length(1);
      expect((await run(['status'])).output).to.match(
        /last reversal: blocks .*, 1 fills, 0 signed orders, and 1 deposits and withdrawals lost/,
      );
      expect((await run(['verify', '--rpc', chain.rpcUrl])).code).to.equal(0);

      // What is derived from the fills, and wrong, is made anew in the same way.
      await stack.poster.round();
      await custody.mined();
      await custody.mined(() =>
        chain.entrypointAs('taker1').swapExactOutput(usdc, weth, 10n ** 17n, MaxUint256, taker, MaxUint256, {
          gasLimit: 1_000_000n,
        }),
      );
      expect((await run(['reconcile'])).output).to.equal('the ledger and the chain agree on every block and booking\n');
      const candles = await stack.db.knex('candles').select();
      expect(candles.length).to.be.greaterThan(0);
      await stack.db.knex('candles').update({ trades: 77 });
      await stack.db.knex('maker_positions').delete();
      expect((await run(['verify'])).code).not.to.equal(0);
      answered = false;
      const again = (async () => {
        while (!answered) await stack.watcher.scan().then(() => delay(20));
      })();
      const derived = await run(['reconcile', '--yes']).finally(() => (answered = true));
      await again;
      expect([derived.code, derived.output]).to.satisfy(
        ([code, output]: [number, string]) => code === 0 && output.includes('are made anew from the fills'),
      );
      expect(await stack.db.knex('candles').select()).to.deep.equal(candles);
      expect((await run(['verify', '--rpc', chain.rpcUrl])).code).to.equal(0);
    });
  }),
);
