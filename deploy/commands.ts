/** The commands that consist of calls by the owner: configuration, transfer of ownership, `set-seq`, `status`. */
import { isError, type BaseContract } from 'ethers';
import { MAX_SEQ_STEP } from '../core/curve/post.js';
import { decodeSymbol, nameTokens } from '../core/token-names.js';
import type { Address, Hex, Token } from '../core/types.js';
import { actionOn, assertOwner, sendActions, type Action } from './actions.js';
import { tokenRows } from './chain-preset.js';
import type { DeployConfig } from './config.js';
import { configureActions } from './configure.js';
import { currentRecord, isOnChain, type Context, type Mode } from './context.js';
import { CONTRACT_NAMES, PERIPHERY_NAMES, connectContracts, ownershipOf } from './contracts.js';
import { DeployError } from './errors.js';
import { knownPlaces, type KnownPlaces } from './known-places.js';
import { listingOf, manifestToken } from './listing.js';
import { divideByOwner, waitingOffers, withdrawActions } from './owner/offers.js';
import { acceptActions, transferActions } from './ownership.js';
import type { DeploymentRecord } from './record.js';
import { logsOf, readState, type PlatformState } from './state.js';
import { thenCalls, withTokens } from './owner/summaries.js';
import { V4_ROUTER } from './uniswap-v4.js';
import { assertEnded, assertEvents, checkedState, presentRights } from './checks/rights.js';
import { assertEvenTransfers } from './checks/token-check.js';
import { addressesOf } from './upgrade/upgrade.js';

/** Selector of symbol() */
const SYMBOL = '0x95d89b41';

/**
 * Sets posters, executors, targets, fees, delay and markets as configured, and the record's markets as listed on the chain. Returns the calls
 * that the owner has to make; mode `send` makes them.
 */
export async function configureCommand(context: Context, config: DeployConfig, mode: Mode): Promise<Action[]> {
  const { provider, chainId, log } = context;
  if (config.chainId !== chainId) {
    throw new DeployError('WRONG_CHAIN', `the configuration is for chain ${config.chainId}, this is ${chainId}`);
  }
  const record = await currentRecord(context);
  const { orderSettler, adapter } = record.contracts;
  const ours = config.takerFees.find(({ taker, ratePpm }) => ratePpm !== 0 && [orderSettler, adapter].includes(taker));
  if (ours !== undefined) {
    throw new DeployError(
      'BAD_CONFIG',
      `takerFees: ${ours.taker} is a contract of the platform, whose rate stays zero`,
    );
  }
  const places = await knownPlaces(provider, chainId, record.contracts);
  const complete = { ...config, targets: [...(config.targets ?? places.targets)] };
  const state = await checkedState(provider, record, complete);
  const prepared = await configureActions(provider, addressesOf(record), complete, record.deploymentBlock);
  assertEnded(provider, record, { state, config: complete, actions: prepared });
  const actions = prepared.map(withTokens);
  await assertEvenTransfers(provider, record.contracts.custodian, newTokens(state, config), log);
  for (const { pair, name } of await namedPairs(context, state, config)) {
    if (pair !== name)
      log(`${pair} is called ${name} by the platform: its tokens' own symbols are taken, or unfit for names`);
  }
  if (actions.length === 0) log('everything is configured already');
  await carryOut(context, actions, mode);
  if (mode !== 'dry-run') await recordState(context, record, complete, places);
  return actions;
}

async function carryOut({ signer, log }: Context, actions: readonly Action[], mode: Mode): Promise<void> {
  if (mode === 'send') {
    await assertOwner(actions, signer);
    await sendActions(actions, signer, log);
  } else {
    for (const { contract, summary } of actions) log(`${contract}: ${summary}`);
  }
}

/** Tokens of markets that are to be listed, without tokens of markets that are listed already. */
function newTokens({ markets }: PlatformState, config: DeployConfig): DeployConfig['tokens'] {
  const old = new Set(markets.flatMap(({ base, quote }) => [base, quote]));
  const named = new Set(config.markets.flatMap(({ pair }) => pair.split('-')));
  return config.tokens.filter(({ symbol, address }) => named.has(symbol) && !old.has(address));
}

