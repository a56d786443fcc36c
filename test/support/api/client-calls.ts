/** Records which methods of published clients work in tests, and compares them with the table of the guide. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

/** Methods of one client by the results of their calls. */
interface ClientCalls {
  /** Worked at least once. */
  readonly works: Set<string>;
  /** Every refusal, by method. */
  readonly refusals: Map<string, string[]>;
}

export const noCalls = (): ClientCalls => ({ works: new Set(), refusals: new Map() });

const textOf = (error: unknown): string => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));

/** The refusal in the answer of a client that does not throw when an action is refused. */
function refusalIn(answer: unknown): string | null {
  const { status, response } = (answer ?? {}) as { status?: unknown; response?: unknown };
  return status === 'err' ? String(response) : null;
}

/** Methods that do not depend on this venue. */
const OWN: ReadonlySet<string> = new Set(['close', 'sleep']);

/** A client whose asynchronous methods are noted when they are called from outside; those that it calls by itself are not. */
export function recording<T extends object>(client: T, calls: ClientCalls, prefix = ''): T {
  const note = (name: string, text: string): void =>
    void calls.refusals.set(name, [...(calls.refusals.get(name) ?? []), text]);
  return new Proxy(client, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function' || typeof key !== 'string' || OWN.has(key)) return value;
      return (...args: unknown[]): unknown => {
        const result: unknown = value.apply(target, args);
        if (!(result instanceof Promise)) return result;
        const name = prefix + key;
        return result.then(
          (answer: unknown) => {
            const refusal = refusalIn(answer);
            if (refusal === null) calls.works.add(name);
            else note(name, refusal);
            return answer;
          },
          (error: unknown) => {
            note(name, textOf(error));
            throw error;
          },
        );
      };
    },
  });
}

const captures = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, one]) => one!);
const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The rows of the tables below a heading of the guide, cell by cell. */
function tablesOf(heading: string): string[][] {
  const guide = readFileSync(fileURLToPath(new URL('../../../docs/orders.md', import.meta.url)), 'utf8');
  const [, section] = guide.split(`\n${heading}\n`);
  expect(section, heading).to.be.a('string');
  return section!
    .split(/^#{1,3} /m)[0]!
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.startsWith('|---'))
    .map(cellsOf);
}

/**
 * Checks that the guide's table of a client's methods matches their results: each that worked, and each that is refused, with a part of its
 * answer.
 */
export function expectDocumented(client: string, { works, refusals }: ClientCalls): void {
  const [head, ...rows] = tablesOf('### What works');
  const column = head!.indexOf(client);
  expect(column, `a column of ${client}`).to.be.greaterThan(0);
  const listed = rows.flatMap((cells) => captures(cells[column] ?? '', /`([\w.]+)`/g));
  expect([...works].sort(), `methods of ${client} that work`).to.deep.equal([...listed].sort());
  const refused = tablesOf('### What is refused')
    .slice(1)
    .filter(([name]) => name === client)
    .flatMap(([, methods, answer]) =>
      captures(methods!, /`([\w.]+)`/g).map((method) => [method, captures(answer!, /`([^`]+)`/g)[0]!] as const),
    );
  const never = [...refusals.keys()].filter((name) => !works.has(name));
  expect(never.sort(), `methods of ${client} that are refused`).to.deep.equal(refused.map(([name]) => name).sort());
  for (const [name, answer] of refused) for (const text of refusals.get(name)!) expect(text, name).to.include(answer);
}
