import { expect } from 'chai';
import { createLogger } from '../../cli/logger.js';
import { createRpc } from '../../keepers/chain/rpc.js';
import { forOneDatabase } from '../support/db.js';
import type { Db } from '../../ledger/types.js';

const SIGNATURE = `0x${'5ec7e7'.repeat(21)}1b`;

/** What a logger writes for one error. */
function told(error: unknown): string {
  let text = '';
  createLogger('info', { write: (line) => void (text += line) }).error({ err: error }, 'it failed');
  return text;
}

describe('a line about an error', () => {
  it('tells name, message, code, stack and causes, and nothing that somebody attached', () => {
    const cause = Object.assign(new RangeError('too far'), { bindings: [SIGNATURE] });
    const error = Object.assign(new Error('no', { cause }), {
      code: '23502',
      detail: SIGNATURE,
      parameters: [SIGNATURE],
    });
    const text = told(error);
    expect(text).not.to.include(SIGNATURE);
    const { msg, err } = JSON.parse(text) as { msg: string; err: { cause: object } };
    expect(msg).to.equal('it failed');
    expect(err).to.include({ type: 'Error', message: 'no', code: '23502' });
    expect(err.cause).to.include({ type: 'RangeError', message: 'too far' });
    expect(JSON.parse(told('a text'))).to.include({ err: 'a text' });
  });

  it('ends, also when causes form a ring', () => {
    const error = new Error('round and round');
    error.cause = error;
    expect(told(error).length).to.be.lessThan(20_000);
  });

  it('names an RPC endpoint by its host, since the rest of the URL may hold a key', async () => {
    const rpc = createRpc('http://user:pass@127.0.0.1:9/v2/s3cret?key=s3cret', 2_000);
    expect(rpc.name).to.equal('127.0.0.1:9');
    const error = await rpc.call('eth_blockNumber').catch((caught: unknown) => caught);
    expect(told(error))
      .to.include('127.0.0.1:9')
      .and.not.match(/s3cret|pass/);
  });
});

forOneDatabase((name, open) => {
  describe(`a line about a statement that failed on ${name}`, () => {
    let db: Db;

    before(async () => {
      db = await open();
      await db.knex.schema.createTable('signed', (table) => void table.text('signature').notNullable().primary());
    });

    it('holds none of its values', async () => {
      await db.knex('signed').insert({ signature: SIGNATURE });
      const doubled = await db
        .knex('signed')
        .insert({ signature: SIGNATURE })
        .catch((caught: unknown) => caught);
      const wrong = await db
        .knex('signed')
        .insert({ signature: SIGNATURE, other: 1 })
        .catch((caught: unknown) => caught);
      for (const error of [doubled, wrong]) {
        expect(error).to.be.instanceOf(Error);
        expect(told(error)).to.include('signed').and.not.include(SIGNATURE);
      }
    });
  });
});
