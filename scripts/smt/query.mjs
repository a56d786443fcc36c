/**
 * Rewrites a query of the model checker before z3 gets it. The compiler computes in integers and converts to vectors of 256 bits for each shift
 * and mask; z3 decides hardly any such query. Here a word becomes the sum of its fields: a shift or mask by literals gives a slice of a word, the
 * bounds of all slices divide the word into parts, and each slice is a sum of parts. The result is linear and has the same meaning.
 *
 * Terms are strings for atoms and arrays for applications.
 */
const WORD_BITS = 256;
const WORD = 1n << 256n;
const OPERATIONS = new Set(['bvlshr', 'bvshl', 'bvand']);
/** Widest amount, in bits, for which a shift to the left is written as one case for each amount. */
const MAX_AMOUNT_BITS = 5;

/** The commands of an SMT-LIB text. */
function parse(text) {
  const stack = [[]];
  for (const [token] of text.matchAll(/\(|\)|\|[^|]*\||[^\s()|]+/g)) {
    if (token === '(') stack.push([]);
    else if (token === ')') {
      const done = stack.pop();
      if (stack.length === 0) break;
      stack.at(-1).push(done);
    } else stack.at(-1).push(token);
  }
  if (stack.length !== 1) throw new Error('unbalanced query');
  return stack[0];
}

const print = (term) => (typeof term === 'string' ? term : `(${term.map(print).join(' ')})`);
const isLiteral = (term) => typeof term === 'string' && /^\d+$/.test(term);

/** What a term is called if it is a variable or a member of one. */
function nameOf(term) {
  if (typeof term === 'string') return isLiteral(term) || term === 'true' || term === 'false' ? undefined : term;
  return term.length === 2 && /accessor/.test(term[0]) && typeof term[1] === 'string' ? print(term) : undefined;
}

/** The term with constant conditions evaluated; the compiler writes many of them. */
function simplified(term) {
  if (typeof term === 'string') return term;
  const [head, ...parts] = term.map(simplified);
  if (head === 'and' || head === 'or') {
    const [neutral, final] = head === 'and' ? ['true', 'false'] : ['false', 'true'];
    const left = parts.filter((part) => part !== neutral);
    if (left.includes(final)) return final;
    return left.length === 0 ? neutral : left.length === 1 ? left[0] : [head, ...left];
  }
  if (head === '=>' && parts[0] === 'true') return parts[1];
  if (head === 'ite' && (parts[0] === 'true' || parts[0] === 'false')) return parts[0] === 'true' ? parts[1] : parts[2];
  return [head, ...parts];
}

/** The conjuncts of a term, whatever the nesting of its `and`s. */
function conjunctsOf(term) {
  const [open, found] = [[term], []];
  while (open.length > 0) {
    const next = open.pop();
    if (next[0] === 'and') open.push(...next.slice(1).reverse());
    else found.push(next);
  }
  return found;
}

/** Which names are equal to each other, to a literal or to another term, according to facts. */
function equalitiesOf(facts) {
  const parents = new Map();
  const values = new Map();
  function rootOf(name) {
    let root = name;
    while (parents.has(root)) root = parents.get(root);
    return root;
  }
  const equalities = facts
    .filter(([head]) => head === '=')
    .map(([, left, right]) => ({ left: nameOf(left), right: nameOf(right), term: right }));
  for (const { left, right } of equalities) {
    if (left === undefined || right === undefined) continue;
    const [a, b] = [rootOf(left), rootOf(right)];
    if (a !== b) parents.set(a, b);
  }
  for (const { left, right, term } of equalities) {
    if (left !== undefined && right === undefined) values.set(rootOf(left), term);
  }
  const valueOf = (term) => (nameOf(term) === undefined ? term : values.get(rootOf(nameOf(term))));
  return { rootOf, valueOf };
}

/** x of (ite (>= x 0) ((_ int2bv 256) x) (bvneg ((_ int2bv 256) (- x)))), by which the compiler says x modulo 2^256 in bits. */
function integerOf([head, condition, positive]) {
  if (head !== 'ite' || condition[0] !== '>=' || print(positive[0]) !== `(_ int2bv ${WORD_BITS})`) return undefined;
  return print(condition[1]) === print(positive[1]) ? condition[1] : undefined;
}

/** [operation, left, right] of a term that is an operation of bits on two integers. */
function operationOf(term) {
  if (typeof term === 'string' || term[0] !== 'bv2nat' || !OPERATIONS.has(term[1][0])) return undefined;
  const [left, right] = [integerOf(term[1][1]), integerOf(term[1][2])];
  return left === undefined || right === undefined ? undefined : [term[1][0], left, right];
}

