/** Sums of a token's transfers, read from endpoints that refuse, fall silent, or are flooded by strangers. */
import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { createTransferSums } from '../../../keepers/watcher/tokens/transfers.js';
import { word } from '../../support/nodes/lying-tokens.js';

const TOKEN: Address = `0x${'1'.repeat(40)}`;
const VAULT: Address = `0x${'2'.repeat(40)}`;
const PARTY = `0x${VAULT.slice(2).padStart(64, '0')}`;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

interface Filter {
  fromBlock: string;
  toBlock: string;
  topics: (string | null)[];
}

describe('sums of transfers', () => {
  let requests: number;
  let refuses: (from: number, to: number) => boolean;
  beforeEach(() => {
    requests = 0;
    refuses = () => false;
  });

  /** Each block takes one unit out of the vault. */
  const endpoint = (name: string, isSilent = (): boolean => false): Rpc => ({
    name,
    async call(_method, params = []) {
      requests += 1;
      if (isSilent()) throw new RpcUnavailableError('silent');
      const { fromBlock, toBlock, topics } = params[0] as Filter;
      const [from, to] = [Number(fromBlock), Number(toBlock)];
      if (refuses(from, to)) throw new RpcResponseError('eth_getLogs', -32_005, 'too many logs', undefined);
      await Promise.resolve();
      if (topics[1] !== PARTY) return [];
      return Array.from({ length: to - from + 1 }, (_, i) => ({
        address: TOKEN,
        topics: [TRANSFER, PARTY, PARTY],
        data: word(1n),
        blockNumber: `0x${(from + i).toString(16)}`,
        blockHash: word(9n),
        transactionHash: word(7n),
        transactionIndex: '0x0',
        logIndex: '0x0',
        removed: false,
      }));
    },
    batch: () => Promise.reject(new Error('not asked')),
  });

  it('halves what is refused, takes a bounded number of requests, and goes on where it stopped', async () => {
    const sums = createTransferSums({ endpoints: () => [endpoint('one')], vault: VAULT });
    refuses = (from, to) => to - from + 1 > 100;
    let net: bigint | null = null;
    let rounds = 0;
    while (net === null && rounds < 100) {
      requests = 0;
      net = await sums.net({ token: TOKEN, from: 1, to: 3_000 + rounds });
      rounds += 1;
      expect(requests).to.be.at.most(8);
    }
    expect(net).to.equal(-BigInt(3_000 + rounds - 1));
    expect(rounds).to.be.greaterThan(3);
    // From here on only what is new is asked for, and the newest span.
    requests = 0;
    expect(await sums.net({ token: TOKEN, from: 1, to: 3_000 + rounds })).to.equal(-BigInt(3_000 + rounds));
    expect(requests).to.be.at.most(8);
    sums.clear();
    expect(await sums.net({ token: TOKEN, from: 1, to: 2 }), 'after a reorganisation').to.equal(-2n);
  });

  it('a block that nobody tells: nothing is said, at the same price each time', async () => {
    const sums = createTransferSums({ endpoints: () => [endpoint('one'), endpoint('two')], vault: VAULT });
    refuses = (from, to) => from <= 500 && to >= 500;
    for (let round = 0; round < 20; round += 1) {
      requests = 0;
      expect(await sums.net({ token: TOKEN, from: 1, to: 1_000 + round })).to.equal(null);
      expect(requests).to.be.at.most(16);
    }
    refuses = () => false;
    let net: bigint | null = null;
    for (let round = 0; round < 20 && net === null; round += 1)
      net = await sums.net({ token: TOKEN, from: 1, to: 1_020 });
    expect(net).to.equal(-1_020n);
  });

  it('one that does not answer is asked once, and one that does suffices', async () => {
    const silent = endpoint('silent', () => true);
    const alone = createTransferSums({ endpoints: () => [silent], vault: VAULT });
    expect(await alone.net({ token: TOKEN, from: 1, to: 9 })).to.equal(null);
    expect(requests).to.equal(2);
    const both = createTransferSums({ endpoints: () => [silent, endpoint('one')], vault: VAULT });
    expect(await both.net({ token: TOKEN, from: 1, to: 9 })).to.equal(-9n);
  });
});
