/** Code of accounts that answer a check of their signature by what they see, so that a simulation and a block differ, or that only burn gas. */
import type { Random } from '../random.js';

const VALID = '631626ba7e60e01b5f5260205ff3';
const WORD_OF_ONES = '5f195f5260205ff3';
/** Stores the selector of `Error(string)`. */
const ERROR_SELECTOR = '6308c379a060e01b5f52';

/** What an account looks at: leaves one word, of which zero is no. */
const SIGHTS: Readonly<Record<string, (random: Random) => string>> = {
  always: () => '6001',
  'the parity of the block': () => '43600116',
  'the parity of the second': () => '42600116',
  'gas left': (random) => `5a${push(random.big(1_000n, 900_000n))}11`,
  'gas left below': (random) => `5a${push(random.big(1_000n, 900_000n))}10`,
  'the price of gas': () => '3a',
  'the sender of the transaction': () => '32600116',
  'the fee of the recipient of the block': () => '41600116',
  storage: () => '5f54',
};

/** What it does then; each ends the call. */
const DEEDS: Readonly<Record<string, (random: Random) => string>> = {
  'says yes': () => VALID,
  'says no': () => '5f5f5260205ff3',
  'answers a word of ones': () => WORD_OF_ONES,
  'answers nothing': () => '5f5ff3',
  'answers a byte': () => '60015ff3',
  'answers a lot': (random) => `${push(random.big(2_000n, 300_000n))}5ff3`,
  reverts: () => '5f5ffd',
  'reverts with a lot': (random) => `${push(random.big(2_000n, 300_000n))}5ffd`,
  'reverts with a text of three zero bytes': () => `${ERROR_SELECTOR}6020600452600360245260645ffd`,
  'is no instruction': () => 'fe',
  'hashes a lot, and says yes': (random) => `${push(random.big(32n, 200_000n))}5f2050${VALID}`,
  'calls itself for ever': () => '5f5f5f5f305afa5f5f5f5f305afa',
  'jumps nowhere': () => '61ffff56',
};

/** An instruction that pushes a number. */
function push(value: bigint): string {
  const digits = value.toString(16);
  const bytes = digits.length % 2 === 0 ? digits : `0${digits}`;
  return `${(0x5f + bytes.length / 2).toString(16)}${bytes}`;
}

/** An account's code, and in words what it does. */
interface EvasiveCode {
  code: string;
  does: string;
}

/** Does one of two things, or runs for ever, by what it sees. */
export function evasiveCode(random: Random): EvasiveCode {
  if (random.int(0, 20) === 0) return { code: '0x5b5f56', does: 'runs for ever' };
  const [sight, seen] = random.pick(Object.entries(SIGHTS));
  const [first, yes] = random.pick(Object.entries(DEEDS));
  // One in two would have its order taken.
  const [second, no] =
    random.int(0, 1) === 0 ? (['says yes', () => VALID] as const) : random.pick(Object.entries(DEEDS));
  const [look, otherwise, then] = [seen(random), no(random), yes(random)];
  // look, PUSH2 place, JUMPI, otherwise, JUMPDEST, then
  const place = look.length / 2 + 4 + otherwise.length / 2;
  const code = `0x${look}61${place.toString(16).padStart(4, '0')}57${otherwise}5b${then}`;
  return { code, does: `${first} by ${sight}, else ${second}` };
}
