/**
 * Checks that tokens which are to be listed move exactly the amount of a transfer. For a fill by the curve, a signed minimum is compared with what
 * the vault sends, not with what arrives. So a token that keeps a part of transfers, or takes more than the amount, must not be listed.
 */
import { zeroPadBytes } from 'ethers';
import { isUneven, parseTransferProbe, transferProbe, type MeasuredTransfer } from '../../core/transfer-probe.js';
import type { Address, Hex } from '../../core/types.js';
import { TransferProbe__factory } from '../../typechain-types/factories/periphery/TransferProbe__factory.js';
import type { RpcProvider } from '../context.js';
import { DeployError } from '../errors.js';

interface CheckedToken {
  symbol: string;
  address: string;
  decimals: number;
  /** An account that holds the token; needed if no recent transfer shows one. */
  holder?: string | undefined;
}

/** Topic of Transfer(address,address,uint256). */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const TOTAL_SUPPLY = '0x18160ddd';
/** The last recipient: an account that no token can have an exception for. */
const STRANGER: Address = '0x7c4a9de2f0b3c8165d2e9a47b06f138c5ed2a901';
/** A fee of a hundredth of a percent shows from this amount on. */
const LEAST_UNITS = 10_000n;
/** How many holders' transfers are measured: a token may charge some accounts and not others. */
const ENOUGH_HOLDERS = 3;
const MAX_HOLDERS = 24;
/** How many blocks back holders are searched for; each number is tried if the one before it found too few. */
const WINDOWS = [64, 1_024, 8_192];

/**
 * Measures transfers into the vault and out of it. Throws `UNEVEN_TOKEN` for a token that moves another amount than it is told to, and
 * `UNMEASURED_TOKEN` for one of which no transfer could be measured. For a token that says itself that there is none of it yet it only logs that.
 */
export async function assertEvenTransfers(
  provider: RpcProvider,
  custodian: string,
  tokens: readonly CheckedToken[],
  log: (line: string) => void,
): Promise<void> {
  for (const token of tokens) {
    const measured = await measure(provider, custodian.toLowerCase() as Address, token);
    const uneven = measured.flat().find(isUneven);
    if (uneven !== undefined) throw new DeployError('UNEVEN_TOKEN', `${token.symbol}: ${sayUneven(uneven)}`);
    if (measured.length > 0) continue;
    if (!(await isUnissued(provider, token.address))) {
      throw new DeployError(
        'UNMEASURED_TOKEN',
        `${token.symbol}: no transfer could be measured; name an account that has at least ${4n * LEAST_UNITS} units as its holder in the ` +
          'configuration, and use an endpoint whose eth_call replaces code (geth, erigon, reth, nethermind and besu do)',
      );
    }
    log(
      `${token.symbol}: nobody has any, so no transfer could be measured; list only a token that moves the amount it is told to`,
    );
  }
}

const sayUneven = ({ amountUnits, takenUnits, receivedUnits }: MeasuredTransfer): string =>
  `of a transfer of ${amountUnits} units ${takenUnits} were taken and ${receivedUnits} arrived; ` +
  'takers and makers would get less than the contracts promise, so it can not be listed';

async function measure(provider: RpcProvider, custodian: Address, token: CheckedToken): Promise<MeasuredTransfer[][]> {
  const maximumUnits = 10n ** BigInt(token.decimals);
  const measured: MeasuredTransfer[][] = [];
  for await (const holder of holdersOf(provider, custodian, token)) {
    const route = {
      token: token.address.toLowerCase() as Address,
      route: holder === custodian ? [custodian, STRANGER] : [holder, custodian, STRANGER],
      maximumUnits: maximumUnits > LEAST_UNITS ? maximumUnits : LEAST_UNITS,
    };
    const params = transferProbe(TransferProbe__factory.bytecode, route);
    const transfers = parseTransferProbe(route, await provider.send('eth_call', params).catch(() => null));
    if (transfers === null) continue;
    if (transfers.some(isUneven)) return [transfers];
    if (!transfers.every(({ agreed, amountUnits }) => agreed && amountUnits >= LEAST_UNITS)) continue;
    measured.push(transfers);
    if (measured.length === ENOUGH_HOLDERS) break;
  }
  return measured;
}

/** Holders of a token: the one that the configuration names, the vault, and senders and recipients of recent transfers. */
async function* holdersOf(provider: RpcProvider, custodian: Address, token: CheckedToken): AsyncGenerator<Address> {
  const seen = new Set<Address>([`0x${'0'.repeat(40)}`, token.address.toLowerCase() as Address]);
  const fresh = (account: string): Address[] => {
    const one = account.toLowerCase() as Address;
    if (seen.has(one) || seen.size > MAX_HOLDERS) return [];
    seen.add(one);
    return [one];
  };
  if (token.holder !== undefined) yield* fresh(token.holder);
  yield* fresh(custodian);
  const head = BigInt((await provider.send('eth_blockNumber', [])) as Hex);
  for (const blocks of WINDOWS.map(BigInt)) {
    const fromBlock = `0x${(head > blocks ? head - blocks : 0n).toString(16)}`;
    const filter = { address: token.address, topics: [TRANSFER], fromBlock, toBlock: 'latest' };
    // An endpoint may refuse a range that is too long for it.
    const logs = (await provider.send('eth_getLogs', [filter]).catch(() => [])) as { topics: Hex[] }[];
    for (const { topics } of logs.reverse()) {
      for (const topic of topics.slice(1, 3)) yield* fresh(`0x${zeroPadBytes(topic, 32).slice(-40)}`);
    }
  }
}

/** Whether the token says that there is none of it. An endpoint that fails, and a token that does not answer as a token does, say nothing. */
async function isUnissued(provider: RpcProvider, token: string): Promise<boolean> {
  const answer = await provider.send('eth_call', [{ to: token, data: TOTAL_SUPPLY }, 'latest']).catch(() => null);
  if (typeof answer !== 'string' || !/^0x[0-9a-f]{64}([0-9a-f]{2})*$/i.test(answer)) return false;
  return BigInt(answer.slice(0, 66)) === 0n;
}
