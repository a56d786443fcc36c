/** Commands of operators who decide the same thing at the same time, or on what somebody else has decided meanwhile. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { runProgram } from '../../cli/program.js';
import { insertHalt } from '../../ledger/chain/halts.js';
import { readOperatorRows } from '../../ledger/operator/operator-log.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { forEachDatabase } from '../support/db.js';
import { operatorCommands } from '../support/console/operator.js';

forEachDatabase((name, open) =>
  describe(`operators who decide at the same time, ${name}`, function () {
    this.timeout(60_000);
    const suite = operatorCommands(open);
    const { run, json } = suite;

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
      const acts = async (): Promise<number> => (await readOperatorRows(db.knex, { after: 0, limit: 10 })).length;
      /** Looks whenever a request has been made: as the watcher of a server, or after another operator was quicker. */
      const afterAct = async (seq: number, work: () => Promise<unknown>): Promise<void> => {
        while ((await acts()) < seq) await delay(20);
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
      expect([no.code, await acts()]).to.deep.equal([1, 4]);
      expect(no.output).to.match(
        /^this replaces act 4 of 2026-02-03T04:05:06.000Z, which the watcher has not carried out: what is derived from the fills, and new net_capital counters$/m,
      );
      const refused = await runAsked(reconcile, () => requestReconcile(db, counters, 1));
      expect([refused.code, await acts()]).to.deep.equal([1, 5]);
      expect(refused.errors).to.match(
        /somebody asked for another reconciliation meanwhile, as act 5; nothing was asked for/,
      );
      const same = await run(reconcile, 'n\n');
      expect(same.output).to.match(/^this replaces act 5 of \S+, which the watcher has not carried out: the same$/m);
    });
  }),
);
