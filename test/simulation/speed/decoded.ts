/** What ethers decoded, by its text: several processes read the same answers, and each look at a transaction decodes it anew. */
import { Interface, type Result, type TransactionDescription } from 'ethers';

/** Texts kept per interface; more than a block's processes read of it. */
const MOST_KEPT = 1_000;

/** By interface, and by what is decoded. What ethers returns can't be changed, so that all may have the same. */
function kept<T extends object | null>(): (of: Interface, key: string, decode: () => T) => T {
  const byInterface = new WeakMap<Interface, Map<string, T>>();
  return (of, key, decode) => {
    let known = byInterface.get(of);
    if (known === undefined) byInterface.set(of, (known = new Map()));
    const before = known.get(key);
    if (before !== undefined) return before;
    const value = decode();
    if (known.size >= MOST_KEPT) known.clear();
    known.set(key, value);
    return value;
  };
}

/** Installs it; the returned function takes it away again. */
export function installDecodedOnce(): () => void {
  const { prototype } = Interface;
  const { decodeFunctionResult, parseTransaction } = prototype;
  const results = kept<Result>();
  const transactions = kept<TransactionDescription | null>();
  prototype.decodeFunctionResult = function (this: Interface, fragment, data) {
    const decode = (): Result => decodeFunctionResult.call(this, fragment, data);
    return typeof fragment === 'string' && typeof data === 'string'
      ? results(this, `${fragment} ${data}`, decode)
      : decode();
  };
  prototype.parseTransaction = function (this: Interface, tx) {
    const decode = (): TransactionDescription | null => parseTransaction.call(this, tx);
    return tx.value === undefined ? transactions(this, tx.data, decode) : decode();
  };
  return () => {
    Object.assign(prototype, { decodeFunctionResult, parseTransaction });
  };
}
