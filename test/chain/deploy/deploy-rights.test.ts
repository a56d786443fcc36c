/** An endpoint without all events must not have an account that has a right taken for one that has none. */
import { expect } from 'chai';
import { zeroPadValue } from 'ethers';
import { proposalOf } from '../../../deploy/actions.js';
import { configureCommand, setSeqCommand, statusCommand } from '../../../deploy/commands.js';
import type { DeployConfig } from '../../../deploy/config.js';
import type { Context } from '../../../deploy/context.js';
import { connectContracts } from '../../../deploy/contracts.js';
import { deployCommand } from '../../../deploy/install.js';
import { addressesOf } from '../../../deploy/upgrade/upgrade.js';
import { MintableToken__factory } from '../../../typechain-types/factories/mocks/MintableToken__factory.js';
import { postCurve } from '../../support/contracts/live-curve.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../../support/contracts/owner.js';

interface Filter {
  address: string;
  topics: string[];
  fromBlock: number;
}
interface Log {
  topics: readonly string[];
  blockNumber: number;
}

describe('rights that are read from events', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let stolen: string;
  let fresh: string;
  let files: Map<string, string>;
  let snapshot: string;

  before(async () => {
    world = await startOwnerWorld();
    [stolen, fresh] = (await Promise.all([1, 6].map((index) => world.chain.signers[index]!.getAddress()))) as [
      string,
      string,
    ];
    await deployCommand(await world.context(), world.config());
    await configureCommand(await world.context(), world.config(), 'send');
    files = world.saveFiles();
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
  });
  after(() => world?.close());
  beforeEach(async () => {
    await world.chain.provider.send('evm_revert', [snapshot]);
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
    world.restoreFiles(files);
    world.printed();
  });

  /** A context of an endpoint that answers only those events that are kept. */
  const behind = async (isKept: (log: Log, filter: Filter) => boolean) => {
    const context = await world.context();
    const provider = new Proxy(context.provider, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== 'function') return value;
        const method = (value as (...args: unknown[]) => unknown).bind(target);
        if (name !== 'getLogs') return method;
        return async (filter: Filter) => ((await method(filter)) as Log[]).filter((log) => isKept(log, filter));
      },
    });
    return { ...context, provider };
  };
  const without = () => world.config({ curvePosters: [fresh] });
  const curvePosters = () => {
    const { curveBook } = connectContracts(addressesOf(world.record()), world.chain.provider);
    return Promise.all([stolen, fresh].map((account) => curveBook.isPoster(account)));
  };
  const everyMode = async (context: Awaited<ReturnType<typeof behind>>, config: DeployConfig, told: RegExp) => {
    const nonce = await world.chain.signers[0]!.getNonce();
    for (const mode of ['dry-run', 'propose', 'send'] as const) {
      const { code, message } = await refusal(configureCommand(context, config, mode));
      expect([mode, code]).to.deep.equal([mode, 'BAD_ARGUMENT']);
      expect(message).to.match(told);
    }
    expect(await world.chain.signers[0]!.getNonce(), 'nothing is sent').to.equal(nonce);
  };
  const about = (account: string) => (log: Log) => log.topics[1] !== zeroPadValue(account, 32).toLowerCase();

  it('end with the configuration where the endpoint has all of them', async () => {
    await configureCommand(await world.context(), without(), 'send');
    expect(await curvePosters()).to.deep.equal([false, true]);
  });

  it('are not read where it has no event at all, or lacks those of a contract', async () => {
    const none = await behind(() => false);
    await everyMode(none, without(), /--rpc: the endpoint has no event of custodian 0x\w{40} from block \d+ on/);
    const { orderSettler } = world.record().contracts;
    const some = await behind((_, { address }) => address !== orderSettler);
    await everyMode(some, without(), /no event of orderSettler/);
    const { code } = await refusal(statusCommand(none));
    expect(code).to.equal('BAD_ARGUMENT');
    expect(world.printed().join('\n')).not.to.contain('curve posters');
  });

  it('are not read where it has pruned the blocks of the deployment', async () => {
    const head = await world.chain.provider.getBlockNumber();
    await everyMode(await behind(({ blockNumber }) => blockNumber >= head), without(), /keeps all events/);
  });

  it('are not read where it hides those of an account that the record knows to have one', async () => {
    const hiding = await behind(about(stolen));
    await everyMode(hiding, without(), new RegExp(`no event by which ${stolen} became curve poster`));
    expect((await refusal(statusCommand(hiding))).code).to.equal('BAD_ARGUMENT');
    expect(await curvePosters()).to.deep.equal([true, false]);
  });

  it('are not read where it hides those of an account of the configuration, and the record is older', async () => {
    const { rights: _, ...older } = world.record();
    world.restoreFiles(new Map([...files, ['8453.json', JSON.stringify(older)]]));
    await everyMode(await behind(about(stolen)), world.config(), new RegExp(`no event by which ${stolen} became`));
  });

  it('are known by the record, of every kind, until they end', async () => {
    const all = (config: DeployConfig) => {
      const { curvePosters: curve, claimPosters, executors, takerFees } = config;
      return { curvePosters: curve, claimPosters, executors, targets: [], takers: takerFees.map(({ taker }) => taker) };
    };
    expect(world.record().rights).to.deep.equal(all(world.config()));
    for (const [i, account] of Object.values(all(world.config())).flat().entries())
      expect([i, (await refusal(statusCommand(await behind(about(account))))).code]).to.deep.equal([i, 'BAD_ARGUMENT']);
    await configureCommand(await world.context(), without(), 'send');
    expect(world.record().rights).to.deep.equal(all(without()));
    // What an earlier chain with these files had is not in the way.
    await world.chain.provider.send('evm_revert', [snapshot]);
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
    await statusCommand(await world.context());
  });

  it('are not read where the endpoint is several nodes, and a later answer lacks them', async () => {
    let answers = 0;
    const turn = (log: Log): boolean => about(stolen)(log) || (answers += 1) === 1;
    const config = without();
    const { code, message } = await refusal(configureCommand(await behind(turn), config, 'send'));
    expect(code).to.equal('BAD_ARGUMENT');
    expect(message).to.contain(`no event by which ${stolen} became curve poster`);
  });

  it('are recorded, although the endpoint does not have their events yet after they were given', async () => {
    const head = await world.chain.provider.getBlockNumber();
    await configureCommand(await behind(({ blockNumber }) => blockNumber <= head), without(), 'send');
    expect(world.record().rights!.curvePosters).to.deep.equal([fresh]);
  });

  it('are proposed together with listings that name the tokens', async () => {
    const { tokens, markets } = world.config();
    const later = await new MintableToken__factory(world.chain.signers[9]).deploy('Later', 'LATER', 6);
    const address = await (await later.waitForDeployment()).getAddress();
    const config = world.config({
      tokens: [...tokens, { symbol: 'LATER', address, decimals: 6 }],
      markets: [...markets, { pair: 'WETH-LATER', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
    });
    const actions = await configureCommand(await world.context(), config, 'propose');
    const { description } = proposalOf('test', actions, { chainId: 8453, owner: '0x', createdAtMs: 0 }).meta;
    expect(description.split('\n')[0]).to.equal(
      `1. curveBook: + market WETH-LATER: tick 0.01, lot 0.0001, longest TTL 60 s, base ${await world.base.getAddress()}, quote ${address}`,
    );
  });

  it('are read as used sequence numbers are, which must not look unused', async () => {
    const curveBook = connectContracts(addressesOf(world.record()), world.chain.provider);
    for (const seq of [1, 2, 3]) await postCurve(curveBook, world.chain.signers[1]!, seq, 0);
    const giveBack = (context: Context) =>
      setSeqCommand(context, { pair: 'WETH-USDC', seq: 0n, mostUsed: 2 }, 'dry-run');
    expect((await refusal(giveBack(await world.context()))).message).to.contain('3 of the');
    const { code, message } = await refusal(giveBack(await behind(() => false)));
    expect(code).to.equal('BAD_ARGUMENT');
    expect(message).to.contain('no event of curveBook');
  });
});
