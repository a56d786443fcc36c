/**
 * A running deployment with three endpoints, the first of which lies in one way after the other: everything is booked to the unit, the ledger stays
 * ready, and the metrics name who lied.
 */
import { expect } from 'chai';
import { Contract, Wallet } from 'ethers';
import { freePort } from '../../deploy/sandbox/ports.js';
import { auditBooks, balanceOf, decompositionOf, fillsNow, limitsAt, micros, wei } from '../support/audit.js';
import { startFaultProxy, type FaultProxy, type RpcRequestBody } from '../support/nodes/fault-proxy.js';
import { accountOf, contractsOf, forOneDatabaseUrl, startStack, tokenOf, until } from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { place, swap } from '../support/trading.js';

const ERC20 = [
  'function transfer(address, uint256) returns (bool)',
  'function approve(address, uint256) returns (bool)',
];
const BALANCE_OF = '0x70a08231';
const DEPOSIT = wei('1');
/** More than that in a row would not be a busy machine. */
const MAX_UNREADY_MS = 20_000;

interface LogAnswer {
  blockNumber: string;
  topics: string[];
}

/** Leaves out the second of two logs with one topic in one block. */
function withoutSeconds(result: unknown): unknown {
  const seen = new Set<string>();
  return (result as LogAnswer[]).filter(({ blockNumber, topics }) => {
    const place = `${blockNumber} ${topics[0]}`;
    const isFirst = !seen.has(place);
    seen.add(place);
    return isFirst;
  });
}

const raised = (result: unknown, by: bigint): string => `0x${(BigInt(result as string) + by).toString(16)}`;
const raisedWord = (result: unknown, by: bigint): string =>
  `0x${(BigInt(result as string) + by).toString(16).padStart(64, '0')}`;
const dataOf = ({ params }: RpcRequestBody): string => String((params[0] as { data?: string } | undefined)?.data ?? '');

