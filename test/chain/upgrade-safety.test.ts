import { upgrades as upgradesOf } from '@openzeppelin/hardhat-upgrades';
import { expect } from 'chai';
import { ZeroAddress } from 'ethers';
import hre from 'hardhat';

/** The peers' addresses; any will do, since only the code is judged. */
const PEERS: Record<string, string[]> = {
  Custodian: [ZeroAddress, ZeroAddress, ZeroAddress],
  CurveBook: [ZeroAddress],
  Entrypoint: [ZeroAddress, ZeroAddress],
};

describe('implementations behind proxies', function () {
  this.timeout(120_000);

  for (const [name, constructorArgs] of Object.entries(PEERS)) {
    it(`${name} is safe to upgrade from and to`, async () => {
      const connection = await hre.network.create();
      try {
        const upgrades = await upgradesOf(hre, connection);
        const factory = await connection.ethers.getContractFactory(name);
        await upgrades.validateImplementation(factory, { kind: 'uups', constructorArgs });
        await upgrades.validateUpgrade(factory, factory, { kind: 'uups', constructorArgs });
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
      const verdict = await upgrades.validateImplementation(factory, { kind: 'uups', constructorArgs: ['', '', 0] }).then(
        () => 'accepted',
        (error: Error) => error.message,
      );
      expect(verdict).to.contain('upgrade safe').and.to.contain('MintableToken');
    } finally {
      await connection.close();
    }
  });
});
