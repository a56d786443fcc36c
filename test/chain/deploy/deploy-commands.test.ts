import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ContractFactory, keccak256, type Signer } from 'ethers';
import { encodePost, type FullPost } from '../../../core/curve/post.js';
import type { Hex } from '../../../core/types.js';
import { proposalOf, type Action } from '../../../deploy/actions.js';
import type { Build } from '../../../deploy/build.js';
import {
  acceptCommand,
  configureCommand,
  setSeqCommand,
  statusCommand,
  transferCommand,
} from '../../../deploy/commands.js';
import { parseConfig } from '../../../deploy/config.js';
import { CONTRACT_NAMES, connectContracts, ownershipOf } from '../../../deploy/contracts.js';
import { deployCommand, deployDryRun } from '../../../deploy/install.js';
import { addressesOf } from '../../../deploy/upgrade/upgrade.js';
import { MintableToken__factory } from '../../../typechain-types/factories/mocks/MintableToken__factory.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../../support/contracts/owner.js';
import { buildSuccessors } from '../../support/contracts/successors.js';

describe('deployment commands', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let owner: Signer;

  beforeEach(async () => {
    world = await startOwnerWorld();
    owner = world.chain.signers[0]!;
  });
  afterEach(() => world.close());

  const address = (index: number): Promise<string> => world.chain.signers[index]!.getAddress();
  const contracts = () => connectContracts(addressesOf(world.record()), world.chain.provider);

  it('predict every address, send nothing in a dry run, and then deploy just that, once', async () => {
    const plan = await deployDryRun(await world.context(), world.config());
    expect(await owner.getNonce()).to.equal(0);
    expect(existsSync(join(world.folder, '8453.json'))).to.equal(false);
    expect(existsSync(join(world.folder, '8453.pending.json'))).to.equal(false);

    const foretold = world.printed();
    const record = await deployCommand(await world.context(), world.config());
    expect(record.contracts).to.include({ ...plan!.addresses, ...plan!.periphery });
    for (const { name, address } of plan!.steps) {
      const codeHash = keccak256(await world.chain.provider.getCode(address));
      expect(foretold.find((line) => line.startsWith(`${name} ${address}: `))).to.contain(`code hash ${codeHash}`);
    }
    expect(record.implementations.curveBook.address).to.equal(plan!.implementations.curveBook);
    expect(record.deploymentId).to.match(/^[0-9a-f]{16}$/);
    expect(record.commit).to.equal('test');
    const nonce = await owner.getNonce();
    expect(nonce).to.equal(plan!.steps.length);

    const before = world.file('8453.json');
    await deployCommand(await world.context(), world.config());
    expect(await owner.getNonce(), 'a second run sends nothing').to.equal(nonce);
    expect(world.file('8453.json')).to.equal(before);
  });

  it('give sequence numbers of a market back, as the owner, and never forward', async () => {
    await deployCommand(await world.context(), world.config());
    await configureCommand(await world.context(), world.config(), 'send');
    const { pair } = world.record().markets[0]!;
    const { curveBook } = contracts();
    const events = async () => (await curveBook.queryFilter(curveBook.filters['SeqSet(bytes32,uint32)']())).length;
    const setSeq = async (name: string, seq: bigint, mode: 'send' | 'dry-run' = 'send') =>
      setSeqCommand(await world.context(), { pair: name, seq }, mode);
    const actions = await setSeq(pair, 0n, 'dry-run');
    expect(actions.map(({ summary }) => summary)).to.deep.equal([
      `~ sequence number of ${pair} 0 -> 0; its curve ends`,
    ]);
    expect(await events()).to.equal(0);
    await setSeq(pair, 0n);
    expect(await events()).to.equal(1);
    expect(await refusal(setSeq('DOGE-USDC', 0n))).to.include({ code: 'BAD_ARGUMENT' });
    expect((await refusal(setSeq(pair, 1n))).message).to.match(/is at 0, and numbers are only given back/);
    const stranger = await world.context({ signer: world.chain.signers[3]! });
    expect(await refusal(setSeqCommand(stranger, { pair, seq: 0n }, 'send'))).to.include({ code: 'NOT_OWNER' });
    expect(await events()).to.equal(1);
  });

  it('give no numbers back above which nearly all were used, so that the poster always has one', async () => {
    await deployCommand(await world.context(), world.config());
    await configureCommand(await world.context(), world.config(), 'send');
    const { pair } = world.record().markets[0]!;
    const { curveBook } = contracts();
    const id = await curveBook.marketAt(0n);
    const own = curveBook.connect(owner);
    await (await own.setPoster(await owner.getAddress(), true)).wait();
    for (const seq of [1, 2, 3, 65_000]) {
      const { number, hash, timestamp } = (await world.chain.provider.getBlock('latest'))!;
      const record: FullPost = {
        ...{ kind: 'full', marketId: id as Hex, seq, deadlineSec: timestamp + 30, snapAskUnits: 0n, snapBidUnits: 0n },
        ...{ exactAskKnots: 0, exactBidKnots: 0, askWords: [], bidWords: [] },
      };
      await (await own.post(encodePost({ number, hash: hash as Hex }, [record]))).wait();
    }
    const give = async (seq: bigint, mostUsed?: number) =>
      setSeqCommand(await world.context(), { pair, seq, ...(mostUsed === undefined ? {} : { mostUsed }) }, 'dry-run');
    const refused = await refusal(give(0n, 3));
    expect(refused).to.include({ code: 'BAD_ARGUMENT' });
    expect(refused.message).to.contain(`4 of the 65536 numbers above 0 were used`);
    expect(await give(1n, 3), 'three are left').to.have.length(1);
    expect(await give(0n)).to.have.length(1);
  });

  it('go on where a deployment was interrupted', async () => {
    const plan = await deployDryRun(await world.context(), world.config());
    for (const after of [2, 5]) {
      const signer = failingAfter(owner, after - (await owner.getNonce()));
      const failure = await deployCommand(await world.context({ signer }), world.config()).catch(String);
      expect(failure).to.contain('power cut');
      expect(existsSync(join(world.folder, '8453.json')), 'no record of half a deployment').to.equal(false);
    }
    const record = await deployCommand(await world.context(), world.config());
    expect(record.contracts).to.include(plan!.addresses);
    expect(await owner.getNonce()).to.equal(plan!.steps.length);
    expect(existsSync(join(world.folder, '8453.pending.json'))).to.equal(false);
  });

  it('stop when the key was used for something else in between', async () => {
    await deployCommand(await world.context({ signer: failingAfter(owner, 3) }), world.config()).catch(() => undefined);
    await (await owner.sendTransaction({ to: await address(6), value: 1n })).wait();
    const { code, message } = await refusal(deployCommand(await world.context(), world.config()));
    expect(code).to.equal('INTERRUPTED');
    expect(message).to.match(
      /^run it again first.* Only if it stops at the same step again: .*was used for something else/,
    );
    expect(message).to.contain(`To start over, remove ${join(world.folder, '8453.pending.json')} first`);
    const other = world.chain.signers[6]!;
    expect((await refusal(deployCommand(await world.context({ signer: other }), world.config()))).code).to.equal(
      'INTERRUPTED',
    );
  });

  it('let no token of a market be an external target, whichever of the two comes first', async () => {
    await deployCommand(await world.context(), world.config());
    const config = world.config();
    await configureCommand(await world.context(), config, 'send');
    const { tokens, markets, targets } = config;
    const later = await new MintableToken__factory(owner).deploy('Later', 'LATER', 6);
    await later.waitForDeployment();
    const venue = await later.getAddress();
    const listing = (as: readonly string[]) =>
      world.config({
        tokens: [...tokens, { symbol: 'LATER', address: venue, decimals: 6 }],
        markets: [...markets, { pair: 'WETH-LATER', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
        targets: [...(targets ?? []), ...as],
      });
    const everyMode = async (of: typeof config, pattern: RegExp) => {
      const nonce = await owner.getNonce();
      for (const mode of ['dry-run', 'propose', 'send'] as const) {
        const { code, message } = await refusal(configureCommand(await world.context(), of, mode));
        expect([mode, code]).to.deep.equal([mode, 'BAD_CONFIG']);
        expect(message).to.match(pattern);
      }
      expect(await owner.getNonce(), 'nothing is sent').to.equal(nonce);
    };
    // A listed token that is to become a target, and the contract's own word on it.
    const { address: listed, symbol } = tokens[1]!;
    await everyMode(
      world.config({ targets: [...(targets ?? []), listed] }),
      new RegExp(`${symbol} is an external target`),
    );
    const { orderSettler } = contracts();
    const direct = orderSettler.connect(owner).setTarget.staticCall(listed, true);
    expect(
      await direct.then(
        () => 'taken',
        (error: { revert?: { name: string } }) => error.revert?.name,
      ),
    ).to.equal('ForbiddenTarget');
    // A target that is to be listed.
    await configureCommand(await world.context(), world.config({ targets: [...(targets ?? []), venue] }), 'send');
    expect(await orderSettler.isTarget(venue)).to.equal(true);
    await everyMode(listing([venue]), /WETH-LATER: LATER is an external target, and can't be traded/);
    // Once it is no target any more it may be, in one go: the right ends before the listing.
    const done = await configureCommand(await world.context(), listing([]), 'send');
    expect(done.map(({ summary }) => summary.split(' ').slice(0, 3).join(' '))).to.deep.equal([
      '- external target',
      '+ market WETH-LATER:',
      '~ taker fees',
    ]);
    expect(await orderSettler.isTarget(venue)).to.equal(false);
  });

  it('notice code that is not what was recorded', async () => {
    const { contracts: at } = await deployCommand(await world.context(), world.config());
    await world.chain.provider.send('hardhat_setCode', [at.lens, '0x6001']);
    const { code, message } = await refusal(statusCommand(await world.context()));
    expect(code).to.equal('CODE_MISMATCH');
    expect(message).to.contain('lens');
  });

  it('configure the difference, as the owner, and nothing when there is none', async () => {
    await deployCommand(await world.context(), world.config());
    const config = world.config();
    const planned = await configureCommand(await world.context(), config, 'dry-run');
    const nonce = await owner.getNonce();
    expect(planned.map(({ summary }) => summary.slice(0, 1)).join('')).to.match(/^[-~+]+$/);
    const done = await configureCommand(await world.context(), config, 'send');
    expect(done.map(({ data }) => data)).to.deep.equal(planned.map(({ data }) => data));
    expect(await owner.getNonce()).to.equal(nonce + done.length);
    expect(world.record().markets.map(({ pair }) => pair)).to.deep.equal(['WETH-USDC']);
    const { curveBook, custodian, entrypoint, orderSettler } = contracts();
    expect(await curveBook.isPoster(await address(1))).to.equal(true);
    expect(await custodian.isPoster(await address(2))).to.equal(true);
    expect(await custodian.withdrawDelay()).to.equal(600n);
    expect(await orderSettler.isExecutor(await address(3))).to.equal(true);
    expect(await entrypoint.takerFee(await address(5))).to.equal(250n);
    const market = await curveBook.marketAt(0);
    expect((await curveBook.marketState(market)).chargesFees, 'a rate is charged').to.equal(true);

    expect(await configureCommand(await world.context(), config, 'send')).to.deep.equal([]);
    expect(await owner.getNonce(), 'a second run sends nothing').to.equal(nonce + done.length);

    const changed = world.config({
      curvePosters: [await address(6)],
      takerFees: [],
      withdrawDelaySec: 0,
      markets: [{ ...config.markets[0], maxTtlSec: 30 }],
    });
    await configureCommand(await world.context(), changed, 'send');
    expect(await curveBook.isPoster(await address(1)), 'no longer named').to.equal(false);
    expect(await curveBook.isPoster(await address(6))).to.equal(true);
    expect(await entrypoint.takerFee(await address(5))).to.equal(0n);
    expect((await curveBook.marketState(market)).chargesFees, 'nobody pays any more').to.equal(false);
    expect(await custodian.withdrawDelay()).to.equal(0n);
    expect((await curveBook.marketState(market)).maxTtlSec).to.equal(30n);
  });

  it('refuse what no call can do, or who may not, before anything is sent', async () => {
    expect((await refusal(statusCommand(await world.context()))).code).to.equal('NOT_DEPLOYED');
    await deployCommand(await world.context(), world.config());
    await configureCommand(await world.context(), world.config(), 'send');
    const stranger = world.chain.signers[6]!;
    const attempt = async (changes: Record<string, unknown>, signer = owner) =>
      refusal(configureCommand(await world.context({ signer }), world.config(changes), 'send'));
    const grid = [{ pair: 'WETH-USDC', tickSize: '0.1', lotSize: '0.0001', maxTtlSec: 60 }];
    const turned = [{ pair: 'USDC-WETH', tickSize: '0.0000000001', lotSize: '1', maxTtlSec: 60 }];
    expect(await attempt({ markets: grid })).to.include({ code: 'BAD_CONFIG' });
    expect((await attempt({ markets: turned })).message).to.contain('the other way round');
    expect((await attempt({ markets: [] })).message).to.contain('listed for good');
    const { adapter } = world.record().contracts;
    expect((await attempt({ takerFees: [{ taker: adapter, ratePpm: 1 }] })).message).to.contain('stays zero');
    expect((await attempt({ chainId: 1 })).code).to.equal('WRONG_CHAIN');
    const nonce = await stranger.getNonce();
    expect((await attempt({ withdrawDelaySec: 1 }, stranger)).code).to.equal('NOT_OWNER');
    expect(await stranger.getNonce()).to.equal(nonce);
  });

  it('name every mistake of a configuration at once', () => {
    const config = { ...world.config(), owner: '0x1', withdrawDelaySec: -1, executers: [] };
    const both = { ...world.config(), claimPosters: world.config().curvePosters };
    expect(() => parseConfig(config)).to.throw(/owner.*\n.*withdrawDelaySec.*\n.*executers/s);
    expect(() => parseConfig(both)).to.throw(/must not both price and pay/);
    // 600 s in milliseconds are a week; in microseconds, 19 years.
    expect(() => parseConfig({ ...world.config(), withdrawDelaySec: 600_000_000 })).to.throw(
      /withdrawDelaySec: Too big/,
    );
    expect(parseConfig({ ...world.config(), withdrawDelaySec: 2_592_000 }).withdrawDelaySec).to.equal(2_592_000);
    const tokens = world.config().tokens.map((token) => (token.symbol === 'USDC' ? { ...token, decimals: 2 } : token));
    const market = { ...world.config().markets[0]!, lotSize: '1' };
    expect(() => parseConfig({ ...world.config(), tokens, markets: [market] })).to.throw(
      /markets: WETH-USDC: USDC has 2 decimals.* 0\.01 USDC with 2 makers, 0\.09 USDC with 10.*"coarseQuote": true/,
    );
    const accepted = parseConfig({ ...world.config(), tokens, markets: [{ ...market, coarseQuote: true }] });
    expect(accepted.markets[0]).to.include({ pair: 'WETH-USDC', coarseQuote: true });
  });

  it('refuse markets that no order could quote, or that are one, and say what odd tokens are called', async () => {
    await deployCommand(await world.context(), world.config());
    const { tokens, markets } = world.config();
    const [market] = markets;
    const factory = new MintableToken__factory(world.chain.signers[9]);
    const odd: { symbol: string; address: string; decimals: number }[] = [];
    for (const [i, [symbol, decimals]] of (
      [
        ['USDC', 6],
        ['USD₮0', 6],
        ['FINE', 36],
      ] as const
    ).entries()) {
      const token = await (await factory.deploy('odd', symbol, decimals)).waitForDeployment();
      odd.push({ symbol: `ODD${i}`, address: await token.getAddress(), decimals });
    }
    const listing = (pair: string, tickSize: string, lotSize: string) => ({ ...market, pair, tickSize, lotSize });
    const attempt = async (...more: object[]) => {
      const config = { tokens: [...tokens, ...odd], markets: [market, ...more] };
      return refusal((async () => configureCommand(await world.context(), world.config(config), 'dry-run'))());
    };
    const refused: [object[], RegExp][] = [
      [[listing('WETH-ODD2', '0.000000001', '1')], /WETH-ODD2: a tick of 0.000000001 is finer than the 8 decimals/],
      [[listing('WETH-ODD2', '1000', '0.000000001')], /WETH-ODD2: a lot of 0.000000001 is finer than the 8 decimals/],
      [
        [listing('FINE-USDC', '1000', '0.00000001'), listing('ODD2-USDC', '1000', '0.00000001')],
        /FINE-USDC: no token FINE\nODD2-USDC: a lot must be a power of ten/,
      ],
      [[listing('WETH-ODD0', '1', '0')], /WETH-ODD0: a lot must be/],
      [[listing('ODD0-USDC', '1', '0.0000001')], /ODD0-USDC: 0.0000001 has more than 6 decimals/],
      [[listing('WETH-ODD0', '1', '1'), listing('ODD0-WETH', '1', '1')], /WETH-ODD0 and ODD0-WETH are one market/],
    ];
    for (const [more, reason] of refused) {
      const { code, message } = await attempt(...more);
      expect(code, message).to.equal('BAD_CONFIG');
      expect(message).to.match(reason);
    }
    world.printed();
    expect(await attempt(listing('WETH-ODD0', '1', '1'), listing('WETH-ODD1', '1', '1'))).to.include({ code: '' });
    const said = world.printed().join('\n');
    expect(said).to.contain(
      `WETH-ODD0 is called WETH-USDC.${odd[0]!.address.slice(2, 10).toLowerCase()} by the platform`,
    );
    expect(said).to.contain(`WETH-ODD1 is called WETH-${odd[1]!.address.toLowerCase()} by the platform`);
  });

  describe('of a multisig', () => {
    let build: Build;
    before(async () => {
      build = await buildSuccessors();
    });

    it('pass the ownership on in two steps, and prepare every later call for it', async () => {
      await deployCommand(await world.context(), world.config());
      const { interface: abi, bytecode } = build.contract('Wallet');
      const wallet = await new ContractFactory(abi, bytecode, world.chain.signers[6]).deploy();
      const walletAddress = await (await wallet.waitForDeployment()).getAddress();
      const execute = async (actions: readonly Action[]): Promise<void> => {
        const proposal = proposalOf('test', actions, { chainId: 8453, owner: walletAddress, createdAtMs: 0 });
        for (const { to, value, data } of proposal.transactions) {
          expect(value).to.equal('0');
          await (await wallet.getFunction('execute')(to, data)).wait();
        }
      };
      const owners = async () => {
        const all = CONTRACT_NAMES.map((name) => ownershipOf(world.chain.provider, world.record().contracts[name]));
        return (await Promise.all(all)).map(({ owner: one, pendingOwner }) => [one, pendingOwner]);
      };

      const early = await refusal(acceptCommand(await world.context(), walletAddress, 'propose'));
      expect(early.code, 'nothing was offered yet').to.equal('NOT_OWNER');
      await transferCommand(await world.context(), walletAddress, 'send');
      const first = await address(0);
      expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => [first, walletAddress]));
      expect(await transferCommand(await world.context(), walletAddress, 'send'), 'offered already').to.deep.equal([]);
      await execute(await acceptCommand(await world.context(), walletAddress, 'propose'));
      expect(await owners()).to.deep.equal(CONTRACT_NAMES.map(() => [walletAddress, null]));

      const refused = await refusal(configureCommand(await world.context(), world.config(), 'send'));
      expect(refused.code).to.equal('NOT_OWNER');
      expect(refused.message).to.contain('--propose');
      await execute(await configureCommand(await world.context(), world.config(), 'propose'));
      expect(await configureCommand(await world.context(), world.config(), 'propose'), 'done').to.deep.equal([]);
      expect(world.record().markets, 'known once the calls are mined').to.have.length(1);
      world.printed();
      await statusCommand(await world.context());
      expect(world.printed().join('\n')).to.contain(`owner ${walletAddress}`).and.to.contain('WETH-USDC');
    });
  });
});

/** Sends `count` transactions and then fails. */
function failingAfter(signer: Signer, count: number): Signer {
  let left = count;
  return new Proxy(signer, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      if (property !== 'sendTransaction') return (value as (...args: unknown[]) => unknown).bind(target);
      return (...args: unknown[]) => {
        if (left === 0) throw new Error('power cut');
        left -= 1;
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}
