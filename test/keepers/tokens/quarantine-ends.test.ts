/** On whose word a token is doubted, and what ends that: never one endpoint's, and never a clock's. */
import { expect } from 'chai';
import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import { RpcResponseError, RpcUnavailableError } from '../../../keepers/chain/rpc.js';
import { readTokenListings } from '../../../ledger/chain/markets.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readQuarantined } from '../../../ledger/chain/token-findings.js';
import { pino } from 'pino';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { doubleChain } from '../../support/worlds/ledger-world.js';
import { lieOn, word, type Lie } from '../../support/nodes/lying-tokens.js';
import { startTokenWorld } from '../../support/worlds/token-world.js';
import { doubtedTokens, WETH_DAI, text, CASES } from '../../support/worlds/doubted-tokens.js';

const missingState = (): RpcResponseError =>
  new RpcResponseError('eth_call', -32_000, 'missing trie node 12ab', undefined);

forEachDatabase((name, open: OpenTestDb) =>
  describe(`tokens that can't be trusted, ${name}`, function () {
    this.timeout(30_000);
    const suite = doubtedTokens(open);
    const { start, liesEverywhere, truth, codes } = suite;

    it('one endpoint of two that lies about a token stops nothing', async () => {
      await start();
      for (const [, { asked, lie }] of CASES.filter(([, { code }]) => code !== 'balance_decreased')) {
        lieOn(suite.world.lies[0]!, suite.world.token('DAI'), asked, lie);
        await suite.world.step(2);
        expect(await codes('DAI'), asked).to.deep.equal([]);
        suite.world.lies[0]!.clear();
      }
      expect([...(await readQuarantined(suite.world.stack.db.knex))]).to.deep.equal([]);
    });

    it('what the only endpoint says of symbols and transfers counts when it says so again', async () => {
      await start({ endpoints: 1 });
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await suite.world.step();
      expect(await codes('DAI')).to.deep.equal([]);
      await suite.world.step();
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
    });

    it('no quarantine ends by what one endpoint of two says', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'transfer', lie: () => null });
      await suite.world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
      const all = () => suite.world.pool.endpoints.slice() as ReturnType<typeof suite.world.pool.ranked>;
      const isSilent = () => Promise.reject(new RpcUnavailableError('no answer'));
      const [, second] = all();
      const survey = suite.world.pool.survey.bind(suite.world.pool);
      const silent = { ...second!, call: isSilent, batch: isSilent };
      suite.world.pool.survey = (ask, enough) => survey((one) => ask(one === second ? silent : one), enough);
      await suite.world.step(3);
      expect(await codes('DAI'), 'one sees it, the other one is silent').to.deep.equal(['quarantined transfers_fail']);
      suite.world.lies[0]!.clear();
      await suite.world.step(3);
      expect(await codes('DAI'), 'one sees nothing, the other one is silent').to.deep.equal([
        'quarantined transfers_fail',
      ]);
      suite.world.pool.survey = survey;
      await suite.world.step(3);
      expect(await codes('DAI'), 'one sees nothing, the other one still does').to.deep.equal([
        'quarantined transfers_fail',
      ]);
      truth();
      await suite.world.step(2);
      expect(await codes('DAI')).to.deep.equal([]);
    });

    it('an endpoint that answers nothing holds up no scan while a token is in doubt', async () => {
      await start({ endpoints: 3 });
      for (const asked of ['balanceOf', 'symbol', 'transfer'] as const) {
        for (const lies of suite.world.lies.slice(0, 2)) lieOn(lies, suite.world.token('DAI'), asked, () => null);
        lieOn(suite.world.lies[2]!, suite.world.token('DAI'), asked, () => new Promise(() => undefined));
      }
      await suite.world.step(3);
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
      await suite.world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined transfers_fail']);
    });

    it('all of a token at once, and other processes and restarts know of it', async () => {
      await start();
      for (const [, one] of CASES) liesEverywhere('DAI', one);
      await suite.world.step(2);
      expect(await codes('DAI')).to.have.members([
        'quarantined balance_decreased',
        'quarantined decimals_changed',
        'quarantined transfers_fail',
      ]);
      const remote = createRemoteStatus({
        db: suite.world.stack.db,
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
      const { chain, stack, lies } = suite.world;
      await stack.stop();
      suite.world = await startTokenWorld(stack.db, { endpoints: 2, chain });
      suite.world.lies.forEach((one, i) => lies[i]!.forEach((lie, key) => one.set(key, lie)));
      expect(suite.world.stack.watcher.status().findings).to.have.length(3);
      await suite.world.step(2);
      expect(await codes('DAI'), 'no row for what stands already').to.have.length(3);
      expect(await suite.world.stack.db.knex('token_findings').select()).to.have.length(3);
    });

    it('a token that is right in every other block stays in quarantine, and costs a row', async () => {
      await start();
      for (let i = 0; i < 20; i += 1) {
        liesEverywhere('DAI', { asked: 'balanceOf', lie: () => null });
        await suite.world.step();
        truth();
        await suite.world.step();
      }
      expect(await codes('DAI')).to.deep.equal(['quarantined no_answer']);
      expect(await suite.world.stack.db.knex('token_findings').select()).to.have.length(1);
    });

    it('another symbol is right once the operator has read it again, and the platform goes on with the names of before', async () => {
      await start();
      liesEverywhere('DAI', { asked: 'symbol', lie: () => text('USDS') });
      liesEverywhere('DAI', { asked: 'decimals', lie: () => word(6n) });
      await suite.world.step(2);
      expect(await codes('DAI')).to.deep.equal(['quarantined decimals_changed']);
      const reread = { token: suite.world.token('DAI'), symbol: 'USDS', decimals: 6 };
      await appendOperatorRow(suite.world.stack.db, { timeMs: 1, kind: 'reread', maker: null, note: '', reread });
      await suite.world.step(3);
      expect(await codes('DAI')).to.deep.equal([]);
      expect(suite.world.stack.markets[WETH_DAI]).to.include({ pair: 'WETH-DAI' });
      expect(suite.world.stack.markets[WETH_DAI]!.quote.decimals).to.equal(18);
      liesEverywhere('DAI', { asked: 'symbol', lie: () => text('DAI') });
      await suite.world.step(2);
      expect(await codes('DAI'), 'changed once more').to.deep.equal(['quarantined symbol_changed']);
    });

    it('a token that reverts from its listing on keeps nothing from being scanned, and is called by its address', async () => {
      const chain = doubleChain();
      suite.world = await startTokenWorld(await open(), { chain, reverts: 'VM execution error.' });
      for (const asked of ['symbol', 'decimals', 'balanceOf'] as const)
        liesEverywhere('DAI', { asked, lie: () => null });
      await suite.world.step(2);
      const dai = suite.world.token('DAI');
      expect(suite.world.stack.markets.map(({ pair }) => pair)).to.deep.equal(['WETH-USDC', `WETH-${dai}`]);
      expect(suite.world.stack.markets[WETH_DAI]!.quote.decimals).to.equal(0);
      expect(await codes('DAI')).to.deep.equal(['quarantined no_answer']);
      expect(await suite.world.haltCode()).to.equal(undefined);
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
      suite.world = await startTokenWorld(await open(), {
        chain,
        watcher: { tokenPace: { intervalMs: 1e9, againMs: 1e9 } },
      });
      liesEverywhere('DAI', { asked: 'symbol', lie: spied });
      await suite.world.step();
      expect(asked).to.deep.equal(['0x1']);
      const listings = await readTokenListings(suite.world.stack.db.knex);
      expect(listings.map(({ said, readBlock }) => [said?.symbol, said?.decimals, readBlock])).to.deep.equal([
        ['WETH', 18, 1],
        ['USDC', 6, 1],
        ['DAI', 18, 1],
      ]);
      await suite.world.stack.stop();

      const pruned = doubleChain();
      for (let i = 0; i < 3; i += 1) await pruned.rpc.call('evm_mine');
      suite.world = await startTokenWorld(await open(), { chain: pruned });
      const { call } = pruned.rpc;
      (pruned.rpc as { call: typeof call }).call = async (method, params) => {
        if (method === 'eth_call' && params?.[1] === '0x1') throw missingState();
        return call(method, params);
      };
      await suite.world.step();
      const later = await readTokenListings(suite.world.stack.db.knex);
      expect(later.map(({ said, readBlock }) => [said?.symbol, readBlock])).to.deep.equal([
        ['WETH', 5],
        ['USDC', 5],
        ['DAI', 5],
      ]);
    });
  }),
);
