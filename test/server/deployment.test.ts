import { expect } from 'chai';
import { Interface, id } from 'ethers';
import type { z } from 'zod';
import { CONTRACT_ABIS } from '../../contracts-package/src/abis.js';
import type { Market } from '../../core/types.js';
import { abiHash, deploymentSchema } from '../../server/read/deployment.js';
import type { DeploymentFacts } from '../../server/read/deps.js';
import { forOneDatabase } from '../support/db.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../support/markets.js';
import { DEPLOYMENT_BLOCK, startReadServer } from '../support/api/read-server.js';
import type { ReadServer } from '../support/api/read-server.js';

const FACTS: DeploymentFacts = {
  contracts: { custodian: `0x${'c1'.repeat(20)}`, entrypoint: `0x${'e1'.repeat(20)}`, permit2: `0x${'22'.repeat(20)}` },
  wrappedNative: WETH.address,
  publicRpcUrl: 'https://rpc.example.org',
  explorerUrl: null,
  orderSources: ['a'],
  isSandbox: false,
};

forOneDatabase((name, open) => {
  describe(`GET /v0/deployment on ${name}`, () => {
    let server: ReadServer;
    const markets: Market[] = [];
    beforeEach(async () => {
      const db = await open();
      markets.splice(0, markets.length, WETH_USDC);
      server = await startReadServer(db, markets, { deployment: FACTS });
    });
    afterEach(() => server.close());

    /** As it was sent: a hash goes by the order of keys, which a schema may change. */
    async function read(): Promise<z.infer<typeof deploymentSchema>> {
      const { body } = await server.get('/v0/deployment');
      deploymentSchema.parse(body);
      return body as z.infer<typeof deploymentSchema>;
    }

    it('names everything that a client needs to begin with the URL alone', async () => {
      const { contracts, ...rest } = await read();
      expect(rest).to.deep.equal({
        version: '1.2.3',
        chain_id: 8453,
        deployment_id: '0123456789abcdef',
        deployment_block: DEPLOYMENT_BLOCK,
        sandbox: false,
        rpc_url: 'https://rpc.example.org',
        explorer_url: null,
        wrapped_native: WETH.address,
        tokens: [WETH, USDC].map(({ symbol, address, decimals }) => ({ symbol, address, decimals })),
        markets: [
          {
            pair: 'WETH-USDC',
            asset: 10_000,
            base: WETH.address,
            quote: USDC.address,
            tick_size: '0.01',
            lot_size: WETH_USDC.lotSize,
            delisted: false,
          },
        ],
        order_sources: ['a'],
      });
      expect(Object.keys(contracts)).to.have.members(['custodian', 'entrypoint', 'permit2']);
      expect(contracts.custodian?.address).to.equal(FACTS.contracts.custodian);
    });

    it('gives ABIs that encode calls, under the hash of exactly these bytes', async () => {
      const { contracts } = await read();
      for (const [contract, { abi, abi_hash }] of Object.entries(contracts)) {
        expect(abi_hash, contract).to.equal(id(JSON.stringify(abi)));
        expect(abi_hash, contract).to.equal(abiHash(CONTRACT_ABIS[contract as keyof typeof CONTRACT_ABIS]));
        expect(abiHash([...abi].slice(1)), contract).to.not.equal(abi_hash);
      }
      const call = new Interface(contracts.custodian?.abi as never).encodeFunctionData('deposit', [WETH.address, 1n]);
      expect(call).to.match(/^0x[0-9a-f]{136}$/);
    });

    it('lists what was listed since, and may be read from any origin', async () => {
      expect((await read()).markets).to.have.length(1);
      markets.push(WETH_DAI);
      server.deps.delisted = () => new Set([0]);
      const { markets: listed, tokens } = await read();
      expect(listed.map(({ pair, asset, delisted }) => [pair, asset, delisted])).to.deep.equal([
        ['WETH-USDC', 10_000, true],
        ['WETH-DAI', 10_001, false],
      ]);
      expect(tokens.map(({ symbol }) => symbol)).to.deep.equal(['WETH', 'USDC', 'DAI']);
      const { headers } = await fetch(`${server.url}/v0/deployment`, { headers: { origin: 'https://example.org' } });
      expect(headers.get('access-control-allow-origin')).to.equal('*');
      expect(headers.get('cache-control')).to.equal('no-cache');
      expect(headers.get('access-control-expose-headers')).to.include('etag');
    });
  });
});
