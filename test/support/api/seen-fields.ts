/** Which fields of answers ever change. */

/** Values by where they stood: `type.path`, with [] for any place in a list. */
export type Seen = Map<string, Set<string>>;

/** Notes a value and all in it. */
export function note(seen: Seen, path: string, value: unknown): void {
  const add = (text: string): void => void seen.set(path, (seen.get(path) ?? new Set()).add(text));
  if (Array.isArray(value)) {
    add(value.length === 0 ? 'nothing' : 'something');
    for (const one of value) note(seen, `${path}[]`, one);
  } else if (typeof value === 'object' && value !== null) {
    add('something');
    for (const [key, one] of Object.entries(value)) note(seen, `${path}.${key}`, one);
  } else add(JSON.stringify(value));
}

/** Paths that had one value only, with that value; and lists that were always empty. */
export const constantsOf = (seen: Seen): Record<string, string> =>
  Object.fromEntries(
    [...seen].flatMap(([path, values]) => {
      const [only = ''] = values;
      return values.size === 1 && only !== 'something' ? [[path, only] as const] : [];
    }),
  );
