/** The swap page's program of requests against servers that lie: it signs the order that was asked for, and nothing else. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { verifyTypedData, Wallet } from 'ethers';
import {
  orderTypedData,
  permitTypedData,
  type OrderTypedData,
  type PermitStyle,
  type PermitTypedData,
} from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { snippet } from '../../web/src/swap/snippets.js';
import type { SnippetSwap } from '../../web/src/swap/snippet-swap.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const CHAIN_ID = 8453;
const address = (byte: string): Address => `0x${byte.repeat(20)}`;
const [SELL, BUY, SETTLER, PERMIT2, STRANGER] = ['4a', '4b', '5a', '5b', '66'].map(address) as [
  Address,
  Address,
  Address,
  Address,
  Address,
];
const wallet = new Wallet(`0x${'17'.repeat(32)}`);
const MIN_BUY = 240_000_000n;
const UNITS = 10n ** 17n;
const VALID_FOR_SEC = 7_200;
const nowSec = (): number => Math.floor(Date.now() / 1_000);

interface Quote {
  id: string;
  permit2: { typedData: OrderTypedData };
  approval: { required: boolean; type: string; typedData: PermitTypedData | null };
}

interface Body {
  approvalSignature: string;
  signature: string;
  quoteId: string;
}

/** What a server that does not lie answers. */
function quoteFor(asked: { from: Address; validTo?: number; minBuyAmount?: string }, style: PermitStyle): Quote {
  const validToSec = asked.validTo ?? nowSec() + 120;
  const typedData = orderTypedData(
    {
      ...{ sellToken: SELL, sellUnits: UNITS, nonce: 2n ** 200n + 7n, validToSec },
      ...{ receiver: asked.from.toLowerCase() as Address, buyToken: BUY },
      minBuyUnits: asked.minBuyAmount === undefined ? MIN_BUY + 5n : BigInt(asked.minBuyAmount),
    },
    { chainId: CHAIN_ID, permit2: PERMIT2, spender: SETTLER },
  );
  const permit = permitTypedData(
    style,
    { name: 'USD Coin', ...(style === 'dai' ? {} : { version: '2' }), chainId: CHAIN_ID, verifyingContract: SELL },
    { owner: asked.from.toLowerCase() as Address, spender: PERMIT2, nonce: 3n, deadlineSec: validToSec },
  );
  return { id: 'q1', permit2: { typedData }, approval: { required: true, type: style, typedData: permit } };
}

type Lie = (quote: Quote) => void;
const ofOrder =
  (lie: (order: OrderTypedData) => void): Lie =>
  ({ permit2 }) =>
    lie(permit2.typedData);
const ofApproval =
  (lie: (permit: PermitTypedData) => void): Lie =>
  ({ approval }) =>
    lie(approval.typedData!);

const LIES: Record<string, Lie> = {
  'a transfer in place of the approval': ofApproval((permit) => {
    permit.primaryType = 'TransferWithAuthorization' as 'Permit';
    permit.types.TransferWithAuthorization = [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ];
    const transfer = { from: wallet.address, to: STRANGER, value: '1000000000', validAfter: '0' };
    Object.assign(permit.message, transfer, { validBefore: '99999999999', nonce: `0x${'01'.repeat(32)}` });
  }),
  'another type in place of the approval': ofApproval((permit) => {
    permit.primaryType = 'Burn' as 'Permit';
    permit.types.Burn = [{ name: 'value', type: 'uint256' }];
  }),
  'an approval for somebody else': ofApproval((permit) => (permit.message.spender = STRANGER)),
  'an approval at another token': ofApproval((permit) => (permit.domain.verifyingContract = BUY)),
  'an approval on another chain': ofApproval((permit) => (permit.domain.chainId = 1)),
  'an approval that lasts': ofApproval((permit) => (permit.message.deadline = '99999999999')),
  'an approval of a form that there is not': ({ approval }) => (approval.type = 'constructor'),
  'another deadline': ofOrder(({ message }) => (message.deadline = String(nowSec() + VALID_FOR_SEC + 600))),
  'another chain': ofOrder(({ domain }) => (domain.chainId = 1)),
  'another contract': ofOrder(({ domain }) => (domain.verifyingContract = STRANGER)),
  'another spender': ofOrder(({ message }) => (message.spender = STRANGER)),
  'another recipient': ofOrder(({ message }) => (message.witness.recipient = STRANGER)),
  'another token': ofOrder(({ message }) => (message.witness.tokenOut = STRANGER)),
  'another amount': ofOrder(({ message }) => (message.permitted.amount = String(UNITS + 1n))),
  'less than was asked for': ofOrder(({ message }) => (message.witness.minAmountOut = String(MIN_BUY - 1n))),
  'another type': ofOrder((order) => {
    (order as { primaryType: string }).primaryType = 'PermitTransferFrom';
    order.types = { ...order.types, PermitTransferFrom: order.types.PermitWitnessTransferFrom!.slice(0, 4) };
  }),
  'a partner': ({ permit2 }) => {
    const { message } = permit2.typedData;
    const terms = {
      ...{ sellToken: SELL, sellUnits: UNITS, nonce: 7n, validToSec: Number(message.deadline), buyToken: BUY },
      ...{ receiver: message.witness.recipient, minBuyUnits: BigInt(message.witness.minAmountOut) },
      ...{ partner: STRANGER, partnerBps: 9_000 },
    };
    permit2.typedData = orderTypedData(terms, { chainId: CHAIN_ID, permit2: PERMIT2, spender: SETTLER });
  },
  'a nonce that is none': ofOrder(({ message }) => (message.nonce = '-1')),
};

