/** What an endpoint may say that is not so. Each gets the true answer, and returns what is said. */
import type { SimulatedChain } from './chain.js';
import type { Decisions } from './decisions.js';

export type Answer = { result: unknown } | { error: { code: number; message: string; data?: unknown } };

interface Log {
  address: string;
  topics: string[];
  data: string;
  blockNumber: string;
  logIndex: string;
}
type Lie = (
  world: { chain: SimulatedChain; decisions: Decisions },
  method: string,
  params: unknown[],
  truth: Answer,
) => Answer;

const BALANCE_OF = '0x70a08231';
const plus = (hex: unknown, by: bigint): string => `0x${(BigInt(String(hex)) + by).toString(16).padStart(64, '0')}`;
const isBalance = (method: string, params: unknown[]): boolean =>
  method === 'eth_call' && String((params[0] as { data?: string }).data).startsWith(BALANCE_OF);

const result =
  (
    methods: readonly string[],
    change: (value: unknown, world: Parameters<Lie>[0], params: unknown[]) => unknown,
  ): Lie =>
  (world, method, params, truth) =>
    methods.includes(method) && 'result' in truth && truth.result !== null
      ? { result: change(truth.result, world, params) }
      : truth;

/** Logs without the second one of a kind in a block. */
function withoutSecond(logs: unknown): unknown {
  const seen = new Map<string, number>();
  return (logs as Log[]).filter(({ address, topics, blockNumber }) => {
    const key = `${blockNumber} ${address} ${topics[0]}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return seen.get(key) !== 2;
  });
}

/** By name. */
export const LIES: Record<string, Lie> = {
  omitSecondLog: result(['eth_getLogs'], withoutSecond),
  omitSecondLogAndReceipt: (world, method, params, truth) => {
    if (method === 'eth_getLogs') return LIES['omitSecondLog']!(world, method, params, truth);
    if (method !== 'eth_getBlockReceipts' || !('result' in truth) || truth.result === null) return truth;
    const receipts = truth.result as { logs: Log[] }[];
    const kept = new Set(withoutSecond(receipts.flatMap(({ logs }) => logs)) as Log[]);
    return { result: receipts.map((one) => ({ ...one, logs: one.logs.filter((log) => kept.has(log)) })) };
  },
  omitLastLog: result(['eth_getLogs'], (logs) => (logs as Log[]).slice(0, -1)),
  inventLog: result(['eth_getLogs'], (logs) => {
    const [first] = (logs as Log[]).slice(-1);
    return first === undefined ? logs : [...(logs as Log[]), { ...first, logIndex: '0x63', data: first.data }];
  }),
  changeAmount: result(['eth_getLogs'], (logs) =>
    (logs as Log[]).map((log) => (log.data.length === 66 ? { ...log, data: plus(log.data, 1_000_000n) } : log)),
  ),
  repeatLogs: result(['eth_getLogs'], (logs) => [...(logs as Log[]), ...(logs as Log[])]),
  reverseLogs: result(['eth_getLogs'], (logs) => [...(logs as Log[])].reverse()),
  balanceTooHigh: (_world, method, params, truth) =>
    isBalance(method, params) && 'result' in truth ? { result: plus(truth.result, 5n) } : truth,
  balanceTooLow: (_world, method, params, truth) =>
    isBalance(method, params) && 'result' in truth && BigInt(String(truth.result)) > 5n
      ? { result: plus(truth.result, -5n) }
      : truth,
  emptyCall: result(['eth_call'], () => '0x'),
  nonceTooHigh: result(['eth_getTransactionCount'], (count) => `0x${(BigInt(String(count)) + 3_000n).toString(16)}`),
  nonceTooLow: result(['eth_getTransactionCount'], (count) =>
    BigInt(String(count)) > 2n ? `0x${(BigInt(String(count)) - 2n).toString(16)}` : count,
  ),
  otherChain: result(['eth_chainId'], () => '0x1'),
  futureHead: result(['eth_getBlockByNumber', 'eth_blockNumber'], (answer, _world, params) => {
    if (typeof answer === 'string') return `0x${(BigInt(answer) + 1_000n).toString(16)}`;
    const header = answer as { number: string };
    if (params[0] !== 'latest') return header;
    return { ...header, number: `0x${(BigInt(header.number) + 1_000n).toString(16)}` };
  }),
  otherHash: result(['eth_getBlockByNumber'], (answer, { chain }, params) => {
    const header = answer as { number: string; hash: string };
    if (params[0] !== 'latest' && Number.parseInt(header.number, 16) < chain.head().number - 3) return header;
    return { ...header, hash: `0xbad${header.hash.slice(5)}` };
  }),
  dearGas: result(['eth_getBlockByNumber'], (answer) => ({
    ...(answer as object),
    baseFeePerGas: '0xe8d4a51000',
  })),
  noReceipts: result(['eth_getTransactionReceipt', 'eth_getBlockReceipts'], () => null),
};
