import { encodePost } from '../../../core/curve/post.js';
import { packSide } from '../../../core/curve/words.js';
import type { Hex } from '../../../core/types.js';
import type { Contracts } from '../../../deploy/contracts.js';
import type { ContractTransactionReceipt, Signer } from 'ethers';

/** Posts the first curve of the first market, two knots per side around 3,000 with a tick of 0.01, which lives for a minute. */
export const postFirstCurve = (contracts: Pick<Contracts, 'curveBook'>, poster: Signer): Promise<unknown> =>
  postCurve(contracts, poster, 1, 0);

/** Posts the same curve under the number `seq`. Its snapshot volumes are zero, and `exactKnots` says on how many leading segments it equals its book. */
export async function postCurve(
  { curveBook }: Pick<Contracts, 'curveBook'>,
  poster: Signer,
  seq: number,
  exactKnots: number,
): Promise<ContractTransactionReceipt> {
  const block = (await poster.provider!.getBlock('latest'))!;
  const knots = [
    { mantissa: 1000n, exponent: 3n, offset: 0n },
    { mantissa: 2000n, exponent: 3n, offset: 7n },
  ];
  const record = {
    kind: 'full' as const,
    marketId: (await curveBook.marketAt(0)) as Hex,
    seq,
    deadlineSec: block.timestamp + 60,
    snapAskUnits: 0n,
    snapBidUnits: 0n,
    exactAskKnots: exactKnots,
    exactBidKnots: exactKnots,
    askWords: packSide({ shift: 8n, basePrice: 300_001n, knots }),
    bidWords: packSide({ shift: 8n, basePrice: 300_000n, knots }),
  };
  const data = encodePost({ number: block.number, hash: block.hash as Hex }, [record]);
  return (await (await curveBook.connect(poster).post(data)).wait())!;
}
