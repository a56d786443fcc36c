/** What wallets, nodes and contracts refuse, in words: a code, a sentence, and what to do. */
import { hexToBytes, keccakText } from '../../../sdk/src/hash.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import type { Deployment } from '../market-context.js';

/** By name of the error in the contracts or in the tokens. */
const REVERT_REMEDIES: Readonly<Record<string, string>> = {
  InsufficientOutput: 'the price moved: swap again, or allow more slippage',
  InsufficientDepth: 'the curve holds less: swap a smaller amount',
  InsufficientLiquidity: 'the vault holds less right now: swap a smaller amount, or later',
  CurveExpired: 'no live curve: wait for the next one, a few seconds as a rule',
  NotTradable: 'nothing is quoted for this amount: wait for the next curve, or take another amount',
  DeadlinePassed: 'it was mined too late: swap again',
  ClaimNotReady: 'wait until the countdown of the withdrawal is over',
  NoClaim: 'request a withdrawal first, and wait until it is settled',
  ForbiddenRecipient: 'send to an address of your own',
  ZeroAmount: 'enter an amount',
  ERC20InsufficientBalance: 'the wallet holds less of the token: take a smaller amount',
  ERC20InsufficientAllowance: 'allow the amount first',
  Error: 'the token or contract refused it',
};

const TOKEN_ERRORS = [
  { name: 'ERC20InsufficientBalance', types: ['address', 'uint256', 'uint256'] },
  { name: 'ERC20InsufficientAllowance', types: ['address', 'uint256', 'uint256'] },
];

/** The name of the error that a call reverted with, by the ABIs that the server serves; null when none of them has it. */
export function revertName({ contracts }: Pick<Deployment, 'contracts'>, data: string): string | null {
  const selector = data.slice(0, 10).toLowerCase();
  const known = Object.values(contracts).flatMap(({ abi }) =>
    (abi as { type: string; name?: string; inputs?: { type: string }[] }[])
      .filter(({ type }) => type === 'error')
      .map(({ name = '', inputs = [] }) => ({ name, types: inputs.map(({ type }) => type) })),
  );
  const all = [...known, ...TOKEN_ERRORS, { name: 'Error', types: ['string'] }];
  return all.find(({ name, types }) => keccakText(`${name}(${types.join()})`).startsWith(selector))?.name ?? null;
}

/** What a contract said with `require`: the text of Error(string). */
function reasonText(data: string): string {
  const bytes = hexToBytes(`0x${data.slice(10)}`);
  return new TextDecoder().decode(bytes.slice(64)).replace(/\0+$/, '').slice(0, 200);
}

/** Where nodes and wallets put what a call reverted with: at any depth below `data`, `error` or `cause`. */
function revertData(error: unknown, depth = 0): string | null {
  if (typeof error === 'string') return /^0x(?:[0-9a-fA-F]{2}){4,}$/.test(error) ? error : null;
  if (typeof error !== 'object' || error === null || depth > 5) return null;
  const { data, error: inner, cause, originalError } = error as Record<string, unknown>;
  for (const next of [data, inner, cause, originalError]) {
    const found = revertData(next, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

/** Whatever a wallet or a node threw, as a CurvebookError with what to do about it. */
export function decoded(error: unknown, deployment: Pick<Deployment, 'contracts'>): CurvebookError {
  if (error instanceof CurvebookError) return error;
  const { code, message = String(error) } = (error ?? {}) as { code?: unknown; message?: string };
  const refuse = (name: string, text: string, remedy: string): CurvebookError =>
    new CurvebookError(name, text, { remedy, cause: error });
  if (code === 4001 || code === 'ACTION_REJECTED')
    return refuse('REFUSED', 'refused in the wallet: nothing was signed or sent', 'start again when you want to');
  if (code === -32002)
    return refuse('WALLET_BUSY', 'the wallet has a question open', 'open the wallet and answer it first');
  const data = revertData(error);
  if (data !== null) {
    const name = revertName(deployment, data);
    if (name !== null) {
      const text = name === 'Error' ? `the contract says: ${reasonText(data)}` : `the contract refuses it: ${name}`;
      return refuse(name, text, REVERT_REMEDIES[name] ?? 'nothing was changed; the name is in docs/contracts.md');
    }
  }
  if (/insufficient funds|enough funds/i.test(message))
    return refuse('NO_GAS_MONEY', 'the account has too little ETH for a transaction', 'swap gasless, or send it ETH');
  return refuse('WALLET_ERROR', message.slice(0, 200), 'nothing is known to have been sent; look before trying again');
}
