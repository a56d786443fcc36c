/** What is measured of tokens: before they are listed, and afterwards. */
import { expect } from 'chai';
import { parseUnits } from 'ethers';
import type { Address, Market } from '../../core/types.js';
import { configureCommand } from '../../deploy/commands.js';
import type { RpcProvider } from '../../deploy/context.js';
import { deployCommand } from '../../deploy/install.js';
import { assertEvenTransfers } from '../../deploy/checks/token-check.js';
import { createTransferWatch } from '../../keepers/watcher/tokens/transfer-watch.js';
import { SwitchFeeToken__factory } from '../../typechain-types/factories/mocks/SwitchFeeToken__factory.js';
import type { SwitchFeeToken } from '../../typechain-types/index.js';
import { refusal, startOwnerWorld, type OwnerWorld } from '../support/contracts/owner.js';

const PPM_OF_2_PERCENT = 20_000n;

describe('tokens that move another amount than they are told to', function () {
  this.timeout(240_000);
  let world: OwnerWorld;
  let token: SwitchFeeToken;
  let custodian: string;
  let tokens: { symbol: string; address: string; decimals: number }[];
  const said: string[] = [];
  const nobody = '0x00000000000000000000000000000000000000d1';

  before(async () => {
    world = await startOwnerWorld();
    token = await new SwitchFeeToken__factory(world.chain.signers[9]).deploy(6);
    await token.waitForDeployment();
    custodian = (await deployCommand(await world.context(), world.config())).contracts.custodian;
    tokens = [{ symbol: 'SFT', address: await token.getAddress(), decimals: 6 }];
  });
  after(() => world?.close());

  const check = (provider: RpcProvider = world.chain.provider, holder?: string) =>
    assertEvenTransfers(provider, custodian, [{ ...tokens[0]!, holder }], (line) => void said.push(line));
  const codeOf = async (done: Promise<unknown>): Promise<string> => (await refusal(done)).code;
  const setFee = async (feePpm: bigint, onTop: boolean) => (await token.setFee(feePpm, onTop)).wait();

  it('say of a token that nobody has that nothing could be measured', async () => {
    await check();
    expect(said).to.have.length(1);
    expect(said[0]).to.match(/^SFT: nobody has any, so no transfer could be measured/);
  });

  it('are refused by what is taken or arrives, whoever holds them, and nothing is sent for it', async () => {
    for (const index of [4, 5]) {
      const holder = await world.chain.signers[index]!.getAddress();
      await (await token.mint(holder, parseUnits('50', 6))).wait();
    }
    const head = await world.chain.provider.getBlockNumber();
    await check();
    expect(await world.chain.provider.getBlockNumber()).to.equal(head);
    for (const [feePpm, onTop, told] of [
      [PPM_OF_2_PERCENT, false, /of a transfer of 1000000 units 1000000 were taken and 980000 arrived/],
      [PPM_OF_2_PERCENT, true, /of a transfer of 1000000 units 1020000 were taken and 1000000 arrived/],
      [100n, false, /1000000 were taken and 999900 arrived/],
    ] as const) {
      await setFee(feePpm, onTop);
      const { code, message } = await refusal(check());
      expect([code, message]).to.satisfy(([one]: [string]) => one === 'UNEVEN_TOKEN' && told.test(message));
    }
    await setFee(0n, false);
    await check();
    expect(said).to.have.length(1);
  });

  it('are not taken for even where nothing can be measured', async () => {
    const { provider } = world.chain;
    const send = (method: string, params: unknown[]): Promise<unknown> => provider.send(method, params);
    const without = (broken: (method: string, params: unknown[]) => unknown): RpcProvider =>
      ({
        send: async (method: string, params: unknown[]) =>
          (broken(method, params) as Promise<unknown>) ?? send(method, params),
      }) as unknown as RpcProvider;
    // A node that knows no third argument, one that refuses it, and one without the logs of the holders.
    const ignores = without((method, params) => (params.length === 3 ? send(method, params.slice(0, 2)) : undefined));
    const refuses = without((_, params) => (params.length === 3 ? Promise.reject(new Error('too many')) : undefined));
    const forgets = without((method) => (method === 'eth_getLogs' ? Promise.reject(new Error('range')) : undefined));
    for (const one of [ignores, refuses, forgets]) expect(await codeOf(check(one))).to.equal('UNMEASURED_TOKEN');
    expect(await codeOf(check(forgets, nobody))).to.equal('UNMEASURED_TOKEN');
    await check(forgets, await world.chain.signers[4]!.getAddress());
  });

  it('are not taken for tokens that nobody has where the endpoint does not tell the supply', async () => {
    const { provider } = world.chain;
    const answering = (supply: () => unknown): RpcProvider =>
      ({
        send: async (method: string, params: unknown[]) => {
          // Nothing can be measured: it knows no third argument and no logs.
          if (method === 'eth_getLogs') return [];
          const [call] = params as { data?: string }[];
          if (method === 'eth_call' && call?.data === '0x18160ddd') return supply();
          return provider.send(method, params.slice(0, 2)) as unknown;
        },
      }) as unknown as RpcProvider;
    const word = (hex: string): string => `0x${hex.padStart(64, '0')}`;
    const before = said.length;
    for (const supply of [
      () => Promise.reject(new Error('busy')),
      () => '0x',
      () => '0x0',
      () => null,
      () => word('0').slice(0, -2),
      () => word('1'),
    ])
      expect([String(supply), await codeOf(check(answering(supply)))]).to.deep.equal([
        String(supply),
        'UNMEASURED_TOKEN',
      ]);
    expect(said).to.have.length(before);
    await check(answering(() => word('0')));
    expect(said[before]).to.match(/^SFT: nobody has any/);
  });

  it('that say no symbol are listed only when the configuration says so', async () => {
    const address = tokens[0]!.address;
    const context = await world.context();
    const mute = new Proxy(context.provider, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== 'function') return value;
        const method = (value as (...args: unknown[]) => unknown).bind(target);
        if (name !== 'call') return method;
        return (tx: { to?: string; data?: string }) =>
          tx.to === address && tx.data === '0x95d89b41' ? Promise.resolve('0x') : method(tx);
      },
    });
    const listing = (noSymbol?: boolean) => {
      const { tokens: known, markets } = world.config();
      const raw = { symbol: 'SFT', address, decimals: 6, ...(noSymbol === undefined ? {} : { noSymbol }) };
      return world.config({
        tokens: [...known, raw],
        markets: [...markets, { pair: 'WETH-SFT', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
      });
    };
    const configure = (noSymbol?: boolean, provider = mute) =>
      configureCommand({ ...context, provider }, listing(noSymbol), 'dry-run');
    for (const said of [undefined, false]) {
      const { code, message } = await refusal(configure(said));
      expect(code).to.equal('BAD_CONFIG');
      expect(message).to.contain('does not say its symbol, and a listing is for good');
    }
    expect((await configure(true)).length).to.be.greaterThan(0);
    expect((await configure(undefined, context.provider)).length).to.be.greaterThan(0);
  });

  it('are refused by configure, but for those that are listed already', async () => {
    const { tokens: known, markets } = world.config();
    const config = world.config({
      tokens: [...known, ...tokens],
      markets: [...markets, { pair: 'WETH-SFT', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
    });
    await setFee(PPM_OF_2_PERCENT, false);
    for (const mode of ['dry-run', 'propose', 'send'] as const)
      expect(await codeOf(configureCommand(await world.context(), config, mode))).to.equal('UNEVEN_TOKEN');
    await setFee(0n, false);
    await configureCommand(await world.context(), config, 'send');
    await setFee(PPM_OF_2_PERCENT, false);
    expect(await configureCommand(await world.context(), config, 'send'), 'it is listed for good').to.deep.equal([]);
  });

  it('are seen by the watcher when the fee is switched on later', async () => {
    const { provider, signers } = world.chain;
    const warned: string[] = [];
    const logger = { warn: (fields: { taken: string; received: string }) => warned.push(fields.received) } as never;
    const address = tokens[0]!.address.toLowerCase() as Address;
    const quote = { address, symbol: 'SFT', decimals: 6 };
    const markets = [{ base: { ...quote, address: nobody as Address, symbol: 'GONE' }, quote }] as unknown as Market[];
    const rpc = { call: (method: string, params: unknown[] = []) => provider.send(method, params) as Promise<unknown> };
    const watch = createTransferWatch({ rpc, custodian: custodian as Address, markets, logger });
    const seen = async (): Promise<(boolean | null)[]> => (
      await watch.round(),
      watch.facts().map((one) => one.isUneven)
    );
    await setFee(0n, false);
    expect(await seen(), 'the vault has none').to.deep.equal([null, null]);
    await (await token.mint(custodian, parseUnits('3', 6))).wait();
    expect(await seen()).to.deep.equal([null, false]);
    await setFee(PPM_OF_2_PERCENT, false);
    expect(await seen()).to.deep.equal([null, true]);
    expect(await seen()).to.deep.equal([null, true]);
    expect(warned, 'once').to.deep.equal(['980000']);
    await setFee(PPM_OF_2_PERCENT, true);
    await (await token.connect(signers[9]).mint(custodian, 1n)).wait();
    expect(await seen()).to.deep.equal([null, true]);
    await setFee(0n, false);
    expect(await seen()).to.deep.equal([null, false]);
  });
});
