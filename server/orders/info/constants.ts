import type { InfoHandler } from './types.js';

/** Answers to lists of things that this venue does not have: vaults, sub-accounts, funding, time-weighted orders. */
export const emptyList: InfoHandler = () => [];

/** Answers to single things that this venue does not have. */
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

/** The venue's clock, and the reason when it takes no new orders: clients read any text as maintenance. */
export const exchangeStatus: InfoHandler = (_request, { clock, gateway }) => {
  const reason = gateway.notReady();
  return { time: clock(), specialStatuses: reason === null ? null : `not_ready: ${reason}` };
};
