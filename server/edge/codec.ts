/**
 * Messages between an edge and the sequencer: a MAC by the shared secret, then JSON. A reply's MAC covers the MAC of its batch, so that it
 * answers that batch and no other one.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { readSignedRequest } from '../../core/wire/request.js';
import type { Address } from '../../core/types.js';
import type { ExchangeReply, ForwardedAction } from '../orders/types.js';

/** Actions of one message at most: a group commit takes no more at once. */
export const MAX_BATCH_ACTIONS = 256;
/** Longest message: NATS takes 1 MiB by default. */
export const MAX_MESSAGE_BYTES = 1_000_000;
/** Longest action, as JSON with its envelope. */
export const MAX_ACTION_BYTES = 900_000;

const MAC_BYTES = 32;
const NO_ROOM = JSON.stringify({ failure: 'outcome_unknown', message: 'The answer has no room in this reply' });
/** What answers may take of a reply: beside them there is room for its head, and for as many answers that say that they have none. */
const MAX_ANSWER_BYTES = MAX_MESSAGE_BYTES - 1_000 - MAX_BATCH_ACTIONS * (NO_ROOM.length + 1);
const VERSION = 1;

/** What a batch says of itself. A batch without actions asks whether the sequencer answers. */
export interface BatchHead {
  deploymentId: string;
  /** Random, by process. */
  edge: string;
  /** Of the order log's writer that is to answer. */
  epoch: number;
  /** When it was made, by the edge's clock. */
  sentMs: number;
}

export interface Batch extends BatchHead {
  actions: readonly ForwardedAction[];
}

/** Why an action has no reply of the exchange wire. `busy`: not taken up, and may be sent again. */
type FailureCode = 'busy' | 'standby' | 'write_failed' | 'outcome_unknown';

/** What became of one action. */
export type Answer = { reply: ExchangeReply } | { failure: FailureCode; message: string };

/** What the sequencer says to a batch: one answer per action, and the newest row of the order log that it has applied. */
export interface BatchReply {
  answers: readonly Answer[];
  orderSeq: number;
}

const uint = z.int().nonnegative();
const signer = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .transform((text) => text as Address);

const batchSchema = z.strictObject({
  v: z.literal(VERSION),
  deployment: z.string().max(64),
  edge: z.string().min(1).max(64),
  epoch: uint,
  sentMs: uint,
  actions: z.array(z.looseObject({ signer })).max(MAX_BATCH_ACTIONS),
});

const replySchema = z.strictObject({
  orderSeq: uint,
  answers: z
    .array(
      z.union([
        z.strictObject({ reply: z.looseObject({ status: z.enum(['ok', 'err']) }) }),
        z.strictObject({
          failure: z.enum(['busy', 'standby', 'write_failed', 'outcome_unknown']),
          message: z.string().max(1_000),
        }),
      ]),
    )
    .max(MAX_BATCH_ACTIONS),
});

function macOf(secret: string, purpose: string, parts: readonly Uint8Array[]): Buffer {
  const mac = createHmac('sha256', secret).update(purpose);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

/** The JSON text of one action; what a batch is joined of. */
export const encodeAction = ({ signer: by, request }: ForwardedAction): string =>
  JSON.stringify({ signer: by, ...request });

/** A message of actions that `encodeAction` made. */
export function encodeBatch(secret: string, head: BatchHead, actions: readonly string[]): Buffer {
  const { deploymentId, edge, epoch, sentMs } = head;
  const start = JSON.stringify({ v: VERSION, deployment: deploymentId, edge, epoch, sentMs });
  const body = Buffer.from(`${start.slice(0, -1)},"actions":[${actions.join(',')}]}`);
  return Buffer.concat([macOf(secret, 'batch', [body]), body]);
}

/** The MAC of a message that `encodeBatch` made. */
export const macOfMessage = (message: Uint8Array): Buffer => Buffer.from(message.subarray(0, MAC_BYTES));

/** The MAC of a message, the same for the same one; null for what nobody with the secret has sent, and for what is longer than allowed. */
export function authenticMac(secret: string, message: Uint8Array): Buffer | null {
  if (message.length <= MAC_BYTES || message.length > MAX_MESSAGE_BYTES) return null;
  const mac = macOfMessage(message);
  return timingSafeEqual(macOf(secret, 'batch', [message.subarray(MAC_BYTES)]), mac) ? mac : null;
}

/** What an authentic message says. Throws for one of another shape. */
export function decodeBatch(message: Uint8Array): Batch {
  const read = batchSchema.parse(JSON.parse(Buffer.from(message.subarray(MAC_BYTES)).toString('utf8')));
  const actions = read.actions.map(({ signer: by, ...request }) => ({
    signer: by,
    request: readSignedRequest(request),
  }));
  return { deploymentId: read.deployment, edge: read.edge, epoch: read.epoch, sentMs: read.sentMs, actions };
}

/** The reply to the batch with this MAC, never longer than a message: answers that have no room are `outcome_unknown`, and may be asked for again. */
export function encodeReply(secret: string, batchMac: Uint8Array, { answers, orderSeq }: BatchReply): Buffer {
  let left = MAX_ANSWER_BYTES;
  const texts = answers.map((answer) => {
    const text = JSON.stringify(answer);
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > left) return NO_ROOM;
    left -= bytes;
    return text;
  });
  const body = Buffer.from(`{"orderSeq":${orderSeq},"answers":[${texts.join(',')}]}`);
  return Buffer.concat([macOf(secret, 'reply', [batchMac, body]), body]);
}

/** Null unless the message is an authentic reply to that batch, with one answer for each of its actions. */
export function decodeReply(
  secret: string,
  { mac, actions }: { mac: Uint8Array; actions: number },
  message: Uint8Array,
): BatchReply | null {
  if (message.length <= MAC_BYTES) return null;
  const body = message.subarray(MAC_BYTES);
  if (!timingSafeEqual(macOf(secret, 'reply', [mac, body]), message.subarray(0, MAC_BYTES))) return null;
  const read = replySchema.parse(JSON.parse(Buffer.from(body).toString('utf8')));
  if (read.answers.length !== actions) return null;
  return read as BatchReply;
}
