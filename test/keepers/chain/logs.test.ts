import { AbiCoder, id, zeroPadValue } from 'ethers';
import { expect } from 'chai';
import type { Address, Hex } from '../../../core/types.js';
import { decodeLog, parseRpcLog, type RawLog } from '../../../keepers/chain/logs.js';
import { postCalldata } from '../../../keepers/poster/post-call.js';
import { ICurveBook__factory, ICustodian__factory, IEntrypoint__factory } from '../../../typechain-types/index.js';

const MAKER: Address = '0x14791697260e4c9a71f18484c9f997b308e59325';
const TOKEN: Address = '0x4200000000000000000000000000000000000006';
const MARKET = id('a market') as Hex;

function rawLog(fragment: { topics: readonly string[]; data: string }): RawLog {
  return {
    address: TOKEN,
    topics: [...fragment.topics] as Hex[],
    data: fragment.data as Hex,
    blockNumber: 1,
    blockHash: id('block') as Hex,
    txHash: id('tx') as Hex,
    logIndex: 0,
  };
}

const custodian = ICustodian__factory.createInterface();
const curveBook = ICurveBook__factory.createInterface();
const entrypoint = IEntrypoint__factory.createInterface();

describe('event decoding', () => {
  it('reads every event as the contracts encode it', () => {
    const decode = (
      iface: { encodeEventLog: (name: never, values: never) => { topics: string[]; data: string } },
      name: string,
      values: unknown[],
    ) => decodeLog(rawLog(iface.encodeEventLog(name as never, values as never)));

    expect(decode(custodian, 'Deposited', [MAKER, TOKEN, 7n])).to.deep.equal({
      type: 'deposited',
      maker: MAKER,
      token: TOKEN,
      amountUnits: 7n,
    });
    expect(decode(custodian, 'WithdrawRequested', [MAKER, TOKEN, 2n ** 256n - 1n])).to.deep.equal({
      type: 'requested',
      maker: MAKER,
      token: TOKEN,
      amountUnits: 2n ** 256n - 1n,
    });
    expect(decode(custodian, 'WithdrawExecuted', [MAKER, TOKEN, 9n])).to.include({ type: 'executed', amountUnits: 9n });
    expect(decode(custodian, 'WithdrawSettled', [MAKER, TOKEN, 5n, 3n, 1_700_000_600n])).to.deep.equal({
      type: 'settled',
      maker: MAKER,
      token: TOKEN,
      amountUnits: 5n,
      basis: 3n,
      readyAtSec: 1_700_000_600n,
    });
    expect(decode(curveBook, 'MarketListed', [MARKET, TOKEN, MAKER, 2n, 10n ** 14n, 1n, 60n])).to.deep.equal({
      type: 'listed',
      marketId: MARKET,
      base: TOKEN,
      quote: MAKER,
      index: 2,
      lotUnits: 10n ** 14n,
      tickLotUnits: 1n,
      maxTtlSec: 60,
    });
    expect(decode(curveBook, 'CurvePosted', [MARKET, 8, 1_700_000_012, 11n, 12n, id('words')])).to.deep.equal({
      type: 'posted',
      marketId: MARKET,
      seq: 8,
      deadlineSec: 1_700_000_012,
      snapAskUnits: 11n,
      snapBidUnits: 12n,
      wordsHash: id('words'),
    });
    expect(decode(curveBook, 'CurveTouched', [MARKET, 9, 8, 1_700_000_020])).to.deep.equal({
      type: 'touched',
      marketId: MARKET,
      seq: 9,
      baseSeq: 8,
      deadlineSec: 1_700_000_020,
    });
    expect(decode(entrypoint, 'Swap', [MARKET, MAKER, TOKEN, 4n, 9n, true, 100n, 200n, 3n, 2n, 50n])).to.deep.equal({
      type: 'swap',
      marketId: MARKET,
      taker: MAKER,
      recipient: TOKEN,
      fillSeq: 4,
      curveSeq: 9,
      isBuy: true,
      baseUnits: 100n,
      quoteUnits: 200n,
      feeUnits: 3n,
      inputFeeUnits: 2n,
      consumedBeforeUnits: 50n,
    });
  });

  it('reads an answer alike in either letter case', () => {
    const { topics, data } = curveBook.encodeEventLog('CurvePosted', [MARKET, 8, 1_700_000_012, 11n, 12n, id('words')]);
    const answer = { address: TOKEN, topics, data, blockNumber: '0xab', blockHash: id('block'), logIndex: '0x1f' };
    const upper = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;
    const read = (change: (hex: string) => string): RawLog =>
      parseRpcLog({
        ...Object.fromEntries(
          Object.entries(answer).map(([key, value]) => [key, Array.isArray(value) ? value.map(change) : change(value)]),
        ),
        transactionHash: change(id('tx')),
      });
    expect(read(upper)).to.deep.equal(read((hex) => hex));
    expect(decodeLog(read(upper))).to.include({ marketId: MARKET, wordsHash: id('words') });
  });

  it('passes over events that the platform does not read', () => {
    expect(decodeLog(rawLog(custodian.encodeEventLog('PosterSet', [MAKER, true])))).to.equal(null);
  });

  it('refuses a truncated log', () => {
    const whole = rawLog(custodian.encodeEventLog('Deposited', [MAKER, TOKEN, 7n]));
    expect(() => decodeLog({ ...whole, data: '0x00' })).to.throw(RangeError, 'too short');
    expect(() => decodeLog({ ...whole, topics: whole.topics.slice(0, 2) })).to.throw(RangeError, 'lacks topic 2');
  });
});

describe('post calldata', () => {
  const record = (seq: number) => ({
    kind: 'touch' as const,
    marketId: MARKET,
    seq,
    baseSeq: seq - 1,
    deadlineSec: 1_700_000_000,
  });
  const block = { number: 77, hash: id('block') as Hex };

  it('is what the ABI says, for one record and for several', () => {
    const one = postCalldata(block, [record(5)]);
    const payload = AbiCoder.defaultAbiCoder().decode(['bytes'], `0x${one.slice(10)}`)[0] as string;
    expect(one).to.equal(curveBook.encodeFunctionData('post', [payload]));
    expect(payload.slice(2, 14)).to.equal('00000000004d');
    expect(payload.slice(14, 38)).to.equal(block.hash.slice(2, 26));

    const two = postCalldata(block, [record(5), record(6)]);
    const both = AbiCoder.defaultAbiCoder().decode(['bytes'], `0x${two.slice(10)}`)[0] as string;
    expect(two).to.equal(curveBook.encodeFunctionData('postBatch', [both]));
    expect((both.length - 2) / 2).to.equal(18 + 2 * 45);
    expect(zeroPadValue('0x05', 4).slice(2)).to.equal(both.slice(2 + 2 * (18 + 33), 2 + 2 * (18 + 37)));
  });
});