/** Of which the program for a limit order has checks of its own. */
const OF_LIMITS = ['another deadline', 'less than was asked for', 'a partner', 'an approval that lasts'];

describe('the program of requests of the swap page', function () {
  this.timeout(120_000);
  let lie: Lie = () => undefined;
  let style: PermitStyle = 'eip2612';
  let told: Quote | null = null;
  const submitted: Body[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.url === '/api/v1/quote') {
        told = quoteFor(JSON.parse(body) as Parameters<typeof quoteFor>[0], style);
        lie(told);
      } else submitted.push(JSON.parse(body) as Body);
      response.end(JSON.stringify(request.url === '/api/v1/quote' ? told : { orderId: 'o1' }));
    });
  });

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  after(() => server.close());

  beforeEach(() => {
    submitted.length = 0;
    style = 'eip2612';
    lie = () => undefined;
  });

  /** What the program printed, or what it failed with. */
  async function printed(mode: 'gasless' | 'limit'): Promise<string> {
    const contracts = { orderSettler: { address: SETTLER }, permit2: { address: PERMIT2 } };
    const swap = {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      deployment: { chain_id: CHAIN_ID, rpc_url: null, contracts },
      sell: { symbol: 'USDC', address: SELL, decimals: 6 },
      buy: { symbol: 'WETH', address: BUY, decimals: 18 },
      ...{ units: UNITS, minBuyUnits: MIN_BUY, slippageBps: 50, validForSec: VALID_FOR_SEC, mode },
    } as unknown as SnippetSwap;
    const env = { ...process.env, PRIVATE_KEY: wallet.privateKey };
    const outcome = await run('bash', ['-c', snippet('curl', swap)], { cwd: root, env }).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
    return outcome.stdout + outcome.stderr;
  }

  const signerOf = ({ domain, types, message }: OrderTypedData | PermitTypedData, signature: string): string => {
    const { EIP712Domain: _domain, ...rest } = types;
    return verifyTypedData(domain, rest, message, signature);
  };

  for (const mode of ['gasless', 'limit'] as const) {
    it(`signs what was asked for, ${mode}, and both forms of approval`, async () => {
      for (style of ['eip2612', 'dai'] as const) {
        submitted.length = 0;
        expect(await printed(mode)).to.contain('o1');
        const [body] = submitted;
        expect(body?.quoteId).to.equal('q1');
        expect(signerOf(told!.permit2.typedData, body!.signature)).to.equal(wallet.address);
        expect(signerOf(told!.approval.typedData!, body!.approvalSignature), style).to.equal(wallet.address);
      }
    });

    const lies = Object.entries(LIES).filter(([what]) => mode === 'gasless' || OF_LIMITS.includes(what));
    for (const [what, one] of lies) {
      it(`signs nothing where the server asks for ${what}, ${mode}`, async () => {
        lie = one;
        expect(await printed(mode)).to.match(/another|only|until|no whole number/);
        expect(submitted).to.deep.equal([]);
      });
    }
  }

  it('signs no market order that lasts for more than an hour, and no limit order that ends at another time', async () => {
    lie = ofOrder(({ message }) => (message.deadline = String(Number(message.deadline) + 3_600)));
    for (const mode of ['gasless', 'limit'] as const)
      expect(await printed(mode)).to.match(/it may be executed until|another order/);
    expect(submitted).to.deep.equal([]);
  });
});
