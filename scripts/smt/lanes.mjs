/**
 * Claims about the lanes of `CurveMath.raisedUnits`, eight knots in one word, proved by z3 in vectors of 256 bits. The compiler's model checker
 * computes in integers and could not decide them. The terms are made of the contract's own assembly, statement by statement.
 *
 * About one iteration of its loop, in which `total` lots end before the knots that it reads, fewer than the `lots` that are consumed:
 *
 * 1. each lane becomes the length of its segment, mantissa << exponent;
 * 2. if all eight segments end before what is consumed, the iteration adds up their lengths, raises nothing and goes on with the next eight;
 * 3. else it stops at the first segment that does not, with the sum up to its end;
 * 4. and raises to that sum, times the units of a lot, unless that segment is exact or lies after the end of the side.
 *
 * And 5. if the first segment reaches what is consumed, the result is the same without the loop; else the loop begins with the first knot.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../console.mjs';

export const LANES = 'Lanes';
const PATH = 'contracts/libraries/CurveMath.sol';
const FUNCTION = 'raisedUnits';
/** After this statement of the loop the lanes hold lengths; what follows is proved of any lengths. */
const LENGTHS_DONE = /^sums := mul\(sums, /;
/** And this one, with what follows, finds the segment in sums of lengths. */
const SUMS_DONE = /^total := add\(total, /;
const KNOTS = 8;

/* TERMS */

const word = (value) => `#x${BigInt(value).toString(16).padStart(64, '0')}`;
const OPERATIONS = { add: 'bvadd', sub: 'bvsub', mul: 'bvmul', and: 'bvand', or: 'bvor', xor: 'bvxor' };
const COMPARISONS = { lt: 'bvult', gt: 'bvugt', eq: '=' };

/** A Yul expression as a vector of 256 bits. */
function termOf(node, env) {
  if (node.nodeType === 'YulLiteral') return word(node.value);
  if (node.nodeType === 'YulIdentifier') {
    const value = env.get(node.name);
    if (value === undefined) throw new Error(`nothing is known of ${node.name}`);
    return value;
  }
  const { name } = node.functionName;
  const [left, right] = node.arguments.map((argument) => termOf(argument, env));
  if (name in OPERATIONS) return `(${OPERATIONS[name]} ${left} ${right})`;
  if (name in COMPARISONS) return `(ite (${COMPARISONS[name]} ${left} ${right}) ${word(1)} ${word(0)})`;
  if (name === 'iszero') return `(ite (= ${left} ${word(0)}) ${word(1)} ${word(0)})`;
  if (name === 'shl') return `(bvshl ${right} ${left})`;
  if (name === 'shr') return `(bvlshr ${right} ${left})`;
  if (name === 'mload') {
    env.set('loaded', left);
    return 'knots';
  }
  throw new Error(`no term for ${name}`);
}

/** What variables hold after statements, as terms of definitions that `define` collects; `leaves` is whether they left a loop. */
function run(statements, before, define) {
  const env = new Map(before);
  for (const node of statements) {
    if (node.nodeType === 'YulVariableDeclaration') env.set(node.variables[0].name, define(termOf(node.value, env)));
    else if (node.nodeType === 'YulAssignment') env.set(node.variableNames[0].name, define(termOf(node.value, env)));
    else if (node.nodeType === 'YulBreak') env.set('leaves', word(1));
    else if (node.nodeType === 'YulIf') {
      const condition = define(termOf(node.condition, env));
      const inside = run(node.body.statements, env, define);
      for (const name of env.keys()) {
        if (env.get(name) === inside.get(name)) continue;
        env.set(name, define(`(ite (= ${condition} ${word(0)}) ${env.get(name)} ${inside.get(name)})`));
      }
    } else throw new Error(`no terms for ${node.nodeType}`);
  }
  return env;
}

/** Definitions that terms share, so that no term is written twice. */
function definitions(prefix) {
  const lines = [];
  const define = (term) => {
    const name = `${prefix}${lines.length}`;
    lines.push(`(define-fun ${name} () (_ BitVec 256) ${term})`);
    return name;
  };
  return { lines, define };
}

const declared = (names) => names.map((name) => `(declare-const ${name} (_ BitVec 256))`);
const below = (name, power) => `(assert (bvult ${name} ${word(1n << BigInt(power))}))`;

/* THE CONTRACT */

function visit(node, see) {
  if (node === null || typeof node !== 'object') return;
  see(node);
  for (const child of Object.values(node)) visit(child, see);
}

/** The assembly of the function in a text of the contract: what stands before its branch, the branch, and the body of the loop. */
function assemblyOf(solc, text) {
  const read = (path) => readFileSync(join(projectRoot, path), 'utf8');
  const input = {
    language: 'Solidity',
    sources: { [PATH]: { content: text } },
    settings: { outputSelection: { '*': { '': ['ast'] } } },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: (path) => ({ contents: read(path) }) }));
  const constants = new Map();
  let found;
  visit(output.sources[PATH].ast, (node) => {
    if (node.nodeType === 'VariableDeclaration' && node.constant === true && node.value?.nodeType === 'Literal')
      constants.set(node.name, node.value.value);
    if (node.nodeType !== 'FunctionDefinition' || node.name !== FUNCTION) return;
    visit(node.body, (block) => {
      if (block.nodeType === 'InlineAssembly') found = block.AST.statements;
    });
  });
  const at = found.findIndex(({ nodeType }) => nodeType === 'YulSwitch');
  const [first, others] = found[at].cases;
  const loop = others.body.statements.findIndex(({ nodeType }) => nodeType === 'YulForLoop');
  return {
    constants: new Map([...constants].map(([name, value]) => [name, word(value)])),
    before: found.slice(0, at),
    condition: found[at].expression,
    first: first.body.statements,
    intoLoop: others.body.statements.slice(0, loop),
    body: others.body.statements[loop].body.statements,
    sourceOf: ({ src }) => {
      const [start, length] = src.split(':').map((part) => Number.parseInt(part, 10));
      return Buffer.from(text)
        .subarray(start, start + length)
        .toString();
    },
  };
}

