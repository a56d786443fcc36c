import { expect } from 'chai';
import { addressOf, post, signRequest } from '../../support/gateway.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';

withGateway('the explanation of a signature', (suite) => {
  interface Attempt {
    strings: string;
    source: string;
    signer: string | null;
    standing: string;
    maker: string | null;
    connection_id: string;
    digest: string;
    preimage: string;
    msgpack: string;
  }
  const explain = async (body: object): Promise<Attempt[]> =>
    (await post(`${suite.running.url}/sandbox/signature`, body)).json.attempts as Attempt[];

  it('names the attempt that the signer meant, and stores nothing', async () => {
    await suite.start();
    const signed = signRequest(orderAction(limit(true, '2500.250', '1')), 1, suite.nextNonce(), { source: 'b' });
    const attempts = await explain(signed);
    expect(attempts.map(({ strings, source, standing }) => `${strings} ${source} ${standing}`)).to.deep.equal([
      'canonical a unknown',
      'canonical b unknown',
      'received a unknown',
      'received b active',
    ]);
    const meant = attempts[3];
    expect(meant).to.include({ signer: addressOf(1), maker: addressOf(1) });
    for (const hex of [meant?.connection_id, meant?.digest]) expect(hex).to.match(/^0x[0-9a-f]{64}$/);
    expect(meant?.preimage.startsWith(meant.msgpack)).to.equal(true);
    expect(suite.running.gateway.book().lastOrderSeq()).to.equal(0);
    // The recovered addresses are those that a refusal names.
    const { text } = await post(`${suite.running.url}/exchange`, signRequest({ type: 'noop' }, 50, suite.nextNonce()));
    expect(text).to.contain(addressOf(50));
  });

  it('says that no address comes out of a signature with a high s', async () => {
    await suite.start();
    const signed = signRequest({ type: 'noop' }, 1, suite.nextNonce()) as { signature: object };
    const attempts = await explain({ ...signed, signature: { ...signed.signature, s: `0x${'f'.repeat(64)}` } });
    expect(attempts[0]).to.include({ signer: null, standing: 'unrecoverable', maker: null });
  });
});
