/**
 * Mutants of a Solidity source: small changes of one expression or statement each, found in the compiler's syntax tree. Pure: text and
 * tree in, list out.
 */

/**
 * @typedef {object} Mutant
 * @property {string} file source name, such as `contracts/CurveBook.sol`
 * @property {string} kind what was changed, such as `bound` or `dropped check`
 * @property {number} line
 * @property {number} start offset of the change in the source's bytes
 * @property {number} length
 * @property {string} original
 * @property {string} replacement
 */

/** Operators by kind; each is tried with each of its replacements. */
const BINARY = {
  bound: { '<': ['<='], '<=': ['<'], '>': ['>='], '>=': ['>'] },
  comparison: { '==': ['!='], '!=': ['=='], '<': ['>='], '>': ['<='], '<=': ['>'], '>=': ['<'] },
  arithmetic: { '+': ['-'], '-': ['+'], '*': ['/'], '/': ['*'], '%': ['*'] },
  bits: { '<<': ['>>'], '>>': ['<<'], '&': ['|'], '|': ['&'] },
  logic: { '&&': ['||'], '||': ['&&'] },
};
const ASSIGNMENT = { '+=': '-=', '-=': '+=', '|=': '&=', '<<=': '>>=' };
/** The same operators in assembly. A bound is changed by adding equality to a comparison, or by removing it. */
const BUILTIN = {
  add: 'sub',
  sub: 'add',
  mul: 'div',
  div: 'mul',
  and: 'or',
  or: 'and',
  xor: 'or',
  shl: 'shr',
  shr: 'shl',
};
const BUILTIN_KIND = { and: 'bits', or: 'bits', xor: 'bits', shl: 'bits', shr: 'bits' };
/** Assembly has no semicolon to leave out. */
const YUL_NOTHING = '{ }';
/** Without it a contract does not compile. */
const KEPT_MODIFIERS = new Set(['initializer']);

/**
 * @param {string} file
 * @param {Buffer} source
 * @param {any} ast of the file
 * @returns {Mutant[]} in the order of the source
 */
export function mutantsOf(file, source, ast) {
  /** @type {Mutant[]} */
  const found = [];
  const text = (node) => {
    const [start, length] = placeOf(node);
    return source.subarray(start, start + length).toString('utf8');
  };
  const add = (kind, node, replacement) => {
    const [start, bare] = placeOf(node);
    // The tree leaves out the semicolon of a statement, which can't stand alone.
    const length = replacement === '{}' ? source.indexOf(';', start + bare) + 1 - start : bare;
    found.push({
      file,
      kind,
      line: lineOf(source, start),
      start,
      length,
      original: source.subarray(start, start + length).toString('utf8'),
      replacement,
    });
  };
  walk(ast, (node, parent) => {
    switch (node.nodeType) {
      case 'BinaryOperation':
        mutateBinary(node, text, add);
        break;
      case 'UnaryOperation':
        if (node.operator === '!' || node.operator === '~') add('negation', node, text(node.subExpression));
        break;
      case 'Conditional': {
        const { condition, trueExpression: yes, falseExpression: no } = node;
        add('branches', node, `(${text(condition)} ? ${text(no)} : ${text(yes)})`);
        break;
      }
      case 'Literal':
        if (node.kind === 'bool') add('constant', node, node.value === 'true' ? 'false' : 'true');
        else if (node.kind === 'number' && parent.nodeType !== 'VariableDeclaration' && !node.subdenomination)
          add('constant', node, `(${text(node)} + 1)`);
        break;
      case 'Assignment':
        if (ASSIGNMENT[node.operator] !== undefined)
          add(
            'assignment',
            node,
            `${text(node.leftHandSide)} ${ASSIGNMENT[node.operator]} ${text(node.rightHandSide)}`,
          );
        break;
      case 'IfStatement':
        add('dropped check', node.condition, 'false');
        add('forced branch', node.condition, 'true');
        break;
      case 'ExpressionStatement':
        if (parent.nodeType !== 'ForStatement') add('dropped statement', node, '{}');
        break;
      case 'EmitStatement':
      case 'RevertStatement':
        add('dropped statement', node, '{}');
        break;
      case 'YulFunctionCall':
        mutateBuiltin(node, text, add);
        break;
      case 'YulLiteral':
        if (node.kind === 'number' && parent.nodeType !== 'YulForLoop') add('constant', node, increased(text(node)));
        break;
      case 'YulIf':
        add('dropped check', node.condition, '0');
        add('forced branch', node.condition, '1');
        break;
      case 'YulExpressionStatement':
      case 'YulAssignment':
        add('dropped statement', node, YUL_NOTHING);
        break;
      case 'ModifierInvocation':
        if (node.kind !== 'baseConstructorSpecifier' && !KEPT_MODIFIERS.has(text(node)))
          add('dropped modifier', node, '');
        break;
    }
  });
  return found.sort((a, b) => a.start - b.start || a.length - b.length);
}

