import { expect } from 'chai';
import { createStream } from '../../sdk/src/stream.js';
import type { Subscription } from '../../sdk/src/stream.js';
import { streamSockets } from '../support/api/stream-sockets.js';

const USER = `0x${'ab'.repeat(20)}`;
const OTHER = `0x${'cd'.repeat(20)}`;

describe('frames of the stream', () => {
  const cases: [Subscription, object, object[]][] = [
    [
      { type: 'trades', coin: '@0' },
      { channel: 'trades', data: [{ coin: '@0' }] },
      [{ channel: 'trades', data: [{ coin: '@1' }] }],
    ],
    [
      { type: 'candle', coin: '@0', interval: '1m' },
      { channel: 'candle', data: { s: '@0', i: '1m' } },
      [
        { channel: 'candle', data: { s: '@1', i: '1m' } },
        { channel: 'candle', data: { s: '@0', i: '1M' } },
      ],
    ],
    [
      { type: 'activeAssetCtx', coin: '@0' },
      { channel: 'activeSpotAssetCtx', data: { coin: '@0', ctx: {} } },
      [{ channel: 'activeSpotAssetCtx', data: { coin: '@1', ctx: {} } }],
    ],
    [
      { type: 'userEvents', user: USER },
      { channel: 'user', data: { fills: [] } },
      [{ channel: 'userFills', data: { user: USER, fills: [] } }],
    ],
    [
      { type: 'userFills', user: USER.slice(2).toUpperCase() },
      { channel: 'userFills', data: { user: USER, fills: [] } },
      [{ channel: 'userFills', data: { user: OTHER, fills: [] } }],
    ],
    [
      { type: 'l2Book', coin: '@0' },
      { channel: 'l2Book', data: { coin: '@0' } },
      [{ channel: 'l2Book', data: { coin: '@1' } }],
    ],
    [{ type: 'orderUpdates', user: USER }, { channel: 'orderUpdates', data: [] }, []],
    [
      { type: 'allMids' },
      { channel: 'allMids', data: { mids: {} } },
      [{ channel: 'allMids', data: { mids: {}, dex: '' } }],
    ],
    [
      { type: 'fills', pair: 'A-B' },
      { channel: 'fills', data: { pair: 'A-B', fills: [] } },
      [{ channel: 'fills', data: { pair: 'A-C', fills: [] } }],
    ],
  ];
  for (const [subscription, own, others] of cases) {
    it(`reach whoever asked for ${subscription.type}, and nobody else`, () => {
      const { opened, WebSocket } = streamSockets();
      const stream = createStream('http://server', { WebSocket });
      let count = 0;
      stream.subscribe(subscription, () => (count += 1));
      for (const other of others) opened[0]!.say(other);
      expect(count).to.equal(0);
      opened[0]!.say(own);
      expect(count).to.equal(1);
      stream.close();
    });
  }

  it('that nothing tells apart are not asked for', () => {
    const stream = createStream('http://server', { WebSocket: streamSockets().WebSocket });
    const codeOf = (subscription: Subscription): unknown => {
      try {
        stream.subscribe(subscription, () => undefined);
        return null;
      } catch (error) {
        return (error as { code?: unknown }).code;
      }
    };
    expect(codeOf({ type: 'userEvents', user: USER })).to.equal(null);
    expect(codeOf({ type: 'orderUpdates', user: OTHER })).to.equal(null);
    expect(codeOf({ type: 'userEvents', user: OTHER })).to.equal('ONE_USER');
    expect(codeOf({ type: 'l2Book', coin: '@0', nSigFigs: 5 })).to.equal(null);
    expect(codeOf({ type: 'l2Book', coin: '@0', nSigFigs: 5, mantissa: 1 }), 'the same').to.equal(null);
    expect(codeOf({ type: 'l2Book', coin: '@1', nSigFigs: 3 })).to.equal(null);
    expect(codeOf({ type: 'l2Book', coin: '@0' })).to.equal('ONE_AGGREGATION');
    expect(codeOf({ type: 'l2Book', coin: '@0', nSigFigs: 5, mantissa: 2 })).to.equal('ONE_AGGREGATION');
    expect(codeOf({ type: 'userFills', user: USER })).to.equal(null);
    expect(codeOf({ type: 'userFills', user: USER, aggregateByTime: true })).to.equal('ONE_AGGREGATION');
    stream.close();
  });
});
