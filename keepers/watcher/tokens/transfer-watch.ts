import type { Logger } from 'pino';
import { isUneven, parseTransferProbe, transferProbe } from '../../../core/transfer-probe.js';
import type { Address, Market, Token } from '../../../core/types.js';
import { TransferProbe__factory } from '../../../typechain-types/factories/periphery/TransferProbe__factory.js';
import { startLoop, type Loop } from '../../loop.js';

interface TransferWatchDeps {
  rpc: { call(method: string, params?: unknown[]): Promise<unknown> };
  custodian: Address;
  markets: readonly Market[];
  logger: Logger;
  /** Default: ten minutes. */
  intervalMs?: number;
}

/** What the newest measurement of a token says; null where none could be made. */
export interface TransferFacts {
  token: Address;
  isUneven: boolean | null;
}

interface TransferWatch {
  start(signal: AbortSignal): Loop;
  /** Measures every token of a market once. */
  round(): Promise<void>;
  /** Of every token of a market, measured or not. */
  facts(): TransferFacts[];
}

/** Tokens whose transfers move another amount than asked for; one that could not be measured is none of them. */
export const unevenTokens = (facts: readonly TransferFacts[]): ReadonlySet<Address> =>
  new Set(facts.filter(({ isUneven }) => isUneven === true).map(({ token }) => token));

const INTERVAL_MS = 600_000;
/** Before markets are known, it looks again soon. */
const RETRY_MS = 5_000;
/** The recipient: an address that no token can have listed. */
const STRANGER: Address = '0x7c4a9de2f0b3c8165d2e9a47b06f138c5ed2a901';
/** A fee of a hundredth of a percent shows from this amount on. */
const LEAST_UNITS = 10_000n;

/**
 * Measures from time to time what a transfer of each token out of the vault would take and deliver, by `eth_call`. A token was measured
 * before it was listed, but an issuer may switch a fee on later: the ledger stays right, since deposits are credited by what arrived, but
 * takers and makers receive less than the contracts say, or the vault pays more; and routes over it in between fail, which no venue's quote shows.
 */
export function createTransferWatch({ rpc, custodian, markets, logger, ...options }: TransferWatchDeps): TransferWatch {
  const known = new Map<Address, boolean>();
  let measuredMs = Number.NEGATIVE_INFINITY;
  let measuredTokens = 0;

  const tokens = (): Token[] => [
    ...new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token])).values(),
  ];

  async function measure({ address: token, symbol, decimals }: Token): Promise<void> {
    const wholeUnits = 10n ** BigInt(decimals);
    const route = {
      token,
      route: [custodian, STRANGER],
      maximumUnits: wholeUnits > LEAST_UNITS ? wholeUnits : LEAST_UNITS,
    };
    const answer = await rpc.call('eth_call', transferProbe(TransferProbe__factory.bytecode, route)).catch(() => null);
    const transfer = parseTransferProbe(route, answer)?.[0];
    if (transfer === undefined || !transfer.agreed) return;
    const uneven = isUneven(transfer);
    if (!uneven && transfer.amountUnits < LEAST_UNITS) return;
    if (uneven && known.get(token) !== true) {
      const { amountUnits, takenUnits, receivedUnits } = transfer;
      const amounts = { amount: `${amountUnits}`, taken: `${takenUnits}`, received: `${receivedUnits}` };
      logger.warn({ token: symbol, address: token, ...amounts }, 'a token does not move the amount that it is told to');
    }
    known.set(token, uneven);
  }

  async function round(): Promise<void> {
    for (const token of tokens()) await measure(token);
  }

  return {
    round,
    start(signal) {
      const { intervalMs = INTERVAL_MS } = options;
      const step = async (): Promise<void> => {
        const count = tokens().length;
        if (count === measuredTokens && performance.now() - measuredMs < intervalMs) return;
        await round();
        [measuredTokens, measuredMs] = [count, performance.now()];
      };
      return startLoop(step, { name: 'transfer watch', intervalMs: Math.min(intervalMs, RETRY_MS), signal, logger });
    },
    facts: () => tokens().map(({ address }) => ({ token: address, isUneven: known.get(address) ?? null })),
  };
}
