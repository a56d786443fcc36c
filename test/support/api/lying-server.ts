/** A server that answers the SDK as it likes, and what the SDK signed then. */
import { keccakText } from '../../../core/hash.js';
import type { Reader, Signer, TypedData } from '../../../sdk/src/taker.js';

export const addressOf = (digit: string): string => `0x${digit.repeat(40)}`;
const [custodian, entrypoint, orderSettler] = ['1', '2', '3'].map(addressOf) as [string, string, string];
export const permit2 = addressOf('4');
export const [WETH, USDC, FAKE] = ['5', '6', '7'].map(addressOf) as [string, string, string];
const tokens = { WETH: { address: WETH, decimals: 18 }, USDC: { address: USDC, decimals: 6 } };
export const contracts = { chainId: 8453, custodian, entrypoint, orderSettler, permit2, tokens };
export const NOW_MS = 1_800_000_000_000;
/** Of 300 USDC, in WETH. */
export const PRICE = 120_000_000_000_000_000n;

export const listed = (address: string, symbol: string, decimals: number): object => ({ address, symbol, decimals });
const honest = {
  chain_id: 8453,
  contracts: Object.fromEntries(
    Object.entries({ custodian, entrypoint, orderSettler, permit2 }).map(([name, address]) => [name, { address }]),
  ),
  tokens: [listed(WETH, 'WETH', 18), listed(USDC, 'USDC', 6)],
  markets: [],
};

export interface World {
  /** What the entrypoint quotes, call by call; the last one stays. */
  prices?: bigint[];
  quote?: object;
  /** What the server says of the approval to Permit2. */
  approval?: object;
  deployment?: object;
  decimals?: bigint;
  /** What every spender may take. */
  allowanceUnits?: bigint;
}

/** A server and a chain that say what they are told to, and a wallet that notes what it is asked for. */
export function world({ approval, ...told }: World = {}) {
  const { prices = [PRICE], quote = {}, deployment = {}, decimals = 6n, allowanceUnits = 2n ** 255n } = told;
  const signed: TypedData[] = [];
  const sent: { to: string; data: string }[] = [];
  const left = [...prices];
  const answers: Record<string, object> = {
    '/v0/deployment': { ...honest, ...deployment },
    '/api/v1/quote': {
      id: 'q',
      quote: {
        ...{ sellAmount: '300000000', buyAmount: PRICE.toString(), feeAmount: '0', validTo: NOW_MS / 1_000 + 60 },
        minBuyAmount: ((PRICE * 9_950n) / 10_000n).toString(),
        ...quote,
      },
      permit2: { typedData: { message: { nonce: '7' } } },
      approval,
    },
    '/api/v1/orders': { orderId: 'o' },
    '/api/v1/orders/o': { orderId: 'o', status: 'filled' },
    'DELETE /api/v1/orders/o': { orderId: 'o', quoteId: 'q', status: 'failed' },
  };
  const fetcher = ((url: string, { method }: RequestInit = {}) => {
    const { pathname } = new URL(url);
    const answer = answers[method === 'DELETE' ? `DELETE ${pathname}` : pathname];
    return Promise.resolve(new Response(JSON.stringify(answer ?? {}), { status: answer === undefined ? 404 : 200 }));
  }) as unknown as typeof fetch;
  const word = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`;
  const reader: Reader = {
    call({ data }) {
      const selector = data.slice(0, 10);
      if (selector === keccakText('decimals()').slice(0, 10)) return Promise.resolve(word(decimals));
      if (selector === keccakText('allowance(address,address)').slice(0, 10))
        return Promise.resolve(word(allowanceUnits));
      const price = left.length > 1 ? left.shift() : left[0];
      return Promise.resolve(word(price ?? 0n));
    },
  };
  const signer: Signer = {
    address: addressOf('9'),
    signTypedData(data) {
      signed.push(data);
      return Promise.resolve('0x');
    },
    sendTransaction(call) {
      sent.push(call);
      return Promise.resolve('0xhash');
    },
  };
  const options = { url: 'http://server', signer, reader, contracts, fetch: fetcher, clock: () => NOW_MS };
  return { signed, sent, options };
}

export const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => null,
    (error: unknown) => (error as { code?: unknown }).code ?? error,
  );
