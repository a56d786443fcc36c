/** Commands of operators who decide the same thing at the same time, or on what somebody else has decided meanwhile. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { runProgram } from '../../../cli/program.js';
import type { Address } from '../../../core/types.js';
import { lastGeneration } from '../../../ledger/chain/generations.js';
import { insertHalt } from '../../../ledger/chain/halts.js';
import { insertSuspense } from '../../../ledger/chain/suspense.js';
import { readOperatorRows } from '../../../ledger/operator/operator-log.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import type { SuspenseItem } from '../../../ledger/types.js';
import { forEachDatabase } from '../../support/db.js';
import { operatorCommands } from '../../support/console/operator.js';

forEachDatabase((name, open) =>
  describe(`operators who decide at the same time, ${name}`, function () {
    this.timeout(60_000);
    const suite = operatorCommands(open);
    const { run, json, expectRefused } = suite;
    const acts = () => readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 });

    /** An endpoint that answers its first request only after `meanwhile`. */
    async function withSlowEndpoint(meanwhile: () => Promise<unknown>, use: (url: string) => Promise<void>) {
      let first: Promise<unknown> | null = null;
      const server = createServer((request, response) => {
        void (async () => {
          const body = await textOf(request);
          await (first ??= meanwhile());
          const headers = { 'content-type': 'application/json' };
          const answer = await fetch(suite.chain.rpcUrl, { method: 'POST', headers, body });
          response.setHeader('content-type', 'application/json').end(await answer.text());
        })();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      try {
        await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    }

    /** Runs a command whose question is answered with yes, but only after `meanwhile`. */
    async function runAsked(args: readonly string[], meanwhile: () => Promise<unknown>) {
      const io = {
        input: Object.assign(new PassThrough(), { isTTY: true }),
        output: new PassThrough(),
        errors: new PassThrough(),
      };
      const output = textOf(io.output);
      let errors = '';
      let asked = false;
      io.errors.on('data', (chunk: Buffer) => {
        errors += chunk.toString();
        if (asked || !errors.includes('[y/N]')) return;
        asked = true;
        void meanwhile().then(() => io.input.end('y\n'));
      });
      const code = await runProgram([...args, ...suite.common], io);
      io.output.end();
      return { code, output: await output, errors };
    }

    it('resume no halt that somebody placed while they asked the chain, and name those that they end', async () => {
      const found = { code: 'vault_mismatch', message: 'a sum', timeMs: 1 };
      await suite.stack.db.knex.transaction((tx) => insertHalt(tx, found));
      expect((await run(['halt', 'looking', 'into', 'it'])).code).to.equal(0);
      expect((await run(['halt', 'me', 'too'])).code).to.equal(0);
      const place = () => run(['halt', 'a key was stolen']);
      await withSlowEndpoint(place, async (rpcUrl) => {
        const refused = await run(['resume', '--json', '--rpc', rpcUrl]);
        expect([refused.code, refused.errors]).to.deep.equal([1, '']);
        const said = JSON.parse(refused.output) as { message: string };
        expect(said).to.include({ ok: false, code: 'HALTED_MEANWHILE' });
        expect(said.message).to.match(/^somebody halted meanwhile, as act 3: a key was stolen; nothing was resumed/);
      });
      const acts = await readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 });
      expect(acts.map(({ kind }) => kind)).to.deep.equal(['halt', 'halt', 'halt']);
      const { halt } = await json<{ halt: { code: string } }>('status');
      expect(halt.code, 'nor what the watcher found').to.equal('vault_mismatch');
      const done = await run(['resume', '--rpc', suite.chain.rpcUrl]);
      expect([done.code, done.output]).to.deep.equal([
        0,
        'resumed; ended vault_mismatch: a sum\n' +
          'ended the halt of act 1: looking into it\nended the halt of act 2: me too\nended the halt of act 3: a key was stolen\n',
      ]);
      await run(['halt', 'again']);
      expect(await json('resume')).to.deep.include({
        ended: null,
        endedByOperator: [{ operatorSeq: 5, note: 'again' }],
      });
    });

    it('say of a reconciliation whether it was done or superseded, and which one it replaces', async () => {
      const { db, watcher } = suite.stack;
      const counters = { reversal: null, capitalOrigin: true };
      const reconcile = ['reconcile', '--capital-origin', '--rpc', suite.chain.rpcUrl];
      const countActs = async (): Promise<number> => (await acts()).length;
      /** Looks whenever a request has been made: as the watcher of a server, or after another operator was quicker. */
      const afterAct = async (seq: number, work: () => Promise<unknown>): Promise<void> => {
        while ((await countActs()) < seq) await delay(20);
        await work();
      };

      const [superseded] = await Promise.all([
        run([...reconcile, '--yes']),
        afterAct(1, async () => {
          await requestReconcile(db, counters, 1);
          await watcher.scan();
        }),
      ]);
      expect([superseded.code, superseded.output.split('\n').at(-2)]).to.deep.equal([
        3,
        'act 1 is superseded by act 2, and nothing of it was done: curvebook reconcile once more when that one is done',
      ]);
      const [done] = await Promise.all([run([...reconcile, '--yes', '--json']), afterAct(3, () => watcher.scan())]);
      expect(done.code).to.equal(0);
      expect(JSON.parse(done.output)).to.include({ ok: true, operatorSeq: 3, supersededBy: null, replaces: null });

      // Nobody carries it out: what a new request would void is said before it is made.
      await requestReconcile(db, { ...counters, marketData: true }, Date.parse('2026-02-03T04:05:06Z'));
      const no = await run(reconcile, 'n\n');
      expect([no.code, await countActs()]).to.deep.equal([1, 4]);
      expect(no.output).to.match(
        /^this replaces act 4 of 2026-02-03T04:05:06.000Z, which the watcher has not carried out: what is derived from the fills, and new net_capital counters$/m,
      );
      const refused = await runAsked(reconcile, () => requestReconcile(db, counters, 1));
      expect([refused.code, await countActs()]).to.deep.equal([1, 5]);
      expect(refused.errors).to.match(
        /somebody asked for another reconciliation meanwhile, as act 5; nothing was asked for/,
      );
      const same = await run(reconcile, 'n\n');
      expect(same.output).to.match(/^this replaces act 5 of \S+, which the watcher has not carried out: the same$/m);
    });

    /** Puts items into suspense that add to whoever gets them. */
    async function suspend(count: number): Promise<string[]> {
      const { db } = suite.stack;
      const { generation, toBlock } = (await lastGeneration(db.knex))!;
      const items = Array.from({ length: count }, (_, i): SuspenseItem => ({
        ...{ item: `00112233aabbcc0${i}`, kind: 'fill', code: 'missing_depth', message: 'tried', ref: `suspense:${i}` },
        ...{ market: 0, seq: i, maker: null, token: suite.custody.token('WETH').toLowerCase() as Address, units: 5n },
        ...{ otherToken: null, otherUnits: 0n, blockNumber: toBlock, txHash: `0x${'5'.repeat(64)}` },
      }));
      await db.knex.transaction((tx) => insertSuspense(tx, { generation, suspense: items }));
      return items.map(({ item }) => item);
    }

    it('assign nothing that has left suspense, or that somebody else decided on, while they were asked', async () => {
      const [first, second] = await suspend(2);
      const [maker1, maker2] = [suite.chain.address('maker1'), suite.chain.address('maker2')];
      const assign = (item: string, to: string) => ['suspense', 'assign', item, to, 'why'];
      const closed = await runAsked(assign(first!, maker1), () =>
        suite.stack.db.knex('suspense').where({ item: first! }).delete(),
      );
      expect([closed.code, closed.errors]).to.satisfy(
        ([code, errors]: [number, string]) => code === 1 && errors.includes(`${first} is not open any more`),
      );
      expect(await acts()).to.deep.equal([]);
      const decided = await runAsked(assign(second!, maker1), () => run([...assign(second!, maker2), '--yes']));
      expect([decided.code, decided.errors]).to.satisfy(
        ([code, errors]: [number, string]) =>
          code === 1 && errors.includes(`somebody decided meanwhile, by act 1, that ${second} goes to ${maker2} (why)`),
      );
      expect((await acts()).map(({ maker }) => maker)).to.deep.equal([maker2]);
      const same = await runAsked(assign(second!, maker2), () => run([...assign(second!, maker2), '--yes']));
      expect(same.code, 'it is the same decision').to.equal(0);
      await suite.stack.db.knex('suspense').delete();
    });

    it('see what is decided and not booked yet, and decide otherwise only item by item', async () => {
      const [first, second] = await suspend(2);
      const [maker1, maker2] = [suite.chain.address('maker1'), suite.chain.address('maker2')];
      expect((await run(['suspense', 'assign', first!, maker1, 'her', 'order', '--yes'])).code).to.equal(0);
      const listed = (await run(['suspense', 'list'])).output;
      expect(listed).to.match(
        new RegExp(
          `^${first} block .*, to be booked to ${maker1} by act 1: her order\\n${second} block .*tried \\(.*\\)\\n$`,
        ),
      );
      const rows = await json<{ decision: object | null }[]>('suspense', 'list');
      expect(rows.map(({ decision }) => decision)).to.deep.equal([
        { account: maker1, operatorSeq: 1, note: 'her order' },
        null,
      ]);
      const all = ['suspense', 'assign', 'all', maker2, 'why', '--yes'];
      await expectRefused(
        all,
        new RegExp(`${first} is to be booked to ${maker1} by act 1 \\(her order\\); name it alone`),
      );
      expect(JSON.parse((await run([...all, '--json'])).output)).to.include({ ok: false, code: 'ALREADY_DECIDED' });
      const alone = ['suspense', 'assign', first!, maker2, 'why'];
      const no = await run(alone, 'n\n');
      expect([no.code, (await acts()).length]).to.deep.equal([1, 1]);
      expect(no.errors).to.include(`Assign to ${maker2}, and not to ${maker1} as act 1 says (her order)? [y/N]`);
      expect((await run(alone, 'y\n')).code).to.equal(0);
      expect((await run(all)).code, 'all of them go where this one does').to.equal(0);
      expect((await acts()).map(({ item, maker }) => [item, maker])).to.deep.equal([
        [first, maker1],
        ...[first, first, second].map((item) => [item, maker2]),
      ]);
      await suite.stack.db.knex('suspense').delete();
    });

    it('assign nothing to an address that can be no account', async () => {
      const [item] = await suspend(1);
      const { contracts } = suite.chain.manifest;
      for (const [address, what] of [
        [`0x${'0'.repeat(40)}`, 'the zero address'],
        [contracts['custodian'], 'the contract custodian'],
        [contracts['entrypoint'], 'the contract entrypoint'],
        [suite.custody.token('USDC'), 'the token USDC'],
      ] as const) {
        const assign = ['suspense', 'assign', item!, address, 'why', '--yes'];
        await expectRefused(assign, new RegExp(`^${address.toLowerCase()} is ${what}, which nothing can be booked to`));
        expect(JSON.parse((await run([...assign, '--json'])).output)).to.include({ ok: false, code: 'BAD_ACCOUNT' });
      }
      await suite.stack.db.knex('suspense').delete();
    });
  }),
);
