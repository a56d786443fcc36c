import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { AbiCoder, Contract, ContractFactory, Interface, concat, isError, parseUnits, type Signer } from 'ethers';
import type { Action } from '../../deploy/actions.js';
import { readBuild, type Build } from '../../deploy/build.js';
import { acceptCommand, configureCommand, statusCommand, transferCommand } from '../../deploy/commands.js';
import { currentRecord } from '../../deploy/context.js';
import {
  PROXIES,
  PROXY_NAMES,
  connectContracts,
  implementationOf,
  type Contracts,
  type ProxyName,
} from '../../deploy/contracts.js';
import { deployCommand } from '../../deploy/install.js';
import { deploymentFiles } from '../../deploy/record.js';
import { rollbackCommand } from '../../deploy/upgrade/rollback.js';
import { addressesOf, upgradeCommand, type UpgradeOptions } from '../../deploy/upgrade/upgrade.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { CurveLens__factory } from '../../typechain-types/factories/periphery/CurveLens__factory.js';
import { PropAmmAdapter__factory } from '../../typechain-types/factories/periphery/PropAmmAdapter__factory.js';
import { postCurve, postFirstCurve } from '../support/contracts/live-curve.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';
import { buildSuccessors } from '../support/contracts/successors.js';

const NOTE = new Interface(['function note() view returns (uint256)', 'function initializeV2(uint256)']);
const SOURCES = { custodian: 'CustodianV2', curveBook: 'CurveBookV2', entrypoint: 'EntrypointV2' };
const CALLS = Object.fromEntries(
  PROXY_NAMES.map((name, i) => [name, NOTE.encodeFunctionData('initializeV2', [100 + i])]),
);
/** Name and first value of the error that a contract refused a call with. */
function errorOf(error: unknown): unknown[] {
  if (!isError(error, 'CALL_EXCEPTION')) throw error;
  return [error.revert?.name, error.revert?.args[0]];
}

const CLAIM_UNITS = parseUnits('2', 18);

