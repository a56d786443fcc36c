/** Answers batches of edges, in the process that owns the order log. */
import { GatewayUnavailableError } from '../orders/refusals.js';
import type { Gateway } from '../orders/engine.js';
import type { GatewayLogger } from '../orders/types.js';
import { WireError } from '../../core/wire/errors.js';
import { authenticMac, decodeBatch, encodeReply, type Answer, type Batch } from './codec.js';

interface SequencerOptions {
  gateway: Pick<Gateway, 'decide' | 'orderSeq' | 'queued' | 'isActive'>;
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
  /**
   * The reply to a message, empty for one that no edge of this deployment has sent; null when an edge asks whether this is the sequencer,
   * and it is not any more. Never rejects.
   */
  handle(message: Uint8Array): Promise<Uint8Array | null>;
  facts(): SequencerFacts;
}

/** Batches of one edge that are judged at the same time. */
const MAX_BATCHES_PER_EDGE = 16;
/** The same of all edges together, since one may say that it is another one each time. */
const MAX_BATCHES = 128;
/** Actions that may wait for a commit before further batches are turned away. */
const MAX_QUEUED = 4_096;
/** A message that is older, or newer, than this by the clocks of both sides was recorded and sent again by a stranger. */
const MAX_AGE_MS = 300_000;
/** Replies that are kept for a message that comes again. */
const MAX_REPLIES = 2_048;
const MAX_REPLY_BYTES = 16 * 1024 * 1024;
/** Messages that were turned away and are remembered, so that nobody who recorded one has it judged later. */
const MAX_TURNED_AWAY = 65_536;
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
  /** How many actions each has, by MAC, the oldest first. */
  const turnedAway = new Map<string, number>();
  let batchesInProgress = 0;
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

  /** The same message again, whoever sends it, gets the same reply, and costs no more than its MAC. */
  async function handle(message: Uint8Array): Promise<Uint8Array | null> {
    const mac = authenticMac(secret, message);
    if (mac === null) return refuse('no valid MAC: is EDGE_SECRET the same everywhere?');
    const key = mac.toString('latin1');
    const known = replies.get(key);
    if (known !== undefined) return known;
    const unjudged = turnedAway.get(key);
    if (unjudged !== undefined) return replyTo(mac, Array<Answer>(unjudged).fill(BUSY));
    let batch: Batch;
    try {
      batch = decodeBatch(message);
    } catch (error) {
      return refuse(`another shape: ${error instanceof Error ? error.message.slice(0, 200) : ''}`);
    }
    if (batch.deploymentId !== deploymentId || batch.epoch !== epoch) return refuse('for another process');
    if (Math.abs(clock() - batch.sentMs) > MAX_AGE_MS) return refuse('made at another time: do the clocks agree?');
    if (batch.actions.length > 0) return takeUp(batch, mac, key);
    return gateway.isActive() ? replyTo(mac, []) : null;
  }

  const replyTo = (mac: Uint8Array, answers: Answer[]): Uint8Array =>
    encodeReply(secret, mac, { answers, orderSeq: gateway.orderSeq() });

  function turnAway(mac: Uint8Array, key: string, actions: number): Uint8Array {
    facts.busy += 1;
    turnedAway.set(key, actions);
    const [oldest] = turnedAway.keys();
    if (turnedAway.size > MAX_TURNED_AWAY) turnedAway.delete(oldest!);
    return replyTo(mac, Array<Answer>(actions).fill(BUSY));
  }

  function takeUp(batch: Batch, mac: Uint8Array, key: string): Promise<Uint8Array> {
    const open = inProgress.get(batch.edge) ?? 0;
    const isBusy = open >= MAX_BATCHES_PER_EDGE || batchesInProgress >= MAX_BATCHES || gateway.queued() >= MAX_QUEUED;
    if (isBusy) return Promise.resolve(turnAway(mac, key, batch.actions.length));
    inProgress.set(batch.edge, open + 1);
    batchesInProgress += 1;
    facts.batches += 1;
    facts.actions += batch.actions.length;
    const judged = judge(batch);
    // Failures are kept, too: an edge that tries again says so in another message, and only a stranger sends the same one.
    const reply = judged.then((answers) => replyTo(mac, answers));
    replies.set(key, reply);
    void judged.then(() => {
      batchesInProgress -= 1;
      const left = (inProgress.get(batch.edge) ?? 1) - 1;
      if (left > 0) inProgress.set(batch.edge, left);
      else inProgress.delete(batch.edge);
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
          // An action of another shape was not taken up; of anything else it is not known how far it came.
          return error instanceof WireError
            ? { failure: 'write_failed', message: 'Nothing of the action was stored' }
            : { failure: 'outcome_unknown', message: 'The action may or may not have been stored' };
        }
      }),
    );

  return { handle, facts: () => ({ ...facts }) };
}