/** The name of each pair after its listing, from the symbols that the tokens have on the chain, in the order of listing. */
async function namedPairs(
  { provider }: Context,
  { markets }: PlatformState,
  config: DeployConfig,
): Promise<{ pair: string; name: string }[]> {
  const listings = config.markets.map((market) => listingOf(market, config.tokens));
  const isListed = (id: string): boolean => markets.some((market) => market.id === id);
  const inOrder = [
    ...markets.flatMap(({ id }) => listings.filter((listing) => listing.id === id)),
    ...listings.filter(({ id }) => !isListed(id)),
  ];
  const tokens: Token[] = [];
  for (const { base, quote } of inOrder) {
    for (const { address, decimals } of [base, quote]) {
      const at = address.toLowerCase() as Address;
      tokens.push({ address: at, decimals, symbol: await symbolOf(provider, address) });
    }
  }
  const named = nameTokens(tokens);
  return inOrder.map(({ market: { pair } }, i) => {
    const [base, quote] = named.slice(2 * i, 2 * i + 2);
    return { pair, name: `${base?.symbol}-${quote?.symbol}` };
  });
}

/** A token's symbol on the chain; empty for a token without one. */
async function symbolOf(provider: Context['provider'], token: string): Promise<string> {
  const answer = await provider.call({ to: token, data: SYMBOL }).catch((error: unknown) => {
    if (isError(error, 'CALL_EXCEPTION')) return '0x';
    throw error;
  });
  return decodeSymbol(answer as Hex);
}

/** Writes the markets that are listed into the record, in the order of listing, and who has which right. */
async function recordState(
  { provider, files, chainId }: Context,
  record: DeploymentRecord,
  config: DeployConfig,
  { contracts: places }: KnownPlaces,
): Promise<void> {
  const state = await readState(provider, addressesOf(record), record.deploymentBlock);
  const { markets } = state;
  const listings = config.markets.map((market) => listingOf(market, config.tokens));
  const listed = markets.flatMap(({ id }) => listings.filter((listing) => listing.id === id));
  const tokens = new Map(listed.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.symbol, token]));
  const recorded = [...tokens.values()].map(manifestToken);
  files.write({
    ...record,
    contracts: { ...record.contracts, ...places },
    tokens: recorded,
    ...(recorded.length === 0 ? {} : { tokenList: { name: 'Curvebook', tokens: tokenRows(chainId, recorded) } }),
    markets: listed.map(({ market: { pair, tickSize, lotSize } }) => ({ pair, tickSize, lotSize })),
    rights: await presentRights(provider, record, { state, config }),
  });
}

/**
 * Names `to` as the next owner of the four contracts. Nothing changes until `to` accepts. What `to` owns already is offered to nobody else from then on.
 * Where the contracts have several owners the calls are those of one: of the signer, of `to`, or of whoever owns most; what is left to others is said.
 */
export async function transferCommand(context: Context, to: string, mode: Mode): Promise<Action[]> {
  const { provider, signer, log } = context;
  const at = addressesOf(await currentRecord(context));
  const all = [...(await withdrawActions(provider, at, to)), ...(await transferActions(provider, at, to))];
  if (all.length === 0) log(`the four contracts are ${to}'s, or offered to it, already`);
  const { actions, others } = await divideByOwner(provider, all, [await signer.getAddress(), to]);
  for (const { contract, owner } of others)
    log(`${contract} is ${owner}'s, who alone can offer it or withdraw an offer: nothing is done with it here`);
  await carryOut(context, actions, mode);
  return actions;
}

/**
 * Accepts the four contracts for `next`: the signer in mode `send`, else whoever was named.
 * Throws `NOT_OWNER` when the contracts were not offered to it.
 */
export async function acceptCommand(context: Context, next: string, mode: Mode): Promise<Action[]> {
  const { signer, provider, log } = context;
  const at = addressesOf(await currentRecord(context));
  const actions = await acceptActions(provider, at, next);
  if (actions.length === 0) {
    log(`the four contracts are ${next}'s already`);
    for (const { name, pendingOwner } of await waitingOffers(provider, at))
      log(
        `${name} is offered to ${pendingOwner}, who may still accept it; transfer-ownership --to ${next} withdraws that`,
      );
  }
  if (mode === 'send') await sendActions(actions, signer, log);
  else await carryOut(context, actions, mode);
  return actions;
}

/**
 * Most of the numbers that the contract would accept next that may have been used already. The poster skips those, and also those of publications
 * that never landed, which the chain does not know; so half of a step is left for them.
 */
const MOST_USED = MAX_SEQ_STEP / 2;

/**
 * Sets the live sequence number of a market back, after somebody used the numbers up. The live curve ends at once. Throws `BAD_ARGUMENT` for a pair
 * that the record does not name, for a number above the live one, which the contract refuses, and for a number after which most numbers of one step
 * were used: the poster uses no number twice, so it would have none that the contract accepts, and the market would never have a curve again.
 */