function mutateBuiltin(node, text, add) {
  const { name } = node.functionName;
  const [left, right] = node.arguments.map(text);
  if (name === 'lt' || name === 'gt') {
    add('bound', node, `iszero(${name === 'lt' ? 'gt' : 'lt'}(${left}, ${right}))`);
    add('comparison', node, `iszero(${text(node)})`);
  } else if (name === 'eq') add('comparison', node, `iszero(${text(node)})`);
  else if (name === 'iszero') add('negation', node, left);
  else if (BUILTIN[name] !== undefined)
    add(BUILTIN_KIND[name] ?? 'arithmetic', node, `${BUILTIN[name]}(${left}, ${right})`);
}

/** A number of assembly plus one, as it is written. */
function increased(number) {
  const next = BigInt(number) + 1n;
  return number.startsWith('0x') ? `0x${next.toString(16)}` : `${next}`;
}

function mutateBinary(node, text, add) {
  const [left, right] = [text(node.leftExpression), text(node.rightExpression)];
  for (const [kind, operators] of Object.entries(BINARY)) {
    for (const operator of operators[node.operator] ?? []) add(kind, node, `${left} ${operator} ${right}`);
  }
  // a + b - 1 before a division is how to round up.
  const inner = node.leftExpression;
  if (node.operator === '-' && right === '1' && inner.nodeType === 'BinaryOperation' && inner.operator === '+')
    add('rounding', node, text(inner.leftExpression));
}

function placeOf(node) {
  return node.src.split(':').map((part) => parseInt(part, 10));
}

function lineOf(source, offset) {
  let line = 1;
  for (let i = 0; i < offset; ++i) if (source[i] === 10) ++line;
  return line;
}

function walk(node, visit, parent = {}) {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) return node.forEach((one) => walk(one, visit, parent));
  // Not mutated: the step of a loop, since an endless loop shows nothing about the tests, and declarations of errors and events.
  if (['EventDefinition', 'ErrorDefinition', 'ImportDirective'].includes(node.nodeType)) return;
  if (typeof node.nodeType === 'string') visit(node, parent);
  for (const [key, value] of Object.entries(node)) {
    if (
      key === 'loopExpression' ||
      key === 'post' ||
      key === 'flags' ||
      key === 'typeDescriptions' ||
      key === 'documentation'
    )
      continue;
    walk(value, visit, typeof node.nodeType === 'string' ? node : parent);
  }
}

/** @param {Buffer} source @param {Mutant} mutant @returns {string} */
export function apply(source, { start, length, replacement }) {
  const before = source.subarray(0, start).toString('utf8');
  return before + replacement + source.subarray(start + length).toString('utf8');
}

/**
 * The items in an order that the seed decides.
 * @template T
 * @param {T[]} items @param {number} seed
 * @returns {T[]}
 */
export function shuffled(items, seed) {
  const random = mulberry32(seed);
  const keyed = items.map((item) => ({ item, key: random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
