/** The transactions of an order whose risk its owner's credit covers: as they are, or checked first. */
import type { Part } from '../../core/swap/split.js';
import type { PendingOrder } from '../../ledger/swaps/swap-log.js';
import type { Head } from '../../liquidity/eth.js';
import { checkedCalldata } from './checked.js';
import type { ExecutorDeps } from './deps.js';
import type { Refusal } from './refusals.js';
import type { Risk } from './risk.js';
import { simulate, type Simulated } from './simulate.js';

/** A route as it was simulated. */
export type Tried = Simulated & { parts: readonly Part[] };
/** A route that fulfils the signed order. */
export type Filling = Extract<Tried, { ok: true }>;
/** A fulfilling route whose risk the owner's credit covers, with its most gas. */
export type Trusted = Filling & { mostGas: bigint };

type Deps = Pick<ExecutorDeps, 'rpc' | 'outbox' | 'settler' | 'marketData' | 'maxGas' | 'nowMs'>;

/** Those that are covered as they are; otherwise those that are when they are checked, in the same order. Without any, the reason. */
export const createCover =
  ({ rpc, outbox, settler, marketData, maxGas, nowMs }: Deps) =>
  async (one: PendingOrder, fillings: readonly Filling[], risk: Risk, head: Head): Promise<Trusted[] | Refusal> => {
    const plain = fillings.flatMap((filling) => bounded(filling, risk));
    if (plain.length > 0) return plain;
    let { refusal } = risk;
    const covered: Trusted[] = [];
    for (const filling of risk.canCheck ? fillings : []) {
      const data = await checkedCalldata(one, filling, marketData, head, Math.floor(nowMs() / 1_000));
      if (data === null) continue;
      const checked = await simulate(rpc, outbox.signer, settler, data, 2n * maxGas);
      if (!checked.ok) ({ refusal } = checked);
      if (checked.ok) covered.push(...bounded({ ...checked, parts: filling.parts }, risk));
    }
    return covered.length > 0 ? covered : refusal;
  };

/** The transaction with the most gas that it may be given; none when it may not be risked. */
function bounded(filling: Filling, risk: Risk): Trusted[] {
  const mostGas = risk.mostGas(filling);
  return mostGas === null ? [] : [{ ...filling, mostGas }];
}