/** How the query's words are sliced. */
function slicing({ rootOf, valueOf }) {
  const cuts = new Map();
  const known = new Map();

  function literalOf(term) {
    const value = valueOf(term);
    return value !== undefined && isLiteral(value) ? BigInt(value) : undefined;
  }

  /** The whole of a word, modulo 2^256, as a slice of what it is itself a slice of. */
  function wholeOf(term) {
    const literal = literalOf(term);
    if (literal !== undefined) return { base: `${literal}`, low: 0, bits: WORD_BITS };
    const name = nameOf(term);
    const key = name === undefined ? print(term) : rootOf(name);
    if (!known.has(key)) {
      known.set(key, { base: key, low: 0, bits: WORD_BITS });
      const operation = operationOf(valueOf(term) ?? term);
      const slice = operation && sliceOf(operation);
      if (slice?.up === 0) known.set(key, slice);
    }
    return known.get(key);
  }

  /** An operation as {base, low, bits, up}: `bits` bits of the base from `low` on, times 2^up. */
  function sliceOf([operation, left, right]) {
    const [leftValue, rightValue] = [literalOf(left), literalOf(right)];
    if (operation === 'bvand') {
      const [mask, word] = rightValue === undefined ? [leftValue, right] : [rightValue, left];
      const [ones, zeroes] = (mask?.toString(2).match(/^(1+)(0*)$/) ?? []).slice(1).map((digits) => digits.length);
      if (ones === undefined || ones + zeroes > WORD_BITS) return undefined;
      const whole = wholeOf(word);
      return {
        base: whole.base,
        low: whole.low + zeroes,
        bits: Math.max(Math.min(whole.bits - zeroes, ones), 0),
        up: zeroes,
      };
    }
    if (rightValue === undefined || rightValue >= BigInt(WORD_BITS)) return undefined;
    const amount = Number.parseInt(rightValue.toString(), 10);
    const whole = wholeOf(left);
    if (operation === 'bvshl') return { ...whole, bits: Math.min(whole.bits, WORD_BITS - amount), up: amount };
    return { base: whole.base, low: whole.low + amount, bits: Math.max(whole.bits - amount, 0), up: 0 };
  }

  return {
    literalOf,
    wholeOf,
    sliceOf,
    /** Notes the bounds of a slice, before any slice of its word is written. */
    cut({ base, low, bits }) {
      if (!cuts.has(base)) cuts.set(base, new Set([0, WORD_BITS]));
      cuts
        .get(base)
        .add(low)
        .add(low + bits);
    },
    cuts,
  };
}

/**
 * The compiler expresses x modulo 2^256 by a new variable k for each x, with x = k + 2^256 m, so that z3 would have to find out that equal x have
 * equal k.
 *
 * @returns {Map<string, string>} x, as text, of each such k.
 */
function wrapsOf(facts) {
  const wraps = new Map();
  for (const [head, whole, sum] of facts) {
    if (head === '=' && sum?.[0] === '+' && /^k_/.test(sum[1]) && /^m_/.test(sum[2]?.[2])) {
      if (print(sum[2][1]) === `(+ (+ (- 0 0) ${WORD - 1n}) 1)`) wraps.set(sum[1], print(whole));
    }
  }
  return wraps;
}

/** x of (ite (> x MAX) k (ite (< x 0) k x)), by which the compiler says x modulo 2^256 in integers. */
function wrappedOf([head, over, name, under], wraps) {
  if (head !== 'ite' || over[0] !== '>' || !wraps.has(name) || under[0] !== 'ite') return undefined;
  const whole = wraps.get(name);
  const expected = `(ite (> ${whole} ${WORD - 1n}) ${name} (ite (< ${whole} 0) ${name} ${whole}))`;
  return print([head, over, name, under]) === expected ? over[1] : undefined;
}

const powerOfTwo = (bits) => `${1n << BigInt(bits)}`;

/**
 * The same query without vectors of bits.
 *
 * @param {string} text as the compiler asks it.
 * @param {{forget: boolean}} options `forget`: the new query states only the width of each slice, and of a shift by an unknown amount only that equal
 * arguments have equal results within 256 bits. What is proved so is true; what is not must be asked again without `forget`.
 * @returns {string} the query; operations other than shifts and masks of low bits by known or small amounts are unchanged.
 */
