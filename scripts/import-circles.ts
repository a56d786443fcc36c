/**
 * `npm run lint`: no module may import itself over others, not even for a type alone. Prints each circle, one module per line, and
 * ends with exit code 1 when there is one.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const projectRoot = fileURLToPath(new URL('..', import.meta.url));

const FOLDERS = [
  'contracts-package',
  'core',
  'ledger',
  'liquidity',
  'keepers',
  'server',
  'cli',
  'deploy',
  'examples',
  'bench',
  'test',
];

/** What each module imports or re-exports, types included, by path from the root. */
function importGraph(root: string, folders: readonly string[]): Map<string, string[]> {
  const modules = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  return new Map(modules.map((module) => [module, importsOf(root, module)]));
}

function importsOf(root: string, module: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, module), 'utf8'));
  return importedFiles
    .filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => join(root, dirname(module), fileName.replace(/\.js$/, '.ts')))
    .filter((path) => existsSync(path))
    .map((path) => relative(root, path));
}

/** The sets of modules that reach each other (Tarjan's strongly connected components), and modules that import themselves. */
export function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (module: string): void => {
    let low = order.size;
    order.set(module, low);
    lowest.set(module, low);
    open.push(module);
    for (const next of graph.get(module) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) visit(next);
      if (open.includes(next)) low = Math.min(low, lowest.get(next) ?? low);
    }
    lowest.set(module, low);
    if (low !== order.get(module)) return;
    const circle = open.splice(open.indexOf(module));
    if (circle.length > 1 || graph.get(module)?.includes(module) === true) circles.push(circle);
  };
  for (const module of graph.keys()) if (!order.has(module)) visit(module);
  return circles;
}

if (process.argv[1] === import.meta.filename) {
  const circles = circlesOf(importGraph(projectRoot, FOLDERS));
  for (const circle of circles)
    process.stderr.write(`these modules import each other:\n${circle.map((one) => `  ${one}\n`).join('')}`);
  if (circles.length > 0) process.exitCode = 1;
}
