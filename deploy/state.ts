/** What the owner has set on a deployment, read from the chain alone. */
import { dataSlice, getAddress } from 'ethers';
import type { BaseContract, Log, Provider } from 'ethers';
import { connectContracts } from './contracts.js';
import type { Addresses, Contracts } from './contracts.js';

/** A query for events that fails is halved down to this many blocks; if a shorter range fails, the error is thrown. */
const MIN_LOG_RANGE = 500;

export interface ListedMarket {
  id: string;
  base: string;
  quote: string;
  lotUnits: bigint;
  tickLotUnits: bigint;
  maxTtlSec: bigint;
  /** Takers with a rate pay it here. */
  chargesFees: boolean;
}

export interface PlatformState {
  withdrawDelaySec: bigint;
  curvePosters: string[];
  claimPosters: string[];
  executors: string[];
  targets: string[];
  /** Those above zero. */
  takerFees: { taker: string; ratePpm: bigint }[];
  /** In the order of listing. */
  markets: ListedMarket[];
}

/**
 * Reads all of it. The contracts can't list the accounts that have a right, so the accounts are taken from events since `fromBlock`, and each is
 * then asked for at the contract.
 */
export async function readState(provider: Provider, at: Addresses, fromBlock: number): Promise<PlatformState> {
  const contracts = connectContracts(at, provider);
  const { custodian, curveBook, entrypoint, orderSettler } = contracts;
  const named = async (contract: BaseContract, event: string): Promise<string[]> =>
    accountsIn(await logsOf(provider, contract, event, fromBlock));
  const holders = async (accounts: string[], has: (account: string) => Promise<boolean>): Promise<string[]> => {
    const held: string[] = [];
    for (const account of accounts) if (await has(account)) held.push(account);
    return held;
  };
  const takerFees = [];
  for (const taker of await named(entrypoint, 'TakerFeeSet')) {
    const ratePpm = await entrypoint.takerFee(taker);
    if (ratePpm !== 0n) takerFees.push({ taker, ratePpm });
  }
  return {
    withdrawDelaySec: await custodian.withdrawDelay(),
    curvePosters: await holders(await named(curveBook, 'PosterSet'), (account) => curveBook.isPoster(account)),
    claimPosters: await holders(await named(custodian, 'PosterSet'), (account) => custodian.isPoster(account)),
    executors: await holders(await named(orderSettler, 'ExecutorSet'), (account) => orderSettler.isExecutor(account)),
    targets: await holders(await named(orderSettler, 'TargetSet'), (account) => orderSettler.isTarget(account)),
    takerFees,
    markets: await marketsOf(contracts),
  };
}

async function marketsOf({ curveBook }: Contracts): Promise<ListedMarket[]> {
  const markets: ListedMarket[] = [];
  const count = await curveBook.marketCount();
  for (let index = 0n; index < count; index++) {
    const id = await curveBook.marketAt(index);
    const { base, quote, lotUnits, tickLotUnits, maxTtlSec, chargesFees } = await curveBook.marketState(id);
    const grid = { lotUnits, tickLotUnits, maxTtlSec, chargesFees };
    markets.push({ id, base: getAddress(base), quote: getAddress(quote), ...grid });
  }
  return markets;
}

/** Each of these events has the account as its first indexed argument. */
function accountsIn(logs: readonly Log[]): string[] {
  return [...new Set(logs.map((log) => getAddress(dataSlice(log.topics[1] ?? '0x', 12))))];
}

/** Every event of a kind that a contract emitted from a block on, of these indexed arguments where they are named. */
export async function logsOf(
  provider: Provider,
  contract: BaseContract,
  event: string,
  fromBlock: number,
  indexed: readonly string[] = [],
): Promise<Log[]> {
  const topic = contract.interface.getEvent(event)?.topicHash;
  if (topic === undefined) throw new Error(`no event ${event}`);
  const address = await contract.getAddress();
  const toBlock = await provider.getBlockNumber();
  return logsBetween(provider, { address, topics: [topic, ...indexed] }, fromBlock, toBlock);
}

/** Events of a range of blocks. Endpoints have different limits of ranges and results, so a range that fails is halved. */
async function logsBetween(
  provider: Provider,
  filter: { address: string; topics: string[] },
  fromBlock: number,
  toBlock: number,
): Promise<Log[]> {
  try {
    return await provider.getLogs({ ...filter, fromBlock, toBlock });
  } catch (error) {
    if (toBlock - fromBlock < MIN_LOG_RANGE) throw error;
    const middle = fromBlock + Math.floor((toBlock - fromBlock) / 2);
    const early = await logsBetween(provider, filter, fromBlock, middle);
    return [...early, ...(await logsBetween(provider, filter, middle + 1, toBlock))];
  }
}
