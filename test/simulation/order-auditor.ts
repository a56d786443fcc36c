/**
 * What must hold of signed orders: nobody gives more or gets less than was signed, an order that is said to be filled is, one that is filled is
 * said to be, and none is lost or tried without end.
 */
import { decodeLog, parseRpcLog, type ChainEvent } from '../../keepers/chain/logs.js';
import type { Hex } from '../../core/types.js';
import type { KnownBlock } from './chain.js';
import type { SignedPromise, Swappers } from './swappers.js';
import type { Simulation } from './world.js';

export interface OrderAuditor {
  /** Asks the API about the orders that may still change. */
  look(): Promise<void>;
  /** The newest answer about an order says that it is filled. */
  isFilled(orderId: string): boolean;
  /** Whether every order that can't be executed any more has ended, as far as looks have told. */
  allEnded(): boolean;
}

type Filled = Extract<ChainEvent, { type: 'orderFilled' }>;

/** For so long after a reorganisation, and after a fill, a process may not have seen it. */
const REORG_GRACE_MS = 45_000;
const FILL_GRACE_MS = 60_000;
/** An order that stands for so long after its last second is looked at no more. */
const SETTLED_MS = 90_000;
/** Between two looks at an order that has ended, unless a reorganisation may have changed that. */
const ENDED_LOOK_MS = 30_000;
/** Blocks that may still be taken back. */
const REACH = 64;

export function createOrderAuditor(
  world: Simulation,
  swappers: Swappers,
  deps: { reorganisedMs(): number; isReady(): boolean },
): OrderAuditor {
  const { chain, record, scheduler } = world;
  const known = new Map<Hex, { event: Filled; txHash: Hex }[]>();
  const said = new Map<string, string>();
  /** When each was answered last. */
  const lookedMs = new Map<string, number>();
  const violate = (what: string): void => record.violate(`${scheduler.nowMs()} ${what}`);
  const settler = chain.setting.manifest.contracts['orderSettler']!.toLowerCase();

  function fillsIn(block: KnownBlock): { event: Filled; txHash: Hex }[] {
    let found = known.get(block.hash);
    if (found !== undefined) return found;
    found = block.receipts
      .flatMap((receipt) => (receipt['logs'] as unknown[]).map(parseRpcLog))
      .filter(({ address }) => address === settler)
      .flatMap((log) => {
        const event = decodeLog(log);
        return event?.type === 'orderFilled' ? [{ event, txHash: log.txHash }] : [];
      });
    known.set(block.hash, found);
    for (const { event } of found) judgeFill(event);
    return found;
  }

  /** Whatever branch a fill is on. */
  function judgeFill(event: Filled): void {
    record.count('signed order filled on-chain');
    const promise = swappers.accepted.find(({ owner, nonce }) => owner === event.owner && nonce === event.nonce);
    // The answer to its owner may still be on its way, or was lost.
    if (promise === undefined) return;
    const { sellUnits, minBuyUnits, receiver, sellToken, buyToken, orderId } = promise;
    if (event.amountInUnits > sellUnits)
      violate(`order ${orderId} took ${event.amountInUnits}, ${sellUnits} were signed`);
    if (event.amountOutUnits < minBuyUnits)
      violate(`order ${orderId} brought ${event.amountOutUnits}, ${minBuyUnits} were signed`);
    if (event.recipient !== receiver || event.tokenIn !== sellToken || event.tokenOut !== buyToken)
      violate(`order ${orderId} was filled otherwise than signed`);
  }

  /** The fill on the chain that counts. */
  function fillOf({ owner, nonce }: SignedPromise): { event: Filled; txHash: Hex; block: KnownBlock } | null {
    for (let number = chain.head().number; number >= 0; number -= 1) {
      const block = chain.at(number);
      if (block === undefined) return null;
      const found = fillsIn(block).find(({ event }) => event.owner === owner && event.nonce === nonce);
      if (found !== undefined) return { ...found, block };
      if (chain.head().number - number > REACH * 16) return null;
    }
    return null;
  }

  async function judge(promise: SignedPromise): Promise<void> {
    const { orderId } = promise;
    const answer = await swappers.look(orderId);
    // Meanwhile the database may have been lost with it, and one that lagged behind promoted.
    if (answer === null || !swappers.accepted.includes(promise)) return;
    if (answer === 'unknown') return violate(`order ${orderId} was accepted and is unknown`);
    said.set(orderId, answer.status);
    lookedMs.set(orderId, scheduler.nowMs());
    record.count(`signed order seen ${answer.status}`);
    const nowMs = scheduler.nowMs();
    const isCalmChain = nowMs - deps.reorganisedMs() > REORG_GRACE_MS;
    const truth = fillOf(promise);
    if (answer.status === 'filled') {
      if (truth?.txHash !== answer.txHash && isCalmChain)
        violate(
          `order ${orderId} is said to be filled by ${answer.txHash}, and the chain has ${truth?.txHash ?? 'no fill'}`,
        );
      if (truth !== null && truth.txHash === answer.txHash && isCalmChain) {
        const { amountInUnits, amountOutUnits } = truth.event;
        if (`${amountInUnits}` !== answer.executedSellAmount || `${amountOutUnits}` !== answer.executedBuyAmount)
          violate(`order ${orderId} is said to have taken ${answer.executedSellAmount}, and took ${amountInUnits}`);
      }
    } else if (truth !== null && isCalmChain && deps.isReady()) {
      const sinceMs = nowMs - 1_000 * truth.block.timestampSec;
      if (sinceMs > FILL_GRACE_MS)
        violate(`order ${orderId} was filled ${sinceMs} ms ago and is said to be ${answer.status}`);
    }
  }

  /** One that has ended says the same again, but for what a reorganisation took: that is asked at once, and when everybody must have seen it. */
  function isDue({ orderId, validToSec }: SignedPromise, nowMs: number): boolean {
    if (said.get(orderId) === undefined || said.get(orderId) === 'pending') return true;
    if (nowMs > 1_000 * validToSec + SETTLED_MS) return false;
    const atMs = lookedMs.get(orderId)!;
    const seenMs = deps.reorganisedMs() + REORG_GRACE_MS;
    return atMs <= deps.reorganisedMs() || (atMs <= seenMs && nowMs > seenMs) || nowMs - atMs >= ENDED_LOOK_MS;
  }

  return {
    async look() {
      const nowMs = scheduler.nowMs();
      for (const promise of swappers.accepted)
        if (isDue(promise, nowMs) && swappers.accepted.includes(promise)) await judge(promise);
    },
    isFilled: (orderId) => said.get(orderId) === 'filled',
    allEnded: () =>
      swappers.accepted.every(
        ({ orderId, validToSec }) =>
          1_000 * validToSec > scheduler.nowMs() || !['pending', undefined].includes(said.get(orderId)),
      ),
  };
}
