import type { InfoHandler } from './types.js';

/** Lists of what does not exist here: vaults, sub-accounts, funding, time-weighted orders. */
export const emptyList: InfoHandler = () => [];

/** Single things that do not exist here. */
export const nothing: InfoHandler = () => null;

/** There are no perpetuals here; clients load this at start. */
const META = { universe: [], marginTables: [], collateralToken: 0 } as const;

export const meta: InfoHandler = () => ({ ...META });

/** No perpetuals, so no contexts either. */
export const metaAndAssetCtxs: InfoHandler = () => [{ ...META }, []];

/** There are no outcome markets here; clients load this at start. */
export const outcomeMeta: InfoHandler = () => ({ outcomes: [], questions: [] });

/** Only the default one, which this wire writes as null. */
export const perpDexs: InfoHandler = () => [null];

/** Accounts have no modes here. */
export const userAbstraction: InfoHandler = () => 'default';

/** Nobody can approve a builder fee here. */
export const maxBuilderFee: InfoHandler = () => 0;

/** The venue's clock, and why it takes no new orders, if it doesn't: clients read any text as maintenance. */
export const exchangeStatus: InfoHandler = (_request, { clock, gateway }) => {
  const reason = gateway.notReady();
  return { time: clock(), specialStatuses: reason === null ? null : `not_ready: ${reason}` };
};
