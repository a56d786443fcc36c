/**
 * Translates assembly into Solidity for the model checker, which does not read assembly blocks. Each expression and statement is translated by
 * itself, unchecked, and division by zero is zero as in the EVM; nothing is simplified.
 *
 * A block without loops and storage is translated where it stands. Of a block with loops, each loop gives functions of its own:
 * `<function>Head<i>`, what comes before it, `<function>Step<i>`, one iteration, and `<function>Tail<i>`, what comes after it, with the
 * variables that they read as parameters and those that they assign as results, in the order in which the block names them. A step has one
 * result more, the last: whether it leaves the loop. Where there is nothing before, between or after, there is no such function.
 */
const BOOLEAN = new Set(['lt', 'gt', 'eq', 'iszero']);
/** Loads from storage or memory. Their results are unknown values to the model checker. */
const LOADS = new Set(['sload', 'mload']);
const ARITHMETIC = { add: '+', sub: '-', mul: '*', and: '&', or: '|', xor: '^' };

class Untranslatable extends Error {}

/**
 * @param {object} ast the source unit of a file, as the compiler says it.
 * @param {string} text the file.
 * @returns {string} the file with assembly translated; what can't be, as it was.
 */
export function withoutAssembly(ast, text, omitted = new Set()) {
  const edits = [];
  const declarations = new Map();
  visit(ast, (node) => {
    if (node.nodeType === 'VariableDeclaration') declarations.set(node.id, node.typeDescriptions.typeString);
  });
  visit(ast, (node) => {
    if (node.nodeType !== 'FunctionDefinition') return;
    if (omitted.has(node.name)) {
      const [start] = boundsOf((node.documentation ?? node).src);
      edits.push({ start, end: boundsOf(node.src)[1], instead: '' });
    }
    visit(node.body ?? {}, (block) => {
      if (block.nodeType !== 'InlineAssembly') return;
      const types = new Map(
        block.externalReferences.map(({ declaration, src }) => [textAt(text, src), declarations.get(declaration)]),
      );
      const [start, end] = boundsOf(block.src);
      try {
        const statements = block.AST.statements.map((statement) => statementOf(statement, types));
        if (!omitted.has(node.name)) edits.push({ start, end, instead: `unchecked { ${statements.join(' ')} }` });
      } catch (error) {
        if (!(error instanceof Untranslatable)) throw error;
        const [, functionEnd] = boundsOf(node.src);
        edits.push({ start: functionEnd, end: functionEnd, instead: loopsOf(node.name, block.AST, types) });
      }
    });
  });
  return edits
    .sort((a, b) => b.start - a.start)
    .reduce((bytes, { start, end, instead }) => {
      return Buffer.concat([bytes.subarray(0, start), Buffer.from(instead), bytes.subarray(end)]);
    }, Buffer.from(text))
    .toString();
}

function visit(node, see) {
  if (node === null || typeof node !== 'object') return;
  see(node);
  for (const child of Object.values(node)) visit(child, see);
}

function boundsOf(src) {
  const [start, length] = src.split(':').map((part) => Number.parseInt(part, 10));
  return [start, start + length];
}

const textAt = (text, src) =>
  Buffer.from(text)
    .subarray(...boundsOf(src))
    .toString();

/* EXPRESSIONS */

const isTruth = (node) => node.nodeType === 'YulFunctionCall' && BOOLEAN.has(node.functionName.name);

const isWord = (type) => type === undefined || type === 'uint256' || type.startsWith('uint256[');

function readOf(name, type) {
  if (type === 'bool') return `(${name} ? uint256(1) : 0)`;
  return isWord(type) ? name.replace('.slot', 'Slot') : `${type}.unwrap(${name})`;
}

/** A Yul expression as an uint256. */
function valueOf(node, types) {
  if (node.nodeType === 'YulLiteral') return `uint256(${node.value})`;
  if (node.nodeType === 'YulIdentifier') return readOf(node.name, types.get(node.name));
  const { name } = node.functionName;
  if (isTruth(node)) return `(${truthOf(node, types)} ? uint256(1) : 0)`;
  const [left, right] = node.arguments.map((argument) => valueOf(argument, types));
  if (name in ARITHMETIC) return `(${left} ${ARITHMETIC[name]} ${right})`;
  if (name === 'shl') return `(${right} << ${left})`;
  if (name === 'shr') return `(${right} >> ${left})`;
  if (LOADS.has(name)) return `stored[${left}]`;
  if (name === 'not') return `(type(uint256).max - ${left})`;
  if (name === 'div') return `(${right} == 0 ? 0 : ${left} / ${right})`;
  throw new Untranslatable(name);
}

