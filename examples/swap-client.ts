/** A client of the swap API: what the gasless examples share. Signing is theirs. */
import type { Manifest } from './support.js';
import { pause } from './support.js';

export interface QuoteRequest {
  chainId: number;
  from: string;
  receiver?: string;
  sellToken: string;
  buyToken: string;
  kind: 'sell' | 'buy';
  sellAmountBeforeFee?: string;
  buyAmountAfterFee?: string;
  slippageBps?: number;
  routingPreference?: 'auto' | 'preferService' | 'onlyService';
  signingScheme: 'eip712';
  /** Who gets `partnerBps` ten-thousandths of what is bought. */
  partner?: string;
  partnerBps?: number;
  /** A hash that is signed, stored and logged with the fill. */
  appData?: string;
}

export interface TypedData {
  domain: { name: string; chainId: number; verifyingContract: `0x${string}` };
  primaryType: 'PermitWitnessTransferFrom';
  types: Record<string, { name: string; type: string }[]>;
  message: Record<string, unknown>;
}

export interface Quote {
  id: string;
  expiration: string;
  quote: { sellAmount: string; buyAmount: string; minBuyAmount: string; validTo: number; feeAmount: string };
  permit2: { allowanceTarget: string; spender: string; typedData: TypedData };
  approval: { required: boolean; type: string; typedData: Omit<TypedData, 'primaryType'> | null };
  /** Of what is bought, beside `quote.buyAmount`; there with a partner only. */
  partnerFee?: { partner: string; bps: number; amount: string };
}

export interface Order {
  orderId: string;
  status: 'pending' | 'filled' | 'failed' | 'expired';
  executedSellAmount: string;
  executedBuyAmount: string;
  /** What the partner got; there with a partner only, and null until the order is filled. */
  partnerFeeAmount?: string | null;
  txHash: string | null;
  reason: { code: string; message: string } | null;
}

/** An answer other than 200, with the code of the error envelope. */
export class SwapApiError extends Error {
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(`${status} ${code}: ${message}`);
    this.code = code;
  }
}

/** A quote is not signed when less than this remains of it. */
const FRESH_SEC = 10;
const POLL_MS = 1_000;
const SLOW_POLL_MS = 5_000;
const SLOW_AFTER_MS = 15_000;

/** The API of a deployment: `{serverUrl}/api/v1`. */
export function swapClient(manifest: Pick<Manifest, 'serverUrl'>) {
  async function request<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${manifest.serverUrl}/api/v1${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T & { error?: { code: string; message: string } };
    if (!response.ok) throw new SwapApiError(response.status, answer.error?.code ?? '', answer.error?.message ?? '');
    return answer;
  }

  return {
    quote: (body: QuoteRequest) => request<Quote>('POST', '/quote', body),
    /** With a client order id of your own, sending it again after a lost answer makes no second order. */
    submit: (
      quoteId: string,
      signature: string,
      clientOrderId: string,
      approval: { approvalSignature?: string } = {},
    ) =>
      request<Pick<Order, 'orderId' | 'status'>>('POST', '/orders', { quoteId, signature, clientOrderId, ...approval }),
    order: (orderId: string) => request<Order>('GET', `/orders/${orderId}`),
    /** Polls every second, later every five, until the order has ended or `signal` aborts. */
    async ended(orderId: string, signal: AbortSignal): Promise<Order> {
      const startedMs = Date.now();
      for (;;) {
        const order = await request<Order>('GET', `/orders/${orderId}`);
        if (order.status !== 'pending' || signal.aborted) return order;
        await pause(Date.now() - startedMs < SLOW_AFTER_MS ? POLL_MS : SLOW_POLL_MS, signal);
      }
    },
  };
}

/** Whether there is time enough to sign the quote and send it in. */
export function isFresh({ expiration, quote }: Quote): boolean {
  const nowSec = Date.now() / 1_000;
  return Date.parse(expiration) / 1_000 > nowSec + FRESH_SEC && quote.validTo > nowSec + FRESH_SEC;
}
