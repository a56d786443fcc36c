import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { MOST_PARTNER_BPS } from '../../core/swap/partner.js';
import type { Address } from '../../core/types.js';
import { chainPreset, tokenRows } from '../../deploy/chain-preset.js';
import {
  VENUE_KINDS,
  venueContracts,
  type VenueContracts,
  type VenuePlace,
  type VenueSetting,
} from '../../liquidity/venues.js';
import type { VenueKind } from '../../liquidity/venue.js';
import { address, integer } from './fields.js';
import { tokenListSchema } from '../../server/swap/tokens.js';
import type { SwapToken } from '../../server/swap/deps.js';

/** Settings that the swap API and the executor share; those of the executor alone stand in its folder. */
export const swapSettings = {
  TOKEN_LIST: z
    .string()
    .min(1)
    .optional()
    .describe("token list of the swap API, a JSON file in the Uniswap format; default: the manifest's tokenList"),
  WRAPPED_NATIVE: address
    .optional()
    .describe("the token that gas is priced in; default: the manifest's, else the chain's where it is known"),
  SWAP_QUOTE_TTL_SEC: integer(15, 600, 30).describe('how long orders for a quote are accepted'),
  SWAP_ORDER_TTL_SEC: integer(30, 3_600, 120).describe('how long a signed order may be executed, from its quote on'),
  SWAP_FEE_MARGIN_BPS: integer(0, 100_000, 2_000).describe('added to the cost of gas in the fee of a gasless order'),
  SWAP_GAS_VOLATILITY_BPS: integer(0, 100_000, 2_500).describe(
    'added to the price of gas in the fee, for what it may rise until the order is executed',
  ),
  GAS_PRICE_ORACLE: address
    .default('0x420000000000000000000000000000000000000f')
    .describe("contract that returns a rollup's fee for data; without a contract at the address nothing is charged"),
  SWAP_MAX_REVERTS: integer(1, 1_000, 2).describe(
    "most reverted transactions of one owner's orders since its last fill; beyond it nothing is sent for the owner until it has sent a swap of its own",
  ),
  SWAP_NEW_ACCOUNT_GAS: integer(0, 10_000_000, 94_000).describe(
    'gas that orders of an account may burn by reverting before its first fill or swap: what setting it up takes. Fills and swaps add to it; less than 77,000 refuses new accounts, less than 80,000 where the settler can not check orders',
  ),
  SWAP_NEW_CONTRACT_GAS: integer(0, 10_000_000, 94_000).describe(
    'the same for an account with code, whose check can burn all the gas of a transaction, 150,000 to 240,000: that much lets such accounts begin with an order instead of two swaps',
  ),
  SWAP_NEW_PERMIT_GAS: integer(0, 10_000_000, 60_000).describe(
    'with a settler that can not check orders before it fills them: added to SWAP_NEW_ACCOUNT_GAS for one that brings its approval by signature, which is burnt, too, if it reverts; less than 41,000 refuses such orders of new accounts',
  ),
  SWAP_NEWCOMERS_GAS_PER_HOUR: integer(0, 1_000_000_000, 12_000_000).describe(
    'most gas that transactions for all accounts without a fill or swap of their own may burn by reverting in an hour; unmined ones count with their whole limit',
  ),
  SWAP_EXTRA_GAS: integer(0, 10_000_000, 0).describe(
    "gas added to every order in the fee, for costs of the chain other than gas and the oracle's data fee",
  ),
  SWAP_TOLERANCE_BPS: integer(0, 1_000, 10).describe(
    'by how much our own route may be worse than the best and still be chosen by preferService',
  ),
  SWAP_PARTNER_MAX_BPS: integer(0, MOST_PARTNER_BPS, 100).describe(
    'most that a partner of an order may ask for, in bps of what the order buys; 0 switches partner fees off',
  ),
  SWAP_MAX_GAS: integer(200_000, 30_000_000, 1_000_000).describe(
    'most gas that an order may take; one that takes more is not sent, and expires',
  ),
  SWAP_QUOTES_PER_MINUTE: integer(1, 1_000_000, 300).describe('quotes per client address and minute'),
  SWAP_OWNER_QUOTES_PER_MINUTE: integer(20, 1_000_000, 600).describe(
    'quotes of one owner per minute, over all client addresses; beyond it each address gets a twentieth',
  ),
  SWAP_ORDERS_PER_MINUTE: integer(1, 1_000_000, 60).describe('submitted orders per client address and minute'),
  SWAP_READS_PER_MINUTE: integer(1, 1_000_000, 1_200).describe(
    'token lists and order queries per client address and minute',
  ),
  ...venueSettings(),
};