export function withoutBits(text, { forget }) {
  const commands = parse(text);
  const facts = commands
    .filter(([head]) => head === 'assert')
    .flatMap(([, term]) => conjunctsOf(simplified(term)))
    .filter((fact) => fact !== 'true');
  const slices = slicing(equalitiesOf(facts));
  const wraps = wrapsOf(facts);
  const bases = new Map();
  const extra = [];
  const names = new Map();
  const newName = (key, declare) => {
    if (!names.has(key)) {
      const name = `|bits${names.size}|`;
      names.set(key, name);
      extra.push(`(declare-fun ${name} () Int)`, ...declare(name));
    }
    return names.get(key);
  };
  const within = (name, bits) => `(assert (and (>= ${name} 0) (< ${name} ${powerOfTwo(bits)})))`;

  /** Each part of a word, the sum of which is the word modulo 2^256. */
  function partsOf(base) {
    if (!bases.has(base)) {
      const cuts = [...slices.cuts.get(base)].sort((a, b) => a - b);
      const parts = cuts.slice(1).map((end, i) => {
        const name = newName(`${base} ${cuts[i]}`, (part) => [within(part, end - cuts[i])]);
        return { name, low: cuts[i], end };
      });
      bases.set(base, parts);
      if (!forget) {
        const above = newName(`${base} above`, () => []);
        const sum = parts.map(({ name, low }) => `(* ${name} ${powerOfTwo(low)})`).join(' ');
        extra.push(`(assert (= ${base} (+ ${sum} (* ${above} ${WORD}))))`);
      }
    }
    return bases.get(base);
  }

  function written({ base, low, bits, up }) {
    if (bits === 0) return '0';
    if (isLiteral(base)) return `${((BigInt(base) >> BigInt(low)) % (1n << BigInt(bits))) << BigInt(up)}`;
    if (forget) {
      // A wide slice from bit 0 comes from a multiplication by a power of two. It is rarely sliced again and its value matters, so it is kept.
      const value =
        low === 0 && bits > 128
          ? ['mod', base, powerOfTwo(bits)]
          : newName(`${base} ${low} ${bits}`, (slice) => [within(slice, bits)]);
      return up === 0 ? value : ['*', value, powerOfTwo(up)];
    }
    const terms = partsOf(base)
      .filter((part) => part.low >= low && part.end <= low + bits)
      .map((part) => ['*', part.name, powerOfTwo(part.low - low + up)]);
    return terms.length === 1 ? terms[0] : ['+', ...terms];
  }

  /** A shift to the left by an amount that is a small slice. */
  function shifted(left, right) {
    const amount = slices.wholeOf(right);
    if (amount.bits > MAX_AMOUNT_BITS) return undefined;
    const whole = slices.wholeOf(left);
    const isNarrow = whole.bits + 2 ** amount.bits - 1 <= WORD_BITS;
    if (isNarrow) slices.cut(whole);
    slices.cut(amount);
    return () => {
      const value = isNarrow ? written({ ...whole, up: 0 }) : rewrite(left);
      const by = written({ ...amount, up: 0 });
      const highest = 2 ** amount.bits - 1;
      if (forget) {
        const bits = isNarrow ? whole.bits + highest : WORD_BITS;
        return newName(`${whole.base} ${whole.low} ${whole.bits} << ${print(by)}`, (name) => [within(name, bits)]);
      }
      const times = (k) => (isNarrow ? ['*', value, powerOfTwo(k)] : ['mod', ['*', value, powerOfTwo(k)], `${WORD}`]);
      let cases = times(highest);
      for (let k = highest - 1; k >= 0; --k) cases = ['ite', ['=', by, `${k}`], times(k), cases];
      return cases;
    };
  }

  const rewrites = new Map();
  function visit(term) {
    if (typeof term === 'string' || rewrites.has(term)) return;
    const operation = operationOf(term);
    if (operation !== undefined) {
      const slice = slices.sliceOf(operation);
      const shift = slice === undefined && operation[0] === 'bvshl' ? shifted(operation[1], operation[2]) : undefined;
      if (slice !== undefined) {
        slices.cut(slice);
        rewrites.set(term, () => written(slice));
        return;
      }
      if (shift !== undefined) rewrites.set(term, shift);
    }
    const wrapped = wrappedOf(term, wraps);
    if (wrapped !== undefined) {
      rewrites.set(term, () => {
        const whole = rewrite(wrapped);
        return ['ite', ['and', ['>=', whole, '0'], ['<', whole, `${WORD}`]], whole, ['mod', whole, `${WORD}`]];
      });
    }
    for (const part of term) visit(part);
  }
  const rewrite = (term) => (typeof term === 'string' ? term : (rewrites.get(term)?.() ?? term.map(rewrite)));

  for (const fact of facts) visit(fact);
  // Every such k was replaced, so the facts that define them are left out.
  const isWrap = ([head, , sum]) => head === '=' && sum?.[0] === '+' && wraps.has(sum[1]);
  const rewritten = facts.filter((fact) => !isWrap(fact)).map((fact) => `(assert ${print(rewrite(fact))})`);
  const others = (heads) => commands.filter(([head]) => heads.test(head)).map(print);
  return [...others(/^set-|^declare-|^define-/), ...extra, ...rewritten, ...others(/^check-|^get-/)].join('\n');
}
