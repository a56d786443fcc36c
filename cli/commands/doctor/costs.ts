/** What deploying and running cost at the gas price of the moment, and how long the signers' ether lasts. */
import { computeAddress } from 'ethers';
import { formatUnits, maxBig, minBig } from '../../../core/amounts.js';
import type { Address } from '../../../core/types.js';
import { freshBidWei, isAffordable } from '../../../keepers/chain/fees.js';
import { createDataFees, ORDER_BYTES } from '../../../liquidity/data-fee.js';
import { createHeadReader, type EthReader } from '../../../liquidity/eth.js';
import { DEFAULT_GAS } from '../../../core/swap/pricing.js';
import type { BaseConfig } from '../../base-config.js';
import { SIGNING_ROLES, type SigningRole } from '../../settings/keystore.js';
import type { Report } from './finding.js';

/** Gas and bytes of transactions, measured: snapshots/gas.json has the first three, a test deploys for the last. */
export const GAS = {
  post: { gas: 63_840n, bytes: 292n },
  furtherMarket: { gas: 34_482n, bytes: 192n },
  settlement: { gas: 83_557n, bytes: 132n },
  /** All contracts, and their configuration with one poster, one settler and one executor. */
  deployment: { gas: 16_300_000n, bytes: 75_000n, transactions: 9n },
  listing: { gas: 190_000n, bytes: 196n },
} as const;

/** Assumed per hour; posts are one per block, which is the maximum. */
const HOURLY = { settlements: 60n, orders: 60n } as const;
const HOUR_MS = 3_600_000n;
/** Block time when the chain's is unknown. */
const USUAL_BLOCK_MS = 2_000n;
const LOW_HOURS = 24n;
const PRIORITY_WEI = 1_000_000n;

const ether = (wei: bigint): string => {
  const [whole = '0', fraction = ''] = formatUnits(wei, 18).split('.');
  return fraction === '' ? whole : `${whole}.${fraction.slice(0, 8)}`;
};
const gwei = (wei: bigint): string => formatUnits(wei, 9);

interface CostQuestion {
  baseFeeWei: bigint;
  blockTimeMs: number | null;
  markets: number;
  isDeployed: boolean;
  keys: BaseConfig['keys'];
  gasPriceOracle: Address;
  feeCeilingWei: bigint;
  postBudgetWei: bigint;
  lowBalanceWei: bigint;
}

/** What one hour of a role costs. */
interface HourlyCosts {
  weiPerGas: bigint;
  poster: bigint;
  settler: bigint;
  executor: bigint;
}

/** In wei, including a rollup's data fee. */
export async function checkCosts(eth: EthReader, question: CostQuestion, report: Report): Promise<HourlyCosts> {
  const { baseFeeWei, feeCeilingWei, postBudgetWei, isDeployed } = question;
  const weiPerGas = baseFeeWei + PRIORITY_WEI;
  const dataFees = createDataFees(eth, question.gasPriceOracle);
  const head = await createHeadReader(eth).head();
  const costOf = async ({ gas, bytes }: { gas: bigint; bytes: bigint }): Promise<bigint> =>
    gas * weiPerGas + (await dataFees.ofBytes(bytes, head));
  const markets = BigInt(Math.max(question.markets, 1));
  const { post, furtherMarket, settlement, deployment, listing } = GAS;
  const postOfAll = {
    gas: post.gas + (markets - 1n) * furtherMarket.gas,
    bytes: post.bytes + (markets - 1n) * furtherMarket.bytes,
  };
  const blockMs =
    question.blockTimeMs === null ? USUAL_BLOCK_MS : maxBig(BigInt(Math.round(question.blockTimeMs)), 100n);
  const postWei = await costOf(postOfAll);
  const hourly: HourlyCosts = {
    weiPerGas,
    poster: (postWei * HOUR_MS) / blockMs,
    settler: HOURLY.settlements * (await costOf(settlement)),
    executor: HOURLY.orders * (await costOf({ gas: DEFAULT_GAS.own, bytes: ORDER_BYTES })),
  };

  const price = `base fee ${gwei(baseFeeWei)} gwei`;
  if (isAffordable(baseFeeWei, feeCeilingWei))
    report.ok('FEE_CEILING', 'FEE_CEILING_GWEI', `${price}, ceiling ${gwei(feeCeilingWei)}`);
  else
    report.fail(
      'FEE_CEILING',
      'FEE_CEILING_GWEI',
      `${price} is above the ceiling of ${gwei(feeCeilingWei)}: nothing is sent`,
    );
  if (postBudgetWei === 0n || hourly.poster <= postBudgetWei)
    report.ok(
      'POST_BUDGET',
      'POST_BUDGET_GWEI_PER_HOUR',
      `an hour of posts in every block costs ${ether(hourly.poster)} ether at most`,
    );
  else {
    const minutes = (postBudgetWei * 60n) / maxBig(hourly.poster, 1n);
    report.warn(
      'POST_BUDGET',
      'POST_BUDGET_GWEI_PER_HOUR',
      `lasts ${minutes} min of an hour with a post in every block, which costs ${ether(hourly.poster)} ether`,
    );
  }

  const perTransaction = await dataFees.ofBytes(deployment.bytes / deployment.transactions, head);
  const listingWei = markets * (await costOf(listing));
  const deployWei = deployment.gas * weiPerGas + deployment.transactions * perTransaction + listingWei;
  if (!isDeployed)
    report.ok(
      'COST',
      'deployment',
      `${ether(deployWei)} ether for ${deployment.gas + markets * listing.gas} gas with ${markets} markets, data included`,
    );
  const capped = postBudgetWei === 0n ? hourly.poster : minBig(hourly.poster, postBudgetWei);
  const dayWei = 24n * (capped + hourly.settler + hourly.executor);
  report.ok(
    'COST',
    'running',
    `${ether(dayWei)} ether a day at most: posts of ${markets} markets in every block within the budget, ${HOURLY.settlements} settlements and ${HOURLY.orders} signed orders an hour`,
  );
  await checkBalances(eth, question, { ...hourly, poster: capped }, report);
  return hourly;
}

async function checkBalances(
  eth: EthReader,
  question: CostQuestion,
  hourly: HourlyCosts,
  report: Report,
): Promise<void> {
  const { keys, lowBalanceWei, baseFeeWei, feeCeilingWei } = question;
  const gasOf: Record<SigningRole, bigint> = {
    poster: GAS.post.gas,
    settler: GAS.settlement.gas,
    executor: DEFAULT_GAS.own,
  };
  for (const role of SIGNING_ROLES) {
    const key = keys[role];
    if (key === undefined) continue;
    const address = computeAddress(key);
    const balanceWei = BigInt((await eth.call('eth_getBalance', [address, 'latest'])) as string);
    const hours = balanceWei / maxBig(hourly[role], 1n);
    const lasts =
      hours > 10_000n
        ? 'more than a year'
        : hours >= 1n
          ? `${hours} h`
          : `${(balanceWei * 60n) / maxBig(hourly[role], 1n)} min`;
    const text = `${address} has ${ether(balanceWei)} ether: ${lasts} of gas`;
    // Balance that a node requires of the sender of one transaction.
    const leastWei = gasOf[role] * freshBidWei(baseFeeWei, feeCeilingWei);
    if (balanceWei < leastWei) report.fail('BALANCE', role, `${text}, less than one transaction takes`);
    else if (hours < LOW_HOURS || balanceWei < lowBalanceWei) report.warn('BALANCE', role, text);
    else report.ok('BALANCE', role, text);
  }
}