forOneDatabaseUrl((name, open) => {
  describe(`An endpoint that lies to a running deployment, on ${name}`, function () {
    this.timeout(240_000);
    let database: TestDatabase;
    let stack: Stack;
    let metricsPort: number;
    let deposits = { WETH: wei('100'), USDC: micros('300000') };
    const proxies: FaultProxy[] = [];
    const watching = new AbortController();
    let longestUnreadyMs = 0;

    const liar = (): FaultProxy => proxies[0]!;

    before(async () => {
      database = await open();
      metricsPort = await freePort('127.0.0.1');
      stack = await startStack({
        databaseUrl: database.url,
        blockTimeMs: 500,
        env: async (rpcUrl) => {
          for (let i = 0; i < 3; i += 1) proxies.push(await startFaultProxy(rpcUrl));
          return { RPC_URL: proxies.map(({ url }) => url).join(), METRICS_PORT: `${metricsPort}` };
        },
      });
      for (const role of ['maker1', 'maker2']) {
        const { address } = accountOf(stack, role);
        await stack.operate('maker', 'approve', address);
        await until('the deposits', async () => {
          const limits = await limitsAt(stack, address);
          return limits.ledger.balances.length === 2 && balanceOf(stack, limits, 'WETH') === deposits.WETH;
        });
      }
      await place(stack, 'maker1', [{ isBuy: false, price: '2500.01', size: '20' }]);
      await place(stack, 'maker2', [{ isBuy: true, price: '2499.99', size: '20' }]);
      void watchReadiness();
    });

    after(async () => {
      watching.abort();
      await stack?.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await database?.drop();
    });

    const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();

    /** How long the ledger was not ready at a stretch, while the server ran. */
    async function watchReadiness(): Promise<void> {
      let sinceMs: number | null = null;
      while (!watching.signal.aborted) {
        const isReady = await limitsAt(stack, accountOf(stack, 'maker1').address).then(
          ({ ledger }) => ledger.ready,
          () => true,
        );
        sinceMs = isReady ? null : (sinceMs ?? performance.now());
        if (sinceMs !== null) longestUnreadyMs = Math.max(longestUnreadyMs, performance.now() - sinceMs);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }

    /** What the metrics say that an endpoint did wrong, over all of its users. */
    async function faultsOf(proxy: FaultProxy, kinds: readonly string[]): Promise<number> {
      const { host } = new URL(proxy.url);
      return (await metrics())
        .split('\n')
        .filter((line) => line.startsWith('curvebook_rpc_failures{') && line.includes(`endpoint="${host}"`))
        .filter((line) => kinds.some((kind) => line.includes(`kind="${kind}"`)))
        .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
    }

    const KINDS = ['silent', 'contradiction', 'wrong_chain'];

    /** A fill under the lie is told as it was, to the unit, and who lied is named. */
    async function tradesOn(): Promise<void> {
      const before = await faultsOf(liar(), KINDS);
      await until('the fault to be counted', async () => (await faultsOf(liar(), KINDS)) > before);
      const hash = await swap(stack, 'taker1', 'WETH', 'USDC', wei('0.1'));
      await until('the fill', async () => {
        const row = (await fillsNow(stack)).find(({ tx_hash }) => tx_hash === hash);
        return row !== undefined && (await decompositionOf(stack, row.fill_seq)).status === 'final';
      });
      const { ledger } = await limitsAt(stack, accountOf(stack, 'maker1').address);
      expect(ledger.ready, ledger.reason ?? '').to.equal(true);
      await auditBooks(stack, deposits);
    }

    it('an omitted log: the second of two deposits in a block is credited', async () => {
      const weth = tokenOf(stack, 'WETH').address;
      const makers = ['maker1', 'maker2'].map((role) => new Wallet(accountOf(stack, role).privateKey, stack.provider));
      const giver = new Contract(weth, ERC20, new Wallet(accountOf(stack, 'taker1').privateKey, stack.provider));
      for (const { address } of makers)
        await ((await giver.getFunction('transfer')(address, DEPOSIT)) as { wait(): Promise<unknown> }).wait();
      const { custodian } = stack.manifest.contracts;
      for (const maker of makers) {
        const approve = new Contract(weth, ERC20, maker).getFunction('approve');
        await ((await approve(custodian, DEPOSIT)) as { wait(): Promise<unknown> }).wait();
      }
      liar().fault = ({ method }) => (method === 'eth_getLogs' ? { change: withoutSeconds } : 'pass');
      const before = await faultsOf(liar(), ['contradiction']);
      await stack.provider.send('evm_setIntervalMining', [0]);
      const sent = await Promise.all(
        ['maker1', 'maker2'].map((role) =>
          contractsOf(stack, role).custodian.deposit(weth, DEPOSIT, { gasLimit: 300_000n }),
        ),
      );
      await stack.provider.send('evm_setIntervalMining', [500]);
      const receipts = await Promise.all(sent.map((one) => one.wait()));
      expect(new Set(receipts.map((receipt) => receipt!.blockNumber)).size, 'one block').to.equal(1);
      deposits = { ...deposits, WETH: deposits.WETH + DEPOSIT };
      for (const role of ['maker1', 'maker2']) {
        await until('the deposit', async () => {
          const limits = await limitsAt(stack, accountOf(stack, role).address);
          return balanceOf(stack, limits, 'WETH') === deposits.WETH;
        });
      }
      expect(await faultsOf(liar(), ['contradiction'])).to.be.greaterThan(before);
      await auditBooks(stack, deposits);
    });

    it('a balance that is 5 too high: nothing is booked, nothing halts', async () => {
      liar().fault = (request) =>
        request.method === 'eth_call' && dataOf(request).startsWith(BALANCE_OF)
          ? { change: (result) => raisedWord(result, 5n) }
          : 'pass';
      await tradesOn();
      expect(await metrics()).to.match(/curvebook_unattributed_units\{[^}]*\} 0\n/);
      expect(await metrics()).to.not.match(/curvebook_unattributed_units\{[^}]*\} [1-9]/);
    });

    it('calls that answer nothing', async () => {
      liar().fault = ({ method }) => (method === 'eth_call' ? { result: '0x' } : 'pass');
      await tradesOn();
    });

    it('nonces 3,000 too high: no gap is filled', async () => {
      liar().fault = ({ method }) =>
        method === 'eth_getTransactionCount' ? { change: (result) => raised(result, 3_000n) } : 'pass';
      await tradesOn();
      expect(await metrics()).to.match(/curvebook_outbox_gap_transfers\{[^}]*role="poster"[^}]*\} 0\n/);
      expect(await metrics()).to.not.match(/curvebook_outbox_gap_transfers\{[^}]*\} [1-9]/);
    });

    it('another chain, from the start on: nothing is sent to it', async () => {
      await stack.endServer('SIGTERM');
      const sent = liar().sent.length;
      liar().fault = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : 'pass');
      await stack.startServer();
      await until('the fault to be counted', async () => (await faultsOf(liar(), ['wrong_chain'])) > 0);
      const hash = await swap(stack, 'taker1', 'WETH', 'USDC', wei('0.1'));
      await until('the fill', async () => (await fillsNow(stack)).some(({ tx_hash }) => tx_hash === hash));
      expect(liar().sent.length).to.equal(sent);
    });

    it('ends with a ledger that the chain agrees with, was ready all the time, and blames nobody else', async () => {
      liar().fault = null;
      for (const honest of proxies.slice(1))
        expect(await faultsOf(honest, ['contradiction', 'wrong_chain'])).to.equal(0);
      console.log(`        not ready for at most ${Math.round(longestUnreadyMs)} ms`);
      expect(longestUnreadyMs).to.be.lessThan(MAX_UNREADY_MS);
      await stack.endServer('SIGTERM');
      expect(await stack.operate('verify', '--rpc', proxies[1]!.url)).to.not.match(/differs|problem/i);
    });
  });
});
