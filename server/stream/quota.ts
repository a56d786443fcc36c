/** Counts how many of something each address has at a time. */
import { networkOf } from '../rate-limit.js';

export interface Quota {
  /** Counts one more for an IP address, of IPv6 for its network of 64 bits; false, and nothing is counted, when it has all that it may have. */
  take(address: string): boolean;
  /** Returns one that was taken. */
  give(address: string): void;
}

export function createQuota(max: number): Quota {
  const taken = new Map<string, number>();
  return {
    take(address) {
      const network = networkOf(address);
      const count = taken.get(network) ?? 0;
      if (count >= max) return false;
      taken.set(network, count + 1);
      return true;
    },
    give(address) {
      const network = networkOf(address);
      const left = (taken.get(network) ?? 0) - 1;
      if (left > 0) taken.set(network, left);
      else taken.delete(network);
    },
  };
}
