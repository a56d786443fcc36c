import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Contract, Interface, JsonRpcProvider, zeroPadValue } from 'ethers';
import { bloomBits } from '../../keepers/chain/bloom.js';
import { decodeLog, parseRpcLog } from '../../keepers/chain/logs.js';
import { createRpc, toQuantity } from '../../keepers/chain/rpc.js';
import { scanRange } from '../../keepers/watcher/scan.js';
import type { Hex } from '../../core/types.js';
import { Entrypoint__factory } from '../../typechain-types/index.js';
import { interleaved } from '../gateway/measure.js';
import type { Row } from '../gateway/measure.js';

const BLOCKS = 1_000;
const LOGS_PER_BLOCK = 5;
const ENTRYPOINT: Hex = `0x${'e'.repeat(40)}`;
const hash = (kind: string, number: number): Hex => `0x${kind}${number.toString(16).padStart(63, '0')}`;
const headerHash = (number: number): Hex => hash('b', number);

/** A node that has its answers ready, so that only the reading of them is measured. */
function answers(): { logs: object[]; headers: object[] } {
  const abi = new Interface(Entrypoint__factory.abi);
  const topic = zeroPadValue(`0x${'a'.repeat(40)}`, 32);
  const logs: object[] = [];
  const headers: object[] = [];
  for (let block = 0; block < BLOCKS; block += 1) {
    const bloom = new Uint8Array(256);
    for (let index = 0; index < LOGS_PER_BLOCK; index += 1) {
      const fill = block * LOGS_PER_BLOCK + index + 1;
      const amounts = [fill, 1, true, 10n ** 18n, 2_500_000_000n, 77n, 0n, 10n ** 18n * BigInt(index)];
      const values = [hash('c', 1), topic.replace('0'.repeat(24), ''), topic.replace('0'.repeat(24), ''), ...amounts];
      const { topics, data } = abi.encodeEventLog('Swap', values);
      for (const value of [ENTRYPOINT, ...topics]) {
        for (const bit of bloomBits(value as Hex)) bloom[255 - (bit >> 3)]! |= 1 << (bit & 7);
      }
      logs.push({
        address: ENTRYPOINT,
        topics,
        data,
        blockNumber: toQuantity(block),
        blockHash: headerHash(block),
        transactionHash: hash('f', fill),
        transactionIndex: toQuantity(index),
        logIndex: toQuantity(index),
        removed: false,
      });
    }
    headers.push({
      number: toQuantity(block),
      hash: headerHash(block),
      parentHash: headerHash(block - 1 < 0 ? 0 : block - 1),
      timestamp: toQuantity(block),
      logsBloom: `0x${Buffer.from(bloom).toString('hex')}`,
      transactions: [],
    });
  }
  return { logs, headers };
}

interface Request {
  id: number;
  method: string;
  params: unknown[];
}

async function startNode(): Promise<{ url: string; close(): void }> {
  const { logs, headers } = answers();
  const logsText = JSON.stringify(logs);
  const headerTexts = headers.map((header) => JSON.stringify(header));
  const answerOf = ({ id, method, params }: Request): string => {
    const result =
      method === 'eth_getLogs'
        ? logsText
        : method === 'eth_getBlockByNumber'
          ? headerTexts[params[0] === 'latest' ? BLOCKS - 1 : Number.parseInt(String(params[0]), 16)]
          : '"0x2105"';
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

/** G13: fetching and decoding the events of 1,000 blocks against ethers' queryFilter; and the watcher's whole scan of them. */
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
        what: 'ingest with headers and filters checked / the same',
        value: ms.ethers / ms.scan,
        unit: 'x',
        bound: { atLeast: 3 },
      },
    ];
  } finally {
    provider.destroy();
    node.close();
  }
}
