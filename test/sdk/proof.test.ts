import { expect } from 'chai';
import { bytesToHex } from '../../core/hash.js';
import { EMPTY_TREE, leafHash, merkleProof, merkleRoot, updateTree } from '../../core/merkle.js';
import type { MerkleTree } from '../../core/merkle.js';
import type { Address } from '../../core/types.js';
import { rootOf, verifyProof } from '../../sdk/src/verify.js';
import { MAKERS, USDC, WETH } from '../support/markets.js';
import { deployment } from './verify-world.js';

type Proof = Parameters<typeof verifyProof>[2];
type Balance = Proof['balances'][number];

const [MAKER, OTHER] = MAKERS as [Address, Address];

function treeOf(leaves: readonly Uint8Array[]): MerkleTree {
  const steps = updateTree(EMPTY_TREE, [], leaves);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** A checkpoint in which the maker has 1.5 WETH and owes USDC. */
function checkpoint(): Proof {
  const rows = [
    { token: WETH, units: 15n * 10n ** 17n, balance: '1.5' },
    { token: USDC, units: 0n, balance: '-2.25' },
  ];
  const own = rows.map(({ token, units }) => leafHash(MAKER, token.address, units));
  const tree = treeOf([...own, leafHash(OTHER, WETH.address, 7n)]);
  return {
    ...{
      seq: 1,
      generation: 1,
      root: merkleRoot(tree),
      maker: MAKER,
      leaf_encoding: ['address', 'address', 'uint256'],
    },
    balances: rows.map(({ token, units, balance }, i) => ({
      ...{ token: token.symbol, balance, reserved: '0', leaf: [MAKER, token.address, `${units}`] },
      proof: merkleProof(tree, own[i]!)!,
    })),
  };
}

describe('a proof of balances', () => {
  it('gives what is under the root, and a debt as nothing', () => {
    expect(verifyProof(deployment, MAKER, checkpoint())).to.deep.equal([
      { token: 'WETH', balance: '1.5', units: 15n * 10n ** 17n },
      { token: 'USDC', balance: '-2.25', units: 0n },
    ]);
  });

  it('is refused where it is of another, says something else, or says it twice', () => {
    const lies: [string, RegExp, (honest: Proof) => Partial<Proof>][] = [
      ['another maker', /not 0x1/, () => ({ maker: OTHER })],
      ['a higher balance', /the leaf says/, change(0, () => ({ balance: '2.5' }))],
      [
        'a higher leaf',
        /not under the root/,
        change(0, () => ({ balance: '2', leaf: [MAKER, WETH.address, `${2n * 10n ** 18n}`] })),
      ],
      ['a debt that is no number', /the leaf says/, change(1, () => ({ balance: '-two' }))],
      ['a debt of nothing', /the leaf says/, change(1, () => ({ balance: '-0' }))],
      ['a debt finer than the token', /the leaf says/, change(1, () => ({ balance: '-0.0000001' }))],
      ['a debt over a balance', /the leaf says/, change(0, () => ({ balance: '-1.5' }))],
      ['a sibling that is no hash', /not under the root/, change(0, ({ proof }) => ({ proof: [...proof, 'rest'] }))],
      ['a balance twice', /WETH is listed twice/, ({ balances }) => ({ balances: [...balances, balances[0]!] })],
    ];
    for (const [what, why, lie] of lies) {
      const honest = checkpoint();
      expect(() => verifyProof(deployment, MAKER, { ...honest, ...lie(honest) }), what)
        .to.throw(why)
        .with.property('code', 'BAD_PROOF');
    }
  });

  function change(at: number, to: (balance: Balance) => object) {
    return ({ balances }: Proof): Partial<Proof> => ({
      balances: balances.map((one, i) => (i === at ? { ...one, ...to(one) } : one)),
    });
  }

  it('is refused where it is none at all', () => {
    const honest = checkpoint();
    const first = honest.balances[0]!;
    const balances = [
      ...[undefined, null, 5, {}, 'x', [null], [5]],
      ...[undefined, null, 5, [], [MAKER], [MAKER, 5, 5]].map((leaf) => [{ ...first, leaf }]),
      ...[undefined, null, 5, 'x', {}, [5], [null]].map((proof) => [{ ...first, proof }]),
      ...[undefined, null, 5].map((balance) => [{ ...first, leaf: [MAKER, WETH.address, '0'], balance }]),
    ];
    const lies: unknown[] = [null, undefined, 5, ...balances.map((list) => ({ ...honest, balances: list }))];
    for (const lie of lies)
      expect(() => verifyProof(deployment, MAKER, lie as Proof), JSON.stringify(lie))
        .to.throw()
        .with.property('code')
        .oneOf(['BAD_PROOF', 'UNKNOWN_TOKEN']);
    for (const proof of [null, [null], ['x'], [5]])
      expect(() => rootOf(new Uint8Array(32), proof as never), JSON.stringify(proof))
        .to.throw()
        .with.property('code', 'BAD_PROOF');
  });

  it('is of a tree of one leaf, too', () => {
    const { balances, ...honest } = checkpoint();
    const leaf = leafHash(MAKER, WETH.address, 15n * 10n ** 17n);
    const alone = { ...honest, root: bytesToHex(leaf), balances: [{ ...balances[0]!, proof: [] }] };
    expect(verifyProof(deployment, MAKER, alone)).to.have.length(1);
  });
});