/** Whether a Yul expression is not zero. */
function truthOf(node, types) {
  if (node.nodeType === 'YulIdentifier' && types.get(node.name) === 'bool') return node.name;
  if (node.nodeType === 'YulFunctionCall') {
    const { name } = node.functionName;
    const values = () => node.arguments.map((argument) => valueOf(argument, types));
    const truths = () => node.arguments.map((argument) => truthOf(argument, types));
    if (name === 'lt') return `(${values().join(' < ')})`;
    if (name === 'gt') return `(${values().join(' > ')})`;
    if (name === 'eq') return `(${values().join(' == ')})`;
    if (name === 'xor') return `(${values().join(' != ')})`;
    if (name === 'iszero') return `!${truths()[0]}`;
    if (name === 'or') return `(${truths().join(' || ')})`;
    if (name === 'and' && node.arguments.every(isTruth)) return `(${truths().join(' && ')})`;
  }
  return `(${valueOf(node, types)} != 0)`;
}

/* STATEMENTS */

/** @param {Record<'YulBreak' | 'YulContinue', string>} [jumps] what stands for leaving a loop, and for its next turn. */
function statementOf(node, types, jumps) {
  const block = ({ statements }) => `{ ${statements.map((each) => statementOf(each, types, jumps)).join(' ')} }`;
  switch (node.nodeType) {
    case 'YulVariableDeclaration':
      return `uint256 ${node.variables[0].name} = ${valueOf(node.value, types)};`;
    case 'YulAssignment': {
      const [{ name }] = node.variableNames;
      const type = types.get(name);
      if (type === 'bool') return `${name} = ${truthOf(node.value, types)};`;
      const value = valueOf(node.value, types);
      return `${name} = ${isWord(type) ? value : `${type}.wrap(${value})`};`;
    }
    case 'YulIf':
      return `if (${truthOf(node.condition, types)}) ${block(node.body)}`;
    case 'YulSwitch': {
      const on = valueOf(node.expression, types);
      const branches = node.cases.map(({ value, body }) =>
        value === 'default' ? block(body) : `if (${on} == ${value.value}) ${block(body)}`,
      );
      return branches.join(' else ');
    }
    case 'YulBreak':
    case 'YulContinue':
      if (jumps !== undefined) return jumps[node.nodeType];
  }
  throw new Untranslatable(node.nodeType);
}

/* LOOPS */

function loopsOf(name, ast, types) {
  const functions = [];
  let index = 0;
  visit(ast, ({ nodeType, statements }) => {
    const at = nodeType === 'YulBlock' ? statements.findIndex((each) => each.nodeType === 'YulForLoop') : -1;
    if (at < 0) return;
    const { body, post } = statements[at];
    functions.push(
      functionOf(`${name}Head${index}`, statements.slice(0, at), types, false),
      functionOf(`${name}Step${index}`, body.statements, types, true),
      functionOf(`${name}Next${index}`, post.statements, types, false),
      functionOf(`${name}Tail${index}`, statements.slice(at + 1), types, false),
    );
    index++;
  });
  return functions.join('');
}

function functionOf(name, statements, types, isStep) {
  const declared = new Set();
  const assigned = new Set();
  const named = new Set();
  const callees = new Set();
  let loads = false;
  visit(statements, (node) => {
    if (node.nodeType === 'YulFunctionCall') {
      callees.add(node.functionName);
      loads ||= LOADS.has(node.functionName.name);
    } else if (node.nodeType === 'YulVariableDeclaration')
      for (const variable of node.variables) declared.add(variable.name);
    else if (node.nodeType === 'YulAssignment') for (const variable of node.variableNames) assigned.add(variable.name);
  });
  visit(statements, (node) => {
    if (node.nodeType === 'YulIdentifier' && !callees.has(node)) named.add(node.name);
  });
  const isConstant = (variable) => /^[A-Z0-9_]+$/.test(variable);
  const typeOf = (variable) => (types.get(variable) === 'bool' ? 'bool' : 'uint256');
  const parameters = [...named]
    .filter((variable) => !declared.has(variable) && !isConstant(variable))
    .map((variable) => `${typeOf(variable)} ${variable.replace('.slot', 'Slot')}`);
  if (loads) parameters.push('mapping(uint256 => uint256) storage stored');
  const results = [...assigned].filter((variable) => !declared.has(variable));
  if (!isStep) {
    for (const { nodeType, variables } of statements) {
      if (nodeType === 'YulVariableDeclaration') results.push(...variables.map((variable) => variable.name));
    }
  }
  const jumps = { YulBreak: '{ leaves = true; break; }', YulContinue: 'break;' };
  const lines = statements.map((each) => statementOf(each, types, isStep ? jumps : undefined)).join(' ');
  if (results.length === 0 && !isStep) return '';
  const returned = [...results.map(typeOf), ...(isStep ? ['bool'] : [])].join(', ');
  const values = [...results, ...(isStep ? ['leaves'] : [])].join(', ');
  const body = isStep ? `bool leaves = false; do { ${lines} } while (false);` : lines;
  return (
    `\n    function ${name}(${parameters.join(', ')}) internal ${loads ? 'view' : 'pure'} returns (${returned}) ` +
    `{ unchecked { ${body} return (${values});\n    }}\n`
  );
}
