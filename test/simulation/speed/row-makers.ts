/** The functions that better-sqlite3 compiles to make rows of, by their text: it compiles one per prepared statement, and every process prepares its own. */

type Maker = (...values: unknown[]) => object;

const makers = new Map<string, () => Maker>();

/** Installs them; the returned function takes them away again. */
export function installRowMakers(): () => void {
  const original = globalThis.Function;
  globalThis.Function = new Proxy(original, {
    apply(target, self, args: string[]) {
      const [text = ''] = args;
      if (args.length !== 1 || !text.startsWith('return (v0')) return Reflect.apply(target, self, args) as unknown;
      let make = makers.get(text);
      if (make === undefined) {
        const maker = (Reflect.apply(target, self, args) as () => Maker)();
        makers.set(text, (make = () => maker));
      }
      return make;
    },
  });
  return () => {
    globalThis.Function = original;
  };
}
