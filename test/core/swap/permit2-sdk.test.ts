/**
 * What owners sign, against Uniswap's own SDK for Permit2. The SDK is a judge here and no part of the server: it would bring the packages of
 * ethers v5 along for one function, beside ethers v6, which hashes what the server signs and checks. Since it hashes by code of its own, equal
 * digests also say that nothing was left to a mistake in common.
 */
import { createRequire } from 'node:module';
import type * as Permit2Sdk from '@uniswap/permit2-sdk';
import { expect } from 'chai';
import { hexlify, keccak256, toUtf8Bytes } from 'ethers';
import { orderTypedData, signedTerms, witnessTypeString } from '../../../core/swap/typed-data.js';
import { hasTerms, NO_PARTNER, type PartnerTerms } from '../../../core/swap/partner.js';
import type { Address, Hex } from '../../../core/types.js';
import { PERMIT2_ADDRESS as OURS } from '../../../deploy/sandbox/canonical.js';
import { digestOf } from '../../../server/swap/signature.js';
import { seededRandom, type Random } from '../../support/random.js';

// Node takes only its CommonJS half: the other one names its files without their endings.
const { PERMIT2_ADDRESS, SignatureTransfer } = createRequire(import.meta.url)(
  '@uniswap/permit2-sdk',
) as typeof Permit2Sdk;

const FIELDS = [
  { name: 'recipient', type: 'address' },
  { name: 'tokenOut', type: 'address' },
  { name: 'minAmountOut', type: 'uint256' },
];
/** The witness of an order, and of one with a partner or a hash. */
const WITNESSES = {
  OrderWitness: FIELDS,
  PartnerOrderWitness: [
    ...FIELDS,
    { name: 'partner', type: 'address' },
    { name: 'partnerBps', type: 'uint256' },
    { name: 'appData', type: 'bytes32' },
  ],
};
const nameOf = (terms: PartnerTerms) => (hasTerms(terms) ? 'PartnerOrderWitness' : 'OrderWitness');
const ORDERS = 1_000;

describe('signed orders against the SDK of Permit2', () => {
  const address = (random: Random): Address =>
    hexlify(Uint8Array.from({ length: 20 }, () => random.int(0, 255))) as Address;
  /** Of any size, so that small and largest values are as likely as others. */
  const word = (random: Random): bigint => random.big(0n, (1n << BigInt(random.int(1, 256))) - 1n);

  /** None, either, or both of a partner and a hash. */
  const partnered = (random: Random): PartnerTerms => {
    const hasPartner = random.int(0, 1) === 1;
    return {
      partner: hasPartner ? address(random) : null,
      partnerBps: hasPartner ? random.int(0, 1_000) : 0,
      appData:
        random.int(0, 1) === 1 ? (hexlify(Uint8Array.from({ length: 32 }, () => random.int(0, 255))) as Hex) : null,
    };
  };

  it('agree on the address of Permit2', () => {
    expect(PERMIT2_ADDRESS).to.equal(OURS);
  });

  it(`have the digest that it computes, for ${ORDERS} random orders`, function () {
    this.timeout(120_000);
    const random = seededRandom(20_260);
    const digests = new Set<string>();
    for (let i = 0; i < ORDERS; i++) {
      const domain = { chainId: random.int(1, 10_000_000), permit2: address(random), spender: address(random) };
      const terms = {
        sellToken: address(random),
        sellUnits: word(random),
        nonce: word(random),
        validToSec: random.int(0, 4_000_000_000),
        receiver: address(random),
        buyToken: address(random),
        minBuyUnits: word(random),
        ...partnered(random),
      };
      const { sellToken, sellUnits, nonce, validToSec, receiver, buyToken, minBuyUnits } = terms;
      const permit = {
        permitted: { token: sellToken, amount: sellUnits.toString() },
        spender: domain.spender,
        nonce: nonce.toString(),
        deadline: validToSec.toString(),
      };
      const witness = {
        ...{ recipient: receiver, tokenOut: buyToken, minAmountOut: minBuyUnits.toString() },
        ...(hasTerms(terms) ? signedTerms(terms) : {}),
      };
      const witnessTypeName = nameOf(terms);
      const theirs = SignatureTransfer.hash(permit, domain.permit2, domain.chainId, {
        witness,
        witnessTypeName,
        witnessType: { [witnessTypeName]: WITNESSES[witnessTypeName] },
      });
      const ours = digestOf(orderTypedData(terms, domain));
      expect(ours, JSON.stringify(permit)).to.equal(theirs);
      digests.add(ours);
    }
    expect(digests.size).to.equal(ORDERS);
  });

  it('name types in the string of the witness whose hash the SDK computes with', () => {
    const stub = 'PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,';
    for (const terms of [NO_PARTNER, { ...NO_PARTNER, partner: OURS.toLowerCase() as Address }]) {
      const witnessTypeName = nameOf(terms);
      const { types } = SignatureTransfer.getPermitData(
        { permitted: { token: OURS, amount: 1 }, spender: OURS, nonce: 1, deadline: 1 },
        OURS,
        1,
        { witness: {}, witnessTypeName, witnessType: { [witnessTypeName]: WITNESSES[witnessTypeName] } },
      );
      const part = (name: string) =>
        `${name}(${types[name]!.map(({ name: field, type }) => `${type} ${field}`).join(',')})`;
      const whole = part('PermitWitnessTransferFrom') + part(witnessTypeName) + part('TokenPermissions');
      expect(keccak256(toUtf8Bytes(stub + witnessTypeString(terms)))).to.equal(keccak256(toUtf8Bytes(whole)));
    }
  });
});