describe('upgrades', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let successors: Build;
  let at: Contracts;
  let snapshot: string;
  let snapshotSec: number;
  let files: Map<string, string>;

  before(async () => {
    successors = await buildSuccessors();
    world = await startOwnerWorld();
    const context = await world.context();
    await deployCommand(context, world.config());
    await configureCommand(context, world.config(), 'send');
    at = connectContracts(addressesOf(world.record()), world.chain.provider);
    await tradeOnALiveCurve();
    files = world.saveFiles();
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
    snapshotSec = (await world.chain.provider.getBlock('latest'))!.timestamp;
  });
  after(() => world.close());
  /** Every test begins with the first version, and at the same time: a chain that goes back keeps its clock, and the curve would die. */
  afterEach(async () => {
    await world.chain.provider.send('evm_revert', [snapshot]);
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
    await world.chain.provider.send('evm_setNextBlockTimestamp', [snapshotSec + 1]);
    world.restoreFiles(files);
  });

  const signer = (index: number): Signer => world.chain.signers[index]!;
  const addressOf = (index: number): Promise<string> => signer(index).getAddress();
  const [POSTER, CLAIM_POSTER, EXECUTOR, MAKER, TAKER] = [1, 2, 3, 4, 5];

  /** A claim, a live curve, and a fill on either side of it. */
  async function tradeOnALiveCurve(): Promise<void> {
    const { base, quote, chain } = world;
    const issuer = chain.signers[9]!;
    for (const token of [base, quote]) {
      for (const [holder, spender] of [
        [MAKER, at.custodian],
        [TAKER, at.entrypoint],
      ] as const) {
        await (await token.connect(issuer).mint(await addressOf(holder), parseUnits('1000000', 18))).wait();
        await (await token.connect(signer(holder)).approve(spender, parseUnits('1000000', 18))).wait();
      }
      await (await at.custodian.connect(signer(MAKER)).deposit(token, parseUnits('1000', 18))).wait();
    }
    await (
      await at.custodian.connect(signer(CLAIM_POSTER)).settleWithdraw(await addressOf(MAKER), base, CLAIM_UNITS, 0)
    ).wait();
    await postFirstCurve(at, signer(POSTER));
    await swap(quote, base, parseUnits('1000', 6));
    await swap(base, quote, parseUnits('0.5', 18));
  }

  async function swap(tokenIn: OwnerWorld['base'], tokenOut: OwnerWorld['base'], amountIn: bigint): Promise<void> {
    const taker = await addressOf(TAKER);
    const deadline = 2n ** 40n;
    await (await at.entrypoint.connect(signer(TAKER)).swap(tokenIn, tokenOut, amountIn, 0, taker, deadline)).wait();
  }

  /** Everything that anybody can see of the platform. */
  async function visible() {
    const { custodian, curveBook, entrypoint, orderSettler } = at;
    const { base, quote } = world;
    const lens = CurveLens__factory.connect(world.record().contracts.lens, world.chain.provider);
    const adapter = PropAmmAdapter__factory.connect(world.record().contracts.adapter, world.chain.provider);
    const market = await curveBook.marketAt(0);
    const [maker, taker] = [await addressOf(MAKER), await addressOf(TAKER)];
    const amounts = [1_000_000n, parseUnits('50', 6), parseUnits('1500', 6)];
    const quotes = amounts.map((amount) => entrypoint.quoteFor(taker, quote, base, amount));
    return [
      [...(await curveBook.marketState(market))],
      [...(await curveBook.curveWords(market))],
      await curveBook.marketCount(),
      await curveBook.isPoster(await addressOf(POSTER)),
      [...(await custodian.claim(maker, base))],
      await custodian.claimBasis(maker, base),
      await custodian.totalClaims(base),
      await custodian.availableLiquidity(base),
      await custodian.withdrawDelay(),
      await custodian.isPoster(await addressOf(CLAIM_POSTER)),
      await entrypoint.takerFee(taker),
      await Promise.all(quotes),
      await orderSettler.isExecutor(await addressOf(EXECUTOR)),
      [...(await lens.levels(quote, base)).levels].map((level) => [...level]),
      await adapter.isActive(base, quote),
      await adapter.quote(quote, base, amounts[1]!),
      ...(await Promise.all(PROXY_NAMES.map((name) => at[name].owner()))),
    ];
  }

  const notes = () =>
    Promise.all(
      PROXY_NAMES.map(async (name) => {
        const noted = new Contract(await at[name].getAddress(), NOTE, world.chain.provider);
        return (await noted.getFunction('note').staticCall()) as bigint;
      }),
    );
  const running = () =>
    Promise.all(PROXY_NAMES.map((name) => implementationOf(world.chain.provider, world.record().contracts[name])));
  const upgrade = async (options: Partial<UpgradeOptions>, by = 0, build = successors) =>
    upgradeCommand(await world.context({ signer: signer(by), build }), {
      mode: 'send',
      sources: SOURCES,
      calls: CALLS,
      ...options,
    });

  it('of one version to itself are none', async () => {
    const actions = await upgradeCommand(await world.context({ build: readBuild() }), { mode: 'send' });
    expect(actions).to.deep.equal([]);
    expect(world.printed().filter((line) => line.includes('the sources build what it runs'))).to.have.length(3);
  });

  it('say in a dry run what would change, and change nothing', async () => {
    const [nonce, before, files] = [await signer(0).getNonce(), await running(), world.file('8453.json')];
    world.printed();
    const actions = await upgrade({ mode: 'dry-run' });
    const lines = world.printed().join('\n');
    expect(actions).to.have.length(3);
    const { implementations } = world.record();
    for (const name of PROXY_NAMES) {
      expect(lines).to.contain(`${PROXIES[name]} of test -> ${SOURCES[name]} of test`);
      expect(lines).to.contain(`code hash ${implementations[name].codeHash} -> 0x`);
      expect(lines).to.contain(`then calls ${CALLS[name]}`);
    }
    expect(lines).to.contain('immutable ENTRYPOINT stays');
    expect(lines).to.contain('storage + erc7201:curvebook.storage.Noted slot 0 offset 0: uint256 note');
    expect(lines).not.to.contain('storage - ');
    expect([await signer(0).getNonce(), await running(), world.file('8453.json')]).to.deep.equal([
      nonce,
      before,
      files,
    ]);
  });

  it('carry claims, the live curve, counters, posters and fees to a second version of every contract and back', async () => {
    const [before, first] = [await visible(), await running()];
    await upgrade({});
    expect(await visible()).to.deep.equal(before);
    expect(await notes()).to.deep.equal([100n, 101n, 102n]);
    const second = await running();
    for (const [i, address] of second.entries()) expect(address).not.to.equal(first[i]);
    expect(await upgrade({}), 'once is enough').to.deep.equal([]);

    await swap(world.quote, world.base, parseUnits('100', 6));
    const traded = await visible();
    expect(traded).not.to.deep.equal(before);
    await rollbackCommand(await world.context(), PROXY_NAMES, 'send');
    expect(await running()).to.deep.equal(first);
    expect(await visible()).to.deep.equal(traded);
    await swap(world.base, world.quote, parseUnits('0.25', 18));

    const nonce = await signer(0).getNonce();
    await upgrade({ calls: {} });
    expect(await running(), 'what is deployed serves again').to.deep.equal(second);
    expect(await signer(0).getNonce()).to.equal(nonce + 3);
    expect(await notes(), 'what only the second version stores was kept').to.deep.equal([100n, 101n, 102n]);
    await rollbackCommand(await world.context(), PROXY_NAMES, 'send');
    expect(world.record().implementations.custodian.address).to.equal(first[0]);
  });

  it('from a book that raises nothing keep every row and curve, and records of either kind land before and after', async () => {
    const { curveBook, custodian, entrypoint, orderSettler } = at;
    // The creation code of a CurveBook of these sources without the raise, compiled with the settings of the project.
    const bytecode = readFileSync(new URL('../fixtures/upgrades/CurveBook.before-raises.hex', import.meta.url), 'utf8');
    const factory = new ContractFactory(curveBook.interface, bytecode.trim(), signer(0));
    const earlier = await (await factory.deploy(entrypoint, custodian, orderSettler)).waitForDeployment();
    const [, current] = await running();
    const upgradeTo = async (implementation: string): Promise<void> => {
      await (await curveBook.connect(signer(0)).upgradeToAndCall(implementation, '0x')).wait();
    };
    const volumesOf = async (seq: number, exactKnots: number): Promise<bigint[]> => {
      const { logs } = await postCurve(at, signer(POSTER), seq, exactKnots);
      const { args } = curveBook.interface.parseLog(logs[0]!)!;
      return [BigInt(args.snapAsk), BigInt(args.snapBid)];
    };

    const before = await visible();
    await upgradeTo(await earlier.getAddress());
    expect(await visible(), 'the storage is one and the same').to.deep.equal(before);
    expect(await volumesOf(2, 0), 'old records').to.deep.equal([0n, 0n]);
    expect(await volumesOf(3, 1), 'new records').to.deep.equal([0n, 0n]);
    await swap(world.quote, world.base, parseUnits('100', 6));

    const live = await visible();
    await upgradeTo(current!);
    expect(await visible()).to.deep.equal(live);
    await swap(world.base, world.quote, parseUnits('0.25', 18));

    const { cumAsk, cumBid } = await curveBook.marketState(await curveBook.marketAt(0));
    const segment = parseUnits('0.8', 18);
    expect(cumAsk < segment && cumBid < segment, 'all fills lie in the first segments').to.equal(true);
    expect(await volumesOf(4, 1), 'new records: exact there').to.deep.equal([0n, 0n]);
    const raised = [cumAsk - segment, cumBid - segment].map((units) => BigInt.asUintN(92, units));
    expect(await volumesOf(5, 0), 'old records raise').to.deep.equal(raised);
  });

  it('from contracts that refuse fewer recipients and any listing keep everything, and refuse from then on', async () => {
    const { curveBook, custodian, entrypoint, orderSettler } = at;
    const [owner, taker] = [signer(0), signer(TAKER)];
    // Creation code of the two contracts of these sources without what is tried here, compiled with the settings of the project.
    const deployEarlier = async (name: string, ...peers: Contracts[keyof Contracts][]): Promise<string> => {
      const code = readFileSync(new URL(`../fixtures/upgrades/${name}.before-refusals.hex`, import.meta.url), 'utf8');
      const addresses = await Promise.all(peers.map((peer) => peer.getAddress()));
      const args = AbiCoder.defaultAbiCoder().encode(
        addresses.map(() => 'address'),
        addresses,
      );
      const receipt = await (await owner.sendTransaction({ data: concat([code.trim(), args]) })).wait();
      return receipt!.contractAddress!;
    };
    const earlier = {
      custodian: await deployEarlier('Custodian', entrypoint, curveBook, orderSettler),
      curveBook: await deployEarlier('CurveBook', entrypoint, custodian),
    };
    const implementations = await running();
    const tradeTo = (recipient: string) => {
      const trade = entrypoint.connect(taker).swap;
      return trade.staticCall(world.quote, world.base, parseUnits('10', 6), 0, recipient, 2n ** 40n);
    };
    const { lens, adapter } = world.record().contracts;
    const ours = [lens, adapter, ...implementations];
    const token = await (await new MintableToken__factory(owner).deploy('Share', 'SHARE', 18)).waitForDeployment();
    await (await orderSettler.connect(owner).setTarget(token, true)).wait();
    const before = await visible();
    for (const name of ['custodian', 'curveBook'] as const) {
      await (await at[name].connect(owner).upgradeToAndCall(earlier[name], '0x')).wait();
    }
    expect(await visible(), 'the storage is one and the same').to.deep.equal(before);
    for (const recipient of ours) expect(await tradeTo(recipient), recipient).to.be.greaterThan(0n);
    const list = () => curveBook.connect(owner).listMarket.staticCall(token, world.quote, 14, 1, 0, 60);
    await list();

    for (const [i, name] of (['custodian', 'curveBook'] as const).entries()) {
      await (await at[name].connect(owner).upgradeToAndCall(implementations[i]!, '0x')).wait();
    }
    expect(await visible()).to.deep.equal(before);
    expect(await tradeTo(await taker.getAddress())).to.be.greaterThan(0n);
    for (const recipient of ours) {
      const error = await tradeTo(recipient).then(() => null, errorOf);
      expect(error).to.deep.equal(['ForbiddenRecipient', recipient]);
    }
    const error = await list().then(() => null, errorOf);
    expect(error).to.deep.equal(['ForbiddenToken', await token.getAddress()]);
  });

  it('of book and entrypoint change what the custodian refuses, if it is upgraded with them', async () => {
    const refused = () => Promise.all(all.map((address) => at.custodian.isForbiddenRecipient(address)));
    const first = await running();
    await upgrade({ only: ['curveBook', 'entrypoint'] });
    expect(world.printed().join('\n')).to.contain('custodian: it goes on paying to implementations');
    const [, book, entrypoint] = await running();
    const all = [book!, entrypoint!];
    expect(await refused(), 'the custodian is the first one').to.deep.equal([false, false]);
    await upgrade({ calls: {} });
    const [custodian, ...others] = await running();
    expect(others).to.deep.equal(all);
    expect(custodian).not.to.equal(first[0]);
    all.push(custodian!);
    expect(await refused()).to.deep.equal([true, true, true]);
    expect(await upgrade({ calls: {} }), 'once is enough').to.deep.equal([]);
  });

  it('of a multisig are deployed by anybody and called by it alone', async () => {
    const { interface: abi, bytecode } = successors.contract('Wallet');
    const wallet = await new ContractFactory(abi, bytecode, signer(6)).deploy();
    const owner = await (await wallet.waitForDeployment()).getAddress();
    const execute = async (actions: readonly Action[]): Promise<void> => {
      for (const { to, data } of actions) await (await wallet.getFunction('execute')(to, data)).wait();
    };
    await transferCommand(await world.context(), owner, 'send');
    await execute(await acceptCommand(await world.context(), owner, 'propose'));
    const [before, first] = [await visible(), await running()];

    expect((await refusal(upgrade({}, 6))).code).to.equal('NOT_OWNER');
    const actions = await upgrade({ mode: 'propose' }, 6);
    expect(await running(), 'nothing changed by a proposal').to.deep.equal(first);
    expect(Object.keys(world.record().proposed)).to.have.members(PROXY_NAMES);
    const nonce = await signer(6).getNonce();
    expect((await upgrade({ mode: 'propose' }, 6)).map(({ data }) => data)).to.deep.equal(
      actions.map(({ data }) => data),
    );
    expect(await signer(6).getNonce(), 'the same proposal deploys nothing again').to.equal(nonce);

    await execute(actions);
    expect(await visible()).to.deep.equal(before);
    expect(await upgrade({ mode: 'propose' }, 6), 'adopted').to.deep.equal([]);
    expect(world.record().proposed).to.deep.equal({});
    expect(world.record().previous.custodian).to.have.length(1);

    await execute(await rollbackCommand(await world.context({ signer: signer(6) }), ['curveBook'], 'propose'));
    const { implementations } = world.record();
    const expected = [implementations.custodian.address, first[1], implementations.entrypoint.address];
    expect(await running(), 'only one of them went back').to.deep.equal(expected);
  });

  it('proposed one after the other may be carried out in any order', async () => {
    const only: ProxyName[] = ['custodian'];
    const propose = (custodian: string) => upgrade({ mode: 'propose', only, sources: { custodian }, calls: {} });
    const carryOut = async ([action]: Action[]): Promise<void> =>
      void (await (await signer(0).sendTransaction({ to: action!.to, data: action!.data })).wait());
    const proposedNow = () => (world.record().proposed.custodian ?? []).map(({ address }) => address);
    const [second, third] = [await propose('CustodianV2'), await propose('CustodianV3')];
    const both = proposedNow();
    expect(both).to.have.length(2);
    await carryOut(second);
    world.printed();
    await statusCommand(await world.context());
    expect(world.record().implementations.custodian.address).to.equal(both[0]);
    expect(proposedNow(), 'the other one waits').to.deep.equal([both[1]]);
    expect(world.printed().join('\n')).to.contain(`custodian: ${both[1]} of test, code hash 0x`);
    await carryOut(third);
    await statusCommand(await world.context());
    expect(world.record().implementations.custodian).to.include({ contract: 'CustodianV3', address: both[1] });
    expect(proposedNow()).to.deep.equal([]);
  });

  it('of a record from before with a single proposal are read', async () => {
    await upgrade({ mode: 'propose', only: ['custodian'] });
    const record = world.record();
    const [one] = record.proposed.custodian!;
    world.restoreFiles(
      new Map([...world.saveFiles(), ['8453.json', JSON.stringify({ ...record, proposed: { custodian: one } })]]),
    );
    await currentRecord(await world.context());
    expect(deploymentFiles(world.folder, 8453).read()!.proposed.custodian).to.deep.equal([one]);
  });

  it('say in a dry run of the account that signs just what it then deploys', async () => {
    const by = 6;
    world.printed();
    await upgrade({ mode: 'dry-run' }, by);
    const foretold = world.printed().filter((line) => /^ {2}(implementation|code hash) /.test(line));
    await upgrade({ mode: 'propose' }, by);
    const { proposed } = world.record();
    for (const name of PROXY_NAMES) {
      const { address, codeHash } = proposed[name]![0]!;
      expect(
        foretold.some((line) => line.endsWith(`-> ${address}`)),
        name,
      ).to.equal(true);
      expect(
        foretold.some((line) => line.endsWith(`-> ${codeHash}`)),
        name,
      ).to.equal(true);
    }
  });

  for (const [contract, problem] of [
    ['CustodianBadLayout', 'withdrawDelaySec'],
    ['CustodianNoUpgrade', 'upgradeTo'],
  ] as const) {
    it(`to ${contract} are refused`, async () => {
      const nonce = await signer(0).getNonce();
      const sources = { custodian: contract };
      const only: ProxyName[] = ['custodian'];
      for (const mode of ['dry-run', 'propose', 'send'] as const) {
        const { code, message } = await refusal(upgrade({ mode, only, sources, calls: {} }));
        expect(code).to.equal('UNSAFE_UPGRADE');
        expect(message).to.contain(problem);
      }
      expect(await signer(0).getNonce()).to.equal(nonce);
    });
  }

  it('with a call that reverts are stopped before the owner sends them', async () => {
    const calls = { entrypoint: at.entrypoint.interface.encodeFunctionData('initialize', [await addressOf(6)]) };
    const { code, message } = await refusal(upgrade({ only: ['entrypoint'], calls }));
    expect(code).to.equal('CALL_REVERTS');
    expect(message).to.contain('entrypoint');
  });

  it('have nothing to go back to at first', async () => {
    const { code } = await refusal(rollbackCommand(await world.context(), ['custodian'], 'dry-run'));
    expect(code).to.equal('BAD_ARGUMENT');
  });
});
