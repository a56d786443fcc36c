/** Input of `curvebook init`: from options, the environment, or answers on a terminal. */
import { createInterface } from 'node:readline';
import { toSafeInt } from '../../../core/amounts.js';
import { chainPreset } from '../../../deploy/chain-preset.js';
import { ConfigError, UsageError } from '../../errors.js';
import { SIGNING_ROLES, keyName, type SigningRole } from '../../settings/keystore.js';
import type { CommandLine } from '../../arguments.js';
import type { Io } from '../command.js';

/** The longest time to live that a post may have, and the time from a settled claim to its payment, unless said otherwise. */
const MAX_TTL_SEC = 60;
const WITHDRAW_DELAY_SEC = 600;

/** Grids of pairs that need no more than their name: a tick of 0.04 to 0.1 bps at the prices of 2026. */
const GRIDS: Readonly<Record<string, { tickSize: string; lotSize: string }>> = {
  'WETH-USDC': { tickSize: '0.01', lotSize: '0.0001' },
  'cbBTC-USDC': { tickSize: '1', lotSize: '0.00001' },
  'cbBTC-WETH': { tickSize: '0.0001', lotSize: '0.0001' },
};

/** Where the key of a role comes from. */
type KeySource = { kind: 'environment'; key: string } | { kind: 'keystore'; path: string } | { kind: 'new' };

export interface Answers {
  chainId: number;
  rpcUrls: string;
  owner: string;
  operator: string;
  tokens: ({ symbol: string } | { symbol: string; address: string; decimals: number })[];
  markets: { pair: string; tickSize: string; lotSize: string; maxTtlSec: number }[];
  withdrawDelaySec: number;
  keys: Record<SigningRole, KeySource>;
  passwordFile: string | undefined;
  alertUrl: string;
  port: string;
}

/**
 * Collects all input. What no option gives is asked for on a terminal; without a terminal, a missing value without a default is a problem.
 * Throws ConfigError with all problems at once, UsageError when the terminal ends.
 */
export async function readAnswers(line: CommandLine, env: Readonly<Record<string, string>>, io: Io): Promise<Answers> {
  const asker = io.input.isTTY === true && !line.yes ? createAsker(io) : null;
  const problems: string[] = [];
  const option = (name: string): string | undefined => line.own.get(name)?.at(-1);

  async function one(name: string, question: string, fallback?: string, given = option(name)): Promise<string> {
    if (given !== undefined) return given;
    if (asker === null) {
      if (fallback === undefined) problems.push(`--${name}: required: ${question}`);
      return fallback ?? '';
    }
    const answer = await asker.ask(`${question}${fallback === undefined ? '' : ` [${fallback}]`}: `);
    return answer === '' ? (fallback ?? one(name, question)) : answer;
  }

  try {
    const chainId = wholeNumber(await one('chain', 'chain id', '8453'), '--chain', problems);
    const rpcUrls = await one(
      'rpc',
      'JSON-RPC endpoints, comma-separated; three of different providers',
      undefined,
      line.overrides.RPC_URL ?? env['RPC_URL'],
    );
    const owner = await one('owner', 'address that shall own the contracts, best a multisig');
    const operator = await one(
      'operator',
      "address of the operator's ledger row",
      owner,
      option('operator') ?? env['OPERATOR_ADDRESS'],
    );
    const tokens = (line.own.get('token') ?? []).flatMap((text) => tokenOf(text, problems));
    const texts = line.own.get('market') ?? [await one('market', 'markets, comma-separated', 'WETH-USDC')];
    const markets = texts
      .flatMap((text) => text.split(','))
      .flatMap((text) => marketOf(text.trim(), option('max-ttl'), problems));
    const traded = new Set(markets.flatMap(({ pair }) => pair.split('-')));
    for (const { symbol } of tokens) {
      if (markets.length > 0 && !traded.has(symbol)) problems.push(`--token: no market trades ${symbol}`);
    }
    const keys = {} as Record<SigningRole, KeySource>;
    for (const role of SIGNING_ROLES) keys[role] = await keySource(role);
    const isSealed = Object.values(keys).some(({ kind }) => kind !== 'environment');
    if (option('password-file') !== undefined && !isSealed)
      problems.push('--password-file: no keystore is named, whose password it would be');
    const alertUrl = await one(
      'alerts',
      'URL that alerts are posted to',
      'http://127.0.0.1:9099/',
      option('alerts') ?? env['ALERT_WEBHOOK_URL'],
    );
    const answers: Answers = {
      ...{ chainId, rpcUrls, owner, operator, markets, keys, alertUrl },
      tokens: namedTokens(markets, tokens, chainId, problems),
      withdrawDelaySec: wholeNumber(option('withdraw-delay') ?? `${WITHDRAW_DELAY_SEC}`, '--withdraw-delay', problems),
      passwordFile: option('password-file') ?? env['KEYSTORE_PASSWORD_FILE'],
      port: line.overrides.PORT ?? env['PORT'] ?? '8080',
    };
    if (problems.length > 0) throw new ConfigError(problems);
    return answers;
  } finally {
    asker?.close();
  }

  async function keySource(role: SigningRole): Promise<KeySource> {
    const path = option(`${role}-keystore`);
    const key = env[keyName(role)];
    if (path !== undefined) return { kind: 'keystore', path };
    if (line.own.has('new-keys')) return { kind: 'new' };
    if (key !== undefined) return { kind: 'environment', key };
    if (asker !== null) {
      const answer = await asker.ask(`keystore file with the key of the ${role} [a new one]: `);
      return answer === '' ? { kind: 'new' } : { kind: 'keystore', path: answer };
    }
    problems.push(`--${role}-keystore: required, or ${keyName(role)} in the environment, or --new-keys`);
    return { kind: 'new' };
  }
}

