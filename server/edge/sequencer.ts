/** Answers batches of edges, in the process that owns the order log. */
import { GatewayUnavailableError } from '../orders/refusals.js';
import type { Gateway } from '../orders/engine.js';
import type { GatewayLogger } from '../orders/types.js';
import { decodeBatch, encodeReply, type Answer, type Batch } from './codec.js';

interface SequencerOptions {
  gateway: Pick<Gateway, 'decide' | 'orderSeq' | 'queued'>;
  secret: string;
  deploymentId: string;
  /** Of this process's right to append to the order log. */
  epoch: number;
  /** Recovers each signer again. */
  verifies: boolean;
  /** Unix milliseconds. */
  clock(): number;
  logger: Pick<GatewayLogger, 'warn' | 'error'>;
}

export interface SequencerFacts {
  batches: number;
  actions: number;
  /** Messages without a valid MAC, of another shape, or for another writer. */
  refused: number;
  /** Batches that were turned away because too many wait. */
  busy: number;
}

export interface Sequencer {
  /** The reply to a message, empty for one that no edge of this deployment has sent. Never rejects. */
  handle(message: Uint8Array): Promise<Uint8Array>;
  facts(): SequencerFacts;
}

/** Batches of one edge that are judged at the same time. */
const MAX_BATCHES_PER_EDGE = 16;
/** Actions that may wait for a commit before further batches are turned away. */
const MAX_QUEUED = 4_096;
/** A message that is older, or newer, than this by the clocks of both sides was recorded and sent again by a stranger. */
const MAX_AGE_MS = 300_000;
/** Replies that are kept for a message that comes again. */
const MAX_REPLIES = 2_048;
const MAX_REPLY_BYTES = 16 * 1024 * 1024;
/** Pause between two lines of the log about refused messages. */
const COMPLAINT_MS = 60_000;

const EMPTY = new Uint8Array(0);
const BUSY: Answer = { failure: 'busy', message: 'Too many actions wait for a commit' };

export function createSequencer(options: SequencerOptions): Sequencer {
  const { gateway, secret, deploymentId, epoch, verifies, clock, logger } = options;
  const facts: SequencerFacts = { batches: 0, actions: 0, refused: 0, busy: 0 };
  const inProgress = new Map<string, number>();
  /** By MAC, the oldest first. */
  const replies = new Map<string, Promise<Uint8Array>>();
  let replyBytes = 0;
  let complainedMs = -Infinity;

  function refuse(why: string): Uint8Array {
    facts.refused += 1;
    if (clock() - complainedMs >= COMPLAINT_MS) {
      complainedMs = clock();
      logger.warn({ why, refused: facts.refused }, 'refused a message to the sequencer');
    }
    return EMPTY;
  }

  async function handle(message: Uint8Array): Promise<Uint8Array> {
    let batch: Batch | null;
    try {
      batch = decodeBatch(secret, message);
    } catch (error) {
      return refuse(`another shape: ${error instanceof Error ? error.message.slice(0, 200) : ''}`);
    }
    if (batch === null) return refuse('no valid MAC: is EDGE_SECRET the same everywhere?');
    if (batch.deploymentId !== deploymentId || batch.epoch !== epoch) return refuse('for another process');
    if (Math.abs(clock() - batch.sentMs) > MAX_AGE_MS) return refuse('made at another time: do the clocks agree?');
    return batch.actions.length === 0 ? replyTo(batch, []) : judgeOnce(batch);
  }

  const replyTo = (batch: Batch, answers: Answer[]): Uint8Array =>
    encodeReply(secret, batch.mac, { answers, orderSeq: gateway.orderSeq() });

  /** The same message again, whoever sends it, gets the same reply and costs no judgement. */
  function judgeOnce(batch: Batch): Promise<Uint8Array> {
    const key = batch.mac.toString('latin1');
    const known = replies.get(key);
    if (known !== undefined) return known;
    const open = inProgress.get(batch.edge) ?? 0;
    if (open >= MAX_BATCHES_PER_EDGE || gateway.queued() >= MAX_QUEUED) {
      facts.busy += 1;
      return Promise.resolve(
        replyTo(
          batch,
          batch.actions.map(() => BUSY),
        ),
      );
    }
    inProgress.set(batch.edge, open + 1);
    facts.batches += 1;
    facts.actions += batch.actions.length;
    const judged = judge(batch);
    const reply = judged.then((answers) => replyTo(batch, answers));
    replies.set(key, reply);
    void judged.then((answers) => {
      const left = (inProgress.get(batch.edge) ?? 1) - 1;
      if (left > 0) inProgress.set(batch.edge, left);
      else inProgress.delete(batch.edge);
      // What failed may be tried again by the same message.
      if (answers.some((answer) => 'failure' in answer)) replies.delete(key);
    });
    void reply.then((bytes) => keep(key, bytes.length));
    return reply;
  }

  function keep(key: string, bytes: number): void {
    if (!replies.has(key)) return;
    replyBytes += bytes;
    sizes.set(key, bytes);
    for (const [oldest, size] of sizes) {
      if (sizes.size <= MAX_REPLIES && replyBytes <= MAX_REPLY_BYTES) return;
      sizes.delete(oldest);
      replies.delete(oldest);
      replyBytes -= size;
    }
  }
  const sizes = new Map<string, number>();

  /** Begins all of them before it waits for any, so that they are judged in their order. */
  const judge = ({ actions }: Batch): Promise<Answer[]> =>
    Promise.all(
      actions.map(async (action): Promise<Answer> => {
        try {
          return { reply: await gateway.decide(action, verifies) };
        } catch (error) {
          if (error instanceof GatewayUnavailableError)
            return { failure: error.code, message: error.message.slice(error.code.length + 2) };
          logger.error({ err: error }, 'an action of an edge could not be judged');
          return { failure: 'write_failed', message: 'Nothing of the action was stored' };
        }
      }),
    );

  return { handle, facts: () => ({ ...facts }) };
}
