/** Approvals by signature: what a quote returns about them, and what a submission includes. */
import { permitTypedData, type PermitStyle, type PermitTypedData } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import { readPendingSales } from '../../ledger/swaps/swap-wallets.js';
import { permitCall, type Permits, type PermitSupport } from '../../liquidity/permits.js';
import { permitIn } from '../../liquidity/planner.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';

/** State of an owner's approval of a sell token on the chain. */
export interface ApprovalState {
  support: PermitSupport | null;
  allowanceUnits: bigint;
  nonce: bigint;
  /** The most that the owner's pending orders take of the same token. */
  promisedUnits: bigint;
}

/** The approval part of a quote's answer. */
interface ApprovalAnswer {
  required: boolean;
  type: PermitStyle | 'none';
  /** Typed data to sign in addition to the order's; null when no approval is required, or the token has no permit. */
  typedData: PermitTypedData | null;
}

/** What is known of the owner's approval of its sell token, as if the owner had a key. */
export async function approvalState(
  { db, nowMs }: Pick<SwapDeps, 'db' | 'nowMs'>,
  permits: Permits,
  { sellToken, owner }: { sellToken: Address; owner: Address },
): Promise<ApprovalState> {
  const support = await permits.supportOf(sellToken);
  const [state, pending] = await Promise.all([
    permits.stateOf(sellToken, owner, support),
    readPendingSales(db.knex, owner, sellToken, Math.floor(nowMs() / 1_000)),
  ]);
  return { support, ...state, promisedUnits: pending.reduce((sum, { sellUnits }) => sum + sellUnits, 0n) };
}

/** Whether Permit2's allowance is below `units` plus what pending orders take, as a submission checks it. */
const isShort = ({ allowanceUnits, promisedUnits }: ApprovalState, units: bigint): boolean =>
  allowanceUnits < units + promisedUnits;

/** Whether an order that takes up to `units` must include an approval by signature. */
export const bringsPermit = (state: ApprovalState, units: bigint): boolean =>
  state.support !== null && isShort(state, units);

const termsOf = ({ permit2 }: SwapDeps, { owner, validToSec }: SwapQuote, nonce: bigint) => ({
  owner,
  spender: permit2,
  nonce,
  deadlineSec: validToSec,
});

export function approvalAnswer(deps: SwapDeps, quote: SwapQuote, state: ApprovalState): ApprovalAnswer {
  const { support } = state;
  const asked = permitIn(quote.route);
  const typedData =
    asked === null || support === null
      ? null
      : permitTypedData(support.style, support.domain, termsOf(deps, quote, asked.nonce));
  return { required: isShort(state, quote.sellUnits), type: support?.style ?? 'none', typedData };
}

/** The permit call of the sell token with the submission's signature. Throws 400 for one that the quote did not ask for. */
export function broughtPermit(deps: SwapDeps, quote: SwapQuote, signature: Hex): Hex {
  const asked = permitIn(quote.route);
  if (asked === null) throw badRequest('approvalSignature: the quote asks for none');
  try {
    return permitCall(asked.style, termsOf(deps, quote, asked.nonce), signature);
  } catch {
    throw badRequest("approvalSignature: is no key's signature");
  }
}
