/** What doctor says that deploying costs, against what it does. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { GAS } from '../../cli/commands/doctor/costs.js';
import { manifestSchema } from '../../cli/base-config.js';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import { forOneDatabase } from '../support/db.js';
import { doctorOf } from '../support/console/doctor.js';

forOneDatabase((name, open, openBare) =>
  describe(`curvebook doctor, ${name}`, function () {
    this.timeout(120_000);
    const suite = doctorOf(openBare);

    it('knows what deploying takes, and what posts, settlements and listings do', async () => {
      const gas = JSON.parse(readFileSync('snapshots/gas.json', 'utf8')) as Record<
        string,
        { gas: number; calldataBytes?: number }
      >;
      const known = (name: string) => ({ gas: BigInt(gas[name]!.gas), bytes: BigInt(gas[name]!.calldataBytes ?? 0) });
      expect(GAS.post).to.deep.equal(known('postBatch.15x1'));
      expect(GAS.settlement).to.deep.equal(known('settleWithdraw.usdc.first'));
      expect(GAS.furtherMarket.gas).to.equal(known('postBatch.perMarket').gas);
      expect(GAS.furtherMarket.bytes).to.equal((known('postBatch.15x4').bytes - GAS.post.bytes) / 3n);
      const { deployment, listing } = await measured();
      const within = (said: bigint, found: bigint): void => {
        expect([said >= found, said <= (found * 11n) / 10n], `${said} for ${found}`).to.deep.equal([true, true]);
      };
      within(GAS.deployment.gas, deployment.gas);
      within(GAS.deployment.bytes, deployment.bytes);
      within(GAS.listing.gas, listing.gas);
      within(GAS.listing.bytes, listing.bytes);
    });

    /** All that the owner sent until the platform was configured, by what it was. */
    async function measured() {
      const owner = suite.chain.manifest.accounts.find(({ role }) => role === 'owner')!.address.toLowerCase();
      const sums = { deployment: { gas: 0n, bytes: 0n }, listing: { gas: 0n, bytes: 0n } };
      const listMarket = CurveBook__factory.createInterface().getFunction('listMarket').selector;
      const ours = new Set(Object.values(manifestSchema.parse(suite.chain.manifest).contracts));
      const head = await suite.chain.provider.getBlockNumber();
      for (let number = suite.chain.manifest.deploymentBlock; number <= head; number++) {
        const block = await suite.chain.provider.getBlock(number, true);
        for (const { from, to, hash, data } of block!.prefetchedTransactions) {
          const mine = to === null || ours.has(to.toLowerCase());
          if (from.toLowerCase() !== owner || !mine) continue;
          const sum = data.startsWith(listMarket) ? sums.listing : sums.deployment;
          sum.gas += (await suite.chain.provider.getTransactionReceipt(hash))!.gasUsed;
          sum.bytes += BigInt((data.length - 2) / 2);
        }
      }
      return sums;
    }
  }),
);