/** `<SYMBOL>=<address>:<decimals>` */
function tokenOf(text: string, problems: string[]): Answers['tokens'] {
  const [, symbol = '', address = '', decimals = ''] = /^([^=]+)=(0x[0-9a-fA-F]{40}):(\d{1,2})$/.exec(text) ?? [];
  if (symbol === '') problems.push(`--token: ${text} is not <SYMBOL>=<address>:<decimals>`);
  return symbol === '' ? [] : [{ symbol, address, decimals: wholeNumber(decimals, '--token', problems) }];
}

/** `<BASE>-<QUOTE>` of a known grid, or `<BASE>-<QUOTE>=<tick>/<lot>` */
function marketOf(text: string, maxTtl: string | undefined, problems: string[]): Answers['markets'] {
  const [, pair = '', tickSize, lotSize] = /^([^=]+-[^=]+?)(?:=([\d.]+)\/([\d.]+))?$/.exec(text) ?? [];
  const grid = tickSize === undefined || lotSize === undefined ? GRIDS[pair] : { tickSize, lotSize };
  if (grid === undefined) {
    problems.push(
      `--market: ${text}: say <BASE>-<QUOTE>=<tick>/<lot>; known without are ${Object.keys(GRIDS).join(', ')}`,
    );
    return [];
  }
  return [{ pair, ...grid, maxTtlSec: wholeNumber(maxTtl ?? `${MAX_TTL_SEC}`, '--max-ttl', problems) }];
}

/** The tokens of the markets: those that were given, else by their symbol alone where the chain is known for them. */
function namedTokens(
  markets: Answers['markets'],
  given: Answers['tokens'],
  chainId: number,
  problems: string[],
): Answers['tokens'] {
  const known = chainPreset(chainId)?.tokens.map(({ symbol }) => symbol) ?? [];
  const symbols = [...new Set(markets.flatMap(({ pair }) => pair.split('-')))];
  return symbols.flatMap((symbol) => {
    const found = given.find((token) => token.symbol === symbol);
    if (found !== undefined) return [found];
    if (known.includes(symbol)) return [{ symbol }];
    problems.push(`--token: chain ${chainId} is not known for ${symbol}: say ${symbol}=<address>:<decimals>`);
    return [];
  });
}

function wholeNumber(text: string, option: string, problems: string[]): number {
  if (/^\d{1,15}$/.test(text)) return toSafeInt(BigInt(text));
  problems.push(`${option}: ${text} is no whole number`);
  return 0;
}

/** Asks one question after the other; what is typed ahead is not lost. */
function createAsker({ input, errors }: Io): { ask(question: string): Promise<string>; close(): void } {
  const prompt = createInterface({ input });
  const lines = prompt[Symbol.asyncIterator]();
  return {
    async ask(question) {
      errors.write(question);
      const next = await lines.next();
      if (next.done === true) throw new UsageError('the terminal ended before everything was answered');
      return next.value.trim();
    },
    close: () => prompt.close(),
  };
}
