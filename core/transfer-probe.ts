/**
 * Measures what a transfer of a token takes and what arrives, by an `eth_call`, without a transaction: the node runs a measuring program
 * (contracts/periphery/TransferProbe.sol) in place of the code of an account that has the token, by the third argument of `eth_call` (state
 * override). It needs neither the token's storage layout nor a private key.
 */
import { wordOf } from './amounts.js';
import type { Address, Hex } from './types.js';

/** One transfer in the smallest units. Of an honest token the amount asked for is taken, and the same amount arrives. */
export interface MeasuredTransfer {
  from: Address;
  to: Address;
  amountUnits: bigint;
  takenUnits: bigint;
  receivedUnits: bigint;
  /** The call succeeded and returned true or nothing. Otherwise the transfer was refused and shows nothing about fees. */
  agreed: boolean;
}

/** Transfers along `route`: from the first to the second, from there to the third, and so on. */
interface TransferRoute {
  token: Address;
  /** At least two, none twice. */
  route: readonly Address[];
  /** Largest amount of each transfer; it is also at most half of what the sending account has at that moment. */
  maximumUnits: bigint;
}

const NOBODY: Address = `0x${'0'.repeat(40)}`;
const WORD_DIGITS = 64;
const WORDS_PER_TRANSFER = 4;

/** Parameters of the `eth_call` that measures a route. `program` is the creation code of TransferProbe. */
export function transferProbe(program: Hex, { token, route, maximumUnits }: TransferRoute): unknown[] {
  const senders = route.slice(0, -1);
  const codeOf = (i: number): string =>
    program + [token, route[i + 1]!, maximumUnits, senders[i + 1] ?? NOBODY].map(wordOf).join('');
  const replaced = Object.fromEntries(senders.map((from, i) => [from, { code: codeOf(i) }]));
  return [{ to: senders[0], data: '0x' }, 'latest', replaced];
}

/**
 * The call's result, transfer by transfer; null when the endpoint did not run the program, for example because it ignores the third
 * argument.
 */
export function parseTransferProbe({ route }: TransferRoute, answer: unknown): MeasuredTransfer[] | null {
  const digits = typeof answer === 'string' && /^0x[0-9a-f]*$/i.test(answer) ? answer.slice(2) : '';
  if (digits.length !== (route.length - 1) * WORDS_PER_TRANSFER * WORD_DIGITS) return null;
  const words = Array.from({ length: digits.length / WORD_DIGITS }, (_, i) =>
    BigInt(`0x${digits.slice(i * WORD_DIGITS, (i + 1) * WORD_DIGITS)}`),
  );
  return route.slice(0, -1).map((from, i) => {
    const [amountUnits, takenUnits, receivedUnits, agreed] = words.slice(i * WORDS_PER_TRANSFER) as [
      ...[bigint, bigint, bigint, bigint],
    ];
    return { from, to: route[i + 1]!, amountUnits, takenUnits, receivedUnits, agreed: agreed === 1n };
  });
}

/** Whether a transfer took or delivered another amount than asked for; false for one that the token refused. */
export const isUneven = ({ agreed, amountUnits, takenUnits, receivedUnits }: MeasuredTransfer): boolean =>
  agreed && (takenUnits !== amountUnits || receivedUnits !== amountUnits);
