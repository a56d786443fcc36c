/** One maker's money on a chain that mines on command: what it sends, what the custodian says, and what the ledger made of it. */
import { expect } from 'chai';
import { Interface, type ContractTransactionResponse } from 'ethers';
import { formatUnits } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readBalances, sumBalances } from '../../ledger/chain/balances.js';
import { readClaim } from '../../ledger/chain/claims.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { Custodian__factory, type Custodian } from '../../typechain-types/index.js';
import type { KeeperStack, ManualChain } from './keeper-stack.js';

const GAS = { gasLimit: 500_000n };
const ABI = new Interface(Custodian__factory.abi);
const CUSTODY_EVENTS = ['Deposited', 'WithdrawRequested', 'WithdrawSettled', 'WithdrawExecuted', 'SettlementSkipped'];

/** Where an account stands in one token, in whole and partial tokens, e.g. `balance 100, reserved 30, available 70, claim 0`. */
export interface Standing {
  balance: string;
  reserved: string;
  available: string;
  claim: string;
}

/** Sends a transaction. */
export type Send = () => Promise<ContractTransactionResponse>;

export interface Custody {
  custodian: Custodian;
  token(symbol: string): Address;
  units(symbol: string, amount: string): bigint;
  as(role: string): Custodian;
  /** Sends, mines, scans; returns the custodian's events of the block, e.g. `Deposited maker1 WETH 5`. */
  mined(...sends: Send[]): Promise<string[]>;
  /** The error that a call would revert with, with its arguments; empty when it would not. */
  revertOf(call: () => Promise<unknown>): Promise<string>;
  standing(role: string, symbol: string): Promise<Standing>;
  /** Every row together is what the vault holds, nothing has halted, and the ledger's claim is the custodian's, version included. */
  expectSound(): Promise<void>;
}

export function custodyOf(chain: ManualChain, stack: KeeperStack): Custody {
  const address = chain.manifest.contracts['custodian'];
  const custodian = Custodian__factory.connect(address, chain.provider);
  const as = (role: string): Custodian => custodian.connect(chain.wallet(role));
  const tokenOf = (symbol: string) => chain.manifest.tokens.find((one) => one.symbol === symbol)!;
  const token = (symbol: string): Address => tokenOf(symbol).address.toLowerCase() as Address;
  const text = (symbol: string, units: bigint): string => formatUnits(units, tokenOf(symbol).decimals);
  const nameOf = (account: string): string =>
    chain.manifest.accounts.find((one) => one.address.toLowerCase() === account.toLowerCase())?.role ?? account;

  async function eventsOf(block: number): Promise<string[]> {
    const logs = await chain.provider.getLogs({ address, fromBlock: block, toBlock: block });
    return logs.flatMap((log) => {
      const event = ABI.parseLog(log);
      if (event === null || !CUSTODY_EVENTS.includes(event.name)) return [];
      const [maker, tokenAddress, amount] = event.args as unknown as [string, string, bigint];
      const symbol = chain.manifest.tokens.find((one) => one.address === tokenAddress)?.symbol;
      const what = symbol === undefined ? `${amount} units of another token` : `${symbol} ${text(symbol, amount)}`;
      return [`${event.name} ${nameOf(maker)} ${what}`];
    });
  }

  return {
    custodian,
    token,
    as,
    units: (symbol, amount) => {
      const [whole = '0', fraction = ''] = amount.split('.');
      return BigInt(whole + fraction.padEnd(tokenOf(symbol).decimals, '0'));
    },
    async mined(...sends) {
      // One after the other: two of the same account would choose the same nonce.
      for (const send of sends) await send();
      await chain.mine();
      await stack.watcher.scan();
      return eventsOf(await chain.provider.getBlockNumber());
    },
    async revertOf(call) {
      try {
        await call();
        return '';
      } catch (error) {
        const { data } = error as { data?: string };
        const parsed = ABI.parseError(data ?? '0x');
        return parsed === null ? String(error) : `${parsed.name}(${parsed.args.join(', ')})`;
      }
    },
    async standing(role, symbol) {
      const account = chain.address(role);
      const rows = await readBalances(stack.db.knex, { account });
      const row = rows.find((one) => one.token === token(symbol));
      const [balance, reserved] = [row?.balanceUnits ?? 0n, row?.reservedUnits ?? 0n];
      const [claim] = await custodian.claim(account, token(symbol));
      return {
        balance: text(symbol, balance),
        reserved: text(symbol, reserved),
        available: text(symbol, balance > reserved ? balance - reserved : 0n),
        claim: text(symbol, claim),
      };
    },
    async expectSound() {
      expect(await readHalt(stack.db.knex)).to.equal(null);
      const sums = await sumBalances(stack.db.knex);
      for (const symbol of [...new Set(stack.markets.flatMap(({ base, quote }) => [base.symbol, quote.symbol]))]) {
        const held = (await chain.tokenAs(symbol, 'owner').getFunction('balanceOf')(address)) as bigint;
        expect(sums.get(token(symbol)) ?? 0n, symbol).to.equal(held);
        for (const { address: maker } of chain.manifest.accounts) {
          const ledger = await readClaim(stack.db.knex, {
            maker: maker.toLowerCase() as Address,
            token: token(symbol),
          });
          const [amount, readyAt] = await custodian.claim(maker, token(symbol));
          expect(ledger.claimUnits, `claim of ${maker}`).to.equal(amount);
          expect(ledger.basis).to.equal(await custodian.claimBasis(maker, token(symbol)));
          if (amount > 0n) expect(BigInt(ledger.readyAtSec!)).to.equal(readyAt);
        }
      }
    },
  };
}

export { GAS };
