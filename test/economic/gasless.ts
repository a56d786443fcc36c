/**
 * Signed orders: what the gateway accepts by its own rules, what the executor sends, and what each owner's orders cost the operator in gas
 * beside what the owner spent.
 */
import { ceilDiv } from '../../core/amounts.js';
import { limitWithin, mayRisk, type Dealing, type Sent } from '../../core/swap/trust.js';
import type { TradeMode } from '../../core/curve/walk.js';
import type { Address } from '../../core/types.js';
import { checkFunds } from '../../server/swap/funds.js';
import type { SwapDeps } from '../../server/swap/deps.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import type { SwapCall } from './calls.js';
import { sideOf, type Count, type WorldChain } from './chain.js';
import { OPERATOR, type Setting } from './setting.js';

/**
 * Gas as measured on the contracts, the owner's at its least and the operator's at its most. `transfer` is the least that takes an owner's funds
 * away, of WETH; of USDC that and a revert for want of funds are 9,000 to 14,000 more.
 */
const GAS = { setUp: 94_000, spoil: 28_000, transfer: 24_000, swap: 95_000, fill: 160_000 };
/** What a revert burns, and one for want of funds, by how the order was sent. */
const BURNT = {
  plain: { revert: 79_000, emptied: 101_000 },
  checked: { revert: 57_000, emptied: 66_000 },
};
/** What the settler's checks take of an order that fills. */
const CHECKS_GAS = 15_000;
/** A thousandth of a cent per thousand gas. */
const GAS_PER_DOLLAR = 100_000_000n;
const MAX_REVERTS = 2;
const LIMITS = { maxReverts: MAX_REVERTS, newAccountGas: BigInt(GAS.setUp) };
const ACCOUNT = { isCode: false, canCheck: true };
const ORDER_TTL_SEC = 120;
const BPS = 10_000n;

interface Order {
  nonce: bigint;
  owner: Address;
  market: number;
  /** Exact input of a sale, exact output of a purchase. */
  mode: 'sellExactIn' | 'buyExactOut';
  amountUnits: bigint;
  sellToken: Address;
  /** The most that it takes, fee included, and what it takes if nothing moves. */
  sellUnits: bigint;
  expectedSellUnits: bigint;
  feeUnits: bigint;
  /** The least that it brings. */
  minOutUnits: bigint;
  validToSec: number;
  state: 'pending' | 'sent' | 'done';
  /** How it was sent; null until it is. */
  sent: Sent | null;
}

/** What one owner's orders cost, in gas. */
interface OwnerGas {
  spent: number;
  /** Of transactions that reverted: nobody pays the operator for them. */
  lost: number;
}

export interface WorldGasless {
  sign(owner: Address, market: number, mode: TradeMode, baseUnits: bigint, slippageBps: number): void;
  /** The executor's look at all pending orders. */
  round(): void;
  /** What it sent gets into the block; true for each that filled. */
  land(): void;
  /** Uses up the nonce of the owner's oldest order. */
  spoil(owner: Address): void;
  /** Moves a part of a wallet away. */
  transfer(from: Address, to: Address, token: Address, permille: number): void;
  /** The owner sent a transfer of a token, to whomever. */
  transferred(owner: Address): void;
  /** The owner sent a swap of its own. */
  swapped(owner: Address): void;
  gas(): ReadonlyMap<Address, OwnerGas>;
}

