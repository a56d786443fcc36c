/**
 * What the model checker reads: the claims unchanged, and the contracts' libraries and word types, with private functions made internal, so that
 * claims can call them, and with assembly translated to Solidity (assembly.mjs).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../console.mjs';
import { withoutAssembly } from './assembly.mjs';

/** Functions that walk over all words of a side. The compiler's queries double with each branch, so it would not finish these. */
const OMITTED = new Set(['trade', '_walk', 'bestSubticks', 'tradeStored', 'raisedUnits']);
/** One iteration of each loop over knots is checked. The compiler ignores the condition of a do-while after `continue`, so it is written there. */
const CONTINUE = { search: 'continue;', replacement: '{ --count; break; }' };

const read = (path) => readFileSync(join(projectRoot, path.startsWith('@') ? `node_modules/${path}` : path), 'utf8');

/**
 * @param {object} solc the compiler.
 * @param {(path: string, text: string) => string} [change] applied to the text of each contract first.
 * @returns {(text: string) => (path: string) => {contents: string}} of claims, what their import statements bring.
 */
export function sourcesOf(solc, change = (_, text) => text) {
  const paths = ['libraries', 'types'].flatMap((folder) =>
    readdirSync(join(projectRoot, 'contracts', folder)).map((file) => `contracts/${folder}/${file}`),
  );
  const texts = new Map(paths.map((path) => [path, change(path, read(path))]));
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries([...texts].map(([path, content]) => [path, { content }])),
    settings: { outputSelection: { '*': { '': ['ast'] } } },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: (path) => ({ contents: read(path) }) }));
  const fault = output.errors?.find(({ severity }) => severity === 'error');
  if (fault !== undefined) throw new Error(fault.formattedMessage);
  for (const [path, text] of texts) {
    const translated = withoutAssembly(output.sources[path].ast, text, OMITTED);
    texts.set(
      path,
      translated
        .replaceAll(CONTINUE.search, CONTINUE.replacement)
        .replace(/\bprivate (pure|view|constant)\b/g, 'internal $1'),
    );
  }
  return (claims) => {
    const shared = [...claims.matchAll(/ from "\.\/(\w+\.sol)";/g)].map(([, file]) => read(`test/smt/${file}`));
    const needed = namesCalledBy([claims, ...shared].join('\n'), [...texts.values()]);
    return (path) => ({ contents: texts.has(path) ? withoutFunctions(texts.get(path), needed) : read(path) });
  };
}

/** Functions of a contract or library, each with its comment; the closing brace stands at their own depth. */
export const FUNCTION = /(?<=\n)(?: {4}\/\/\/[^\n]*\n)* {4}function (\w+)\((?:(?!\n {4}\}\}?\n)[\s\S])*\n {4}\}\}?\n/g;

/** The names of all functions that a text calls, directly or by others. */
function namesCalledBy(text, sources) {
  const bodies = new Map();
  for (const [all, name] of sources.flatMap((source) => [...source.matchAll(FUNCTION)])) {
    bodies.set(name, `${bodies.get(name) ?? ''}${all.slice(all.indexOf(`function ${name}(`) + name.length + 10)}`);
  }
  const called = new Set();
  const open = [text];
  while (open.length > 0) {
    for (const [, name] of open.pop().matchAll(/\b(\w+)\(/g)) {
      if (called.has(name) || !bodies.has(name)) continue;
      called.add(name);
      open.push(bodies.get(name));
    }
  }
  return called;
}

/** A text of which functions that are not needed are left out, line by line. */
function withoutFunctions(text, needed) {
  return text.replace(FUNCTION, (all, name) => (needed.has(name) ? all : all.replace(/[^\n]/g, '')));
}
