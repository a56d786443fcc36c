#!/usr/bin/env node
/**
 * `npm run coverage`: which lines and branches of the contracts the Solidity tests reach, by Hardhat's coverage; fails below the floors.
 * Mocks are left out. Hardhat counts statements only, so contracts and tests are copied, with an extra statement on a line of its own at the
 * start of each arm of each `if`; a missing `else` is added. The coverage of these lines is that of branches, the coverage of the others that
 * of lines. Conditional expressions, and loops whose body is never executed, are not counted as branches.
 */
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { ensureCompiled } from './compile.mjs';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { createCompiler } from './mutation/compiler.mjs';
import { ensureNode } from './node-version.mjs';
import { run } from './process.mjs';

const FLOOR_PERCENT = { lines: 98, branches: 92 };
const FOLDER = 'coverage';
const MARK = '\n0;\n';

await ensureNode();
await ensureInstalled();
await ensureCompiled();
rmSync(join(projectRoot, FOLDER), { recursive: true, force: true });
cpSync(join(projectRoot, 'test', 'solidity'), join(projectRoot, FOLDER, 'test', 'solidity'), { recursive: true });
const compiler = createCompiler();
/** By file, for each line of the copy: the line of the original, or minus that line for a mark. */
const places = new Map();
for (const file of sourcesOf('contracts')) {
  const source = readFileSync(join(projectRoot, file));
  const { text, lines } = file.startsWith('contracts/mocks/')
    ? { text: source.toString('utf8'), lines: [] }
    : marked(source, compiler.treeOf(file));
  const copy = `${FOLDER}/${file}`;
  mkdirSync(dirname(join(projectRoot, copy)), { recursive: true });
  writeFileSync(join(projectRoot, copy), text);
  places.set(copy, lines);
}

const hardhat = createRequire(import.meta.url)
  .resolve('hardhat/package.json')
  .replace('package.json', 'dist/src/cli.js');
const { code, output } = await run(process.execPath, [hardhat, 'test', 'solidity', '--coverage'], {
  env: { SOLIDITY_ROOT: FOLDER, SOLIDITY_RUNS: 'quick' },
});
if (code !== 0) {
  process.stdout.write(output);
  say(`the tests ended with code ${code}`);
  process.exit(1);
}

const totals = { lines: [0, 0], branches: [0, 0] };
const missed = [];
for (const [file, found] of reported(readFileSync(join(projectRoot, FOLDER, 'lcov.info'), 'utf8'))) {
  const lines = places.get(file);
  if (lines === undefined || lines.length === 0) continue;
  const name = file.slice(FOLDER.length + 1);
  const own = { lines: [0, 0], branches: [0, 0] };
  for (const [line, hit] of found) {
    const place = lines[line - 1];
    const kind = place < 0 ? 'branches' : 'lines';
    own[kind][1] += 1;
    if (hit) own[kind][0] += 1;
    else missed.push(`${name}:${Math.abs(place)} ${kind === 'lines' ? 'line' : 'branch'} not reached`);
  }
  for (const kind of ['lines', 'branches']) own[kind].forEach((value, i) => (totals[kind][i] += value));
  say(`${name.padEnd(44)} lines ${shown(own.lines)}  branches ${shown(own.branches)}`);
}
missed.forEach((one) => say(one));
say(`${'all'.padEnd(44)} lines ${shown(totals.lines)}  branches ${shown(totals.branches)}`);
const enough = Object.entries(FLOOR_PERCENT).every(([kind, floor]) => {
  const [hit, all] = totals[kind];
  if (all > 0 && hit * 100 >= floor * all) return true;
  say(`coverage of ${kind} is below ${floor} %`);
  return false;
});
process.exitCode = enough ? 0 : 1;

function shown([hit, all]) {
  const permille = all === 0 ? 1000 : Math.floor((hit * 1000) / all);
  return `${`${hit}/${all}`.padStart(9)} ${`${Math.floor(permille / 10)}.${permille % 10}`.padStart(5)} %`;
}

/** @returns {Map<string, [number, boolean][]>} lines with statements and whether they were reached, by file */
function reported(lcov) {
  const files = new Map();
  let lines = [];
  for (const row of lcov.split('\n')) {
    if (row.startsWith('SF:')) files.set(row.slice(3), (lines = []));
    const match = /^DA:(\d+),(\d+)/.exec(row);
    if (match !== null) lines.push([parseInt(match[1], 10), match[2] !== '0']);
  }
  return files;
}

function sourcesOf(folder) {
  return readdirSync(join(projectRoot, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
    .sort();
}

/** The source with its marks, and where each of its lines comes from. */
function marked(source, ast) {
  const insertions = [];
  let nesting = 0;
  const insert = (at, text) => insertions.push({ at, text, nesting, index: insertions.length });
  visit(ast, (node) => {
    if (node.nodeType !== 'IfStatement') return;
    ++nesting;
    mark(node.trueBody);
    if (node.falseBody) mark(node.falseBody);
    else insert(endOf(source, node.trueBody), ` else {${MARK}}`);
  });

  function mark(body) {
    const start = startOf(body);
    if (body.nodeType === 'Block') return insert(start + 1, MARK);
    insert(start, `{${MARK}`);
    insert(endOf(source, body), '}');
  }

  // At one place, closing braces come from the innermost statement outwards; other insertions in the order in which they were found.
  const order = insertions.sort(
    (a, b) => a.at - b.at || (closes(a) && closes(b) ? b.nesting - a.nesting : 0) || a.index - b.index,
  );
  let text = '';
  let from = 0;
  for (const { at, text: added } of order) {
    text += source.subarray(from, at).toString('utf8') + added;
    from = at;
  }
  text += source.subarray(from).toString('utf8');

  const lines = [];
  let original = 1;
  const rows = text.split('\n');
  for (let i = 0; i < rows.length; ++i) {
    const isMark = rows[i] === '0;';
    lines.push(isMark ? -original : original);
    // A mark takes two line breaks that the original does not have: the one before it and its own.
    const addedBreak = isMark || rows[i + 1] === '0;';
    if (!addedBreak) ++original;
  }
  return { text, lines };
}

function closes({ text }) {
  return text === '}' || text.startsWith(' else');
}

function startOf(node) {
  return parseInt(node.src.split(':')[0], 10);
}

function endOf(source, node) {
  if (node.nodeType === 'IfStatement') return endOf(source, node.falseBody ?? node.trueBody);
  if (node.nodeType === 'ForStatement' || node.nodeType === 'WhileStatement') return endOf(source, node.body);
  const [start, length] = node.src.split(':').map((part) => parseInt(part, 10));
  return node.nodeType === 'Block' ? start + length : source.indexOf(';', start + length - 1) + 1;
}

function visit(node, see) {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) return node.forEach((one) => visit(one, see));
  if (typeof node.nodeType === 'string') see(node);
  for (const value of Object.values(node)) visit(value, see);
}
