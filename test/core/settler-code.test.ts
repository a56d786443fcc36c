/** What a settler can do, as endpoints say it. */
import { expect } from 'chai';
import { RpcUnavailableError } from '../../core/rpc-errors.js';
import type { Address } from '../../core/types.js';
import type { EthReader } from '../../liquidity/eth.js';
import { createSettlerCode } from '../../liquidity/settler-code.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';

const SETTLER: Address = `0x${'11'.repeat(20)}`;
const KNOWS = `0x63${OrderSettler__factory.createInterface().getFunction('fillChecked').selector.slice(2)}`;

const SILENT = 'silent';
const saying = (code: string): EthReader => ({
  call: () => (code === SILENT ? Promise.reject(new Error('no answer')) : Promise.resolve(code)),
  batch: () => Promise.resolve([code]),
});

/** Endpoints that answer with these codes; the first is asked where one is enough. */
function several(codes: readonly string[]): EthReader {
  const all = codes.map(saying);
  return {
    ...all[0]!,
    endpoints: all,
    async survey(ask) {
      const votes = all.map(async (one) => ({ answer: await ask(one), convict: () => undefined }));
      return (await Promise.allSettled(votes)).flatMap((vote) => (vote.status === 'fulfilled' ? [vote.value] : []));
    },
  };
}

describe('what a settler can do', () => {
  const has = (codes: readonly string[]): Promise<boolean> =>
    createSettlerCode(several(codes), SETTLER).has('fillChecked');

  it('is what most endpoints say, or the only one', async () => {
    expect(await has([KNOWS, '0x00', KNOWS])).to.equal(true);
    expect(await has(['0x00', KNOWS, '0x00'])).to.equal(false);
    expect(await has([KNOWS])).to.equal(true);
    expect(await has(['0x00'])).to.equal(false);
  });

  it('is what one says while the others are silent', async () => {
    expect(await has([SILENT, KNOWS, SILENT])).to.equal(true);
    expect(await has([SILENT, '0x00'])).to.equal(false);
    const error = await has([SILENT, SILENT]).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(RpcUnavailableError);
  });

  it('is not known while endpoints disagree, so that no laxer rules hold', async () => {
    const error = await has(['0x00', KNOWS]).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(RpcUnavailableError);
  });
});
