/** Every operator command, as an operator types it: what it prints, what it changes, what it refuses. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { COMMANDS } from '../../cli/commands/list.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { insertSuspense } from '../../ledger/chain/suspense.js';
import { boundDeployment } from '../../ledger/db/db.js';
import { lastCheckpoint } from '../../ledger/settlements/checkpoint-log.js';
import type { SuspenseItem } from '../../ledger/types.js';
import { GAS } from '../support/custody.js';
import { forEachDatabase, hasEveryTest } from '../support/db.js';
import { runProgram } from '../support/console/program.js';
import { runCurvebook } from '../support/console/terminal.js';
import { operatorCommands } from '../support/console/operator.js';

forEachDatabase((name, open, openBare) =>
  describe(`operator commands, ${name}`, function () {
    this.timeout(60_000);
    const suite = operatorCommands(open);
    const { urlOf, run, json, expectRefused } = suite;
    /** What is said and refused before the database is read. */
    const once: (title: string, test: () => Promise<void>) => void = hasEveryTest(name) ? it : () => undefined;

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

    once('end quietly when nobody reads what they print any more', async () => {
      const script = 'node scripts/curvebook.mjs --help | true; echo "ended with ${PIPESTATUS[0]}"';
      expect(await runProgram(['bash', '--norc', '-c', script], {})).to.deep.equal({ code: 0, output: 'ended with 0' });
      const refused = 'node scripts/curvebook.mjs mkaer 2>&1 | true; echo "ended with ${PIPESTATUS[0]}"';
      expect(await runProgram(['bash', '--norc', '-c', refused], {})).to.deep.equal({
        code: 0,
        output: 'ended with 1',
      });
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
          ['archive', 'prune', '--signer', suite.chain.address('maker1')],
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
      const elsewhere = await runCurvebook([
        'status',
        '--manifest',
        join(suite.folder, 'none.json'),
        ...suite.common.slice(2),
      ]);
      expect([elsewhere.code, elsewhere.errors]).to.satisfy(
        ([code, errors]: [number, string]) => code === 1 && /can't read .*none\.json/.test(errors),
      );
    });

    once('create no database, and say which one they can not use, on one line or as JSON', async () => {
      const file = join(suite.folder, 'typo.sqlite');
      const plain = join(suite.folder, 'plain.txt');
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
        for (const args of [['verify'], ['maker', 'approve', suite.chain.address('maker1')], ['status']]) {
          const options = ['--manifest', join(suite.folder, 'manifest.json'), '--database', url];
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
      const { accounts: _, rpcUrl: __, ...manifest } = suite.chain.manifest;
      writeFileSync(join(suite.folder, 'manifest.json'), JSON.stringify(manifest));
      expect(await json('maker', 'approve', suite.chain.address('maker1'))).to.include({ kind: 'approve' });
      const { output } = await run(['status']);
      expect(output)
        .to.include('operator: OPERATOR_ADDRESS names none')
        .and.include('chain: no endpoint is configured (RPC_URL)');
      await expectRefused(['verify'], /OPERATOR_ADDRESS: required/);
      await expectRefused(['reconcile'], /RPC_URL: required/);
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
      await suite.custody.mined(() =>
        suite.custody
          .as('settler')
          .settleWithdraw(suite.chain.address('maker1'), suite.custody.token('WETH'), 1n, 0n, GAS),
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
      await expectRefused(
        ['suspense', 'assign', 'other', suite.chain.address('maker1'), 'why'],
        /no open item is other/,
      );
      const assigned = await run(['suspense', 'assign', item, suite.chain.address('maker1'), 'tried', 'out', '--yes']);
      expect(assigned.output).to.match(/1 assigned to 0x\w+; the next scan books it/);
      await suite.custody.mined();
      expect((await run(['suspense', 'list'])).output).to.equal('nothing is in suspense\n');
      expect((await run(['suspense', 'list', '--all'])).output).to.match(/, assigned to 0x\w+ by act \d+$/m);
      expect((await run(['resume'])).output).to.match(/^resumed; ended unexplained_settlement: /);
    });

    once('status --watch, until it is interrupted', async () => {
      let isHalted = false;
      const watch = ['status', '--watch', '--every', '1', '--json', ...suite.common];
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
      expect(status.operator.address).to.equal(suite.chain.address('owner'));
      expect(status.operator.tokens.map(({ token, isBelow }) => [token.symbol, isBelow])).to.deep.equal([
        ['WETH', false],
        ['USDC', false],
      ]);
      expect(status.chain.head).to.equal(await suite.chain.provider.getBlockNumber());
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

    it('assign nothing that would leave less than executable curves can still take, and what is claimed', async () => {
      const maker = suite.chain.address('maker1');
      const weth = suite.custody.token('WETH');
      const units = (amount: string): bigint => suite.custody.units('WETH', amount);
      const { lotUnits } = suite.stack.markets[0]!;
      const ask = { side: 'ask', priceTicks: 250_000n, sizeLots: units('60') / lotUnits } as const;
      // Of the 100 WETH that it has.
      await suite.stack.order(maker, [ask]);
      await suite.stack.poster.round();
      await suite.custody.mined(() => suite.custody.as('maker1').requestWithdraw(weth, units('20'), GAS));
      await suite.stack.settler.round();
      await suite.custody.mined();
      const { generation, toBlock } = (await lastGeneration(suite.stack.db.knex))!;
      const itemOf = (i: number, amount: string): SuspenseItem => ({
        ...{ item: `00112233aabbcc0${i}`, kind: 'fill', code: 'missing_depth', message: 'tried', ref: `suspense:${i}` },
        ...{ market: 0, seq: i, maker: null, token: weth, units: -units(amount), otherToken: null, otherUnits: 0n },
        ...{ blockNumber: toBlock, txHash: `0x${'5'.repeat(64)}` },
      });
      const items = [itemOf(1, '15'), itemOf(2, '10'), itemOf(3, '10')];
      await suite.stack.db.knex.transaction((tx) => insertSuspense(tx, { generation, suspense: items }));
      const assign = (i: number, to: string = maker) => ['suspense', 'assign', items[i]!.item, to, 'why', '--yes'];
      const refusal = (left: string, less = '') =>
        new RegExp(
          `executable curves may still take ${units('60')} units of ${weth} from ${maker} until \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z, ` +
            `it may withdraw ${units('20')}, and it would have ${units(left)}${less}: try again when`,
        );
      expect((await run(assign(0))).code, '85 are enough for 60 and 20').to.equal(0);
      await expectRefused(assign(1), refusal('75', ', less what is assigned to it and not booked yet'));
      await suite.custody.mined();
      expect(await suite.custody.standing('maker1', 'WETH')).to.include({ balance: '85', claim: '20' });
      await expectRefused(assign(1), refusal('75'));
      expect((await run(assign(2, 'operator'))).code, "the operator's row may be below zero").to.equal(0);
      // The curve ends, and no other one takes its place.
      await suite.chain.provider.send('evm_increaseTime', [61]);
      await suite.chain.mine();
      await suite.stack.watcher.scan();
      expect((await run(assign(1))).code, 'the curve has expired').to.equal(0);
      await suite.stack.db.knex('suspense').delete();
    });

    it('verify, with a bar, and exit with 2 at the first difference', async () => {
      await suite.stack.settler.round();
      const verified = await run(['verify', '--rpc', suite.chain.rpcUrl]);
      expect(verified.code).to.equal(0);
      expect(verified.output).to.match(/^verified up to generation \d+, .* 1 checkpoints, .* events of the chain\n$/);
      const bars = verified.errors.trim().split('\n');
      for (const check of ['blocks', 'postings', 'withdrawals', 'checkpoints', 'chain']) {
        const last = bars.filter((line) => line.startsWith(check)).at(-1);
        expect(last, check).to.match(/^\w+ +\[#{30}\] (\d+) of \1$/);
      }
      expect(await json('verify')).to.deep.include({ ok: true, checkpoints: 1, chainEvents: null });

      await suite.stack.db.knex('checkpoints').update({ leaf_count: 5 });
      const found = await run(['verify']);
      expect([found.code, found.output]).to.deep.equal([
        2,
        'checkpoints: root and leaves of checkpoint 1: stored is ' +
          `${JSON.stringify([(await lastCheckpoint(suite.stack.db.knex))!.root, 5])}, derived ` +
          `${JSON.stringify([(await lastCheckpoint(suite.stack.db.knex))!.root, 4])}\n`,
      ]);
      const told = await run(['verify', '--json']);
      expect([told.code, told.errors]).to.deep.equal([2, '']);
      expect(JSON.parse(told.output)).to.include({ ok: false, check: 'checkpoints' });
    });
  }),
);
