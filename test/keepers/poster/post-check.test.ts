/** Which records would revert is no single endpoint's word: one that is wrong would stop posting for as long as it is used. */
import { expect } from 'chai';
import { pino } from 'pino';
import type { PostRecord } from '../../../core/curve/post.js';
import type { Address, Hex } from '../../../core/types.js';
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { wouldRevert } from '../../../keepers/poster/post-call.js';
import { CurveBook__factory } from '../../../typechain-types/factories/CurveBook__factory.js';

const word = (digit: string): Hex => `0x${digit.repeat(64)}`;
const ZERO: Address = `0x${'00'.repeat(20)}`;
const PARENT = word('a');
const STALE = CurveBook__factory.createInterface().encodeErrorResult('StaleSeq', [word('1'), 1, 2]);
const RECORD: PostRecord = { kind: 'touch', marketId: word('1'), seq: 2, baseSeq: 1, deadlineSec: 1 };

/** A header whose hash is that of its fields. */
function headerOf(change: Record<string, unknown> = {}): Record<string, unknown> {
  const fields = {
    ...{ parentHash: PARENT, sha3Uncles: word('0'), miner: ZERO, stateRoot: word('0'), transactionsRoot: word('0') },
    ...{ receiptsRoot: word('0'), logsBloom: `0x${'00'.repeat(256)}`, difficulty: '0x0', number: '0x64' },
    ...{ gasLimit: '0x1', gasUsed: '0x0', timestamp: '0x1', extraData: '0x', mixHash: word('0') },
    ...{ nonce: '0x0000000000000000', transactions: [] },
  };
  return { ...fields, hash: headerHash(fields), ...change };
}

describe('what would revert', () => {
  let headers: Record<string, unknown>[];
  let errors: (string | null)[];
  /** The blocks that records were tried with. */
  let tried: string[];
  let pool: RpcPool;

  beforeEach(() => {
    headers = [headerOf(), headerOf(), headerOf()];
    errors = [null, null, null];
    tried = [];
    const connect = (url: string): Rpc => {
      const at = Number.parseInt(url, 10);
      const call = (method: string, params: unknown[] = []): Promise<unknown> => {
        if (method === 'eth_blockNumber') return Promise.resolve('0x64');
        if (method === 'eth_getBlockByNumber') return Promise.resolve(headers[at]);
        tried.push((params[0] as { data: string }).data);
        const error = errors[at] ?? null;
        return error === null ? Promise.resolve('0x') : Promise.reject(new RpcResponseError(method, 3, 'no', error));
      };
      return { name: url, call, batch: () => Promise.reject(new Error('not called')) };
    };
    pool = createRpcPool(['0', '1', '2'], { nowMs: () => 0, logger: pino({ level: 'silent' }), connect });
  });

  const reverts = async (): Promise<[number, string][]> => {
    const head = { number: 100, hash: headerOf()['hash'] as Hex };
    return [...(await wouldRevert(pool, { from: ZERO, to: ZERO, head }, [RECORD]))];
  };
  const parentTried = (): boolean => tried.every((data) => data.includes(PARENT.slice(2, 26)));

  it('is what most endpoints say, not the first alone', async () => {
    expect(await reverts()).to.deep.equal([]);
    errors = [STALE, null, null];
    expect(await reverts()).to.deep.equal([]);
    errors = [STALE, STALE, null];
    expect(await reverts()).to.deep.equal([[0, 'StaleSeq']]);
    errors = [STALE, STALE, STALE];
    expect(await reverts()).to.deep.equal([[0, 'StaleSeq']]);
    expect(parentTried()).to.equal(true);
  });

  it('is tried with the parent that the header of the ledger names, whatever the first endpoint says', async () => {
    for (const lie of [{ hash: word('b') }, { parentHash: word('b') }, { hash: word('b'), parentHash: word('c') }]) {
      headers[0] = headerOf(lie);
      expect(await reverts(), JSON.stringify(lie)).to.deep.equal([]);
      expect(parentTried(), JSON.stringify(lie)).to.equal(true);
    }
  });

  it('is not known while no endpoint has the newest block of the ledger', async () => {
    headers = headers.map(() => headerOf({ hash: word('b') }));
    const error = await reverts().catch((thrown: unknown) => thrown);
    expect(error).to.be.an.instanceOf(RpcUnavailableError);
  });
});