export async function setSeqCommand(
  context: Context,
  { pair, seq, mostUsed = MOST_USED }: { pair: string; seq: bigint; mostUsed?: number },
  mode: Mode,
): Promise<Action[]> {
  const record = await currentRecord(context);
  const index = record.markets.findIndex((market) => market.pair === pair);
  if (index === -1) throw new DeployError('BAD_ARGUMENT', `--market: the record names no market ${pair}`);
  const { curveBook } = connectContracts(addressesOf(record), context.provider);
  const id = await curveBook.marketAt(index);
  const { seq: live } = await curveBook.marketState(id);
  if (seq > live)
    throw new DeployError('BAD_ARGUMENT', `--seq: ${pair} is at ${live}, and numbers are only given back`);
  if (live - seq > BigInt(mostUsed)) {
    await assertEvents(context.provider, record, ['curveBook']);
    const used = await usedAbove(context, { curveBook, fromBlock: record.deploymentBlock, id, seq });
    if (used > mostUsed)
      throw new DeployError(
        'BAD_ARGUMENT',
        `--seq: ${used} of the ${MAX_SEQ_STEP} numbers above ${seq} were used, and none is used twice: ${pair} might never have a curve again; name a higher one`,
      );
  }
  const summary = `~ sequence number of ${pair} ${live} -> ${seq}; its curve ends`;
  const actions = [await actionOn('curveBook', curveBook, 'setSeq', [id, seq], summary)];
  await carryOut(context, actions, mode);
  return actions;
}

/** How many of the sequence numbers in one step above `seq` the market's curves have had. */
async function usedAbove(
  { provider }: Context,
  of: { curveBook: BaseContract; fromBlock: number; id: string; seq: bigint },
): Promise<number> {
  const used = new Set<bigint>();
  for (const event of ['CurvePosted', 'CurveTouched']) {
    for (const log of await logsOf(provider, of.curveBook, event, of.fromBlock, [of.id])) {
      const number = BigInt(log.topics[2] ?? 0);
      if (number > of.seq && number <= of.seq + BigInt(MAX_SEQ_STEP)) used.add(number);
    }
  }
  return used.size;
}

/** Compares the chain with the record, and prints owners, rights and listed markets. */
export async function statusCommand(context: Context): Promise<DeploymentRecord> {
  const { provider, log } = context;
  const record = await currentRecord(context);
  log(`deployment ${record.deploymentId} on chain ${record.chainId}, from block ${record.deploymentBlock} on`);
  for (const name of CONTRACT_NAMES) {
    const { owner, pendingOwner } = await ownershipOf(provider, record.contracts[name]);
    const next = pendingOwner === null ? '' : `, offered to ${pendingOwner}`;
    log(`${name} ${record.contracts[name]}: owner ${owner}${next}`);
  }
  for (const name of PERIPHERY_NAMES) log(`${name} ${record.contracts[name]}`);
  const { uniswapV4Router } = record.contracts;
  if (uniswapV4Router !== undefined) log(`${V4_ROUTER.name} ${uniswapV4Router}`);
  for (const [name, { address, contract, commit, codeHash }] of Object.entries(record.implementations)) {
    log(`${name} runs ${contract} of ${commit} at ${address}, code hash ${codeHash}`);
  }
  for (const [name, proposed] of Object.entries(record.proposed)) {
    for (const one of proposed) {
      const { address, commit, codeHash } = one;
      const state = (await isOnChain(provider, one))
        ? `is proposed and waits for the owner${thenCalls(context.build, one.contract, one.call)}`
        : 'is proposed, but the chain does not have its code';
      log(`${name}: ${address} of ${commit}, code hash ${codeHash}, ${state}`);
    }
  }
  for (const line of stateLines(await checkedState(provider, record, null), record)) log(line);
  return record;
}

function stateLines(state: PlatformState, { markets }: DeploymentRecord): string[] {
  const list = (label: string, accounts: readonly string[]): string =>
    `${label}: ${accounts.length === 0 ? 'none' : accounts.join(', ')}`;
  return [
    list('curve posters', state.curvePosters),
    list('claim posters', state.claimPosters),
    list('executors', state.executors),
    list('external targets', state.targets),
    list(
      'taker fees',
      state.takerFees.map(({ taker, ratePpm }) => `${taker} ${ratePpm} ppm`),
    ),
    `withdrawal delay: ${state.withdrawDelaySec} s`,
    ...state.markets.map(({ base, quote, maxTtlSec }, index) => {
      const pair = markets[index]?.pair ?? `${base}-${quote}`;
      return `market ${index} ${pair}: longest TTL ${maxTtlSec} s`;
    }),
  ];
}
