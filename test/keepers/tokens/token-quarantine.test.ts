/** One token of several goes wrong, in every way that can be seen from outside: its own markets stop, and nothing else. */
import { expect } from 'chai';
import type { Address, Hex } from '../../../core/types.js';
import { BELOW_FLOOR, TOKEN_QUARANTINED } from '../../../keepers/poster/prepare.js';
import { standingCauses } from '../../../keepers/watcher/halt-causes.js';
import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { RpcResponseError, RpcUnavailableError } from '../../../keepers/chain/rpc.js';
import { readClaim } from '../../../ledger/chain/claims.js';
import { insertAll } from '../../../ledger/db/columns.js';
import { insertHalt } from '../../../ledger/chain/halts.js';
import { readTokenListings } from '../../../ledger/chain/markets.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readQuarantined } from '../../../ledger/chain/token-findings.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { pino } from 'pino';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { doubleChain } from '../../support/worlds/ledger-world.js';
import { lieOn, more, word, type ASKED, type Lie } from '../../support/nodes/lying-tokens.js';
import { startTokenWorld, type TokenWorld, type TokenWorldOptions } from '../../support/worlds/token-world.js';

const WETH = 10n ** 18n;
const USDC = 10n ** 6n;
const WETH_USDC = 0;
const WETH_DAI = 1;

const missingState = (): RpcResponseError =>
  new RpcResponseError('eth_call', -32_000, 'missing trie node 12ab', undefined);

interface Case {
  asked: keyof typeof ASKED;
  lie: Lie;
  code: string;
  /** How an endpoint words a revert. */
  reverts?: string;
}

const text = (symbol: string): Hex =>
  `0x${'20'.padStart(64, '0')}${symbol.length.toString(16).padStart(64, '0')}${Buffer.from(symbol).toString('hex').padEnd(64, '0')}`;

const CASES: [string, Case][] = [
  ['its balance reverts', { asked: 'balanceOf', lie: () => null, code: 'no_answer' }],
  [
    'its balance reverts, and endpoints have their own words for that',
    { asked: 'balanceOf', lie: () => null, code: 'no_answer', reverts: 'VM execution error.' },
  ],
  ['it has no code any more', { asked: 'balanceOf', lie: () => '0x', code: 'no_answer' }],
  ['its balance is too short', { asked: 'balanceOf', lie: () => '0x01', code: 'bad_answer' }],
  ['its balance is too long', { asked: 'balanceOf', lie: () => `0x${'00'.repeat(40)}`, code: 'bad_answer' }],
  ['its balance is all ones', { asked: 'balanceOf', lie: () => `0x${'ff'.repeat(32)}`, code: 'bad_answer' }],
  ['its balance falls without a transfer', { asked: 'balanceOf', lie: more(-1n), code: 'balance_decreased' }],
  ['it is paused, or has the vault on a list', { asked: 'transfer', lie: () => null, code: 'transfers_fail' }],
  ['it transfers nothing, and says so', { asked: 'transfer', lie: () => word(0n), code: 'transfers_fail' }],
  ['it changes its decimals', { asked: 'decimals', lie: () => word(6n), code: 'decimals_changed' }],
  ['it has no decimals any more', { asked: 'decimals', lie: () => null, code: 'decimals_changed' }],
  ['it changes its symbol', { asked: 'symbol', lie: () => text('USDC'), code: 'symbol_changed' }],
  ['its symbol reverts', { asked: 'symbol', lie: () => null, code: 'symbol_changed', reverts: 'exception 11' }],
];

/** One case of each code: what differs is how a token is read, which has nothing to do with the database. */
const firstOfEach = (cases: typeof CASES): typeof CASES =>
  cases.filter(([, { code }], i) => cases.findIndex(([, one]) => one.code === code) === i);

