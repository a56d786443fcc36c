import { expect } from 'chai';
import { pino } from 'pino';
import type { Hex } from '../../../core/types.js';
import { receiptsRoot } from '../../../keepers/chain/receipts-root.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { RpcContradictionError, type Rpc } from '../../../keepers/chain/rpc.js';
import { NoMajorityError } from '../../../keepers/watcher/scan/majority.js';
import { createProofs } from '../../../keepers/watcher/scan/proof.js';
import { CanonicalMismatchError, scanRange, type Scan } from '../../../keepers/watcher/scan/scan.js';
import {
  filterOf,
  resealed,
  type RpcHeaderAnswer,
  type RpcLogAnswer,
  type RpcReceiptAnswer,
} from '../../support/nodes/real-blocks.js';
import { scannedRange, MAKER, LAST, hash, custody, chainOf } from '../../support/nodes/scanned-range.js';

describe('scan of a range of blocks', () => {
  const suite = scannedRange();
  const { endpoint, range, scan, failure, units, ALL } = suite;

  it('returns the blocks and their events in order', async () => {
    const first = endpoint('a', { logs: (logs) => logs.reverse() });
    const found = await scanRange(first, { ...range(), parent: { number: 9, hash: suite.honest.get(9)!.header.hash } });
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
          suite.convicted = [];
          expect(units(await scan(endpoint('a', { logs: withoutLog }), others))).to.deep.equal(ALL);
          expect(suite.convicted).to.deep.equal(['a']);
        }
      });

      it('is read from the receipts of another endpoint when the first one lacks it there, too', async () => {
        const liar = endpoint('a', { logs: withoutLog, receipts: withoutReceiptLog });
        for (const others of [[endpoint('b')], [endpoint('b'), endpoint('c')]]) {
          suite.convicted = [];
          expect(units(await scan(liar, others))).to.deep.equal(ALL);
          expect(suite.convicted).to.include('a').and.not.include('b');
        }
        const both = endpoint('b', { logs: withoutLog, receipts: withoutReceiptLog });
        expect(units(await scan(liar, [both, endpoint('c')])), 'two of three lie').to.deep.equal(ALL);
      });

      it('is found when a header is made for the lie, by its hash', async () => {
        // A chain of its own in which all hashes fit, and nothing but the log is missing.
        const blocks = new Map(suite.honest);
        let parentHash = '';
        for (let number = at; number <= LAST; number += 1) {
          const { header, receipts } = structuredClone(suite.honest.get(number)!);
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
    expect(suite.warned).to.deep.equal([]);
    // Of two, one that does not answer leaves the other one alone, and that is said of each block.
    expect(units(await scan(endpoint('a'), [endpoint('b', { down: true })]))).to.deep.equal(ALL);
    expect(suite.warned).to.deep.equal([10, 11, 12, 13, 14].map((number) => `unconfirmed ${number}`));
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
    expect(suite.warned).to.deep.equal([]);
  });

  describe('a history of its own that begins with the first block read, where an honest endpoint trails by a block,', () => {
    const AT = LAST - 1;
    /** The chain with other blocks from `AT` on; all hashes fit. */
    function forked() {
      const blocks = new Map(suite.honest);
      let parentHash = suite.honest.get(AT - 1)!.header.hash;
      for (let number = AT; number <= LAST; number += 1) {
        const { header, receipts } = structuredClone(suite.honest.get(number)!);
        const forged = resealed(header, { parentHash, extraData: '0x66' });
        parentHash = forged.hash;
        for (const receipt of receipts) {
          receipt.blockHash = forged.hash;
          for (const log of receipt.logs) log.blockHash = forged.hash;
        }
        blocks.set(number, { header: forged, receipts });
      }
      return blocks;
    }
    const parent = () => ({ number: AT - 1, hash: suite.honest.get(AT - 1)!.header.hash });
    const parties = (trailing: number) => ({
      liar: endpoint('a', { blocks: forked() }),
      others: [endpoint('b', { head: trailing }), endpoint('c')] as const,
    });
    const read = (first: Rpc, others: readonly Rpc[], to = LAST) =>
      scanRange(first, { ...range(to), from: AT, parent: parent() }, suite.contextOf([...others])).catch(
        (error: unknown) => error,
      );

    it('ends the scan where the trailing one is, and convicts whoever tells another one', async () => {
      const { liar, others } = parties(AT);
      const [trailing, honest] = others;
      const found = (await read(honest, [trailing, liar])) as Scan;
      expect(found.blocks.map(({ number, hash: of }) => [number, of])).to.deep.equal([
        [AT, suite.honest.get(AT)!.header.hash],
      ]);
      expect(await read(liar, others))
        .to.be.instanceOf(RpcContradictionError)
        .and.have.property('endpoint', liar);
    });

    it('is left in the same step', async () => {
      const { liar, others } = parties(AT);
      const all = [liar, ...others];
      const pool = createRpcPool(
        all.map((_, i) => `${i}`),
        { nowMs: () => 0, logger: pino({ level: 'silent' }), connect: (url) => all[Number(url)]! },
      );
      const proofs = createProofs({ rpc: pool, prove: 'events', nowMs: () => 0 });
      const step = (one: Rpc) => scanRange(one, { ...range(), from: AT, parent: parent() }, proofs.context(one));
      expect((await pool.attempt(step)).blocks.map(({ number }) => number)).to.deep.equal([AT]);
      expect(pool.health().map(({ counts }) => counts.contradiction)).to.deep.equal([1, 0, 0]);
    });

    it('and proves nothing, and convicts nobody, before that one has any of the blocks', async () => {
      const { liar, others } = parties(AT - 1);
      const [trailing, honest] = others;
      for (const to of [AT, LAST]) {
        expect(await read(liar, others, to)).to.be.instanceOf(NoMajorityError);
        expect(await read(honest, [trailing, liar], to)).to.be.instanceOf(NoMajorityError);
      }
      expect(suite.convicted).to.deep.equal([]);
    });
  });

  it('convicts a second endpoint that adds, changes or leaves out a log, and goes on', async () => {
    for (const logs of [
      (all: RpcLogAnswer[]) => all.slice(1),
      (all: RpcLogAnswer[]) => [...all, { ...all[0]!, logIndex: '0x9' as Hex }],
      (all: RpcLogAnswer[]) => [
        ...all,
        { ...all[0]!, blockNumber: '0xc' as Hex, blockHash: suite.honest.get(12)!.header.hash },
      ],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, data: all[1]!.data }, ...all.slice(1)],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, address: MAKER }, ...all.slice(1)],
      (all: RpcLogAnswer[]) => [{ ...all[0]!, transactionHash: hash('7', 7) }, ...all.slice(1)],
    ]) {
      suite.convicted = [];
      const found = await scan(endpoint('a'), [endpoint('b', { logs }), endpoint('c')]);
      expect(units(found)).to.deep.equal(ALL);
      expect(suite.convicted).to.deep.equal(['b']);
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
      logs: (logs) => [{ ...logs[0]!, blockNumber: '0xc', blockHash: suite.honest.get(12)!.header.hash }],
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
});
