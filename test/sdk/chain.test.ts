/** Nothing is sent, and nothing signed that names a chain, unless the wallet is on the chain of the contracts that are trusted; and nothing once a signal ended it. */
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { createPublicClient, createWalletClient, custom } from 'viem';
import { fromEthers } from '../../sdk/src/ethers.js';
import { createMakerClient } from '../../sdk/src/maker.js';
import { createTakerClient } from '../../sdk/src/taker.js';
import { fromViem } from '../../sdk/src/viem.js';
import type { Signer } from '../../sdk/src/wallet.js';
import { addressOf, codeOf, world } from '../support/api/lying-server.js';
import { ACCOUNT, oneAccountChain, WALLETS } from './one-account-chain.js';

const grid = { asset: 10_000, base: 'WETH', quote: 'USDC', pair: 'WETH-USDC', tick_size: '0.01', lot_size: '0.0001' };
const swap = { sell: 'USDC', buy: 'WETH', amount: '300' };
const limit = { ...swap, minBuy: '0.1194', validForSec: 60 };

/** Clients of an honest server whose tokens are not allowed to anybody yet. */
function clientsOf(signer: Signer, trust: object = {}) {
  const { options } = world({
    allowanceUnits: 0n,
    deployment: { markets: [grid], order_sources: ['a'] },
  });
  const all = { ...options, ...trust, signer };
  return { maker: createMakerClient(all), taker: createTakerClient(all) };
}

type Clients = ReturnType<typeof clientsOf>;
const ACTS: Readonly<Record<string, (clients: Clients) => Promise<unknown>>> = {
  deposit: ({ maker }) => maker.deposit('USDC', '1'),
  requestWithdraw: ({ maker }) => maker.requestWithdraw('USDC', '1'),
  executeWithdraw: ({ maker }) => maker.executeWithdraw('USDC'),
  approveAgent: ({ maker }) => maker.approveAgent(addressOf('8')),
  swap: ({ taker }) => taker.swap(swap),
  swapGasless: ({ taker }) => taker.swapGasless(swap),
  placeLimit: ({ taker }) => taker.placeLimit(limit),
  allowGasless: ({ taker }) => taker.allowGasless('USDC', '1'),
  cancelGasless: ({ taker }) => taker.cancelGasless('o'),
};

