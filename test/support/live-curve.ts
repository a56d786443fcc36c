import { encodePost } from '../../core/curve/post.js';
import { packSide } from '../../core/curve/words.js';
import type { Hex } from '../../core/types.js';
import type { Contracts } from '../../deploy/contracts.js';
import type { Signer } from 'ethers';

/** Posts the first curve of the first market, two knots per side around 3,000 with a tick of 0.01, which lives for a minute. */
export async function postFirstCurve({ curveBook }: Pick<Contracts, 'curveBook'>, poster: Signer): Promise<void> {
  const block = (await poster.provider!.getBlock('latest'))!;
  const knots = [
    { mantissa: 1000n, exponent: 3n, offset: 0n },
    { mantissa: 2000n, exponent: 3n, offset: 7n },
  ];
  const record = {
    kind: 'full' as const,
    marketId: (await curveBook.marketAt(0)) as Hex,
    seq: 1,
    deadlineSec: block.timestamp + 60,
    snapAskUnits: 0n,
    snapBidUnits: 0n,
    exactAskKnots: 0,
    exactBidKnots: 0,
    askWords: packSide({ shift: 8n, basePrice: 300_001n, knots }),
    bidWords: packSide({ shift: 8n, basePrice: 300_000n, knots }),
  };
  const data = encodePost({ number: block.number, hash: block.hash as Hex }, [record]);
  await (await curveBook.connect(poster).post(data)).wait();
}
