import { expect } from 'chai';
import type { Interface } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import { bloomBits } from '../../keepers/chain/bloom.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../keepers/chain/rpc.js';
import { CanonicalMismatchError, scanRange } from '../../keepers/watcher/scan.js';
import { ICustodian__factory } from '../../typechain-types/index.js';

const CUSTODIAN: Address = `0x${'c0'.repeat(20)}`;
const MAKER: Address = `0x${'aa'.repeat(20)}`;
const TOKEN: Address = `0x${'bb'.repeat(20)}`;
const custodian: Interface = ICustodian__factory.createInterface();

interface FakeLog {
  address: Address;
  topics: Hex[];
  data: Hex;
  blockNumber: Hex;
  blockHash: Hex;
  transactionHash: Hex;
  logIndex: Hex;
}

const hashOf = (number: number, fork = 0): Hex => `0x${fork}${number.toString(16).padStart(63, '0')}`;

/** A filter with the bits of these values set. */
function bloomOf(values: readonly Hex[]): Hex {
  const bytes = Buffer.alloc(256);
  for (const bit of values.flatMap(bloomBits)) bytes[255 - (bit >> 3)]! |= 1 << (bit & 7);
  return `0x${bytes.toString('hex')}`;
}

describe('scan of a range of blocks', () => {
  /** Logs by block, what eth_getLogs leaves out, and headers that tests spoil. */
  let logs: FakeLog[];
  let hidden: Set<Hex>;
  let spoil: (number: number, header: Record<string, unknown>) => Record<string, unknown> | null;
  let receiptsAsked: number;
  let blockReceipts: boolean;

  beforeEach(() => {
    logs = [depositAt(11, 5n), depositAt(13, 7n)];
    hidden = new Set();
    spoil = (_number, header) => header;
    receiptsAsked = 0;
    blockReceipts = true;
  });

  function depositAt(number: number, amount: bigint): FakeLog {
    const { topics, data } = custodian.encodeEventLog('Deposited', [MAKER, TOKEN, amount]);
    return {
      address: CUSTODIAN,
      topics: topics as Hex[],
      data: data as Hex,
      blockNumber: `0x${number.toString(16)}`,
      blockHash: hashOf(number),
      transactionHash: hashOf(number, 9),
      logIndex: '0x0',
    };
  }

  function header(number: number): unknown {
    const own = logs.filter((log) => BigInt(log.blockNumber) === BigInt(number));
    return spoil(number, {
      number: `0x${number.toString(16)}`,
      hash: hashOf(number),
      parentHash: hashOf(number - 1),
      timestamp: '0x1',
      logsBloom: bloomOf(own.flatMap((log) => [log.address, ...log.topics])),
      transactions: own.map((log) => log.transactionHash),
    });
  }

  async function call(method: string, params: unknown[] = []): Promise<unknown> {
    switch (method) {
      case 'eth_getBlockByNumber':
        return header(Number(params[0]));
      case 'eth_getLogs':
        return logs.filter((log) => !hidden.has(log.transactionHash));
      case 'eth_getBlockReceipts': {
        if (!blockReceipts) throw new RpcResponseError(method, -32_601, 'not supported', undefined);
        receiptsAsked += 1;
        const own = logs.filter((log) => log.blockHash === params[0]);
        return own.map((log) => ({ blockHash: log.blockHash, logs: [log] }));
      }
      case 'eth_getTransactionReceipt': {
        receiptsAsked += 1;
        const log = logs.find((one) => one.transactionHash === params[0]);
        return { blockHash: log?.blockHash, logs: [log] };
      }
      default:
        throw new Error(method);
    }
  }

  const rpc: Rpc = {
    name: 'fake',
    call,
    batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
  };
  const scan = (parent: { number: number; hash: Hex } | null = null) =>
    scanRange(rpc, { from: 10, to: 14, parent, addresses: [CUSTODIAN] });
  const failure = async () => scan().catch((error: unknown) => error);

  it('returns the blocks and their events in order', async () => {
    logs.reverse();
    const { blocks, events } = await scan({ number: 9, hash: hashOf(9) });
    expect(blocks.map((block) => block.number)).to.deep.equal([10, 11, 12, 13, 14]);
    expect(blocks[0]).to.have.all.keys('number', 'hash', 'parentHash', 'timestampSec');
    expect(events.map(({ event }) => 'amountUnits' in event && event.amountUnits)).to.deep.equal([5n, 7n]);
    expect(receiptsAsked, 'nothing to doubt').to.equal(0);
  });

  it('finds a log that the node left out, by the filter in the header', async () => {
    for (blockReceipts of [true, false]) {
      hidden = new Set([hashOf(13, 9)]);
      const error = await failure();
      expect(error).to.be.instanceOf(RpcUnavailableError);
      expect(String(error)).to.match(/0 logs of block 13, its receipts hold 1/);
      hidden.clear();
      expect((await scan()).events).to.have.length(2);
    }
    expect(receiptsAsked).to.equal(2);
  });

  it('believes the receipts when the filter only seems to name an event', async () => {
    const everything = `0x${'ff'.repeat(256)}`;
    spoil = (number, one) => (number === 12 ? { ...one, logsBloom: everything } : one);
    expect((await scan()).events).to.have.length(2);
    expect(receiptsAsked).to.equal(1);
  });

  it('refuses a log that the filter excludes', async () => {
    spoil = (number, one) => (number === 11 ? { ...one, logsBloom: bloomOf([]) } : one);
    expect(String(await failure())).to.match(/answered a log that block 11 excludes/);
  });

  it('refuses blocks and logs of two histories, and a block that is missing', async () => {
    spoil = (number, one) => (number === 12 ? { ...one, parentHash: hashOf(11, 1) } : one);
    expect(String(await failure())).to.match(/two histories at 12/);
    spoil = (number, one) => (number === 12 ? null : one);
    expect(String(await failure())).to.match(/lacks block 12/);
    spoil = (_number, one) => one;
    logs[1]!.blockHash = hashOf(13, 1);
    expect(String(await failure())).to.match(/another history at 13/);
  });

  it('refuses a range whose last block changed meanwhile', async () => {
    let asked = 0;
    spoil = (number, one) => (number === 14 && (asked += 1) === 2 ? { ...one, hash: hashOf(14, 1) } : one);
    expect(String(await failure())).to.match(/block 14 changed during the scan/);
  });

  it('says that the parent is gone', async () => {
    const error = await scan({ number: 9, hash: hashOf(9, 1) }).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(CanonicalMismatchError);
  });
});
