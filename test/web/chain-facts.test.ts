/** What the console shows of the chain: never as present once it can no longer be read. */
import { expect } from 'chai';
import { drawn } from '../support/console/drawn.js';

const SIGNER = `0x${'a1'.repeat(20)}`;
const ERROR = 'the wallet or endpoint is on chain 1, this deployment on 8453 (WRONG_CHAIN).';

const SHOWN: readonly [name: string, data: object, says: string][] = [
  ['SolvencyTable', [{ token: 'WETH', held: '5', onChain: '5', unattributed: '0', isWhole: true }], '✓ yes'],
  [
    'RoleTables',
    {
      contracts: [{ name: 'custodian', address: SIGNER, owner: SIGNER, implementation: null }],
      signers: [{ address: SIGNER, eth: '1.5', isPoster: true, isSettler: false, isExecutor: false }],
    },
    'custodian',
  ],
];

describe('what was read of the chain', () => {
  it('is marked as old, with its age and the reason, once it can no longer be read', async () => {
    for (const [name, data, says] of SHOWN) {
      const said = async (rows: object) => {
        const { text, all } = await drawn('operator/chain-tables.tsx', name, { rows });
        const looks = all('div').flatMap(({ className }) =>
          typeof className === 'string' && className.startsWith('scroll') ? [className] : [],
        );
        return { text, isOld: looks.map((look) => look === 'scroll old'), isAlarmed: all('p').length > 0 };
      };
      const atMs = Date.now() - 600_000;
      const good = await said({ data, atMs, error: null });
      expect(good.text, name).to.contain(says);
      expect([...good.isOld, good.isAlarmed], name).not.to.include(true);
      const old = await said({ data, atMs, error: ERROR });
      expect(old.text, name).to.contain(says).and.contain('is 10 min old').and.contain(ERROR);
      expect([...old.isOld, old.isAlarmed], name).not.to.include(false);
      expect((await said({ data: null, atMs: null, error: ERROR })).text, name).to.equal(ERROR);
    }
  });
});