/* CLAIMS */

/** The length of the i-th segment of a word of knots, as KnotLibrary has it. */
function lengthOf(knots, i) {
  const bits = (high, low) => `((_ zero_extend ${256 - (high - low + 1)}) ((_ extract ${high} ${low}) ${knots}))`;
  return `(bvshl ${bits(255 - 32 * i, 244 - 32 * i)} ${bits(243 - 32 * i, 240 - 32 * i)})`;
}

const laneOf = (lanes, i) => `((_ zero_extend 224) ((_ extract ${255 - 32 * i} ${224 - 32 * i}) ${lanes}))`;
const sum = (terms) => terms.reduce((all, term) => `(bvadd ${all} ${term})`);
const refute = (claim) => `(assert (not ${claim}))`;

/**
 * @param {object} solc the compiler.
 * @param {string} [text] the contract, if not as it stands.
 * @returns {{name: string, query: string}[]} claims; one holds when its query has no model.
 */
export function laneClaims(solc, text = readFileSync(join(projectRoot, PATH), 'utf8')) {
  const code = assemblyOf(solc, text);
  const cutAt = (pattern) => {
    const index = code.body.findIndex((statement) => pattern.test(code.sourceOf(statement)));
    if (index < 0) throw new Error(`the loop has no statement like ${pattern}`);
    return index;
  };
  const [lengthsDone, sumsDone] = [cutAt(LENGTHS_DONE), cutAt(SUMS_DONE)];
  const start = ['at', 'end', 'exactEnd', 'exactKnots', 'lots', 'total', 'lotUnits', 'consumed', 'knots', 'lanes'];
  const bounds = [below('at', 64), below('end', 64), below('total', 32), below('lots', 93), below('exactKnots', 4)];
  const query = (lines) => ['(set-logic QF_BV)', ...declared(start), ...lines, '(check-sat)'].join('\n');
  const env = () =>
    new Map([...code.constants, ...start.map((name) => [name, name]), ['raised', word(0)], ['leaves', word(0)]]);
  const claims = [];

  const { lines: lengthLines, define: defineLength } = definitions('length');
  const lengths = run(code.body.slice(0, lengthsDone), env(), defineLength);
  claims.push({
    name: 'eight knots are read, and the next ones stand behind them',
    query: query([
      ...lengthLines,
      refute(`(and (= ${lengths.get('loaded')} at) (= ${lengths.get('at')} (bvadd at ${word(32)})))`),
    ]),
  });
  for (let i = 0; i < KNOTS; ++i) {
    const isLength = `(= ${laneOf(lengths.get('sums'), i)} ${lengthOf('knots', i)})`;
    claims.push({ name: `lane ${i} is a length`, query: query([...lengthLines, refute(isLength)]) });
  }

  const lane = Array.from({ length: KNOTS }, (_, i) => laneOf('lanes', i));
  const { lines: sumLines, define: defineSum } = definitions('sum');
  const sums = run(code.body.slice(lengthsDone, sumsDone), new Map([...env(), ['sums', 'lanes']]), defineSum);
  for (let i = 0; i < KNOTS; ++i) {
    const isSum = `(= ${laneOf(sums.get('sums'), i)} ${sum(lane.slice(i))})`;
    const narrow = lane.map((each) => below(each, 27));
    claims.push({ name: `lane ${i} holds all from it on`, query: query([...narrow, ...sumLines, refute(isSum)]) });
  }

  // From here on a lane holds the sum of its own length and those of the later segments: falling, and below 2^30.
  const { lines, define } = definitions('turn');
  const turn = run(
    code.body.slice(sumsDone),
    new Map([...env(), ['sums', 'lanes'], ['at', `(bvadd at ${word(32)})`]]),
    define,
  );
  const falling = lane.map((each, i) => (i === 0 ? below(each, 30) : `(assert (bvule ${each} ${lane[i - 1]}))`));
  const endOf = (count) => `(bvsub (bvadd total ${lane[0]}) ${count === KNOTS ? word(0) : lane[count]})`;
  const turned = [...bounds, '(assert (bvult total lots))', ...falling, ...lines];
  const isLeft = `(= ${turn.get('leaves')} ${word(1)})`;
  const passes = `(and (not ${isLeft}) (= ${turn.get('total')} ${endOf(KNOTS)}) (= ${turn.get('raised')} ${word(0)})
    (= ${turn.get('at')} (bvadd at ${word(32)})))`;
  claims.push({
    name: 'eight segments are passed by',
    query: query([...turned, `(assert (bvult ${endOf(KNOTS)} lots))`, refute(passes)]),
  });
  for (let i = 0; i < KNOTS; ++i) {
    const ends = `(and ${isLeft} (= ${turn.get('total')} ${endOf(i + 1)}) (= ${turn.get('at')} (bvadd at ${word(4 * i)})))`;
    claims.push({
      name: `it ends in segment ${i}`,
      query: query([
        ...turned,
        `(assert (bvuge ${endOf(i + 1)} lots))`,
        `(assert (bvult ${endOf(i)} lots))`,
        refute(ends),
      ]),
    });
  }

  // The raise for any end of the walk: products of two unknowns occur on both sides and are only compared with each other.
  const [last] = code.body.slice(-1);
  const raise = last.body.statements.find((each) => code.sourceOf(each).startsWith('raised :='));
  const raisedBy = `(ite (and (bvugt at exactEnd) (bvult at end)) (bvsub product consumed) ${word(0)})`;
  const product = '(declare-const product (_ BitVec 256))';
  const ofProduct = (term) => term.replace('(bvmul total lotUnits)', 'product');
  claims.push({
    name: 'it raises to the end of the segment',
    query: query([product, refute(`(= ${ofProduct(termOf(raise.value, env()))} ${raisedBy})`)]),
  });

  const { lines: firstLines, define: defineFirst } = definitions('first');
  const begun = run(code.before, new Map([...env(), ['at', 'side']]), defineFirst);
  const entered = run(code.intoLoop, begun, defineFirst);
  const side = ['(declare-const side (_ BitVec 256))', below('side', 64), ...bounds];
  const reaches = `(= ${termOf(code.condition, begun)} ${word(0)})`;
  const firstLength = lengthOf('knots', 0);
  const raisedFirst = ofProduct(
    termOf(code.first[0].value, new Map([...begun, ['total', 'total'], ['at', `(bvadd side ${word(4)})`]])),
  );
  claims.push(
    {
      name: 'the first segment is looked at first',
      query: query([
        ...side,
        ...firstLines,
        refute(
          `(and (= ${begun.get('loaded')} (bvadd side ${word(4)})) (= ${begun.get('total')} ${firstLength}) (= ${begun.get('at')} (bvadd side ${word(4)})) (= ${reaches} (bvuge ${firstLength} lots)))`,
        ),
      ]),
    },
    {
      name: 'the first segment raises as the loop does',
      query: query([
        ...side,
        product,
        `(assert (= at (bvadd side ${word(4)})))`,
        `(assert (= exactEnd (bvadd side (bvshl exactKnots ${word(2)}))))`,
        ...firstLines,
        refute(`(and (= exactEnd ${begun.get('exactEnd')}) (= ${raisedFirst} ${raisedBy}))`),
      ]),
    },
    {
      name: 'the loop begins with nothing',
      query: query([
        ...side,
        ...firstLines,
        refute(`(and (= ${entered.get('total')} ${word(0)}) (= ${entered.get('at')} (bvadd side ${word(4)})))`),
      ]),
    },
  );
  return claims;
}