/** The addresses of external venues. */
function venueSettings(): Record<VenueSetting, z.ZodOptional<typeof address>> {
  const about = ({ kind, contract, about: text }: ReturnType<typeof venueContracts>[number]): string =>
    contract === kind.parent
      ? `with the others that begin like it, all or none: external liquidity of ${kind.title}; default: the manifest's, else the chain's where they are known`
      : text;
  return Object.fromEntries(
    venueContracts().map((one) => [one.setting, address.optional().describe(about(one))]),
  ) as Record<VenueSetting, z.ZodOptional<typeof address>>;
}

type SwapSettings = z.output<z.ZodObject<typeof swapSettings>>;

/** What is risked for the owner of an order: the same for who quotes and who executes. */
export const riskLimits = (
  settings: Pick<
    SwapSettings,
    | 'SWAP_MAX_REVERTS'
    | 'SWAP_NEW_ACCOUNT_GAS'
    | 'SWAP_NEW_CONTRACT_GAS'
    | 'SWAP_NEW_PERMIT_GAS'
    | 'SWAP_NEWCOMERS_GAS_PER_HOUR'
  >,
) => ({
  maxReverts: settings.SWAP_MAX_REVERTS,
  newAccountGas: BigInt(settings.SWAP_NEW_ACCOUNT_GAS),
  newContractGas: BigInt(settings.SWAP_NEW_CONTRACT_GAS),
  newPermitGas: BigInt(settings.SWAP_NEW_PERMIT_GAS),
  newcomersGasPerHour: BigInt(settings.SWAP_NEWCOMERS_GAS_PER_HOUR),
});

/** The part of a deployment manifest that swaps need. */
export const swapManifest = {
  permit2: address.optional(),
  orderSettler: address.optional(),
  wrappedNative: address.optional(),
  lens: address.optional(),
  adapter: address.optional(),
  ...(Object.fromEntries(venueContracts().map(({ place }) => [place, address.optional()])) as Record<
    VenuePlace,
    z.ZodOptional<typeof address>
  >),
};

/** Where the address of a contract comes from: what nobody wrote down for this deployment may be absent from its chain. */
type Origin = 'settings' | 'manifest' | 'preset';

export interface SwapConfig {
  permit2: Address;
  settler: Address;
  /** Contracts of the platform on which anybody could take, or nobody ever gets back, what is sent there. */
  periphery: readonly Address[];
  tokens: readonly SwapToken[];
  wrappedNative: Address;
  /** External liquidity. */
  venues: readonly VenueConfig[];
  /** Venues of the chain for which the deployment lacks the router that it would have to have itself. */
  unrouted: readonly UnroutedVenue[];
}

/** A venue that is known of the chain, and which of its contracts a router would belong to. */
interface UnroutedVenue {
  kind: VenueKind;
  parent: Address;
}

/** A venue that is configured, or known of the chain. */
export interface VenueConfig {
  kind: VenueKind;
  contracts: VenueContracts;
  origin: Origin;
}

/** What a manifest says about swaps. */
interface SwapManifest {
  chainId: number;
  contracts: z.output<z.ZodObject<typeof swapManifest>>;
  /** As recorded when markets were configured. */
  tokens: readonly { symbol: string; address: Address; decimals: number }[];
  tokenList?: z.output<typeof tokenListSchema>;
  /** Of a sandbox; its chain has nothing but what the manifest names, whatever its id is. */
  accounts: readonly unknown[];
}

/** Where chains of the OP Stack have it. */
const WRAPPED_NATIVE: Address = '0x4200000000000000000000000000000000000006';

