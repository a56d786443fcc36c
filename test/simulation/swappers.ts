/** Owners of signed orders: they ask for a quote, sign it, send it in, and look how it fares. */
import { ethers } from 'ethers';
import { hexToBytes } from '../../core/hash.js';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { digestOf } from '../../server/swap/signature.js';
import { ask, type Answer } from './http.js';
import type { Backend } from './processes.js';
import type { Simulation } from './world.js';

/** What an owner signed and was told is accepted. */
export interface SignedPromise {
  orderId: string;
  owner: Address;
  receiver: Address;
  nonce: bigint;
  sellToken: Address;
  buyToken: Address;
  /** The most that may be taken, and the least that must come. */
  sellUnits: bigint;
  minBuyUnits: bigint;
  validToSec: number;
}

/** How an order fares, as the API says. */
interface OrderAnswer {
  status: 'pending' | 'filled' | 'failed' | 'expired';
  txHash: Hex | null;
  executedSellAmount: string;
  executedBuyAmount: string;
}

interface QuoteAnswer {
  id: string;
  quote: { sellAmount: string; minBuyAmount: string; validTo: number; receiver: Address };
  permit2: { typedData: OrderTypedData };
}

export interface Swappers {
  readonly accepted: readonly SignedPromise[];
  /** Nobody relies any more on others than these. */
  forget(kept: ReadonlySet<string>): void;
  /** One order of a taker, of `permille` of what is `worth` trading. The promise once it is accepted, null when it is not. */
  swap(role: string, market: Market, isBuy: boolean, permille: number): Promise<SignedPromise | null>;
  /** How an order fares; null without an answer, `unknown` when there is no such order. */
  look(orderId: string): Promise<OrderAnswer | 'unknown' | null>;
}

const ANSWER_MS = 8_000;
const NET_MS = 30;
/** Times that an order is sent in again whose answer was lost. */
const TRIES = 3;

export function createSwappers(
  world: Simulation,
  backend: Backend,
  worth: (token: Address, permille: number) => bigint,
): Swappers {
  const { scheduler, decisions, chain, record } = world;
  let accepted: SignedPromise[] = [];
  let clientOrders = 0;

  /** Asks whoever serves the API; null without an answer. */
  async function request(role: string, method: string, path: string, body?: object): Promise<Answer | null> {
    await scheduler.sleep(decisions.int('net', 1, NET_MS));
    const place = backend.activeGateway();
    if (place === undefined) return null;
    const era = backend.era();
    const answered = scheduler.as(place.actor, () => ask(place.swaps, method, path, body));
    const answer = await Promise.race([answered, scheduler.sleep(ANSWER_MS).then(() => null)]);
    await scheduler.sleep(decisions.int('net', 1, NET_MS));
    if (backend.era() !== era) return null;
    if (decisions.happens('answer lost', world.isCalm ? 0 : 0.02)) return null;
    if (answer !== null && answer.status >= 400)
      record.trace(() => `${role} ${path} refused: ${JSON.stringify(answer.body)}`);
    return answer;
  }

  async function swap(role: string, market: Market, isBuy: boolean, permille: number): Promise<SignedPromise | null> {
    const owner = chain.setting.address(role);
    const [sellToken, buyToken] = isBuy
      ? [market.quote.address, market.base.address]
      : [market.base.address, market.quote.address];
    const kind = decisions.int(`kind ${role}`, 0, 3) === 0 ? 'buy' : 'sell';
    const asked = await request(role, 'POST', '/api/v1/quote', {
      ...{ chainId: chain.setting.manifest.chainId, from: owner, sellToken, buyToken, kind, signingScheme: 'eip712' },
      ...(kind === 'sell'
        ? { sellAmountBeforeFee: `${worth(sellToken, permille)}` }
        : { buyAmountAfterFee: `${worth(buyToken, permille)}` }),
      slippageBps: decisions.pick(`slippage ${role}`, [0, 50, 500]),
    });
    record.count(asked === null ? 'quote unanswered' : `quote ${asked.status}`);
    if (asked?.status !== 200) return null;
    const { id, quote, permit2 } = asked.body as QuoteAnswer;
    const key = new ethers.SigningKey(chain.setting.wallet(role).privateKey);
    const signature = key.sign(hexToBytes(digestOf(permit2.typedData))).serialized;
    const submission = { quoteId: id, signature, clientOrderId: `order-${(clientOrders += 1)}` };
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sent = await request(role, 'POST', '/api/v1/orders', submission);
      record.count(sent === null ? 'signed order unanswered' : `signed order ${sent.status}`);
      if (sent?.status === 200) {
        const { orderId } = sent.body as { orderId: string };
        const promise = {
          ...{ orderId, owner, receiver: quote.receiver, nonce: BigInt(permit2.typedData.message.nonce) },
          ...{ sellToken, buyToken, sellUnits: BigInt(quote.sellAmount), minBuyUnits: BigInt(quote.minBuyAmount) },
          validToSec: quote.validTo,
        };
        accepted.push(promise);
        return promise;
      }
      if (sent !== null && sent.status < 500) return null;
    }
    return null;
  }

  return {
    get accepted() {
      return accepted;
    },
    forget(kept) {
      accepted = accepted.filter(({ orderId }) => kept.has(orderId));
    },
    swap,
    async look(orderId) {
      const answer = await request('owner', 'GET', `/api/v1/orders/${orderId}`);
      if (answer?.status === 404) return 'unknown';
      return answer?.status === 200 ? (answer.body as OrderAnswer) : null;
    },
  };
}
