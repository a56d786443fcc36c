/** What an operator decides by commands: markets, makers, claims and tokens. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import type { Address } from '../../core/types.js';
import { readClaimsOf } from '../../ledger/chain/claims.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { insertSuspense } from '../../ledger/chain/suspense.js';
import { insertTokenFindings } from '../../ledger/chain/token-findings.js';
import type { SuspenseItem, TokenFinding } from '../../ledger/types.js';
import { lastCheckpoint } from '../../ledger/settlements/checkpoint-log.js';
import { readOperatorRows } from '../../ledger/operator/operator-log.js';
import { GAS } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { startFaultProxy, type RpcRequestBody } from '../support/nodes/fault-proxy.js';
import { forksOf } from '../support/nodes/fork.js';
import { operatorCommands } from '../support/console/operator.js';

forEachDatabase((name, open) =>
  describe(`operator commands, ${name}`, function () {
    this.timeout(60_000);
    const suite = operatorCommands(open);
    const { run, json, expectRefused } = suite;

    it('delist and relist markets', async () => {
      const { pair } = suite.stack.markets[0]!;
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

    it('approve, suspend and list makers', async () => {
      const [first, second] = [suite.chain.address('maker1'), suite.chain.address('maker2')];
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

    it('assign nothing that would leave less than a claim that stands, or that is signed already', async () => {
      const maker = suite.chain.address('maker1');
      const weth = suite.custody.token('WETH');
      // All that it has.
      await suite.custody.mined(() =>
        suite.custody.as('maker1').requestWithdraw(weth, suite.custody.units('WETH', '1000000'), GAS),
      );
      const { generation, toBlock } = (await lastGeneration(suite.stack.db.knex))!;
      const lower = (address: string): Address => address.toLowerCase() as Address;
      const item: SuspenseItem = {
        ...{ item: '00112233aabbccdd', kind: 'fill', code: 'missing_depth', message: 'tried', ref: 'suspense:tried' },
        ...{
          market: 0,
          seq: 1,
          maker: null,
          token: lower(weth),
          units: -50n,
          otherToken: lower(suite.custody.token('USDC')),
        },
        ...{ otherUnits: 5n, blockNumber: toBlock, txHash: `0x${'5'.repeat(64)}` },
      };
      const insert = () =>
        suite.stack.db.knex.transaction((tx) => insertSuspense(tx, { generation, suspense: [item] }));
      const remove = () => suite.stack.db.knex('suspense').where({ item: item.item }).delete();
      const assign = ['suspense', 'assign', item.item, maker, 'why', '--yes'];
      // Signed and not mined: the ledger knows of no claim yet.
      const [settlement] = (await suite.stack.settler.round()).settlements;
      const all = settlement!.amountUnits;
      const refusal = new RegExp(
        `may withdraw ${all} units of 0x\\w+ and would have ${all - 50n}: lower the claim first`,
      );
      expect((await readClaimsOf(suite.stack.db.knex, [maker])).map(({ claimUnits }) => claimUnits)).to.deep.equal([
        0n,
      ]);
      await insert();
      await expectRefused(assign, refusal);
      await remove();
      await suite.custody.mined();
      expect((await readClaimsOf(suite.stack.db.knex, [maker])).map(({ claimUnits }) => claimUnits)).to.deep.equal([
        all,
      ]);
      await insert();
      await expectRefused(assign, refusal);
      expect((await run([...assign.slice(0, 3), 'operator', 'why', '--yes'])).code, 'to the operator it may').to.equal(
        0,
      );
      await remove();
    });

    it('assign nothing that fits a claim by itself, and not with what is assigned already', async () => {
      const maker = suite.chain.address('maker1');
      const weth = suite.custody.token('WETH').toLowerCase() as Address;
      // All but 60 units of the 100 WETH that it has.
      const claimed = suite.custody.units('WETH', '100') - 60n;
      await suite.custody.mined(() => suite.custody.as('maker1').requestWithdraw(weth, claimed, GAS));
      await suite.stack.settler.round();
      await suite.custody.mined();
      expect((await readClaimsOf(suite.stack.db.knex, [maker])).map(({ claimUnits }) => claimUnits)).to.deep.equal([
        claimed,
      ]);
      const { generation, toBlock } = (await lastGeneration(suite.stack.db.knex))!;
      const itemOf = (i: number, units: bigint): SuspenseItem => ({
        ...{ item: `00112233aabbcc0${i}`, kind: 'fill', code: 'missing_depth', message: 'tried', ref: `suspense:${i}` },
        ...{ market: 0, seq: i, maker: null, token: weth, units, otherToken: null, otherUnits: 0n },
        ...{ blockNumber: toBlock, txHash: `0x${'5'.repeat(64)}` },
      });
      const items = [itemOf(1, -50n), itemOf(2, -50n), itemOf(3, -10n), itemOf(4, 20n)];
      await suite.stack.db.knex.transaction((tx) => insertSuspense(tx, { generation, suspense: items }));
      const assign = (i: number, to: string = maker) => ['suspense', 'assign', items[i]!.item, to, 'why', '--yes'];
      const assigned = async () =>
        (await readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 })).map(({ item, maker: to }) => [item, to]);
      const first = await run(assign(0));
      expect([first.code, first.errors.split('\n').at(-2)], 'the first fits').to.satisfy(
        ([code]: [number]) => code === 0,
      );
      await expectRefused(
        assign(1),
        new RegExp(`may withdraw ${claimed} units of ${weth} and would have ${claimed - 40n}, less what is assigned`),
      );
      // What is not booked yet may still be assigned elsewhere, so that nothing is built on it.
      expect((await run(assign(3))).code, 'a credit').to.equal(0);
      await expectRefused(assign(1), /lower the claim first/);
      await expectRefused(['suspense', 'assign', 'all', maker, 'why', '--yes'], /lower the claim first/);
      expect((await run(assign(2))).code, 'what still fits').to.equal(0);
      expect((await run(assign(0, 'operator'))).code, 'decided otherwise, it counts no more').to.equal(0);
      const two = await Promise.all([run(assign(1)), run(assign(0))]);
      expect(two.map(({ code }) => code).filter((code) => code === 0).length, 'both at a time').to.be.at.most(1);
      const newest = new Map((await assigned()).map(([item, to]) => [item, to]));
      const toMaker = items.slice(0, 2).filter(({ item }) => newest.get(item) === maker);
      expect(toMaker.length, 'one of the two at most').to.be.at.most(1);
      await suite.stack.db.knex('suspense').delete();
    });

    it('show what stands against tokens, and read one again when they are told to', async () => {
      const rpc = ['--rpc', suite.chain.rpcUrl];
      const usdc = suite.custody.token('USDC').toLowerCase() as Address;
      const of = async () =>
        (
          await json<{ token: string; state: string; pairs: string[]; said: object; findings: object[] }[]>(
            'token',
            'list',
          )
        ).find(({ token }) => token === 'USDC')!;
      expect(await of()).to.deep.include({ state: 'trusted', findings: [], said: { symbol: 'USDC', decimals: 6 } });
      const { generation, toBlock } = (await lastGeneration(suite.stack.db.knex))!;
      const finding: TokenFinding = {
        ...{ token: usdc, cause: 'metadata', state: 'quarantined', code: 'symbol_changed', message: 'it says USDX' },
        ...{ blockNumber: toBlock, agreed: null, differenceUnits: null, timeMs: 1 },
      };
      await suite.stack.db.knex.transaction((tx) => insertTokenFindings(tx, generation, [finding]));
      expect(await of()).to.deep.include({ state: 'quarantined' });
      expect((await run(['token', 'list'])).output).to.match(
        /^USDC 0x\w+ quarantined, said "USDC" with 6 decimals\nUSDC in quarantine, WETH-USDC stand still: symbol_changed since block \d+: it says USDX$/m,
      );
      await expectRefused(['token', 'reread', 'DOGE', ...rpc], /no listed pair trades DOGE/);
      await expectRefused(['token', 'list', 'USDC'], /unexpected argument: USDC/);
      const no = await run(['token', 'reread', 'USDC', ...rpc], 'n\n');
      expect([no.code, (await readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 })).length]).to.deep.equal([
        1, 0,
      ]);
      const yes = await run(['token', 'reread', usdc, '--yes', ...rpc]);
      expect([yes.code, yes.output]).to.deep.equal([0, 'USDC is read again, as act 1: "USDC" with 6 decimals\n']);
      expect(yes.errors).to.match(/said "USDC" with 6 decimals, and says "USDC" with 6 decimals now/);
      const [row] = await readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 });
      expect(row).to.deep.include({ kind: 'reread', reread: { token: usdc, symbol: 'USDC', decimals: 6 } });
    });

    it('take of a token what most endpoints say, and what they say without what would move a cursor', async () => {
      const usdc = suite.custody.token('USDC').toLowerCase();
      const proxies = await Promise.all([0, 1, 2].map(() => startFaultProxy(suite.chain.rpcUrl)));
      try {
        const reread = ['token', 'reread', 'USDC', '--yes', '--rpc', proxies.map(({ url }) => url).join(',')];
        const lie = { result: `0x${'2'.padStart(64, '0')}` };
        const isAsked = ({ method, params }: RpcRequestBody): boolean =>
          method === 'eth_call' && (params[0] as { to: string }).to.toLowerCase() === usdc;
        proxies[0]!.fault = (request) => (isAsked(request) ? lie : 'pass');
        const taken = await run([...reread, '--json']);
        expect(JSON.parse(taken.output)).to.deep.include({ reread: { token: usdc, symbol: 'USDC', decimals: 6 } });
        proxies[1]!.fault = (request) => (isAsked(request) ? { result: `0x${'3'.padStart(64, '0')}` } : 'pass');
        await expectRefused(reread, /of 3 endpoints no 2 say the same of USDC/);
        for (const one of proxies)
          one.fault = () => ({ error: { code: -32_000, message: '\u001b[2J\u001b[Hready: \rall is well' } });
        const { code, errors } = await run(reread);
        expect(code).to.equal(1);
        expect(errors).to.not.match(/[^\n -~]/);
      } finally {
        await Promise.all(proxies.map((one) => one.close()));
      }
    });

    it('name a database of a newer version, and do not take it for a broken one', async () => {
      await suite.stack.db.knex('knex_migrations').insert({ name: '9999-from-the-future', batch: 9 });
      try {
        await expectRefused(['market', 'list'], /A newer version of Curvebook changed this database/);
        const { output } = await run(['doctor', '--rpc', suite.chain.rpcUrl]);
        expect(output).to.match(/FAIL DATABASE .*newer version/);
      } finally {
        await suite.stack.db.knex('knex_migrations').where({ name: '9999-from-the-future' }).delete();
      }
    });

    it('lower a claim', async () => {
      const maker = suite.chain.address('maker1');
      const settle = async (): Promise<string[]> => {
        await suite.stack.settler.round();
        const events = await suite.custody.mined();
        await suite.stack.settler.round();
        return events;
      };
      await expectRefused(['claim', 'lower', maker, 'WETH', '1'], /does not lower it/);
      await suite.custody.mined(() =>
        suite.custody.as('maker1').requestWithdraw(suite.custody.token('WETH'), 10n ** 18n, GAS),
      );
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
        lower: { token: suite.custody.token('WETH'), amountUnits: 250_000_000_000_000_000 },
      });
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 0.25']);
      const told = await run(['claim', 'lower', maker, suite.custody.token('WETH'), '0']);
      expect(told.output).to.match(/^asked the settler, as act \d+, to lower the claim of 0x[0-9a-f]{40} to 0 WETH\n$/);
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 0']);
      expect(await suite.custody.standing('maker1', 'WETH')).to.include({
        reserved: '0',
        claim: '0',
        available: '100',
      });
    });

    it('show the latest checkpoint', async () => {
      expect(await json('checkpoint')).to.equal(null);
      expect((await run(['checkpoint'])).output).to.equal('no checkpoint yet\n');
      await suite.stack.settler.round();
      const head = (await lastCheckpoint(suite.stack.db.knex))!;
      const shown = await json<{ root: string; rows: { account: string; balanceUnits: number }[] }>('checkpoint');
      expect(shown).to.include({ checkpointSeq: 1, root: head.root, generation: head.generation, leafCount: 4 });
      expect(shown.rows).to.have.length(4);
      const text = (await run(['checkpoint'])).output;
      expect(text).to.include(`root ${head.root}, 4 leaves`);
      expect(text).to.match(
        new RegExp(`${suite.chain.address('maker1')} 0x[0-9a-f]{40} 100000000000000000000, 0 of it reserved`),
      );
    });

    it('show what keepers have signed', async () => {
      expect(await json('outbox', '--all')).to.deep.equal([]);
      expect((await run(['outbox'])).output).to.equal('no transactions\n');
      await suite.stack.order(suite.chain.address('maker1'), [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n },
      ]);
      await suite.stack.poster.round();
      const poster = suite.chain.address('poster');
      const [waiting, ...others] =
        await json<{ signer: string; nonce: number; finished: boolean; txKey: string }[]>('outbox');
      expect(others).to.deep.equal([]);
      expect(waiting).to.include({ signer: poster, finished: false });
      expect((await run(['outbox', poster])).output).to.match(
        new RegExp(`^${poster} nonce \\d+ unmined post:\\S+ 0x[0-9a-f]{64} \\S+ max fee \\d+ wei\\n$`),
      );
      expect(await json('outbox', suite.chain.address('settler'))).to.deep.equal([]);
      await suite.custody.mined();
      await suite.stack.poster.round();
      expect(await json('outbox')).to.deep.equal([]);
      expect((await json<{ finished: boolean }[]>('outbox', '--all')).map(({ finished }) => finished)).to.deep.equal([
        true,
      ]);
      await expectRefused(['outbox', 'poster'], /not an address: poster/);
      await expectRefused(['outbox', poster, poster], /unexpected argument/);
    });

    it('reconcile after they asked: yes, no, and nobody there', async () => {
      const { order } = suite.stack;
      const forks = forksOf(suite.chain, suite.stack);
      const [oid] = await order(suite.chain.address('maker1'), [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 100_000n },
      ]);
      await suite.stack.poster.round();
      await suite.custody.mined();
      expect((await run(['reconcile'])).output).to.equal('the ledger and the chain agree on every block and booking\n');
      const mark = await forks.mark();
      const taker = suite.chain.address('taker1');
      const [usdc, weth] = [suite.custody.token('USDC'), suite.custody.token('WETH')];
      await suite.custody.mined(
        () => suite.custody.as('maker2').requestWithdraw(usdc, 5n, GAS),
        () =>
          suite.chain.entrypointAs('taker1').swapExactOutput(usdc, weth, 10n ** 18n, MaxUint256, taker, MaxUint256, {
            gasLimit: 1_000_000n,
          }),
      );
      await forks.fork(mark);
      await suite.stack.watcher.scan();

      const refused = await run(['reconcile']);
      expect([refused.code, refused.errors]).to.deep.equal([1, 'nobody to ask on this terminal; pass --yes\n']);
      for (const answer of ['n\n', '\n', 'yess\n', '']) {
        const no = await run(['reconcile'], answer);
        expect([no.code, no.errors], JSON.stringify(answer)).to.satisfy(
          ([code, errors]: [number, string]) => code === 1 && errors.includes('Reconcile? [y/N]'),
        );
      }
      expect(suite.stack.watcher.status().halt?.code).to.equal('canonical_mismatch');
      expect(
        await readOperatorRows(suite.stack.db.knex, { after: 0, limit: 10 }),
        'nothing was asked for',
      ).to.deep.equal([]);

      // The watcher of a running server does it; here it is driven meanwhile.
      let answered = false;
      const watcher = (async () => {
        while (!answered) await suite.stack.watcher.scan().then(() => delay(20));
      })();
      const yes = await run(['reconcile'], 'y\n').finally(() => (answered = true));
      await watcher;
      expect([yes.code, yes.output.split('\n').at(-2)]).to.satisfy(
        ([code, last]: [number, string]) => code === 0 && last.startsWith('done; the ledger is at generation'),
      );
      expect(yes.output).to.match(/the chain has lost blocks (\d+) to \1 \(1 blocks\)/);
      expect(yes.output).to.include('1 fills are lost, with what makers were told of them:');
      expect(yes.output, 'an orphaned notification').to.match(
        new RegExp(`    ${suite.chain.address('maker1')} order ${oid} tid \\d+ 1000000000000000000 base units`),
      );
      expect(yes.output).to.match(new RegExp(`  requested ${suite.chain.address('maker2')} 5 units of ${usdc} in 0x`));
      const lost = await json<{
        lastReversal: { orphans: { fills: { notifications: object[] }[]; custody: object[] } };
      }>('status');
      expect(lost.lastReversal.orphans.fills[0]?.notifications).to.have.length(1);
      expect(lost.lastReversal.orphans.custody).to.have.length(1);
      expect((await run(['status'])).output).to.match(
        /last reversal: blocks .*, 1 fills, 0 signed orders, and 1 deposits and withdrawals lost/,
      );
      expect((await run(['verify', '--rpc', suite.chain.rpcUrl])).code).to.equal(0);

      // What is derived from the fills, and wrong, is made anew in the same way.
      await suite.stack.poster.round();
      await suite.custody.mined();
      await suite.custody.mined(() =>
        suite.chain.entrypointAs('taker1').swapExactOutput(usdc, weth, 10n ** 17n, MaxUint256, taker, MaxUint256, {
          gasLimit: 1_000_000n,
        }),
      );
      expect((await run(['reconcile'])).output).to.equal('the ledger and the chain agree on every block and booking\n');
      const readCandles = (): Promise<unknown[]> =>
        suite.stack.db.knex('candles').orderBy(['market', 'interval_no', 'open_ms']).select<unknown[]>();
      const candles = await readCandles();
      expect(candles.length).to.be.greaterThan(0);
      await suite.stack.db.knex('candles').update({ trades: 77 });
      await suite.stack.db.knex('maker_positions').delete();
      expect((await run(['verify'])).code).not.to.equal(0);
      answered = false;
      const again = (async () => {
        while (!answered) await suite.stack.watcher.scan().then(() => delay(20));
      })();
      const derived = await run(['reconcile', '--yes']).finally(() => (answered = true));
      await again;
      expect([derived.code, derived.output]).to.satisfy(
        ([code, output]: [number, string]) => code === 0 && output.includes('are made anew from the fills'),
      );
      expect(await readCandles()).to.deep.equal(candles);
      expect((await run(['verify', '--rpc', suite.chain.rpcUrl])).code).to.equal(0);
    });
  }),
);
