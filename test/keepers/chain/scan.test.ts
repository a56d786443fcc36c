import { expect } from 'chai';
import type { Interface } from 'ethers';
import type { Address, Hex } from '../../../core/types.js';
import { EVENT_TOPICS } from '../../../keepers/chain/logs.js';
import { receiptsRoot } from '../../../keepers/chain/receipts-root.js';
import { RpcContradictionError, RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { NoMajorityError } from '../../../keepers/watcher/scan/majority.js';
import { aloneContext, type ScanContext } from '../../../keepers/watcher/scan/proof.js';
import { CanonicalMismatchError, scanRange, type Scan } from '../../../keepers/watcher/scan/scan.js';
import { Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import {
  filterOf,
  resealed,
  sealBlock,
  type EmittedLog,
  type RpcHeaderAnswer,
  type RpcLogAnswer,
  type RpcReceiptAnswer,
  type SealedBlock,
} from '../../support/nodes/real-blocks.js';

const CUSTODIAN: Address = `0x${'c0'.repeat(20)}`;
const ENTRYPOINT: Address = `0x${'e0'.repeat(20)}`;
const MAKER: Address = `0x${'aa'.repeat(20)}`;
const TOKEN: Address = `0x${'bb'.repeat(20)}`;
const custodian: Interface = Custodian__factory.createInterface();
const entrypoint: Interface = Entrypoint__factory.createInterface();
const FIRST = 10;
const LAST = 14;

const hash = (kind: string, number: number): Hex => `0x${kind}${number.toString(16).padStart(64 - kind.length, '0')}`;

function custody(name: 'Deposited' | 'WithdrawExecuted', units: bigint): EmittedLog {
  const { topics, data } = custodian.encodeEventLog(name, [MAKER, TOKEN, units]);
  return { address: CUSTODIAN, topics: topics as Hex[], data: data as Hex };
}

function swap(units: bigint): EmittedLog {
  const values = [hash('a', 1), MAKER, MAKER, 1, 1, true, units, units, 0n, 0n, 0n];
  const { topics, data } = entrypoint.encodeEventLog('Swap', values);
  return { address: ENTRYPOINT, topics: topics as Hex[], data: data as Hex };
}

/** A chain of blocks 9 to 14, with the transactions given by block. */
function chainOf(content: Record<number, EmittedLog[][]>, salt = 0): Map<number, SealedBlock> {
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

describe('scan of a range of blocks', () => {
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

  it('returns the blocks and their events in order', async () => {
    const first = endpoint('a', { logs: (logs) => logs.reverse() });
    const found = await scanRange(first, { ...range(), parent: { number: 9, hash: honest.get(9)!.header.hash } });
    expect(found.blocks.map((block) => block.number)).to.deep.equal([10, 11, 12, 13, 14]);
    expect(found.blocks[0]).to.have.all.keys('number', 'hash', 'parentHash', 'timestampSec');
    expect(units(found)).to.deep.equal(ALL);
    expect(found.events.map(({ log }) => [log.blockNumber, log.logIndex, log.txHash])).to.deep.equal([
      [11, 0, hash('f', 1_100)],
      [11, 1, hash('f', 1_100)],
      [13, 0, hash('f', 1_300)],
      [13, 1, hash('f', 1_301)],
      [13, 2, hash('f', 1_301)],
      [13, 3, hash('f', 1_302)],
    ]);
    expect(first.asked.get('eth_getBlockReceipts'), 'of blocks with events only').to.equal(2);
  });

  for (const [what, at, index] of [
    ['second deposit', 11, 1],
    ['second execution of a withdrawal', 13, 3],
    ['second swap', 13, 2],
  ] as const) {
    const withoutLog = (logs: RpcLogAnswer[]) =>
      logs.filter((log) => Number(log.blockNumber) !== at || Number(log.logIndex) !== index);
    const withoutReceiptLog = (receipts: RpcReceiptAnswer[]) => {
      const changed = receipts.map((receipt) => {
        const logs = withoutLog(receipt.logs);
        return { ...receipt, logs, logsBloom: filterOf(logs.flatMap(({ address, topics }) => [address, ...topics])) };
      });
      let logIndex = 0;
      for (const log of changed.flatMap(({ logs }) => logs)) log.logIndex = `0x${(logIndex++).toString(16)}`;
      return changed;
    };

    describe(`a ${what} of a block that the first of three endpoints leaves out`, () => {
      it('is read from the receipts', async () => {
        for (const others of [[], [endpoint('b')], [endpoint('b'), endpoint('c')]]) {
          convicted = [];
          expect(units(await scan(endpoint('a', { logs: withoutLog }), others))).to.deep.equal(ALL);
          expect(convicted).to.deep.equal(['a']);
        }
      });

      it('is read from the receipts of another endpoint when the first one lacks it there, too', async () => {
        const liar = endpoint('a', { logs: withoutLog, receipts: withoutReceiptLog });
        for (const others of [[endpoint('b')], [endpoint('b'), endpoint('c')]]) {
          convicted = [];
          expect(units(await scan(liar, others))).to.deep.equal(ALL);
          expect(convicted).to.include('a').and.not.include('b');
        }
        const both = endpoint('b', { logs: withoutLog, receipts: withoutReceiptLog });
        expect(units(await scan(liar, [both, endpoint('c')])), 'two of three lie').to.deep.equal(ALL);
      });

      it('is found when a header is made for the lie, by its hash', async () => {
        // A chain of its own in which all hashes fit, and nothing but the log is missing.
        const blocks = new Map(honest);
        let parentHash = '';
        for (let number = at; number <= LAST; number += 1) {
          const { header, receipts } = structuredClone(honest.get(number)!);
          const left = number === at ? withoutReceiptLog(receipts) : receipts;
          const change = number === at ? { receiptsRoot: receiptsRoot(left) } : { parentHash };
          const forged = resealed(header, change);
          parentHash = forged.hash;
          for (const receipt of left) {
            receipt.blockHash = forged.hash;
            for (const log of receipt.logs) log.blockHash = forged.hash;
          }
          blocks.set(number, { header: forged, receipts: left });
        }
        const liar = endpoint('a', { blocks });
        expect(units(await scan(liar)), 'a single endpoint is believed').to.have.length(ALL.length - 1);
        const error = await failure(liar, [endpoint('b'), endpoint('c')]);
        expect(error).to.be.instanceOf(RpcContradictionError).and.have.property('endpoint', liar);
        expect(await failure(liar, [endpoint('b')])).to.be.instanceOf(NoMajorityError);
      });
    });
  }

  it('convicts an endpoint with a history of its own, and one whose header is not what its hash is of', async () => {
    const others = [endpoint('b'), endpoint('c')];
    const fork = endpoint('a', { blocks: chainOf({ 11: [[custody('Deposited', 500n)]] }, 1) });
    let error = await failure(fork, others);
    expect(error).to.be.instanceOf(RpcContradictionError).and.have.property('endpoint', fork);
    for (const change of [
      { receiptsRoot: hash('1', 1) },
      { timestamp: '0x99' },
      { logsBloom: filterOf([]) },
      { gasUsed: '0x' },
    ]) {
      const liar = endpoint('a', {
        header: (header) => (Number(header.number) === 11 ? { ...header, ...change } : header),
      });
      error = await failure(liar, others);
      expect(error, JSON.stringify(change)).to.be.instanceOf(RpcContradictionError).and.have.property('endpoint', liar);
    }
  });

  it('believes no endpoint alone while others are asked in vain or contradict it', async () => {
    const fork = chainOf({}, 1);
    expect(await failure(endpoint('a'), [endpoint('b', { blocks: fork })])).to.be.instanceOf(NoMajorityError);
    const silent = [endpoint('b', { down: true }), endpoint('c', { down: true })];
    expect(await failure(endpoint('a'), silent)).to.be.instanceOf(NoMajorityError);
    expect(warned).to.deep.equal([]);
    // Of two, one that does not answer leaves the other one alone, and that is said of each block.
    expect(units(await scan(endpoint('a'), [endpoint('b', { down: true })]))).to.deep.equal(ALL);
    expect(warned).to.deep.equal([10, 11, 12, 13, 14].map((number) => `unconfirmed ${number}`));
    // One of three may be silent, or tell another history.
    for (const lie of [{ down: true }, { blocks: fork }]) {
      expect(units(await scan(endpoint('a'), [endpoint('b', lie), endpoint('c')]))).to.deep.equal(ALL);
    }
  });

  it('goes as far as a majority does', async () => {
    const first = endpoint('a');
    const upTo = async (...heads: number[]): Promise<number[]> => {
      const found = await scan(
        first,
        heads.map((head, i) => endpoint(`w${i}`, { head })),
      );
      return found.blocks.map(({ number }) => number);
    };
    expect(await upTo(12, 13)).to.deep.equal([10, 11, 12, 13]);
    expect(await upTo(12)).to.deep.equal([10, 11, 12]);
    expect(await upTo(9, 14)).to.deep.equal([10, 11, 12, 13, 14]);
    expect(await upTo(9, 9)).to.deep.equal([]);
    expect(await upTo(9)).to.deep.equal([]);
    expect(warned).to.deep.equal([]);
  });

  it('convicts a second endpoint that adds, changes or leaves out a log, and goes on', async () => {
    for (const logs of [
      (all: RpcLogAnswer[]) => all.slice(1),
      (all: RpcLogAnswer[]) => [...all, { ...all[0]!, logIndex: '0x9' as Hex }],
      (all: RpcLogAnswer[]) => [
        ...all,
        { ...all[0]!, blockNumber: '0xc' as Hex, blockHash: honest.get(12)!.header.hash },
      ],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, data: all[1]!.data }, ...all.slice(1)],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, address: MAKER }, ...all.slice(1)],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, transactionHash: hash('7', 7) }, ...all.slice(1)],
    ]) {
      convicted = [];
      const found = await scan(endpoint('a'), [endpoint('b', { logs }), endpoint('c')]);
      expect(units(found)).to.deep.equal(ALL);
      expect(convicted).to.deep.equal(['b']);
    }
  });

  it('convicts the first endpoint when a majority names other transactions than its', async () => {
    const renamed = (logs: RpcLogAnswer[]) => logs;
    const header = (one: RpcHeaderAnswer) => ({ ...one, transactions: one.transactions.map((_, i) => hash('7', i)) });
    const liar = endpoint('a', { header, logs: renamed });
    const error = await failure(liar, [endpoint('b'), endpoint('c')]);
    expect(error).to.be.instanceOf(RpcContradictionError).and.have.property('endpoint', liar);
    expect(await failure(liar, [endpoint('b')])).to.be.instanceOf(NoMajorityError);
  });

  it('refuses a log that nobody asked for, and one that the filter excludes', async () => {
    const strange = endpoint('a', { logs: (logs) => [{ ...logs[0]!, address: MAKER }] });
    expect(String(await failure(strange))).to.match(/block 11 that was not asked for/);
    const early = endpoint('a', { logs: (logs) => [{ ...logs[0]!, blockNumber: '0x1' }] });
    expect(String(await failure(early))).to.match(/block 1 that was not asked for/);
    const excluded = endpoint('a', {
      logs: (logs) => [{ ...logs[0]!, blockNumber: '0xc', blockHash: honest.get(12)!.header.hash }],
    });
    expect(String(await failure(excluded))).to.match(/answered a log that block 12 excludes/);
  });

  it('refuses blocks and logs of two histories, and a block that is missing', async () => {
    const fork = chainOf({}, 1);
    const header = (one: RpcHeaderAnswer) => (Number(one.number) >= 12 ? fork.get(Number(one.number))!.header : one);
    expect(String(await failure(endpoint('a', { header })))).to.match(/two histories at 12/);
    const lacking = endpoint('a', { header: (one) => (Number(one.number) === 12 ? null : one) });
    expect(String(await failure(lacking))).to.match(/lacks block 12/);
    const logs = (all: RpcLogAnswer[]) => all.map((log) => ({ ...log, blockHash: hash('1', 1) }));
    expect(String(await failure(endpoint('a', { logs })))).to.match(/another history at 11/);
  });

  it('refuses a range whose last block changed meanwhile', async () => {
    let asked = 0;
    const header = (one: RpcHeaderAnswer) =>
      Number(one.number) === LAST && (asked += 1) === 2 ? resealed(one, { extraData: '0x01' }) : one;
    expect(String(await failure(endpoint('a', { header })))).to.match(/block 14 changed during the scan/);
  });

  it('says that the parent is gone', async () => {
    const parent = { number: 9, hash: hash('1', 9) };
    const error = await scanRange(endpoint('a'), { ...range(), parent }).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(CanonicalMismatchError);
  });

  it('reads receipts one by one where a node knows no other way', async () => {
    const liar = endpoint('a', { noBlockReceipts: true, logs: (logs) => logs.slice(0, -1) });
    expect(units(await scan(liar))).to.deep.equal(ALL);
    const asked = liar.asked.get('eth_getBlockReceipts');
    expect(asked).to.be.at.most(2);
    expect(liar.asked.get('eth_getTransactionReceipt')).to.equal(4);
    await scan(liar);
    expect(liar.asked.get('eth_getBlockReceipts'), 'once and for all').to.equal(asked);
  });

  describe('where a filter names our events', () => {
    const strangers = (count: number): EmittedLog[][] => [
      Array.from({ length: count }, (_, i) => ({
        address: hash('5', i).slice(0, 42) as Address,
        topics: [hash('6', i)],
        data: '0x',
      })),
    ];
    /** Blocks that hold nothing of ours, and whose filter names us. */
    const full = () => chainOf({ 11: strangers(2_000), 12: strangers(2_000) });
    const named = () =>
      chainOf({
        11: [
          [{ address: MAKER, topics: [hash('6', 1)], data: '0x' }],
          [{ address: CUSTODIAN, topics: [hash('6', 1)], data: '0x' }],
        ],
      });
    const receiptsRead = async (prove: ScanContext['prove'], others: Rpc[]): Promise<number> => {
      const first = endpoint('a');
      await scan(first, others, prove);
      return first.asked.get('eth_getBlockReceipts') ?? 0;
    };

    it('and no second endpoint answers, or the filter is not full, the receipts decide', async () => {
      honest = full();
      expect(await receiptsRead('events', [])).to.equal(2);
      expect(await receiptsRead('events', [endpoint('b', { down: true })])).to.equal(2);
      expect(await receiptsRead('events', [endpoint('b')]), 'chance explains it').to.equal(0);
      expect(await receiptsRead('all', [endpoint('b')])).to.equal(2);
      honest = chainOf({ 11: [[custody('Deposited', 5n)]], 12: [] });
      const hidden = { logs: () => [] };
      expect(units(await scan(endpoint('a', hidden), [endpoint('b', hidden), endpoint('c')]))).to.deep.equal([5n]);
      expect(convicted).to.deep.equal(['a', 'b']);
    });

    it('which no event of ours has, nothing is read, unless all is', async () => {
      honest = named();
      expect(EVENT_TOPICS).not.to.include(hash('6', 1));
      // Its log is of our contract, and so in the answer; hidden there, only `all` finds it.
      const hidden = (name: string) => endpoint(name, { logs: () => [] });
      const first = hidden('a');
      await scan(first, [hidden('b')], 'events');
      expect(first.asked.get('eth_getBlockReceipts')).to.equal(undefined);
      await scan(first, [hidden('b')], 'all');
      expect(first.asked.get('eth_getBlockReceipts')).to.equal(1);
    });
  });

  describe('of a fork that nobody here knows', () => {
    /** A field that counts for the hash, and that we don't know. */
    const unread = (header: RpcHeaderAnswer): RpcHeaderAnswer => ({
      ...header,
      extraData: '0x77',
      known: header['extraData'],
    });
    const read = (header: RpcHeaderAnswer) => header;

    it('a header is believed when a majority has the very same one', async () => {
      for (const others of [
        [],
        [endpoint('b', { header: unread })],
        [endpoint('b', { header: unread }), endpoint('c')].slice(0, 1),
      ]) {
        warned = [];
        expect(units(await scan(endpoint('a', { header: unread }), others))).to.deep.equal(ALL);
        expect(warned).to.deep.equal([10, 11, 12, 13, 14].map((number) => `unreadableHeaders ${number}`));
      }
    });

    it('is not what one endpoint says while another one proves the same block', async () => {
      const liar = endpoint('a', { header: unread });
      for (const others of [[endpoint('b', { header: read })], [endpoint('b', { header: unread }), endpoint('c')]]) {
        expect(await failure(liar, others))
          .to.be.instanceOf(RpcContradictionError)
          .and.have.property('endpoint', liar);
      }
      expect(await failure(liar, [endpoint('b', { down: true })]), 'nobody else answers').to.be.instanceOf(
        NoMajorityError,
      );
    });

    it('a changed header needs a majority, too', async () => {
      const changed = (header: RpcHeaderAnswer) => ({ ...unread(header), timestamp: '0x99' });
      expect(await failure(endpoint('a', { header: changed }), [endpoint('b', { header: unread })])).to.be.instanceOf(
        NoMajorityError,
      );
      const others = [endpoint('b', { header: unread }), endpoint('c', { header: unread })];
      expect(await failure(endpoint('a', { header: changed }), others)).to.be.instanceOf(RpcContradictionError);
    });

    it('receipts are believed when a majority names the same logs', async () => {
      const odd = (receipts: RpcReceiptAnswer[]) => receipts.map((one) => ({ ...one, cumulativeGasUsed: '0x1' }));
      const odder = (receipts: RpcReceiptAnswer[]) => odd(receipts).map((one) => ({ ...one, logs: one.logs.slice(1) }));
      for (const others of [[], [endpoint('b', { receipts: odd })]]) {
        warned = [];
        expect(units(await scan(endpoint('a', { receipts: odd }), others))).to.deep.equal(ALL);
        expect(warned).to.deep.equal(['unreadableReceipts 11', 'unreadableReceipts 13']);
      }
      expect(convicted).to.deep.equal([]);
      expect(await failure(endpoint('a', { receipts: odder })), 'its own answers differ').to.be.instanceOf(
        RpcContradictionError,
      );
      expect(await failure(endpoint('a', { receipts: odder }), [endpoint('b', { receipts: odd })])).to.be.instanceOf(
        NoMajorityError,
      );
      const silent = endpoint('b', { receipts: odd });
      silent.lie.receipts = () => {
        throw new RpcUnavailableError('too much');
      };
      expect(await failure(endpoint('a', { receipts: odd }), [silent]), 'one of two').to.be.instanceOf(NoMajorityError);
      const three = [endpoint('b', { receipts: odd }), endpoint('c', { receipts: odd })];
      expect(units(await scan(endpoint('a', { receipts: odder }), three)), 'two of three agree').to.deep.equal(ALL);
    });
  });
});
