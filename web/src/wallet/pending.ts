/**
 * Transactions that were sent and are not known to be mined. They outlive the page in the storage of the browser, so that nobody sends a second one
 * because the first one only waits.
 */
import { keccakText } from '../../../sdk/src/hash.js';
import type { Fate } from './mined.js';
import { createStoredList, isText, isWhole } from './stored.js';

/** What the pages send, by the function that is called. */
const SIGNATURES = {
  approve: 'approve(address,uint256)',
  swap: 'swap(address,address,uint256,uint256,address,uint256)',
  deposit: 'deposit(address,uint256)',
  requestWithdraw: 'requestWithdraw(address,uint256)',
  executeWithdraw: 'executeWithdraw(address)',
} as const;

type Known = keyof typeof SIGNATURES;
export type Act = Known | 'other';

/** Where the amount stands among the arguments. */
const AMOUNT_AT: Readonly<Partial<Record<Known, number>>> = { approve: 1, swap: 2, deposit: 1, requestWithdraw: 1 };

/** Acts that begin with a transaction of another kind. */
const BEGINS_WITH: Readonly<Partial<Record<Act, Act>>> = { swap: 'approve', deposit: 'approve' };

interface Sent {
  hash: string;
  account: string;
  /** The deployment's id. */
  deployment: string;
}

export interface Pending extends Sent {
  act: Act;
  /** The token that is moved or allowed, by its address; the contract that is called where no token is known. */
  token: string;
  /** Base units; null where the call names no amount. */
  units: string | null;
  /** The nonce of the account that it uses up; null until a node has shown it. */
  nonce: string | null;
  sentMs: number;
}

/** What came of one that did not simply succeed while its page waited for it. */
interface Ended extends Pending {
  fate: Fate;
}

export interface Pendings {
  /** The newest first; the same array until something changes. */
  all(): readonly Pending[];
  /** What is to be told until somebody closes it; lasts as long as the page. */
  ended(): readonly Ended[];
  /** Whether the page that sent it still waits for it. */
  isAwaited(hash: string): boolean;
  add(sent: Sent, call: { to: string; data: string }): void;
  /** The page that sent it waits no longer. */
  release(hash: string): void;
  learn(hash: string, nonce: bigint): void;
  end(hash: string, fate: Fate): void;
  /** Nothing is kept or told of it any more. */
  drop(hash: string): void;
  /** Returns what ends the listening. */
  onChange(listener: () => void): () => void;
}

/** In all; of more, the oldest are not kept. */
export const mostKept = 20;
const KEY = 'curvebook.pending';

const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;
export const isHash = (value: unknown): value is string => isText(value, /^0x[0-9a-fA-F]{64}$/);

function pendingIn(value: unknown): Pending | null {
  if (typeof value !== 'object' || value === null) return null;
  const { hash, account, deployment, act, token, units, nonce, sentMs } = value as Record<keyof Pending, unknown>;
  if (!isText(hash, HASH) || !isText(account, ADDRESS) || !isText(token, ADDRESS)) return null;
  if (!isText(deployment, /^.{1,100}$/) || !(act === 'other' || Object.keys(SIGNATURES).includes(act as string)))
    return null;
  if (units !== null && !isText(units, /^\d{1,78}$/)) return null;
  if (nonce !== null && !isText(nonce, /^\d{1,20}$/)) return null;
  if (!isWhole(sentMs)) return null;
  return { hash, account, deployment, act: act as Act, token, units, nonce, sentMs };
}

function meaning({ to, data }: { to: string; data: string }): Pick<Pending, 'act' | 'token' | 'units'> {
  const known = (Object.keys(SIGNATURES) as Known[]).find((one) =>
    keccakText(SIGNATURES[one]).startsWith(data.slice(0, 10)),
  );
  const other = { act: 'other', token: to.toLowerCase(), units: null } as const;
  if (known === undefined) return other;
  const word = (i: number): string => data.slice(10 + 64 * i, 74 + 64 * i);
  const at = AMOUNT_AT[known];
  return {
    act: known,
    token: known === 'approve' ? other.token : `0x${word(0).slice(24)}`,
    units: at === undefined ? null : BigInt(`0x${word(at)}`).toString(),
  };
}

/** The transaction by which an act of this account would be done twice, or which it would begin with; null where none waits. */
export function sameAs(
  list: readonly Pending[],
  wanted: Pick<Pending, 'account' | 'deployment' | 'act' | 'token'>,
): Pending | null {
  const acts = [wanted.act, BEGINS_WITH[wanted.act]];
  return (
    list.find(
      ({ account, deployment, act, token }) =>
        account === wanted.account && deployment === wanted.deployment && token === wanted.token && acts.includes(act),
    ) ?? null
  );
}

export function createPendings(area: Parameters<typeof createStoredList>[0]): Pendings {
  const idOf = ({ hash }: Pending): string => hash;
  const { all, keep, onChange } = createStoredList(area, { key: KEY, entryIn: pendingIn, idOf, most: mostKept });
  const awaited = new Set<string>();
  let ended: readonly Ended[] = [];

  const without = (hash: string): Pending[] => all().filter((one) => one.hash !== hash);

  return {
    all,
    onChange,
    ended: () => ended,
    isAwaited: (hash) => awaited.has(hash),
    add(sent, call) {
      const hash = sent.hash.toLowerCase();
      awaited.add(hash);
      const account = sent.account.toLowerCase();
      keep([{ ...sent, hash, account, ...meaning(call), nonce: null, sentMs: Date.now() }, ...without(hash)]);
    },
    release(hash) {
      awaited.delete(hash);
      keep(all());
    },
    learn(hash, nonce) {
      if (all().some((one) => one.hash === hash && one.nonce === null))
        keep(all().map((one) => (one.hash === hash ? { ...one, nonce: nonce.toString() } : one)));
    },
    end(hash, fate) {
      const found = all().find((one) => one.hash === hash);
      awaited.delete(hash);
      // Another tab may have told it before.
      if (found === undefined) return;
      ended = [{ ...found, fate }, ...ended].slice(0, mostKept);
      keep(without(hash));
    },
    drop(hash) {
      awaited.delete(hash);
      ended = ended.filter((one) => one.hash !== hash);
      keep(without(hash));
    },
  };
}

/** Those of this browser. */
export const pendings = createPendings(() => localStorage);
