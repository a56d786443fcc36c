/**
 * Bare work of the same run, which says how fast this machine is at the moment: recovering signatures, and commits of one small row by the
 * database's driver alone, one after the other. A process that waits for its database is moved between cores and loses its caches while
 * others run, so that its CPU time is compared with that of work that waits alike.
 */
import pg from 'pg';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import { createRecovery } from '../../core/wire/recover.js';
import { readAction } from '../../core/wire/action.js';
import { readSignedRequest } from '../../core/wire/request.js';
import { PG_SESSION_SQL } from '../../ledger/db/db.js';
import { cpuUs } from '../gateway/measure.js';
import { placeBody } from './world.js';

const RECOVERIES = 200;
const COMMITS = 40;

export interface Bare {
  /** CPU microseconds of one recovery. */
  recoveryUs(): Promise<number>;
  /** CPU microseconds of one commit: BEGIN, one insert, COMMIT, each after the answer to the one before. */
  commitUs(): Promise<number>;
  close(): Promise<void>;
}

export async function createBare(url: string): Promise<Bare> {
  const recover = await createRecovery('native');
  const signed = Array.from({ length: RECOVERIES }, (_, index) => {
    const request = readSignedRequest(JSON.parse(placeBody(index % 100, 1, index)));
    const digest = agentDigest('a', connectionId(encodeAction(readAction(request.action)), request));
    return { digest, signature: request.signature };
  });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(PG_SESSION_SQL);
  await client.query('create temporary table bare (seq bigint primary key, payload text)');
  let seq = 0;
  return {
    recoveryUs: async () =>
      (await cpuUs(() => signed.forEach(({ digest, signature }) => void recover(digest, signature)))) / RECOVERIES,
    commitUs: async () =>
      (await cpuUs(async () => {
        for (let count = 0; count < COMMITS; count += 1) {
          await client.query('begin');
          await client.query('insert into bare (seq, payload) values ($1, $2)', [(seq += 1), 'x'.repeat(300)]);
          await client.query('commit');
        }
      })) / COMMITS,
    close: () => client.end(),
  };
}
