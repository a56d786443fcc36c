/**
 * A list that outlives the page in the storage of the browser. What is stored may have been written by anybody: it is read as such, and of each entry only
 * fields of a known form.
 */

type Area = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export interface StoredList<T> {
  /** The same array until something changes. */
  all(): readonly T[];
  /** These from now on; beyond the most that are kept, the last ones are not. */
  keep(list: readonly T[]): void;
  /** Returns what ends the listening. */
  onChange(listener: () => void): () => void;
}

interface Kind<T> {
  key: string;
  /** An entry, if it is one. */
  entryIn(value: unknown): T | null;
  /** Each is kept once. */
  idOf(one: T): string;
  most: number;
}

/** Where nothing may be stored, the list lasts as long as the page. */
export function createStoredList<T>(area: () => Area, { key, entryIn, idOf, most }: Kind<T>): StoredList<T> {
  const listeners = new Set<() => void>();
  let held: { text: string | null; list: readonly T[] } = { text: null, list: [] };
  /** Once something could not be stored, what the page holds is all that there is. */
  let isStored = true;

  function listIn(text: string | null): T[] {
    let list: unknown;
    try {
      list = JSON.parse(text ?? '[]');
    } catch {
      return [];
    }
    const byId = new Map<string, T>();
    for (const value of Array.isArray(list) ? (list as unknown[]).slice(0, most) : []) {
      const one = entryIn(value);
      if (one !== null && !byId.has(idOf(one))) byId.set(idOf(one), one);
    }
    return [...byId.values()];
  }

  return {
    all() {
      if (!isStored) return held.list;
      try {
        // Other tabs write, too.
        const text = area().getItem(key);
        if (text !== held.text) held = { text, list: listIn(text) };
      } catch {
        isStored = false;
      }
      return held.list;
    },
    keep(list) {
      const kept = list.slice(0, most);
      const text = kept.length === 0 ? null : JSON.stringify(kept);
      held = { text, list: kept };
      try {
        if (text === null) area().removeItem(key);
        else area().setItem(key, text);
      } catch {
        isStored = false;
      }
      listeners.forEach((listener) => listener());
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Whether something that was stored is a text of this form. */
export const isText = (value: unknown, form: RegExp): value is string => typeof value === 'string' && form.test(value);

/** Whether it is a whole number, such as a time. */
export const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