forEachDatabase((name, open: OpenTestDb) =>
  describe(`tokens that can't be trusted, ${name}`, function () {
    this.timeout(30_000);
    let world: TokenWorld;
    let maker: Address;
    let other: Address;

    /** Two makers with all three tokens, a book in each market, and live curves. */
    async function start(options: TokenWorldOptions = {}): Promise<void> {
      world = await startTokenWorld(await open(), { endpoints: 2, ...options });
      [maker, other] = [world.chain.address('maker1'), world.chain.address('maker2')];
      await world.step();
      for (const role of ['maker1', 'maker2']) {
        await world.custody(role, 'deposit', world.token('WETH'), 100n * WETH);
        await world.custody(role, 'deposit', world.token('USDC'), 1_000_000n * USDC);
        await world.custody(role, 'deposit', world.token('DAI'), 1_000_000n * WETH);
      }
      await world.step();
      await quote(WETH_USDC, 300_000n);
      await quote(WETH_DAI, 300_000n);
      expect(await posted()).to.have.members(['WETH-USDC', 'WETH-DAI']);
    }
    afterEach(() => world.stack.stop());

    const quote = (market: number, priceTicks: bigint) =>
      world.stack.order(maker, [{ side: 'ask', priceTicks, sizeLots: 10_000n, market }]);
    /** A round of the poster, mined and scanned. */
    async function posted(): Promise<string[]> {
      const round = await world.stack.poster.round();
      await world.step();
      return (round?.publications ?? []).map(({ pair }) => pair);
    }
    const liesEverywhere = (token: string, { asked, lie }: Pick<Case, 'asked' | 'lie'>): void =>
      world.lies.forEach((lies) => lieOn(lies, world.token(token), asked, lie));
    const truth = (): void => world.lies.forEach((lies) => lies.clear());
    const codes = async (symbol: string): Promise<string[]> => world.findingsOf(symbol);
    const fills = async (): Promise<number> =>
      ((await world.stack.db.knex('fills').select('fill_seq')) as unknown[]).length;
    async function live(market: number): Promise<{ ask_words: string; bid_words: string }> {
      return (await world.stack.db.knex('publications').where({ market }).orderBy('seq', 'desc').first()) as {
        ask_words: string;
        bid_words: string;
      };
    }
    const verify = async () => {
      const { curveBook, entrypoint, orderSettler } = world.chain.manifest.contracts as unknown as Record<
        string,
        Address
      >;
      return verifyLedger({
        db: world.stack.db,
        deploymentId: 'double',
        deploymentBlock: 1,
        operator: world.chain.address('owner'),
        contracts: { custodian: world.vault, curveBook: curveBook!, entrypoint: entrypoint!, orderSettler },
        rpc: null,
        onProgress: () => undefined,
      });
    };

    for (const [what, one] of name === 'SQLite' ? CASES : firstOfEach(CASES)) {
      it(`${what}: its market stops, all else goes on, and it is over by itself`, async () => {
        await start(one.reverts === undefined ? {} : { reverts: one.reverts });
        liesEverywhere('DAI', one);
        await world.step(2);
        expect(await codes('DAI')).to.deep.equal([`quarantined ${one.code}`]);
        expect([await codes('WETH'), await codes('USDC'), await world.haltCode()]).to.deep.equal([[], [], undefined]);
        expect(world.stack.watcher.status().findings.map(({ token }) => token)).to.deep.equal([world.token('DAI')]);

        // An empty curve once for its own market, and the other one as ever.
        await quote(WETH_USDC, 299_900n);
        expect(await posted()).to.have.members(['WETH-USDC', 'WETH-DAI']);
        expect((await live(WETH_DAI)).ask_words).to.equal('[]');
        expect((await live(WETH_USDC)).ask_words).not.to.equal('[]');
        await quote(WETH_DAI, 299_800n);
        await quote(WETH_USDC, 299_700n);
        expect(await posted()).to.deep.equal(['WETH-USDC']);
        expect(world.stack.poster.status().skipped[TOKEN_QUARANTINED]).to.be.greaterThan(0);
        expect(world.stack.poster.status().skipped[BELOW_FLOOR] ?? 0).to.equal(0);

        const before = await fills();
        await world.sell('taker1', 'USDC', 'WETH', 1_000n * USDC);
        await world.custody('maker2', 'requestWithdraw', world.token('USDC'), 10n * USDC);
        await world.custody('maker2', 'requestWithdraw', world.token('DAI'), 10n * WETH);
        await world.step();
        expect(await fills()).to.equal(before + 1);
        const { settlements } = await world.stack.settler.round();
        expect(settlements.map(({ token }) => token)).to.deep.equal([world.token('USDC')]);
        await world.step();
        expect(
          (await readClaim(world.stack.db.knex, { maker: other, token: world.token('USDC') })).claimUnits,
        ).to.equal(10n * USDC);
        await verify();

        truth();
        await world.step();
        await world.wait(70);
        await world.step(2);
        expect(await codes('DAI'), 'over').to.deep.equal([]);
        await quote(WETH_DAI, 299_600n);
        expect(await posted()).to.include('WETH-DAI');
        expect((await live(WETH_DAI)).ask_words).not.to.equal('[]');
        const later = await world.stack.settler.round();
        expect(later.settlements.map(({ token }) => token)).to.include(world.token('DAI'));
        await world.step();
        expect(await world.haltCode()).to.equal(undefined);
      });
    }

    it('two of three tokens that an issuer takes back at once: their markets stop, what is backed is traded and paid', async () => {
      await start();
      await world.rob('DAI', 3n);
      await world.rob('USDC', 2n);
      await world.step(2);
      expect([await codes('DAI'), await codes('USDC'), await codes('WETH'), await world.haltCode()]).to.deep.equal([
        ['quarantined shortfall'],
        ['quarantined shortfall'],
        [],
        undefined,
      ]);
      expect(world.stack.watcher.status().findings).to.have.length(2);
      // Neither of its markets may stay open, and nobody is paid from what is missing.
      await posted();
      expect([(await live(WETH_USDC)).ask_words, (await live(WETH_DAI)).ask_words]).to.deep.equal(['[]', '[]']);
      for (const token of ['WETH', 'USDC', 'DAI'])
        await world.custody('maker2', 'requestWithdraw', world.token(token), 10n);
      await world.step();
      const { settlements } = await world.stack.settler.round();
      expect(settlements.map(({ token }) => token)).to.deep.equal([world.token('WETH')]);
      await verify();

      // What is paid in ends it, token by token.
      await world.give('DAI', 3n);
      await world.wait(70);
      await world.step();
      await world.wait(70);
      await world.step();
      expect([await codes('DAI'), await codes('USDC')]).to.deep.equal([[], ['quarantined shortfall']]);
      await quote(WETH_DAI, 299_000n);
      expect(await posted()).to.deep.equal(['WETH-DAI']);
    });

    it('the third of three that transfers take is one too many: nothing is backed any more', async () => {
      await start();
      await world.rob('DAI', 3n);
      await world.rob('USDC', 2n);
      await world.step(2);
      expect(await world.haltCode()).to.equal(undefined);
      await world.rob('WETH', 1n);
      await world.step(2);
      expect(await world.haltCode()).to.equal('shortfall');
    });

    it('a reorganisation while a token is short halts nothing for longer than itself', async () => {
      await start();
      await world.rob('DAI', 3n);
      await world.step(2);
      const { curveBook, custodian, entrypoint } = world.chain.manifest.contracts as unknown as Record<string, Address>;
      const causes = async (): Promise<string[]> =>
        (
          await standingCauses({
            ...{ db: world.stack.db, rpc: world.pool, deploymentBlock: 1, operator: null, nowMs: Date.now() },
            contracts: { curveBook: curveBook!, custodian: custodian!, entrypoint: entrypoint! },
          })
        ).map(({ halt }) => halt.code);
      const writer = await acquireWriter(world.stack.db, 'operator');
      await writer.tx((tx) =>
        insertHalt(tx, { code: 'canonical_mismatch', message: 'block 9 is another one', timeMs: 1 }),
      );
      await writer.release();
      expect(await causes(), 'one token is its own matter').to.deep.equal([]);
    });

    it('one endpoint of two that lies about a token stops nothing', async () => {
      await start();
      for (const [, { asked, lie }] of CASES.filter(([, { code }]) => code !== 'balance_decreased')) {
        lieOn(world.lies[0]!, world.token('DAI'), asked, lie);
        await world.step(2);
        expect(await codes('DAI'), asked).to.deep.equal([]);
        world.lies[0]!.clear();
      }
      expect([...(await readQuarantined(world.stack.db.knex))]).to.deep.equal([]);
    });

    it('what the only endpoint says of symbols and transfers counts when it says so again', async () => {
      await start({ endpoints: 1 });
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await world.step();
      expect(await codes('DAI')).to.deep.equal([]);
      await world.step();
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
    });

    it('no quarantine ends by what one endpoint of two says', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
      const all = () => world.pool.endpoints.slice() as ReturnType<typeof world.pool.ranked>;
      const isSilent = () => Promise.reject(new RpcUnavailableError('no answer'));
      const [, second] = all();
      const survey = world.pool.survey.bind(world.pool);
      const silent = { ...second!, call: isSilent, batch: isSilent };
      world.pool.survey = (ask, enough) => survey((one) => ask(one === second ? silent : one), enough);
      await world.step(3);
      expect(await codes('DAI'), 'one sees it, the other one is silent').to.deep.equal(['quarantined transfers_fail']);
      world.lies[0]!.clear();
      await world.step(3);
      expect(await codes('DAI'), 'one sees nothing, the other one is silent').to.deep.equal([
        'quarantined transfers_fail',
      ]);
      world.pool.survey = survey;
      await world.step(3);
      expect(await codes('DAI'), 'one sees nothing, the other one still does').to.deep.equal([
        'quarantined transfers_fail',
      ]);
      truth();
      await world.step(2);
      expect(await codes('DAI')).to.deep.equal([]);
    });

    it('an endpoint that answers nothing holds up no scan while a token is in doubt', async () => {
      await start({ endpoints: 3 });
      for (const asked of ['balanceOf', 'symbol', 'transfer'] as const) {
        for (const lies of world.lies.slice(0, 2)) lieOn(lies, world.token('DAI'), asked, () => null);
        lieOn(world.lies[2]!, world.token('DAI'), asked, () => new Promise(() => undefined));
      }
      await world.step(3);
      expect(await codes('DAI')).to.deep.equal([
        'quarantined no_answer',
        'quarantined symbol_changed',
        'quarantined transfers_fail',
      ]);
    });

    it('a wall clock that is put back keeps no token from being looked at', async () => {
      let monotonicMs = 0;
      let wallMs = Date.now();
      await start({
        watcher: {
          tokenPace: { intervalMs: 1, againMs: 1 },
          nowMs: () => wallMs,
          monotonicMs: () => (monotonicMs += 10),
        },
      });
      wallMs -= 3_600_000;
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
    });

    it('all of a token at once, and other processes and restarts know of it', async () => {
      await start();
      for (const [, one] of CASES) liesEverywhere('DAI', one);
      await world.step(2);
      expect(await codes('DAI')).to.have.members([
        'quarantined balance_decreased',
        'quarantined decimals_changed',
        'quarantined transfers_fail',
      ]);
      const remote = createRemoteStatus({
        db: world.stack.db,
        markets: [],
        deploymentBlock: 1,
        pollIntervalMs: 10,
        logger: pino({ level: 'silent' }),
        onGeneration: () => undefined,
        onReversal: () => undefined,
      });
      const stopping = new AbortController();
      const loop = remote.start(stopping.signal);
      while (remote.status().findings.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      stopping.abort();
      await loop.done;
      expect(remote.status().findings.map(({ code }) => code)).to.have.length(3);
      const { chain, stack, lies } = world;
      await stack.stop();
      world = await startTokenWorld(stack.db, { endpoints: 2, chain });
      world.lies.forEach((one, i) => lies[i]!.forEach((lie, key) => one.set(key, lie)));
      expect(world.stack.watcher.status().findings).to.have.length(3);
      await world.step(2);
      expect(await codes('DAI'), 'no row for what stands already').to.have.length(3);
      expect(await world.stack.db.knex('token_findings').select()).to.have.length(3);
    });

    it('a token that is right in every other block stays in quarantine, and costs a row', async () => {
      await start();
      for (let i = 0; i < 20; i += 1) {
        liesEverywhere('DAI', { asked: 'balanceOf', lie: () => null });
        await world.step();
        truth();
        await world.step();
      }
      expect(await codes('DAI')).to.deep.equal(['quarantined no_answer']);
      expect(await world.stack.db.knex('token_findings').select()).to.have.length(1);
    });

    it('another symbol is right once the operator has read it again, and the platform goes on with the names of before', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'symbol', lie: () => text('USDS') });
      liesEverywhere('DAI', { asked: 'decimals', lie: () => word(6n) });
      await world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined decimals_changed']);
      const reread = { token: world.token('DAI'), symbol: 'USDS', decimals: 6 };
      await appendOperatorRow(world.stack.db, { timeMs: 1, kind: 'reread', maker: null, note: '', reread });
      await world.step(3);
      expect(await codes('DAI')).to.deep.equal([]);
      expect(world.stack.markets[WETH_DAI]).to.include({ pair: 'WETH-DAI' });
      expect(world.stack.markets[WETH_DAI]!.quote.decimals).to.equal(18);
      liesEverywhere('DAI', { asked: 'symbol', lie: () => text('DAI') });
      await world.step(2);
      expect(await codes('DAI'), 'changed once more').to.deep.equal(['quarantined symbol_changed']);
    });

    it('whoever makes a token lie gains nothing: no number of withdrawals in it holds up those in others', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await world.step(2);
      await world.custody('maker2', 'requestWithdraw', world.token('USDC'), 10n * USDC);
      await world.step();
      // As many strangers as one round looks at, with balances and older requests in the token whose owner they are.
      const { generation } = { generation: world.stack.watcher.status().inventoryRevision };
      const strangers = Array.from(
        { length: 1_001 },
        (_, i) => `0x${'e'.repeat(36)}${i.toString(16).padStart(4, '0')}`,
      );
      await world.stack.stop();
      const writer = await acquireWriter(world.stack.db, 'ledger');
      await writer.tx(async (tx) => {
        const token = world.token('DAI');
        const row = { token, generation };
        const balances = strangers.map((account) => ({
          ...row,
          ...{ account, balance_units: '1', reserved_units: '1', net_capital_units: '1' },
        }));
        await insertAll(tx, 'balances', balances);
        const claims = strangers.map((one) => ({
          ...row,
          ...{ maker: one, claim_units: '0', basis: '0', outstanding_units: '1', advance_units: '0' },
          ...{ ready_at_sec: null, pending_since_block: 1 },
        }));
        await insertAll(tx, 'claims', claims);
      });
      await writer.release();
      world = await startTokenWorld(world.stack.db, { endpoints: 2, chain: world.chain });
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await world.step();
      const { settlements } = await world.stack.settler.round();
      expect(settlements.map(({ maker: to, token }) => [to, token])).to.deep.equal([[other, world.token('USDC')]]);
    });

    it('a token that reverts from its listing on keeps nothing from being scanned, and is called by its address', async () => {
      const chain = doubleChain();
      world = await startTokenWorld(await open(), { chain, reverts: 'VM execution error.' });
      for (const asked of ['symbol', 'decimals', 'balanceOf'] as const)
        liesEverywhere('DAI', { asked, lie: () => null });
      await world.step(2);
      const dai = world.token('DAI');
      expect(world.stack.markets.map(({ pair }) => pair)).to.deep.equal(['WETH-USDC', `WETH-${dai}`]);
      expect(world.stack.markets[WETH_DAI]!.quote.decimals).to.equal(0);
      expect(await codes('DAI')).to.deep.equal(['quarantined no_answer']);
      expect(await world.haltCode()).to.equal(undefined);
    });

    it('what tokens say is read at the block of the listing, and later where no endpoint has its state', async () => {
      const chain = doubleChain();
      await chain.rpc.call('evm_mine');
      await chain.rpc.call('evm_mine');
      const asked: string[] = [];
      const spied: Lie = (_truth, block) => {
        asked.push(block);
        return undefined;
      };
      world = await startTokenWorld(await open(), { chain, watcher: { tokenPace: { intervalMs: 1e9, againMs: 1e9 } } });
      liesEverywhere('DAI', { asked: 'symbol', lie: spied });
      await world.step();
      expect(asked).to.deep.equal(['0x1']);
      const listings = await readTokenListings(world.stack.db.knex);
      expect(listings.map(({ said, readBlock }) => [said?.symbol, said?.decimals, readBlock])).to.deep.equal([
        ['WETH', 18, 1],
        ['USDC', 6, 1],
        ['DAI', 18, 1],
      ]);
      await world.stack.stop();

      const pruned = doubleChain();
      for (let i = 0; i < 3; i += 1) await pruned.rpc.call('evm_mine');
      world = await startTokenWorld(await open(), { chain: pruned });
      const { call } = pruned.rpc;
      (pruned.rpc as { call: typeof call }).call = async (method, params) => {
        if (method === 'eth_call' && params?.[1] === '0x1') throw missingState();
        return call(method, params);
      };
      await world.step();
      const later = await readTokenListings(world.stack.db.knex);
      expect(later.map(({ said, readBlock }) => [said?.symbol, readBlock])).to.deep.equal([
        ['WETH', 5],
        ['USDC', 5],
        ['DAI', 5],
      ]);
    });
  }),
);
