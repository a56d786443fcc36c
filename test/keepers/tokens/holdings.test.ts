/** What the vault holds against what the ledger explains, when endpoints lie, strangers give, and tokens take. */
import { expect } from 'chai';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { readMarkets } from '../../../ledger/chain/markets.js';
import { RpcResponseError, RpcUnavailableError } from '../../../keepers/chain/rpc.js';
import { HOLDINGS_PACE } from '../../../keepers/watcher/tokens/holdings.js';
import { verifyLedger } from '../../../keepers/verify/verify.js';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { lieOn, more } from '../../support/nodes/lying-tokens.js';
import { startTokenWorld, type TokenWorld, type TokenWorldOptions } from '../../support/worlds/token-world.js';

const DEPOSIT = 1_000_000_000n;

forEachDatabase((name, open: OpenTestDb) =>
  describe(`holdings, ${name}`, function () {
    this.timeout(30_000);
    let world: TokenWorld;

    async function start(options: TokenWorldOptions = {}): Promise<void> {
      world = await startTokenWorld(await open(), options);
      await world.step();
      await world.custody('maker1', 'deposit', world.token('USDC'), DEPOSIT);
      await world.step();
      expect(await world.findingsOf('USDC')).to.deep.equal([]);
    }
    afterEach(() => world.stack.stop());

    const lie = (endpoint: number, units: bigint): void =>
      lieOn(world.lies[endpoint]!, world.token('USDC'), 'balanceOf', more(units));
    /** More than a minute, with a look at its beginning and at its end. */
    const pass = async (): Promise<void> => {
      await world.step();
      await world.wait(70);
      await world.step();
    };
    const truth = (): void => world.lies.forEach((one) => one.clear());
    const verify = async () => {
      const { chain, stack, vault } = world;
      const { curveBook, entrypoint, orderSettler } = chain.manifest.contracts as unknown as Record<
        string,
        `0x${string}`
      >;
      return verifyLedger({
        db: stack.db,
        deploymentId: 'double',
        deploymentBlock: 1,
        operator: chain.address('owner'),
        contracts: { custodian: vault, curveBook: curveBook!, entrypoint: entrypoint!, orderSettler },
        rpc: null,
        onProgress: () => undefined,
      });
    };

    it('the only endpoint, that lies for 8 s: nothing is booked, and nothing halts when it tells the truth again', async () => {
      await start();
      lie(0, 5n);
      await world.step(4);
      expect(await world.findingsOf('USDC')).to.deep.equal(['doubt surplus_unconfirmed']);
      expect(await world.unattributed('USDC')).to.equal(0n);
      truth();
      await world.custody('maker1', 'deposit', world.token('USDC'), 7n);
      await world.step(2);
      expect([await world.haltCode(), await world.unattributed('USDC')]).to.deep.equal([undefined, 0n]);
      await pass();
      expect(await world.findingsOf('USDC'), 'over after a calm minute').to.deep.equal([]);
      await verify();
    });

    it('the only endpoint, that lies now and then: each lie begins anew', async () => {
      await start();
      for (let i = 0; i < 6; i += 1) {
        lie(0, 5n);
        await world.step(4);
        truth();
        await world.step(1);
      }
      expect([await world.haltCode(), await world.unattributed('USDC')]).to.deep.equal([undefined, 0n]);
    });

    it('the only endpoint, that says too little: only that token stops, and nothing halts', async () => {
      await start();
      lie(0, -5n);
      await world.step(4);
      expect(await world.findingsOf('USDC')).to.deep.equal(['quarantined shortfall_unconfirmed']);
      expect(await world.haltCode()).to.equal(undefined);
      truth();
      await pass();
      expect(await world.findingsOf('USDC')).to.deep.equal([]);
    });

    it('one of two endpoints that lies, upwards and downwards, is a doubt and no more', async () => {
      await start({ endpoints: 2 });
      for (const units of [5n, -5n]) {
        lie(0, units);
        await world.step(5);
        await pass();
        expect(await world.findingsOf('USDC')).to.deep.equal(['doubt endpoints_disagree']);
        expect([await world.haltCode(), await world.unattributed('USDC')]).to.deep.equal([undefined, 0n]);
        truth();
        await pass();
        expect(await world.findingsOf('USDC')).to.deep.equal([]);
      }
    });

    it('one of three endpoints that lies is penalised, and nothing else comes of it', async () => {
      await start({ endpoints: 3 });
      lie(0, -5n);
      await world.step();
      expect(await world.findingsOf('USDC')).to.deep.equal([]);
      expect(world.pool.health().map(({ healthy }) => healthy)).to.deep.equal([false, true, true]);
      expect(world.pool.health()[0]!.problem).to.match(/says that the vault holds 999999995/);
    });

    it('an endpoint without a balance beside one with it is penalised', async () => {
      await start({ endpoints: 2 });
      lieOn(world.lies[0]!, world.token('USDC'), 'balanceOf', () => '0x');
      await world.step();
      expect(await world.findingsOf('USDC')).to.deep.equal([]);
      expect(world.pool.health().map(({ healthy }) => healthy)).to.deep.equal([false, true]);
    });

    it('a gift is booked to nobody at once when two endpoints see it, and after a while when there is one', async () => {
      for (const endpoints of [1, 2]) {
        await start({ endpoints });
        await world.give('USDC', 9n);
        await world.step();
        expect(await world.unattributed('USDC')).to.equal(endpoints === 1 ? 0n : 9n);
        await world.step();
        await pass();
        expect(await world.unattributed('USDC')).to.equal(9n);
        expect([await world.haltCode(), await world.findingsOf('USDC')]).to.deep.equal([undefined, []]);
        await verify();
        if (endpoints === 1) await world.stack.stop();
      }
    });

    it('of two endpoints, one that does not answer leaves the other alone; of three, a difference waits', async () => {
      for (const endpoints of [2, 3]) {
        await start({ endpoints });
        const [one] = world.pool.endpoints;
        const isSilent = () => Promise.reject(new RpcUnavailableError('no answer'));
        const survey = world.pool.survey.bind(world.pool);
        world.pool.survey = (ask, enough) =>
          survey((rpc) => ask(rpc === one ? rpc : { ...rpc, call: isSilent, batch: isSilent }), enough);
        await world.give('USDC', 9n);
        await world.step();
        expect(await world.unattributed('USDC')).to.equal(0n);
        await pass();
        expect(await world.unattributed('USDC')).to.equal(endpoints === 2 ? 9n : 0n);
        expect(await world.haltCode()).to.equal(undefined);
        if (endpoints === 2) await world.stack.stop();
      }
    });

    it('a stranger who gives a unit in every block: a booking per minute, and deposits and fills go on', async () => {
      // Only what gifts cause is counted.
      await start({ endpoints: 2, watcher: { holdingsPace: { ...HOLDINGS_PACE, othersLookSec: 86_400 } } });
      let asked = 0;
      const { endpoints } = world.pool;
      for (const endpoint of endpoints) {
        const { batch } = endpoint;
        (endpoint as { batch: typeof batch }).batch = (requests) => {
          asked += 1;
          return batch(requests);
        };
      }
      await world.step(20);
      const quiet = asked;
      await world.give('USDC', 1n);
      await world.step();
      asked = 0;
      for (let i = 0; i < 20; i += 1) {
        await world.give('USDC', 1n);
        await world.step();
      }
      expect(asked, 'no question more than without gifts').to.equal(quiet);
      for (let i = 0; i < 60; i += 1) {
        await world.give('USDC', 1n);
        if (i % 10 === 0) await world.custody('maker1', 'deposit', world.token('DAI'), 1n);
        await world.step();
      }
      const booked = (await world.stack.db.knex('entries').where({ kind: 'unattributed' })) as unknown[];
      expect(booked.length / 2).to.be.within(3, 4);
      expect(await world.unattributed('USDC')).to.be.within(51n, 81n);
      const rows = (await world.stack.db.knex('token_findings').select()) as unknown[];
      expect(rows.length, 'a row when it begins to wait and one when it is booked').to.be.at.most(8);
      expect(await world.haltCode()).to.equal(undefined);
      const deposits = await world.stack.db.knex('custody_events').where({ token: world.token('DAI') });
      expect(deposits).to.have.length(6);
      await verify();
    });

    it('nothing is booked before the blocks since the last agreement are proven', async () => {
      const asked: [number, number][] = [];
      let proves = false;
      await start({
        endpoints: 2,
        watcher: {
          // Agreed on at each look.
          holdingsPace: { ...HOLDINGS_PACE, othersLookSec: 0 },
          async proveEvents({ from, to }) {
            asked.push([from, to]);
            if (!proves) throw new Error('no majority');
          },
        },
      });
      const agreed = world.stack.watcher.status().nextBlock - 1;
      await world.give('USDC', 9n);
      await world.step();
      expect([await world.unattributed('USDC'), await world.findingsOf('USDC')]).to.deep.equal([
        0n,
        ['doubt surplus_waits'],
      ]);
      expect(world.stack.watcher.status().nextBlock, 'all else is committed').to.equal(agreed + 2);
      proves = true;
      await world.step();
      expect(await world.unattributed('USDC')).to.equal(9n);
      expect(asked).to.deep.equal([
        [agreed + 1, agreed + 1],
        [agreed + 1, agreed + 2],
      ]);
    });

    it('what transfers took of two tokens halts, and halts again after a resume', async () => {
      await start({ endpoints: 2 });
      await world.custody('maker1', 'deposit', world.token('DAI'), DEPOSIT);
      await world.step();
      await world.rob('USDC', 3n);
      await world.step();
      await world.rob('DAI', 2n);
      await world.step();
      expect(await world.haltCode()).to.equal('shortfall');
      await appendOperatorRow(world.stack.db, { timeMs: 1, kind: 'resume', maker: null, note: '' });
      expect(await world.haltCode()).to.equal(undefined);
      await world.step();
      expect(await world.haltCode(), 'what is missing still is').to.equal('shortfall');
      expect(await world.findingsOf('USDC')).to.deep.equal(['quarantined shortfall']);
      const differences = ['USDC', 'DAI'].map(
        (symbol) =>
          world.stack.watcher.status().solvency.find(({ token }) => token === world.token(symbol))?.differenceUnits,
      );
      expect(differences).to.deep.equal([-3n, -2n]);
    });

    it('an issuer that takes its token back stops its own markets and nothing else, until it is paid in', async () => {
      await start({ endpoints: 2 });
      await world.rob('USDC', 3n);
      await world.step();
      expect([await world.haltCode(), await world.findingsOf('USDC')]).to.deep.equal([
        undefined,
        ['quarantined shortfall'],
      ]);
      const scanned = world.stack.watcher.status().nextBlock;
      await world.custody('maker1', 'deposit', world.token('DAI'), DEPOSIT);
      await world.step(3);
      expect(world.stack.watcher.status().nextBlock).to.equal(scanned + 3);
      expect(await world.stack.db.knex('token_findings').select()).to.have.length(1);
      expect(
        world.stack.watcher.status().solvency.find(({ token }) => token === world.token('USDC'))?.differenceUnits,
      ).to.equal(-3n);
      await verify();
      await world.give('USDC', 3n);
      await pass();
      await pass();
      expect([await world.haltCode(), await world.findingsOf('USDC')]).to.deep.equal([undefined, []]);
    });

    it('a token that no market trades any more is no part of what halts', async () => {
      await start({ endpoints: 2 });
      await world.custody('maker1', 'deposit', world.token('DAI'), DEPOSIT);
      await world.step();
      const dai = world.stack.markets.find(({ quote }) => quote.address === world.token('DAI'))!.index;
      await appendOperatorRow(world.stack.db, { timeMs: 1, kind: 'delist', maker: null, note: '', market: dai });
      await world.rob('USDC', 3n);
      await world.rob('DAI', 2n);
      await world.step(2);
      expect([await world.haltCode(), await world.findingsOf('USDC'), await world.findingsOf('DAI')]).to.deep.equal([
        undefined,
        ['quarantined shortfall'],
        ['quarantined shortfall'],
      ]);
      await appendOperatorRow(world.stack.db, { timeMs: 2, kind: 'relist', maker: null, note: '', market: dai });
      await world.step();
      expect(await world.haltCode(), 'traded again').to.equal('shortfall');
    });

    it('units of several tokens in every block: each block is proven once, for all of them', async () => {
      const proven: number[] = [];
      await start({
        endpoints: 2,
        watcher: {
          async proveEvents({ from, to }) {
            for (let n = from; n <= to; n += 1) proven.push(n);
          },
        },
      });
      for (let i = 0; i < 70; i += 1) {
        for (const symbol of ['USDC', 'DAI', 'WETH']) await world.give(symbol, 1n);
        await world.step();
      }
      expect(proven.length).to.be.greaterThan(20);
      expect(new Set(proven).size, 'no block twice').to.equal(proven.length);
      for (const symbol of ['USDC', 'DAI', 'WETH']) expect(await world.unattributed(symbol)).to.be.greaterThan(30n);
    });

    it('transfers that no endpoint names keep nothing from being scanned, and the token waits in quarantine', async () => {
      await start({ endpoints: 2 });
      const { rpc } = world.chain;
      const { call } = rpc;
      let refused = 0;
      let refuses = true;
      (rpc as { call: typeof call }).call = async (method, params) => {
        const isAsked =
          method === 'eth_getLogs' && (params?.[0] as { address?: unknown }).address === world.token('USDC');
        if (!isAsked || !refuses) return call(method, params);
        refused += 1;
        throw new RpcResponseError(method, -32_005, 'query returned more than 10000 results', undefined);
      };
      const scanned = world.stack.watcher.status().nextBlock;
      for (let i = 1; i <= 5; i += 1) {
        // Another balance at each look, so that nothing of the look before holds.
        for (const one of world.lies.keys()) lie(one, -BigInt(i));
        refused = 0;
        await world.custody('maker1', 'deposit', world.token('DAI'), 1n);
        await world.step();
        expect(refused, 'eight requests to each endpoint').to.be.within(1, 16);
      }
      expect(world.stack.watcher.status().nextBlock).to.be.at.least(scanned + 5);
      expect(await world.stack.db.knex('custody_events').where({ token: world.token('DAI') })).to.have.length(5);
      expect([await world.haltCode(), await world.findingsOf('USDC')]).to.deep.equal([
        undefined,
        ['quarantined shortfall_unconfirmed'],
      ]);
      refuses = false;
      await world.step(3);
      expect(await world.findingsOf('USDC')).to.deep.equal(['quarantined balance_decreased']);
    });

    it('a balance that falls by itself stops its own markets; a surplus of before pays for it first', async () => {
      await start({ endpoints: 2 });
      await world.give('USDC', 9n);
      await world.step();
      expect(await world.unattributed('USDC')).to.equal(9n);
      for (const one of world.lies.keys()) lie(one, -4n);
      await world.step();
      expect([await world.unattributed('USDC'), await world.findingsOf('USDC')]).to.deep.equal([5n, []]);
      for (const one of world.lies.keys()) lie(one, -10n);
      await world.step();
      expect(await world.haltCode()).to.equal(undefined);
      expect(await world.findingsOf('USDC')).to.deep.equal(['quarantined balance_decreased']);
      expect(await readMarkets(world.stack.db.knex)).to.have.length(2);
      await verify();
      // What is missing is paid in, and after a calm minute it is over.
      await world.give('USDC', 6n);
      await world.step();
      await pass();
      await pass();
      expect([await world.haltCode(), await world.findingsOf('USDC')]).to.deep.equal([undefined, []]);
    });
  }),
);
