/** What tokens say at their listing is kept for good, so it is no single endpoint's word. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Address, Hex } from '../../../core/types.js';
import { RpcResponseError } from '../../../keepers/chain/rpc.js';
import { readTokenListings } from '../../../ledger/chain/markets.js';
import { forEachDatabase } from '../../support/db.js';
import { lieOn, word, type Lie } from '../../support/nodes/lying-tokens.js';
import { doubleChain } from '../../support/worlds/ledger-world.js';
import { startTokenWorld, type TokenWorld } from '../../support/worlds/token-world.js';

const SIX_PLACES = () => word(6n);

forEachDatabase((name, open) =>
  describe(`the decimals of a token at its listing, ${name}`, function () {
    this.timeout(30_000);
    let world: TokenWorld;

    afterEach(() => world.stack.stop());

    async function start(endpoints: number): Promise<Address> {
      world = await startTokenWorld(await open(), { endpoints, chain: doubleChain() });
      await world.mine();
      return world.token('DAI');
    }

    const stored = async (token: Address): Promise<number | null | undefined> =>
      (await readTokenListings(world.stack.db.knex)).find((one) => one.token === token)?.said?.decimals;

    it('are those that most endpoints say, and the one that says otherwise is passed over', async () => {
      const dai = await start(3);
      lieOn(world.lies[0]!, dai, 'decimals', SIX_PLACES);
      await world.step();
      expect(await stored(dai)).to.equal(18);
      expect(world.stack.markets[1]!.quote.decimals).to.equal(18);
      expect(world.pool.health().map(({ counts }) => counts.contradiction)).to.deep.equal([1, 0, 0]);
      await world.step(2);
      expect(await world.findingsOf('DAI')).to.deep.equal([]);
    });

    it('of a witness that lies are not believed either', async () => {
      const dai = await start(3);
      lieOn(world.lies[1]!, dai, 'decimals', SIX_PLACES);
      await world.step();
      expect(await stored(dai)).to.equal(18);
      expect(world.pool.health().map(({ counts }) => counts.contradiction)).to.deep.equal([0, 1, 0]);
    });

    it('are not stored while two endpoints differ', async () => {
      const dai = await start(2);
      lieOn(world.lies[0]!, dai, 'decimals', SIX_PLACES);
      for (let look = 0; look < 2; look += 1) {
        expect(await world.stack.watcher.scan().catch((error: Error) => error.name)).to.equal('NoMajorityError');
        expect(await stored(dai)).to.equal(undefined);
      }
      world.lies[0]!.clear();
      await world.step();
      expect(await stored(dai)).to.equal(18);
    });

    it('are not the word of one of two while the other one, which has just failed, takes more than a second', async () => {
      const dai = await start(2);
      lieOn(world.lies[0]!, dai, 'decimals', SIX_PLACES);
      lieOn(world.lies[1]!, dai, 'decimals', () => delay(1_500).then(() => word(18n)));
      for (let often = 0; often < 4; often += 1) world.pool.penalize('it failed', world.pool.endpoints[1]);
      expect(await world.stack.watcher.scan().catch((error: Error) => error.name)).to.equal('NoMajorityError');
      expect(await stored(dai)).to.equal(undefined);
    });

    it('are asked at a later block where one of three lies and one has no state of the listing any more', async () => {
      const dai = await start(3);
      lieOn(world.lies[0]!, dai, 'decimals', SIX_PLACES);
      const head = String(await world.chain.rpc.call('eth_blockNumber'));
      const missing = new RpcResponseError('eth_call', -32_000, 'missing trie node 12ab', undefined);
      const forgets =
        (answer?: Hex): Lie =>
        (_, block) =>
          block === head ? answer : Promise.reject(missing);
      for (const of of ['DAI', 'WETH', 'USDC']) lieOn(world.lies[2]!, world.token(of), 'decimals', forgets());
      // What shows that the endpoint executes nothing there.
      world.lies[2]!.set(`0x${'4'.padStart(40, '0')}:0x01`, forgets('0x01'));
      await world.stack.watcher.scan();
      expect(await stored(dai)).to.equal(18);
      expect(world.pool.health().map(({ counts }) => counts.contradiction)).to.deep.equal([1, 0, 0]);
    });

    it('are read although two endpoints of three answer later than the first by more than a second', async () => {
      const dai = await start(3);
      for (const late of [1, 2]) lieOn(world.lies[late]!, dai, 'decimals', () => delay(1_200).then(() => word(18n)));
      await world.step();
      expect(await stored(dai)).to.equal(18);
    });

    it('are those of the endpoints that have the state of that block, whoever has none', async () => {
      const dai = await start(3);
      for (const of of [dai, world.token('WETH'), world.token('USDC')])
        lieOn(world.lies[1]!, of, 'decimals', () => new Promise<never>(() => undefined));
      await world.step();
      expect(await stored(dai)).to.equal(18);
    });
  }),
);
