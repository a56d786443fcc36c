/** What a scan believes of receipts and headers that it can't compare: what is proven, or what a majority says. */
import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { EVENT_TOPICS } from '../../../keepers/chain/logs.js';
import { RpcContradictionError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { NoMajorityError } from '../../../keepers/watcher/scan/majority.js';
import type { ScanContext } from '../../../keepers/watcher/scan/proof.js';
import type { EmittedLog, RpcHeaderAnswer, RpcReceiptAnswer } from '../../support/nodes/real-blocks.js';
import { scannedRange, CUSTODIAN, MAKER, hash, custody, chainOf } from '../../support/nodes/scanned-range.js';

describe('scan of a range of blocks', () => {
  const suite = scannedRange();
  const { endpoint, scan, failure, units, ALL } = suite;

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
      suite.honest = full();
      expect(await receiptsRead('events', [])).to.equal(2);
      expect(await receiptsRead('events', [endpoint('b', { down: true })])).to.equal(2);
      expect(await receiptsRead('events', [endpoint('b')]), 'chance explains it').to.equal(0);
      expect(await receiptsRead('all', [endpoint('b')])).to.equal(2);
      suite.honest = chainOf({ 11: [[custody('Deposited', 5n)]], 12: [] });
      const hidden = { logs: () => [] };
      expect(units(await scan(endpoint('a', hidden), [endpoint('b', hidden), endpoint('c')]))).to.deep.equal([5n]);
      expect(suite.convicted).to.deep.equal(['a', 'b']);
    });

    it('which no event of ours has, nothing is read, unless all is', async () => {
      suite.honest = named();
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
        suite.warned = [];
        expect(units(await scan(endpoint('a', { header: unread }), others))).to.deep.equal(ALL);
        expect(suite.warned).to.deep.equal([10, 11, 12, 13, 14].map((number) => `unreadableHeaders ${number}`));
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
        suite.warned = [];
        expect(units(await scan(endpoint('a', { receipts: odd }), others))).to.deep.equal(ALL);
        expect(suite.warned).to.deep.equal(['unreadableReceipts 11', 'unreadableReceipts 13']);
      }
      expect(suite.convicted).to.deep.equal([]);
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
