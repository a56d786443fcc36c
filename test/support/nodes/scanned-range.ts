/** A range of blocks as several endpoints tell it, some of which lie. */
import type { Interface } from 'ethers';
import type { Address, Hex } from '../../../core/types.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { aloneContext, type ScanContext } from '../../../keepers/watcher/scan/proof.js';
import { scanRange, type Scan } from '../../../keepers/watcher/scan/scan.js';
import { Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import {
  sealBlock,
  type EmittedLog,
  type RpcHeaderAnswer,
  type RpcLogAnswer,
  type RpcReceiptAnswer,
  type SealedBlock,
} from './real-blocks.js';

export const CUSTODIAN: Address = `0x${'c0'.repeat(20)}`;
const ENTRYPOINT: Address = `0x${'e0'.repeat(20)}`;
export const MAKER: Address = `0x${'aa'.repeat(20)}`;
const TOKEN: Address = `0x${'bb'.repeat(20)}`;
const custodian: Interface = Custodian__factory.createInterface();
const entrypoint: Interface = Entrypoint__factory.createInterface();
const FIRST = 10;
export const LAST = 14;

export const hash = (kind: string, number: number): Hex =>
  `0x${kind}${number.toString(16).padStart(64 - kind.length, '0')}`;

export function custody(name: 'Deposited' | 'WithdrawExecuted', units: bigint): EmittedLog {
  const { topics, data } = custodian.encodeEventLog(name, [MAKER, TOKEN, units]);
  return { address: CUSTODIAN, topics: topics as Hex[], data: data as Hex };
}

function swap(units: bigint): EmittedLog {
  const values = [hash('a', 1), MAKER, MAKER, 1, 1, true, units, units, 0n, 0n, 0n];
  const { topics, data } = entrypoint.encodeEventLog('Swap', values);
  return { address: ENTRYPOINT, topics: topics as Hex[], data: data as Hex };
}

/** A chain of blocks 9 to 14, with the transactions given by block. */
export function chainOf(content: Record<number, EmittedLog[][]>, salt = 0): Map<number, SealedBlock> {
  const blocks = new Map<number, SealedBlock>();
  let parentHash = hash('9', salt);
  for (let number = FIRST - 1; number <= LAST; number += 1) {
    const transactions = (content[number] ?? []).map((logs, i) => ({ hash: hash('f', number * 100 + i), logs }));
    const sealed = sealBlock({ number, parentHash, timestampSec: number, transactions, salt });
    parentHash = sealed.header.hash;
    blocks.set(number, sealed);
  }
  return blocks;
}

/** How an endpoint's answers differ from the chain's. */
interface Lie {
  header?: (header: RpcHeaderAnswer) => RpcHeaderAnswer | null;
  logs?: (logs: RpcLogAnswer[]) => RpcLogAnswer[];
  receipts?: (receipts: RpcReceiptAnswer[]) => RpcReceiptAnswer[] | null;
  blocks?: Map<number, SealedBlock>;
  head?: number;
  down?: boolean;
  noBlockReceipts?: boolean;
}

interface Endpoint extends Rpc {
  lie: Lie;
  asked: Map<string, number>;
}

/** Within a `describe`: an honest history, and who was convicted of another one, anew for each test. */
export function scannedRange() {
  let honest: Map<number, SealedBlock>;
  let convicted: string[];
  let warned: string[];

  function endpoint(name: string, lie: Lie = {}): Endpoint {
    const asked = new Map<string, number>();
    async function call(method: string, params: unknown[] = []): Promise<unknown> {
      asked.set(method, (asked.get(method) ?? 0) + 1);
      const { blocks = honest, head = LAST } = one.lie;
      if (one.lie.down === true) throw new RpcUnavailableError('down');
      const receiptsOf = (block: SealedBlock | undefined) =>
        block === undefined ? null : (one.lie.receipts?.(structuredClone(block.receipts)) ?? block.receipts);
      switch (method) {
        case 'eth_blockNumber':
          return `0x${head.toString(16)}`;
        case 'eth_getBlockByNumber': {
          const number = Number(params[0]);
          const header = number > head ? undefined : blocks.get(number)?.header;
          return header === undefined ? null : one.lie.header === undefined ? header : one.lie.header({ ...header });
        }
        case 'eth_getLogs': {
          const { fromBlock, toBlock, address } = params[0] as { fromBlock: Hex; toBlock: Hex; address: Address[] };
          const logs = [...blocks]
            .filter(([number]) => number >= Number(fromBlock) && number <= Math.min(head, Number(toBlock)))
            .flatMap(([, { receipts }]) => receipts.flatMap((receipt) => receipt.logs))
            .filter((log) => address.includes(log.address));
          return one.lie.logs?.(structuredClone(logs)) ?? logs;
        }
        case 'eth_getBlockReceipts':
          if (one.lie.noBlockReceipts === true) throw new RpcResponseError(method, -32_601, 'unknown', undefined);
          return receiptsOf([...blocks.values()].find(({ header }) => header.hash === params[0]));
        case 'eth_getTransactionReceipt': {
          const block = [...blocks.values()].find(({ header }) => header.transactions.includes(params[0] as Hex));
          return receiptsOf(block)?.find(({ transactionHash }) => transactionHash === params[0]) ?? null;
        }
        default:
          throw new Error(method);
      }
    }
    const one: Endpoint = {
      name,
      lie,
      asked,
      call,
      batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
    };
    return one;
  }

  function contextOf(witnesses: Rpc[], prove: ScanContext['prove'] = 'events'): ScanContext {
    return {
      ...aloneContext(prove),
      witnesses,
      convict: (rpc) => convicted.push(rpc.name),
      warn: (kind, block) => warned.push(`${kind} ${block.number}`),
    };
  }

  const range = (to = LAST) => ({ from: FIRST, to, parent: null, addresses: [CUSTODIAN, ENTRYPOINT] });
  const scan = (first: Rpc, others: Rpc[] = [], prove?: ScanContext['prove']): Promise<Scan> =>
    scanRange(first, range(), contextOf(others, prove));
  const failure = (first: Rpc, others: Rpc[] = []): Promise<unknown> =>
    scan(first, others).then(
      () => null,
      (error: unknown) => error,
    );
  const units = ({ events }: Scan): bigint[] =>
    events.map(({ event }) =>
      'amountUnits' in event ? event.amountUnits : event.type === 'swap' ? event.baseUnits : -1n,
    );

  beforeEach(() => {
    honest = chainOf({
      11: [[custody('Deposited', 5n), custody('Deposited', 6n)]],
      13: [[swap(7n)], [custody('WithdrawExecuted', 8n), swap(9n)], [custody('WithdrawExecuted', 10n)]],
    });
    convicted = [];
    warned = [];
  });
  const ALL = [5n, 6n, 7n, 8n, 9n, 10n];

  return {
    get honest() {
      return honest;
    },
    set honest(value) {
      honest = value;
    },
    get convicted() {
      return convicted;
    },
    set convicted(value) {
      convicted = value;
    },
    get warned() {
      return warned;
    },
    set warned(value) {
      warned = value;
    },
    endpoint,
    contextOf,
    range,
    scan,
    failure,
    units,
    ALL,
  };
}