describe('the chain of the wallet', () => {
  for (const [name, walletOn] of Object.entries(WALLETS)) {
    it(`${name}: has to be the trusted one for all that is sent, and for what is signed for a chain`, async () => {
      for (const [act, perform] of Object.entries(ACTS)) {
        const chain = oneAccountChain({ chainId: 1 });
        const signer = await walletOn(chain);
        for (const trust of [{}, { contracts: 'server' }])
          expect(await codeOf(perform(clientsOf(signer, trust))), act).to.equal('WRONG_CHAIN');
        expect([chain.sent, chain.signed], act).to.deep.equal([[], []]);
      }
    });

    it(`${name}: is asked for anew each time, and in between`, async () => {
      for (const [act, perform] of Object.entries(ACTS)) {
        const chain = oneAccountChain();
        const clients = clientsOf(await walletOn(chain));
        await clients.taker.allowGasless('WETH', '1');
        chain.state.chainId = 1;
        expect(await codeOf(perform(clients)), act).to.equal('WRONG_CHAIN');
        expect([chain.sent.length, chain.signed], act).to.deep.equal([1, []]);
      }
      for (const act of ['deposit', 'swap']) {
        const chain = oneAccountChain();
        const clients = clientsOf(await walletOn(chain));
        chain.state.onSent = () => (chain.state.chainId = 1);
        expect(await codeOf(ACTS[act]!(clients)), act).to.equal('WRONG_CHAIN');
        expect(chain.sent.length, 'the approval alone').to.equal(1);
      }
    });

    it(`${name}: does not matter to orders, whose domain has a chain id of its own`, async () => {
      const chain = oneAccountChain({ chainId: 1 });
      const { maker } = clientsOf(await walletOn(chain));
      const order = { pair: 'WETH-USDC', side: 'sell', price: '2500', size: '1' } as const;
      expect(await codeOf(maker.order([order])), 'the server has no such path').to.equal('HTTP_ERROR');
      expect(chain.signed.map(({ domain }) => BigInt(domain.chainId!))).to.deep.equal([1337n]);
    });

    it(`${name}: lets everything pass where it is the trusted one`, async () => {
      const chain = oneAccountChain();
      const clients = clientsOf(await walletOn(chain));
      for (const [act, perform] of Object.entries(ACTS))
        expect(await codeOf(perform(clients)), act).to.be.oneOf([null, 'HTTP_ERROR']);
      expect(chain.sent.length, 'two of them approve first').to.equal(7);
      expect(chain.signed.map(({ domain }) => BigInt(domain.chainId!))).to.deep.equal(
        Array.from({ length: 4 }, () => 8453n),
      );
    });
  }

  it('is not known of a key without a provider, which signs and sends nothing', async () => {
    const { signer } = await fromEthers(new Wallet(`0x${'7'.repeat(64)}`));
    const { maker, taker } = clientsOf(signer);
    expect(await codeOf(taker.placeLimit(limit))).to.equal(null);
    expect(await codeOf(maker.deposit('USDC', '1'))).to.equal('CANNOT_SEND');
  });

  it('is that of the network where an ethers provider is none of JSON-RPC, changes included', async () => {
    const key = new Wallet(`0x${'7'.repeat(64)}`);
    const cases: [string | null, (() => Promise<{ chainId: bigint }>)[]][] = [
      [null, [() => Promise.resolve({ chainId: 8453n })]],
      ['WRONG_CHAIN', [() => Promise.resolve({ chainId: 1n })]],
      // A provider of any network answers once with the one of before.
      ['WRONG_CHAIN', [() => Promise.resolve({ chainId: 8453n }), () => Promise.resolve({ chainId: 1n })]],
      [
        'WRONG_CHAIN',
        [
          () =>
            Promise.reject(
              Object.assign(new Error('network changed: 8453 => 1'), { code: 'NETWORK_ERROR', event: 'changed' }),
            ),
        ],
      ],
    ];
    for (const [code, networks] of cases) {
      const left = [...networks];
      const provider = {
        call: () => Promise.resolve('0x'),
        getNetwork: () => (left.length > 1 ? left.shift()! : left[0]!)(),
      };
      const bare = {
        getAddress: () => key.getAddress(),
        signTypedData: (...all: Parameters<Wallet['signTypedData']>) => key.signTypedData(...all),
        estimateGas: () => Promise.reject(new Error('nothing is sent here')),
        sendTransaction: () => Promise.reject(new Error('nothing is sent here')),
      };
      const { signer } = await fromEthers({ ...bare, provider });
      expect(await codeOf(clientsOf(signer).taker.placeLimit(limit)), `${networks.length}`).to.equal(code);
    }
  });

  it('is that of both clients of viem', async () => {
    const [here, elsewhere] = [oneAccountChain(), oneAccountChain({ chainId: 1 })];
    const [wallet, client] = [here, elsewhere].map(({ provider }) => custom(provider));
    const { signer } = fromViem(
      createWalletClient({ account: ACCOUNT, transport: wallet! }),
      createPublicClient({ transport: client! }),
    );
    expect(await codeOf(clientsOf(signer).maker.requestWithdraw('USDC', '1'))).to.equal('WRONG_CHAIN');
    expect(here.sent).to.deep.equal([]);
  });

  it('is the one that the caller trusts, whatever the server says, for an agent, too', async () => {
    const { options, signed } = world({ deployment: { chain_id: 1 } });
    expect(await codeOf(createMakerClient(options).approveAgent(addressOf('8')))).to.equal('OTHER_DEPLOYMENT');
    expect(signed).to.deep.equal([]);
  });
});

describe('what begins with an allowance', () => {
  const acts: Readonly<Record<string, (clients: Clients, signal: AbortSignal) => Promise<unknown>>> = {
    deposit: ({ maker }, signal) => maker.deposit('USDC', '1', signal),
    swap: ({ taker }, signal) => taker.swap(swap, signal),
  };

  it('asks for no further transaction once its signal is aborted', async () => {
    for (const [act, perform] of Object.entries(acts))
      for (const [endsAt, expected] of [
        [0, 0],
        [1, 1],
        [9, 2],
      ] as const) {
        const leaving = new AbortController();
        const chain = oneAccountChain();
        const end = (): void => {
          if (chain.sent.length === endsAt) leaving.abort(new Error('left'));
        };
        chain.state.onSent = end;
        const clients = clientsOf(await WALLETS.viem!(chain));
        end();
        const told = await perform(clients, leaving.signal).catch((error: unknown) => (error as Error).message);
        expect(chain.sent.length, `${act}, ended at ${endsAt}`).to.equal(expected);
        if (expected < 2) expect(told, act).to.equal('left');
      }
  });
});
