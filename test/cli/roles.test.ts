/** The registry of roles: what is declared once must hold for all of them. */
import { expect } from 'chai';
import { settingsSchema } from '../../cli/config.js';
import { marketDataOf } from '../../cli/roles/liquidity.js';
import { ROLES } from '../../cli/roles/registry.js';
import { measuresTransfers } from '../../cli/roles/transfers.js';
import { commonSettings } from '../../cli/settings/common.js';
import type { SwapConfig } from '../../cli/settings/swap.js';
import type { Address, Market } from '../../core/types.js';
import type { RpcPool } from '../../keepers/chain/pool.js';
import type { WatcherStatus } from '../../keepers/watcher/status.js';
import { LOG_OF_ROLE, ROLE_NAMES } from '../../ledger/roles.js';
import type { Db } from '../../ledger/types.js';
import type { VenueKind } from '../../liquidity/venue.js';
import type { Door } from '../../server/door.js';
import { processOf } from '../support/api/gateway-process.js';

describe('roles', () => {
  it('are in the registry, each once, and own a log each', () => {
    expect(ROLES.map(({ name }) => name)).to.have.members(ROLE_NAMES);
    expect(new Set(ROLES.map(({ name }) => LOG_OF_ROLE[name])).size).to.equal(ROLES.length);
  });

  it('declare settings that nobody else declares', () => {
    const names = [commonSettings, ...ROLES.map(({ settings }) => settings)].flatMap((shape) => Object.keys(shape));
    expect(names).to.have.members(Object.keys(settingsSchema.shape));
    expect(new Set(names).size).to.equal(names.length);
  });

  it('have a setting for their key when they sign, and none otherwise', () => {
    for (const { name, signs, settings } of ROLES) {
      expect(Object.keys(settings).includes(`${name.toUpperCase()}_PRIVATE_KEY`), name).to.equal(signs);
    }
  });

  it('measure transfers where they quote or execute swaps, and where they follow the chain', () => {
    const swap = {} as SwapConfig;
    const measuring = (one: SwapConfig | null) =>
      ROLE_NAMES.filter((role) => measuresTransfers({ ROLES: [role], swap: one }));
    expect(measuring(swap)).to.have.members(['gateway', 'watcher', 'executor']);
    expect(measuring(null)).to.have.members(['watcher']);
  });

  it('see no ways over tokens in quarantine, or that this process measured to be uneven', async () => {
    const [sold, bought, even, uneven, held, unknown] = [1, 2, 3, 4, 5, 6].map(
      (no): Address => `0x${String(no).repeat(40)}`,
    ) as [Address, Address, Address, Address, Address, Address];
    const asked = new Set<Address>();
    const kind = {
      create: () => ({
        ...{ name: 'test', target: sold },
        sources: (sellToken: Address, buyToken: Address) => {
          for (const token of [sellToken, buyToken]) asked.add(token);
          return Promise.resolve([]);
        },
      }),
    } as unknown as VenueKind;
    // The settler may call every target; nothing else is asked.
    const rpc = { batch: () => Promise.resolve([`0x${'1'.padStart(64, '0')}`]) } as unknown as RpcPool;
    const swap = { settler: sold, venues: [{ kind, contracts: {} }], wrappedNative: even } as unknown as SwapConfig;
    const context = {
      ...processOf({} as Db, {} as Door, { url: null }),
      markets: [uneven, held, unknown].map((address) => ({ base: { address }, quote: { address } }) as Market),
      watcherStatus: () => ({ findings: [{ token: held, state: 'quarantined' }] }) as unknown as WatcherStatus,
    };
    const data = marketDataOf(context, swap, rpc);
    // Roles start before anything is measured.
    context.keepers.transfers = () => [
      { token: sold, isUneven: true },
      { token: even, isUneven: false },
      { token: uneven, isUneven: true },
      { token: unknown, isUneven: null },
    ];
    const head = { number: 1, hash: `0x${'01'.repeat(32)}`, timestampSec: 1_000, baseFeeWei: 1n } as const;
    await data.paths({ kind: 'sell', sellToken: sold, buyToken: bought, amountUnits: 1n }, head, 1_000);
    expect([...asked]).to.have.members([sold, bought, even, unknown]);
  });
});