/** What the settings, the manifest and the chain's preset say about swaps; null for a deployment without a settler. Adds to `problems`. */
export function readSwapConfig(settings: SwapSettings, manifest: SwapManifest, problems: string[]): SwapConfig | null {
  const { contracts } = manifest;
  const { permit2, orderSettler: settler } = contracts;
  if (settler === undefined || permit2 === undefined) return null;
  const venues = VENUE_KINDS.flatMap((kind) => readVenue(kind, settings, manifest, problems) ?? []);
  return {
    permit2,
    settler,
    periphery: [contracts.lens, contracts.adapter].filter((one) => one !== undefined),
    tokens: readTokens(settings, manifest, problems),
    wrappedNative: wrappedNativeOf(settings, manifest),
    venues: venues.filter((venue) => 'contracts' in venue),
    unrouted: venues.filter((venue) => 'parent' in venue),
  };
}

/** By the settings, else the manifest, else what is known of the chain. */
export function wrappedNativeOf(
  settings: Pick<SwapSettings, 'WRAPPED_NATIVE'>,
  { chainId, contracts }: Pick<SwapManifest, 'chainId' | 'contracts'>,
): Address {
  const preset = chainPreset(chainId)?.contracts.wrappedNative.address;
  return settings.WRAPPED_NATIVE ?? contracts.wrappedNative ?? (preset === undefined ? WRAPPED_NATIVE : lower(preset));
}

const lower = (at: string): Address => at.toLowerCase() as Address;

/** The operator's list, else the manifest's, else the tokens that the manifest names. */
function readTokens(settings: SwapSettings, manifest: SwapManifest, problems: string[]): readonly SwapToken[] {
  const { chainId, tokens, tokenList } = manifest;
  const list = settings.TOKEN_LIST === undefined ? tokenList : readTokenList(settings.TOKEN_LIST, problems);
  if (list !== undefined) {
    const served = list.tokens.filter((token) => token.chainId === chainId);
    if (served.length > 0) return served;
    problems.push(
      `${settings.TOKEN_LIST === undefined ? 'MANIFEST' : 'TOKEN_LIST'}: the token list has no token of chain ${chainId}`,
    );
  }
  return tokenRows(chainId, tokens).map((token) => ({ ...token, address: lower(token.address) }));
}

function readTokenList(path: string, problems: string[]): z.output<typeof tokenListSchema> | undefined {
  try {
    const parsed = tokenListSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
    if (parsed.success) return parsed.data;
    problems.push(
      ...parsed.error.issues.map((issue) => `TOKEN_LIST ${path}: ${issue.path.join('.')}: ${issue.message}`),
    );
  } catch (error) {
    problems.push(`TOKEN_LIST: can't read ${path} (${error instanceof Error ? error.message : String(error)})`);
  }
  return undefined;
}

/**
 * By the settings, else the manifest, else what is known of the chain; null where none of them names it. Only its parent where the deployment lacks the
 * router that it would have to have.
 */
function readVenue(
  kind: VenueKind,
  settings: SwapSettings,
  { chainId, contracts, accounts }: SwapManifest,
  problems: string[],
): VenueConfig | UnroutedVenue | null {
  const all = venueContracts([kind]);
  const named = all.map(({ contract, setting, place }) => [contract, settings[setting] ?? contracts[place]] as const);
  if (named.every(([, at]) => at !== undefined)) {
    const origin = all.some(({ setting }) => settings[setting] !== undefined) ? 'settings' : 'manifest';
    return { kind, contracts: Object.fromEntries(named) as VenueContracts, origin };
  }
  if (named.some(([, at]) => at !== undefined)) {
    problems.push(`${all.map(({ setting }) => setting).join(', ')}: all of them are required, or none`);
    return null;
  }
  const known = accounts.length > 0 ? undefined : chainPreset(chainId)?.venues[kind.name];
  if (known === undefined) return null;
  if (kind.hasOwnRouter === true) return { kind, parent: lower(known[kind.parent]!.address) };
  const places = all.map(({ contract }) => [contract, lower(known[contract]!.address)] as const);
  return { kind, contracts: Object.fromEntries(places) as VenueContracts, origin: 'preset' };
}

/** Where people look at transactions: what the operator names, else what the chain is known for; null in a sandbox and elsewhere. */
export function explorerUrlOf({
  EXPLORER_URL,
  manifest,
}: {
  EXPLORER_URL?: string | undefined;
  manifest: { chainId: number; accounts: readonly unknown[] };
}): string | null {
  const isSandbox = manifest.accounts.length > 0;
  return EXPLORER_URL ?? (isSandbox ? null : (chainPreset(manifest.chainId)?.explorer.url ?? null));
}
