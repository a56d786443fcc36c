import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import { LEAF_ENCODING } from '../../core/merkle.js';
import { badRequest, notReady } from '../errors.js';
import type { ReadDeps } from './deps.js';
import { addressOf } from './params.js';
import { sendRendered } from '../rendered.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema, signedDecimalSchema } from './schemas.js';

/** The operator's balance alone may be negative. */
const balanceSchema = z.strictObject({ token: z.string(), balance: signedDecimalSchema, reserved: decimalSchema });

export const checkpointSchema = z.strictObject({
  seq: integerSchema,
  deployment_id: z.string(),
  generation: integerSchema,
  block_number: integerSchema,
  block_hash: hashSchema,
  timestamp_ms: integerSchema,
  /** Over the leaves (address maker, address token, uint256 max(balance, 0)) of all rows listed; 32 zero bytes without any. */
  root: hashSchema,
  /** Every address with a balance other than zero, in ascending order. */
  makers: z.array(z.strictObject({ maker: addressSchema, balances: z.array(balanceSchema) })),
  ack_fill_seqs: z.record(pairSchema, integerSchema),
});

export const proofSchema = z.strictObject({
  seq: integerSchema,
  generation: integerSchema,
  root: hashSchema,
  maker: addressSchema,
  leaf_encoding: z.tuple([z.literal('address'), z.literal('address'), z.literal('uint256')]),
  balances: z.array(
    balanceSchema.extend({
      /** Values of the leaf: maker, token contract, max(balance, 0) in the token's smallest unit. */
      leaf: z.tuple([addressSchema, addressSchema, z.string().regex(/^\d+$/)]),
      proof: z.array(hashSchema),
    }),
  ),
});

/** GET /v0/checkpoints/latest: bytes that were rendered when the checkpoint was read. */
export function checkpointHandler(deps: ReadDeps): RouterMiddleware {
  return (ctx) => {
    const answer = deps.checkpoints.latest();
    if (answer === null) throw notReady('No checkpoint has been published yet');
    sendRendered(ctx, answer);
  };
}

/** GET /v0/checkpoints/latest/proof?maker=: one address's rows, each with the siblings of its leaf. */
export function proofHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const { maker: query } = ctx.query;
    if (typeof query !== 'string') throw badRequest('The query parameter maker is required, once');
    const maker = addressOf(query);
    const proven = await deps.checkpoints.proofsOf(maker);
    if (proven === null) throw notReady('No checkpoint has been published yet');
    const body: z.infer<typeof proofSchema> = {
      seq: proven.head.checkpointSeq,
      generation: proven.head.generation,
      root: proven.head.root,
      maker,
      leaf_encoding: [...LEAF_ENCODING],
      balances: proven.rows.map(({ row, token, proof }) => ({
        token: token.symbol,
        balance: formatUnits(row.balanceUnits, token.decimals),
        reserved: formatUnits(row.reservedUnits, token.decimals),
        leaf: [maker, token.address, (row.balanceUnits < 0n ? 0n : row.balanceUnits).toString()],
        proof,
      })),
    };
    ctx.body = body;
  };
}
