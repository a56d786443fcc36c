/** A history that would not fit into memory is streamed: what is held stays the same from its first rows to its last, and nothing is read ahead of a client that takes nothing. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import type { ChainFill } from '../../core/types.js';
import type { FillPage } from '../../ledger/market-data/history.js';
import type { ReadStore } from '../../server/read/deps.js';
import { createReadStore } from '../../server/read/store.js';
import { forOneDatabase } from '../support/db.js';
import { fillOf } from '../support/generations.js';
import { BUY, MARKETS } from '../support/ledger-log.js';
import { WETH_USDC } from '../support/markets.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';

const MIB = 2 ** 20;
/** A hundred thousand rows are 60 MiB of NDJSON, and more as objects. */
const ROWS = 100_000;
const MOST_GROWTH = 16 * MIB;

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** Bytes that this process holds, without what is garbage. */
function held(): number {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('downloads of a long history', () => {
  forOneDatabase((_name, open) => {
    let server: ReadServer;
    let pages: number;

    beforeEach(async () => {
      const db = await open();
      pages = 0;
      const { fill } = fillOf(2, WETH_USDC, 1, 'ask', BUY);
      const store: ReadStore = {
        ...createReadStore(db),
        fillsPage: ({ before = ROWS + 1, limit }: FillPage): Promise<ChainFill[]> => {
          pages += 1;
          const count = Math.min(limit, before - 1);
          return Promise.resolve(Array.from({ length: count }, (_, i) => ({ ...fill, fillSeq: before - 1 - i })));
        },
      };
      server = await startReadServer(db, MARKETS, { store });
    });

    afterEach(() => server.close());

    async function request(format: string): Promise<IncomingMessage> {
      const asked = get(`${server.url}/v0/fills?pair=WETH-USDC&format=${format}`);
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      return response;
    }

    for (const format of ['ndjson', 'csv'])
      it(`hold one page at a time as ${format}`, async function () {
        this.timeout(180_000);
        const response = await request(format);
        const levels: number[] = [];
        let rows = format === 'csv' ? -1 : 0;
        for await (const chunk of response as AsyncIterable<Buffer>) {
          for (const byte of chunk) if (byte === 10) rows += 1;
          if (rows >= (levels.length + 1) * (ROWS / 10)) levels.push(held());
        }
        expect(rows).to.equal(ROWS);
        expect(pages).to.equal(ROWS / 500 + 1);
        // The first tenth warms up what every request leaves behind. What is on its way at a moment comes and goes, so that levels go up and down: the
        // lowest of a half tell what stays. Rows that stayed would add at least 30 MiB from one half to the next.
        const growth = Math.min(...levels.slice(6)) - Math.min(...levels.slice(1, 5));
        expect(levels).to.have.length(10);
        expect(growth, levels.join()).to.be.lessThan(MOST_GROWTH);
      });

    it('are not read ahead of a client that takes nothing', async () => {
      const response = await request('ndjson');
      let last = -1;
      // What fits into the buffers of the connection is read, and then nothing.
      for (let looks = 0; last !== pages && looks < 100; looks += 1) {
        last = pages;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      expect(pages).to.equal(last);
      expect(pages).to.be.within(1, ROWS / 500 / 2);
      response.destroy();
    });
  });
});
