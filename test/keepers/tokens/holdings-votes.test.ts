/** What one of several endpoints can not do to what was found of a token, nor keep from being found. */
import { expect } from 'chai';
import { RpcUnavailableError } from '../../../keepers/chain/rpc.js';
import { standingCauses } from '../../../keepers/watcher/halt-causes.js';
import { forEachDatabase, type OpenTestDb } from '../../support/db.js';
import { lieOn, more } from '../../support/nodes/lying-tokens.js';
import { startTokenWorld, type TokenWorld } from '../../support/worlds/token-world.js';

const DEPOSIT = 1_000_000_000n;

forEachDatabase((name, open: OpenTestDb) =>
  describe(`holdings that one endpoint says, ${name}`, function () {
    this.timeout(30_000);
    let world: TokenWorld;

    async function start(endpoints: number): Promise<void> {
      world = await startTokenWorld(await open(), { endpoints });
      await world.step();
      for (const symbol of ['USDC', 'DAI']) await world.custody('maker1', 'deposit', world.token(symbol), DEPOSIT);
      await world.step();
    }
    afterEach(() => world.stack.stop());

    const lie = (symbol: string, units: bigint): void =>
      lieOn(world.lies[0]!, world.token(symbol), 'balanceOf', more(units));
    const truth = (): void => world.lies.forEach((one) => one.clear());
    /** More than a minute, with a look at its beginning and at its end. */
    const pass = async (): Promise<void> => {
      await world.step();
      await world.wait(70);
      await world.step();
    };

    it('one of three can not end a quarantine, nor have it forgotten why there is one, while the others are heard or silent', async () => {
      await start(3);
      const shortfall = ['quarantined shortfall'];
      await world.rob('DAI', DEPOSIT / 2n);
      await world.step();
      expect(await world.findingsOf('DAI')).to.deep.equal(shortfall);
      const [liar] = world.pool.endpoints;
      const survey = world.pool.survey.bind(world.pool);
      const isSilent = () => Promise.reject(new RpcUnavailableError('no answer'));
      for (const areOthersSilent of [false, true]) {
        world.pool.survey = (ask, ...how) =>
          survey(
            (rpc) => ask(rpc === liar || !areOthersSilent ? rpc : { ...rpc, call: isSilent, batch: isSilent }),
            ...how,
          );
        for (const tooMuch of [0n, 5n]) {
          lie('DAI', DEPOSIT / 2n + tooMuch);
          for (let i = 0; i < 3; i += 1) await pass();
          expect(await world.findingsOf('DAI')).to.deep.equal(shortfall);
        }
        truth();
        await pass();
        expect(await world.findingsOf('DAI')).to.deep.equal(shortfall);
      }
      expect([await world.haltCode(), await world.unattributed('DAI')]).to.deep.equal([undefined, 0n]);
      world.pool.survey = survey;
      await world.give('DAI', DEPOSIT / 2n);
      await pass();
      await pass();
      expect(await world.findingsOf('DAI'), 'two end it').to.deep.equal([]);
    });

    it('one of three can not say that what halted the ledger is there again', async () => {
      await start(3);
      await world.rob('USDC', 3n);
      await world.rob('DAI', 2n);
      await world.step();
      expect(await world.haltCode()).to.equal('shortfall');
      const contracts = world.chain.manifest.contracts as unknown as Record<string, `0x${string}`>;
      const { curveBook, entrypoint } = contracts;
      const causes = async () =>
        (
          await standingCauses({
            ...{ db: world.stack.db, rpc: world.pool, operator: null, nowMs: Date.now(), deploymentBlock: 1 },
            contracts: { custodian: world.vault, curveBook: curveBook!, entrypoint: entrypoint! },
          })
        ).map(({ halt }) => halt.code);
      expect(await causes()).to.deep.equal(['shortfall']);
      lie('USDC', 3n);
      lie('DAI', 2n);
      expect(await causes()).to.deep.equal(['shortfall']);
      truth();
      await world.give('USDC', 3n);
      await world.mine();
      for (const units of [-3n, 0n]) {
        lie('USDC', units);
        expect(await causes(), 'nor that it is not').to.deep.equal([]);
      }
    });

    it('of two, one alone does not end what both have found, while the other contradicts it', async () => {
      await start(2);
      await world.rob('DAI', 5n);
      await world.step();
      lie('DAI', 5n);
      await pass();
      await pass();
      expect(await world.findingsOf('DAI')).to.deep.equal(['quarantined shortfall']);
    });

    it('what the endpoint of the scan hides is found within a minute, with all that transfers took since others were asked', async () => {
      await start(3);
      await world.give('DAI', 9n);
      await pass();
      expect(await world.unattributed('DAI')).to.equal(9n);
      lie('DAI', 5n);
      await world.rob('DAI', 5n);
      await world.step(3);
      expect(await world.findingsOf('DAI')).to.deep.equal([]);
      await world.wait(60);
      await world.step();
      expect(
        await world.findingsOf('DAI'),
        'neither the doing of the token, nor paid by what nobody has',
      ).to.deep.equal(['quarantined shortfall']);
      expect(await world.unattributed('DAI')).to.equal(9n);
    });
  }),
);
