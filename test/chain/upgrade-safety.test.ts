import { upgrades as upgradesOf } from '@openzeppelin/hardhat-upgrades';
import { expect } from 'chai';
import { ZeroAddress } from 'ethers';
import type { ContractFactory } from 'ethers';
import hre from 'hardhat';

/** The peers' addresses; any will do, since only the code is judged. */
function peersOf(factory: ContractFactory): (string | string[])[] {
  return factory.interface.deploy.inputs.map(({ components }) => components?.map(() => ZeroAddress) ?? ZeroAddress);
}

describe('implementations behind proxies', function () {
  this.timeout(120_000);

  for (const name of ['Custodian', 'CurveBook', 'Entrypoint']) {
    it(`${name} is safe to upgrade from and to`, async () => {
      const connection = await hre.network.create();
      try {
        const upgrades = await upgradesOf(hre, connection);
        const factory = await connection.ethers.getContractFactory(name);
        const options = { kind: 'uups', constructorArgs: peersOf(factory) } as const;
        await upgrades.validateImplementation(factory, options);
        await upgrades.validateUpgrade(factory, factory, options);
      } finally {
        await connection.close();
      }
    });
  }

  it('rejects an implementation without an upgrade function, so the check can fail', async () => {
    const connection = await hre.network.create();
    try {
      const upgrades = await upgradesOf(hre, connection);
      const factory = await connection.ethers.getContractFactory('MintableToken');
      const options = { kind: 'uups', constructorArgs: ['', '', 0] } as const;
      const verdict = await upgrades.validateImplementation(factory, options).then(
        () => 'accepted',
        (error: Error) => error.message,
      );
      expect(verdict).to.contain('upgrade safe').and.to.contain('MintableToken');
    } finally {
      await connection.close();
    }
  });
});
