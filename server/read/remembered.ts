/** A value that was made for a name and serves for as long as the name is the same. */
export interface Remembered<T> {
  /**
   * The value of this name, made at most once however many ask at the same time. `make` must read what is newer than the name or as new,
   * so that a value is never older than its name says. What fails is made anew for the next who asks.
   */
  get(name: string, make: () => Promise<T>): Promise<T>;
}

/** Holds one value, that of the newest name. */
export function createRemembered<T>(): Remembered<T> {
  let last: { name: string; value: Promise<T> } | null = null;
  return {
    get(name, make) {
      if (last?.name === name) return last.value;
      const made = { name, value: make() };
      last = made;
      made.value.catch(() => {
        if (last === made) last = null;
      });
      return made.value;
    },
  };
}
