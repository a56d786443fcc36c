/** What becomes of a transaction that was sent: looked for until it has a receipt, or another one has used up its nonce. */
import type { Provider } from './provider.js';

export type Fate = 'mined' | 'reverted' | 'replaced';

/** Behind one endpoint are several nodes, which are not equally far. */
const REPLACED_LOOKS = 3;
/** A wallet that does not answer is asked anew. */
const LOOK_MS = 30_000;

export interface Look {
  /** Null while it waits. Rejects where nobody could be asked, which says nothing of the transaction. */
  look(): Promise<Fate | null>;
  /** Null until a node has shown it, and for a transaction that another account carries. */
  nonce(): bigint | null;
}

/** Looks for one transaction of an account; `reads` must answer for the chain that it was sent on alone, whose nonces these are. */
export function createLook(
  reads: Provider,
  { hash, account, nonce: known }: { hash: string; account: string; nonce: string | null },
): Look {
  const ask = (method: string, ...params: unknown[]): Promise<unknown> => reads.request({ method, params });
  let nonce = known === null ? null : BigInt(known);
  let looksReplaced = 0;
  return {
    nonce: () => nonce,
    async look() {
      const sent = (await ask('eth_getTransactionByHash', hash)) as { nonce?: unknown; from?: unknown } | null;
      // What a smart account does is carried by a transaction of somebody else, with another count.
      const isOwn = typeof sent?.from !== 'string' || sent.from.toLowerCase() === account.toLowerCase();
      if (typeof sent?.nonce === 'string' && isOwn) nonce = BigInt(sent.nonce);
      const count = BigInt((await ask('eth_getTransactionCount', account, 'latest')) as string);
      // Asked last: whatever was counted has its receipt by now.
      const receipt = (await ask('eth_getTransactionReceipt', hash)) as { status?: string } | null | undefined;
      if (receipt !== null && receipt !== undefined) return receipt.status === '0x1' ? 'mined' : 'reverted';
      looksReplaced = nonce !== null && count > nonce ? looksReplaced + 1 : 0;
      return looksReplaced >= REPLACED_LOOKS ? 'replaced' : null;
    },
  };
}

export interface Time {
  now(): number;
  pause(ms: number): Promise<unknown>;
  lookMs?: number;
}

const CLOCK: Time = { now: () => Date.now(), pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };

/** Looks again and again until it is known what became of it; null after `forMs`. A look that fails is only one less. */
export async function fateOf(
  { look }: Look,
  { forMs, everyMs, onLook }: { forMs: number; everyMs: number; onLook(): void },
  { now, pause, lookMs = LOOK_MS }: Time = CLOCK,
): Promise<Fate | null> {
  for (const endMs = now() + forMs; now() < endMs;) {
    const fate = await within(lookMs, look()).catch(() => null);
    onLook();
    if (fate !== null) return fate;
    await pause(everyMs);
  }
  return null;
}

async function within<T>(ms: number, job: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  return Promise.race([job, late]).finally(() => clearTimeout(timer));
}
