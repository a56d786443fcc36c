/** The newest of what was added, in bounded room. */
interface Recent<T> {
  /** False if it is among them already. */
  add(one: T): boolean;
  has(one: T): boolean;
  clear(): void;
}

export function createRecent<T>(most: number): Recent<T> {
  // In the order of insertion: the oldest comes first.
  const known = new Set<T>();
  return {
    add(one) {
      if (known.has(one)) return false;
      known.add(one);
      if (known.size > most) known.delete(known.values().next().value as T);
      return true;
    },
    has: (one) => known.has(one),
    clear: () => known.clear(),
  };
}