export function createWorldGasless(setting: Setting, chain: WorldChain, count: Count): WorldGasless {
  const orders: Order[] = [];
  const used = new Set<bigint>();
  const gas = new Map<Address, OwnerGas>();
  /** What became of each owner's transactions, in their order. */
  const past = new Map<Address, Dealing[]>();
  let nonce = 0n;

  const noteGas = (owner: Address, key: keyof OwnerGas, units: number): void => {
    const known = gas.get(owner) ?? { spent: 0, lost: 0 };
    gas.set(owner, { ...known, [key]: known[key] + units });
  };
  /** Only what an owner spends after it was set up counts against its orders. */
  const transferred = (owner: Address): void => {
    if (gas.has(owner)) noteGas(owner, 'spent', GAS.transfer);
  };
  const note = (owner: Address, dealing: Dealing): void => {
    past.set(owner, [...(past.get(owner) ?? []), dealing]);
  };
  const pendingOf = (owner: Address): Order[] =>
    orders.filter((one) => one.owner === owner && one.state !== 'done' && one.validToSec >= chain.timeSec());

  function feeUnits(token: Address): bigint {
    return ceilDiv(setting.dollar * BigInt(GAS.fill), setting.unitValue.get(token)! * GAS_PER_DOLLAR);
  }

  const callOf = ({ owner, market, mode, amountUnits, sellUnits, feeUnits: fee, minOutUnits }: Order): SwapCall => ({
    taker: owner,
    market,
    mode,
    amountUnits,
    order: { mostInUnits: sellUnits - fee, leastOutUnits: minOutUnits, feeUnits: fee, operator: OPERATOR },
  });

  function sign(owner: Address, market: number, mode: TradeMode, baseUnits: bigint, slippageBps: number): void {
    const { base, quote } = setting.markets[market]!;
    const isBuy = sideOf(mode) === 'ask';
    const sellToken = (isBuy ? quote : base).address;
    const quoted = chain.quote({
      taker: owner,
      market,
      mode: isBuy ? 'buyExactOut' : 'sellExactIn',
      amountUnits: baseUnits,
    });
    if (quoted === null) return;
    const fee = feeUnits(sellToken);
    const slip = (units: bigint): bigint => (units * BigInt(slippageBps)) / BPS;
    const expectedSellUnits = quoted.inUnits + fee;
    const order: Order = {
      nonce: (nonce += 1n),
      owner,
      market,
      mode: isBuy ? 'buyExactOut' : 'sellExactIn',
      amountUnits: baseUnits,
      sellToken,
      sellUnits: isBuy ? expectedSellUnits + slip(expectedSellUnits) : expectedSellUnits,
      expectedSellUnits,
      feeUnits: fee,
      minOutUnits: isBuy ? baseUnits : quoted.outUnits - slip(quoted.outUnits),
      validToSec: chain.timeSec() + ORDER_TTL_SEC,
      state: 'pending',
      sent: null,
    };
    const others = pendingOf(owner)
      .filter((one) => one.sellToken === sellToken)
      .map((one) => ({ ...one, orderId: String(one.nonce), isLimit: false }));
    const balanceUnits = chain.walletOf(owner, sellToken);
    try {
      checkFunds(
        { permit2: OPERATOR } as SwapDeps,
        order as unknown as SwapQuote,
        { owner, code: '0x', balanceUnits, allowanceUnits: 2n ** 256n, isNonceUsed: (one) => used.has(one) },
        others,
      );
    } catch {
      return count('gasless refused');
    }
    if (!gas.has(owner)) noteGas(owner, 'spent', GAS.setUp);
    orders.push(order);
    count('gasless accepted');
    if (others.length > 0) count('gasless sum');
  }

  /** As the executor decides: as it is where the owner's credit covers that, else checked first. */
  function judged(owner: Address): { verdict: 'send' | 'wait' | 'refuse'; sent: Sent } {
    const dealings = past.get(owner) ?? [];
    const underWay = orders.flatMap(({ owner: of, state, sent }) =>
      of === owner && state === 'sent' && sent !== null ? [sent] : [],
    );
    const waysOf = (isChecked: boolean): Sent[] => {
      const gas = BigInt(GAS.fill + (isChecked ? CHECKS_GAS : 0));
      const one = { venues: 1, pools: 0, isChecked };
      const gasLimit = limitWithin({ ...ACCOUNT, ...LIMITS, dealings }, { ...one, gas });
      return gasLimit === null ? [] : [{ ...one, gasLimit }];
    };
    const [sent] = [...waysOf(false), ...waysOf(true)];
    if (sent === undefined) return { verdict: 'refuse', sent: { venues: 1, pools: 0, gasLimit: 0n } };
    return { verdict: mayRisk(dealings, { ...sent, ...ACCOUNT }, { ...LIMITS, underWay }), sent };
  }

  function round(): void {
    const underWay = new Set(
      orders.filter(({ state }) => state === 'sent').map(({ owner, sellToken }) => `${owner}:${sellToken}`),
    );
    for (const order of orders) {
      if (order.state !== 'pending' || order.validToSec < chain.timeSec() || used.has(order.nonce)) continue;
      const key = `${order.owner}:${order.sellToken}`;
      if (underWay.has(key)) {
        count('gasless waits for the one before');
        continue;
      }
      if (chain.simulate(callOf(order)) === null) continue;
      const { verdict, sent } = judged(order.owner);
      if (verdict === 'refuse') count('gasless owner not trusted');
      if (verdict !== 'send') continue;
      count(sent.isChecked === true ? 'gasless checked' : 'gasless plain');
      order.state = 'sent';
      order.sent = sent;
      underWay.add(key);
    }
  }

  function land(): void {
    for (const order of orders) {
      if (order.state !== 'sent') continue;
      const fill = used.has(order.nonce) ? null : chain.swap(callOf(order));
      if (fill === null) {
        order.state = 'pending';
        const isEmptied = chain.walletOf(order.owner, order.sellToken) < order.expectedSellUnits;
        const why = isEmptied && !used.has(order.nonce) ? 'emptied' : 'revert';
        const burnt = BURNT[order.sent?.isChecked === true ? 'checked' : 'plain'][why];
        noteGas(order.owner, 'lost', burnt);
        note(order.owner, { kind: 'revert', gasUsed: BigInt(burnt) });
        count(why === 'emptied' ? 'gasless emptied' : 'gasless reverted');
      } else {
        order.state = 'done';
        used.add(order.nonce);
        // The fee has paid for it.
        noteGas(order.owner, 'spent', GAS.fill);
        note(order.owner, { kind: 'fill' });
        count('gasless filled');
      }
    }
  }

  return {
    sign,
    round,
    land,
    spoil(owner) {
      const [order] = pendingOf(owner).filter((one) => !used.has(one.nonce));
      if (order === undefined) return;
      used.add(order.nonce);
      noteGas(owner, 'spent', GAS.spoil);
      count('gasless spoiled');
    },
    transfer(from, to, token, permille) {
      if (!chain.transfer(from, to, token, (chain.walletOf(from, token) * BigInt(permille)) / 1_000n)) return;
      transferred(from);
      count('wallet moved');
    },
    transferred,
    swapped(owner) {
      if (!gas.has(owner)) return;
      noteGas(owner, 'spent', GAS.swap);
      note(owner, { kind: 'swap' });
    },
    gas: () => gas,
  };
}
