import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Contract, Interface, JsonRpcProvider, zeroPadValue } from 'ethers';
import { decodeLog, parseRpcLog } from '../../keepers/chain/logs.js';
import { receiptsRoot } from '../../keepers/chain/receipts-root.js';
import { createRpc, toQuantity } from '../../keepers/chain/rpc.js';
import { scanRange } from '../../keepers/watcher/scan/scan.js';
import type { Hex } from '../../core/types.js';
import { sealBlock } from '../../test/support/nodes/real-blocks.js';
import { Entrypoint__factory } from '../../typechain-types/index.js';
import { cpuUs, interleaved, median, type Row } from '../gateway/measure.js';

const BLOCKS = 1_000;
const LOGS_PER_BLOCK = 5;
const BUSY_TRANSACTIONS = 200;
const BUSY_LOGS = 4;
const BLOCKS_PER_DAY = 43_200;
const ENTRYPOINT: Hex = `0x${'e'.repeat(40)}`;
const hash = (kind: string, number: number): Hex => `0x${kind}${number.toString(16).padStart(63, '0')}`;

interface Answers {
  logs: object[];
  headers: object[];
  /** By the hash of their block. */
  receipts: Map<string, object[]>;
}

/** Prepared answers of a node, so that only reading them is measured. Their blocks have valid hashes and roots. */
function answers(): Answers {
  const abi = new Interface(Entrypoint__factory.abi);
  const topic = zeroPadValue(`0x${'a'.repeat(40)}`, 32);
  const found: Answers = { logs: [], headers: [], receipts: new Map() };
  let parentHash = hash('b', 0);
  for (let block = 0; block < BLOCKS; block += 1) {
    const transactions = Array.from({ length: LOGS_PER_BLOCK }, (_, index) => {
      const fill = block * LOGS_PER_BLOCK + index + 1;
      const amounts = [fill, 1, true, 10n ** 18n, 2_500_000_000n, 77n, 0n, 10n ** 18n * BigInt(index)];
      const values = [hash('c', 1), topic.replace('0'.repeat(24), ''), topic.replace('0'.repeat(24), ''), ...amounts];
      const { topics, data } = abi.encodeEventLog('Swap', values);
      return { hash: hash('f', fill), logs: [{ address: ENTRYPOINT, topics: topics as Hex[], data: data as Hex }] };
    });
    const { header, receipts } = sealBlock({ number: block, parentHash, timestampSec: block, transactions });
    parentHash = header.hash;
    found.headers.push(header);
    found.receipts.set(header.hash, receipts);
    found.logs.push(...receipts.flatMap(({ logs }) => logs));
  }
  return found;
}

/** A block of a busy rollup: what its receipts weigh, and the CPU time from the answer's text to the proven root. */
async function measureBusyBlock(): Promise<{ bytes: number; cpuMs: number }> {
  const wide = (kind: string, number: number): Hex => hash(kind, number);
  const transactions = Array.from({ length: BUSY_TRANSACTIONS }, (_, index) => ({
    hash: wide('f', index),
    logs: Array.from({ length: BUSY_LOGS }, (__, at) => ({
      address: wide('d', index % 40).slice(0, 42) as Hex,
      topics: [wide('1', at), wide('2', index), wide('3', index * BUSY_LOGS + at)],
      data: `0x${'4'.repeat(128)}` as const,
    })),
  }));
  const { header, receipts } = sealBlock({ number: 1, parentHash: hash('b', 0), timestampSec: 1, transactions });
  const text = JSON.stringify(receipts);
  const rounds: number[] = [];
  for (let round = 0; round < 30; round += 1) {
    const us = await cpuUs(() => {
      if (receiptsRoot(JSON.parse(text) as typeof receipts) !== header['receiptsRoot']) throw new Error('another root');
    });
    rounds.push(us / 1_000);
  }
  return { bytes: text.length, cpuMs: median(rounds) };
}

interface Request {
  id: number;
  method: string;
  params: unknown[];
}

async function startNode(): Promise<{ url: string; close(): void }> {
  const { logs, headers, receipts } = answers();
  const logsText = JSON.stringify(logs);
  const receiptsTexts = new Map([...receipts].map(([block, list]) => [block, JSON.stringify(list)]));
  const headerTexts = headers.map((header) => JSON.stringify(header));
  const answerOf = ({ id, method, params }: Request): string => {
    const result = ((): string | undefined => {
      switch (method) {
        case 'eth_getLogs':
          return logsText;
        case 'eth_getBlockByNumber':
          return headerTexts[params[0] === 'latest' ? BLOCKS - 1 : Number.parseInt(String(params[0]), 16)];
        case 'eth_getBlockReceipts':
          return receiptsTexts.get(String(params[0]));
        default:
          return '"0x2105"';
      }
    })();
    return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Request | Request[];
      response.setHeader('content-type', 'application/json');
      response.end(Array.isArray(body) ? `[${body.map(answerOf).join(',')}]` : answerOf(body));
    });
  });
  // Connections wait while the others are measured.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

/** G13: fetching and decoding the events of 1,000 blocks against ethers' queryFilter; and the watcher's whole scan, which proves them. */
export async function measureIngest(): Promise<Row[]> {
  const node = await startNode();
  const rpc = createRpc(node.url, 60_000);
  const provider = new JsonRpcProvider(node.url, 8453, { staticNetwork: true, cacheTimeout: -1 });
  const contract = new Contract(ENTRYPOINT, Entrypoint__factory.abi, provider);
  const expected = BLOCKS * LOGS_PER_BLOCK;
  const [from, to] = [0, BLOCKS - 1];
  const timed = async (work: () => Promise<number>): Promise<number> => {
    const startedMs = performance.now();
    const count = await work();
    if (count !== expected) throw new Error(`${count} events instead of ${expected}`);
    return performance.now() - startedMs;
  };
  try {
    const ms = await interleaved({
      ethers: () => timed(async () => (await contract.queryFilter('Swap', from, to)).length),
      logs: () =>
        timed(async () => {
          const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to), address: [ENTRYPOINT] };
          const answer = (await rpc.call('eth_getLogs', [range])) as unknown[];
          return answer.map((one) => decodeLog(parseRpcLog(one))).filter((event) => event?.type === 'swap').length;
        }),
      scan: () =>
        timed(async () => (await scanRange(rpc, { from, to, parent: null, addresses: [ENTRYPOINT] })).events.length),
    });
    const busy = await measureBusyBlock();
    return [
      { goal: '', what: 'log ingest: events', value: (expected * 1_000) / ms.logs, unit: '/s', bound: null },
      {
        goal: 'G13',
        what: 'log ingest / ethers queryFilter',
        value: ms.ethers / ms.logs,
        unit: 'x',
        bound: { atLeast: 3 },
      },
      {
        goal: 'G13',
        what: 'ingest with every block proven from its receipts / the same',
        value: ms.ethers / ms.scan,
        unit: 'x',
        bound: { atLeast: 3 },
      },
      {
        goal: '',
        what: 'proof of a block of 200 receipts with 4 logs: CPU',
        value: busy.cpuMs,
        unit: 'ms',
        bound: null,
      },
      {
        goal: '',
        what: 'receipts of all such blocks, one each 2 s: answers',
        value: (busy.bytes * BLOCKS_PER_DAY) / 1e9,
        unit: 'GB/day',
        bound: null,
      },
    ];
  } finally {
    provider.destroy();
    node.close();
  }
}
