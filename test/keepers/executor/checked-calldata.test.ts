/** How conditions are written into a call of the settler. */
import { expect } from 'chai';
import { MaxUint256, ZeroAddress } from 'ethers';
import type { Hex } from '../../../core/types.js';
import { withChecks } from '../../../keepers/executor/checked.js';
import { SETTLER } from '../../../keepers/executor/transaction.js';

const signed = {
  ...{ owner: ZeroAddress, tokenIn: ZeroAddress, maxAmountIn: 1n, nonce: 0n, deadline: 0n },
  ...{ recipient: ZeroAddress, tokenOut: ZeroAddress, minAmountOut: 1n, signature: '0x' },
};

describe('checked call data', () => {
  it('bounds a word above only where the condition does, also one that may be zero', () => {
    const fill = SETTLER.encodeFunctionData('fillOnCurve', [0n, signed]) as Hex;
    const check = (minimum: bigint, maximum: bigint | null) => ({
      ...{ target: `0x${'11'.repeat(20)}` as const, word: 0, data: '0x' as const },
      ...{ minimum, maximum },
    });
    const checks = [check(0n, null), check(7n, null), check(0n, 0n), check(7n, 9n)];
    const [encoded] = SETTLER.decodeFunctionData('fillChecked', withChecks(fill, 1n, checks)) as unknown as [
      { minimum: bigint; maximum: bigint }[],
    ];
    // As the contract reads them: a maximum below the minimum is none.
    const most = encoded.map(({ minimum, maximum }) => (maximum < minimum ? MaxUint256 : maximum));
    expect(most).to.deep.equal([MaxUint256, MaxUint256, 0n, 9n]);
  });
});
