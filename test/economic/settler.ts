/** The settler: the keeper's own plan of withdrawals, at its pace, and what it sent that no block has yet. */
import { isFree, settlesFromMs, type SettlePace } from '../../core/claim-state.js';
import { worstPayments } from '../../core/exposure.js';
import { settleGas } from '../../core/settle-gas.js';
import type { Address } from '../../core/types.js';
import { planSettlements } from '../../keepers/settler/plan.js';
import type { GenerationRow } from '../../ledger/types.js';
import type { SettlementCall } from './calls.js';
import type { Count, WorldChain } from './chain.js';
import type { WorldLedger } from './ledger.js';
import type { Setting } from './setting.js';

const BATCH_MAX = 50;
/** Short enough that a strategy outlives it. */
const PACE: SettlePace = { intervalMs: 4_000, smallIntervalMs: 12_000, smallBps: 100 };

interface WorldSettler {
  /** Computes what is settled at a scan, unless something is under way. */
  round(head: GenerationRow): void;
  /** What was sent gets into the block. */
  land(): void;
}

interface WorldSettlerDeps {
  setting: Setting;
  chain: WorldChain;
  ledger: WorldLedger;
  nowMs: () => number;
  count: Count;
  fault: (what: string) => void;
}

export function createWorldSettler({ setting, chain, ledger, nowMs, count, fault }: WorldSettlerDeps): WorldSettler {
  let queue: SettlementCall[] = [];
  /** When each claim was settled last. */
  const lastMs = new Map<string, number>();
  const keyOf = ({ maker, token }: { maker: Address; token: Address }): string => `${maker}:${token}`;

  return {
    round(head) {
      if (queue.length > 0) return;
      const atSec = head.blockTimestampMs / 1_000;
      const exposed = setting.markets.map((market) => ({
        market,
        older: ledger.executable(market.index, atSec),
        candidate: null,
      }));
      const worst = worstPayments(exposed);
      const waiting = [...ledger.claims()]
        .filter(([, , { pendingSinceBlock }]) => pendingSinceBlock !== null)
        .map(([maker, token, claim]) => ({ maker, token, ...claim, balanceUnits: ledger.rowOf(maker, token) }));
      const ripe = waiting.filter((claim) => settlesFromMs(claim, lastMs.get(keyOf(claim)) ?? null, PACE) <= nowMs());
      if (ripe.length < waiting.length) count('withdrawal paced');
      const planned = planSettlements({
        funded: ripe.filter(({ balanceUnits }) => balanceUnits !== 0n),
        unfunded: ripe.filter(({ balanceUnits }) => balanceUnits === 0n),
        worstUnits: ({ maker, token }) => worst.get(maker)?.get(token) ?? 0n,
        batchMax: BATCH_MAX,
        emptyBudget: BATCH_MAX,
      });
      const cutBlock = head.toBlock;
      // However its makers ask, a transaction is worth what they paid since the last settlement, unless it raises a claim for the first time.
      const parts = planned.map(({ token, amountUnits, previousUnits }) => ({
        token,
        isRaise: amountUnits > previousUnits,
      }));
      const paidGas = planned.reduce((sum, { maker, token }) => sum + ledger.paidSince(maker, token), 0n);
      const isAnyFree = planned.some(({ amountUnits, previousUnits: claimUnits, basis }) =>
        isFree(amountUnits, { claimUnits, basis }),
      );
      if (planned.length > 0 && !isAnyFree && paidGas < settleGas(parts)) fault('a settlement that nobody paid for');
      queue = planned.map(({ maker, token, amountUnits, basis }) => ({ maker, token, amountUnits, basis, cutBlock }));
      for (const call of queue) {
        const before = lastMs.get(keyOf(call));
        const isRaise = call.amountUnits >= chain.claimOf(call.maker, call.token).units;
        // However its maker asks, what it costs the operator to settle a claim is bounded by time.
        if (isRaise && before !== undefined && nowMs() - before < PACE.intervalMs) fault('a claim settled too soon');
        lastMs.set(keyOf(call), nowMs());
      }
      if (ripe.length > planned.length) count('withdrawal waits');
    },
    land() {
      for (const call of queue.splice(0)) chain.settle(call);
    },
  };
}
