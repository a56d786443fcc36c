import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { ethers } from 'ethers';
import { CommitUnknownError, WriterLostError } from '../../../ledger/errors.js';
import type { SignedRequest } from '../../../core/wire/types.js';
import type { Writer } from '../../../ledger/types.js';
import { addressOf, keyOf, operate, operateMarket, post, signRequest, startGateway } from '../../support/gateway.js';
import { limit, orderAction, withGateway } from '../../support/gateway-suite.js';
import { USDC } from '../../support/markets.js';
import { connectWs } from '../../support/ws.js';

const doc = readFileSync(new URL('../../../docs/orders.md', import.meta.url), 'utf8');
const documented = [...doc.slice(doc.indexOf('## Refusals')).matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code);

const source = readFileSync(new URL('../../../server/orders/refusals.ts', import.meta.url), 'utf8');
// Once each: signed and unsigned requests that are too many are told so in other words, with one code.
const coded = new Set(
  [...source.matchAll(/refusal\(\s*'(\w+)'|^ {4}readonly code: (.*),$/gm)].flatMap(([, code, union]) =>
    code === undefined ? [...(union ?? '').matchAll(/'(\w+)'/g)].map(([, one]) => one) : [code],
  ),
);

const APPROVE_TYPES = {
  'HyperliquidTransaction:ApproveAgent': [
    { name: 'hyperliquidChain', type: 'string' },
    { name: 'agentAddress', type: 'address' },
    { name: 'agentName', type: 'string' },
    { name: 'nonce', type: 'uint64' },
  ],
};

withGateway('every documented code', (suite) => {
  const good = limit(true, '2500', '0.1');

  async function approval(index: number, agent: string, name: string, change: object = {}): Promise<object> {
    const nonce = suite.nextNonce();
    const message = { hyperliquidChain: 'Mainnet', agentAddress: agent, agentName: name, nonce };
    const domain = {
      name: 'HyperliquidSignTransaction',
      version: '1',
      chainId: 8453,
      verifyingContract: ethers.ZeroAddress,
    };
    const { r, s, v } = ethers.Signature.from(
      await new ethers.Wallet(keyOf(index)).signTypedData(domain, APPROVE_TYPES, message),
    );
    const action = { type: 'approveAgent', signatureChainId: '0x2105', ...message, ...change };
    return { action, nonce, signature: { r, s, v } };
  }

  const sent = async (body: object): Promise<string> => (await post(`${suite.running.url}/exchange`, body)).text;
  const acted = async (action: object, options: Parameters<typeof suite.act>[2] = {}, index = 1): Promise<string> =>
    JSON.stringify(await suite.act(index, action, options));
  const placed = (change: object): Promise<string> => acted(orderAction({ ...good, ...change }));

  it('is produced, and no other exists', async () => {
    const minOrderUnits = (): bigint => 2n;
    await suite.start({ sources: ['a'], signatureChainIds: [8453n], failuresPerMinute: 1_000, minOrderUnits });
    const { time, ready } = suite.running;
    const nowMs = Date.now();
    const answers: Record<string, () => Promise<string>> = {
      bad_signature: () => {
        const request = signRequest({ type: 'noop' }, 1, suite.nextNonce()) as { signature: object };
        return sent({ ...request, signature: { ...request.signature, s: `0x${'f'.repeat(64)}` } });
      },
      unknown_signer: () => acted({ type: 'noop' }, {}, 60),
      unknown_account: async () => sent(await approval(60, addressOf(61), '')),
      maker_not_approved: () => acted({ type: 'noop' }, {}, 3),
      vault_unsupported: () => acted({ type: 'noop' }, { vaultAddress: addressOf(9) }),
      unsupported_action: () => acted({ type: 'withdraw3' }),
      duplicate_nonce: async () => {
        const nonce = suite.nextNonce();
        await acted({ type: 'noop' }, { nonce });
        return acted({ type: 'noop' }, { nonce });
      },
      nonce_too_low: () => acted({ type: 'noop' }, { nonce: nowMs - 3 * 86_400_000 }),
      nonce_too_high: () => acted({ type: 'noop' }, { nonce: nowMs + 3 * 86_400_000 }),
      nonce_mismatch: async () => sent(await approval(1, addressOf(61), '', { nonce: 1 })),
      action_expired: () => acted({ type: 'noop' }, { expiresAfter: nowMs - 1 }),
      wrong_network: async () => sent(await approval(1, addressOf(61), '', { hyperliquidChain: 'Testnet' })),
      signature_chain_refused: async () => sent(await approval(1, addressOf(61), '', { signatureChainId: '0x1' })),
      agent_name: async () => sent(await approval(1, addressOf(61), 'x'.repeat(17))),
      agent_used: async () => sent(await approval(1, addressOf(2), 'x')),
      agent_expiry: async () => sent(await approval(1, addressOf(61), `x valid_until ${nowMs - 1}`)),
      agent_slots: async () => {
        for (const index of [62, 63, 64]) await sent(await approval(1, addressOf(index), `${index}`));
        return sent(await approval(1, addressOf(65), 'fourth'));
      },
      agent_not_found: async () => sent(await approval(1, ethers.ZeroAddress, 'nobody')),
      schedule_too_soon: () => acted({ type: 'scheduleCancel', time: nowMs }),
      schedule_used_up: async () => {
        // The next noon, so that all of it happens on one day, and the gateway's time only goes forwards.
        let atMs = Math.floor((nowMs + 43_200_000) / 86_400_000) * 86_400_000 + 43_200_000;
        time.nowMs = () => atMs;
        for (let count = 0; count < 10; count += 1) {
          await acted({ type: 'scheduleCancel', time: atMs + 5_000 }, { nonce: atMs }, 2);
          atMs += 5_000;
        }
        const answer = await acted({ type: 'scheduleCancel', time: atMs + 5_000 }, { nonce: atMs }, 2);
        time.nowMs = null;
        return answer;
      },
      empty_batch: () => acted(orderAction()),
      batch_too_large: () =>
        acted({ type: 'cancel', cancels: Array.from({ length: 1001 }, () => ({ a: 10000, o: 1 })) }),
      builder_fee_unsupported: () => acted({ ...orderAction(good), builder: { b: addressOf(9), f: 1 } }),
      grouping_unsupported: () => acted({ ...orderAction(good), grouping: 'normalTpsl' }),
      not_ready: async () => {
        ready.reason = 'stale_ledger';
        const answer = await placed({});
        ready.reason = null;
        return answer;
      },
      unknown_asset: () => placed({ a: 5 }),
      market_quarantined: async () => {
        const { quarantined } = suite.running;
        quarantined.add(USDC.address);
        const answer = await placed({});
        quarantined.clear();
        return answer;
      },
      market_delisted: async () => {
        await operateMarket(suite.db, 'delist', 1);
        return placed({ a: 10001 });
      },
      off_tick: () => placed({ p: '2500.005' }),
      bad_price: () => placed({ p: '0' }),
      off_lot: () => placed({ s: '0.00001' }),
      zero_size: () => placed({ s: '0' }),
      below_min_value: () => placed({ p: '0.01', s: '0.0001' }),
      post_only: async () => {
        await placed({ b: false, p: '2600' });
        return placed({ p: '2600' });
      },
      ioc_unsupported: () => placed({ t: { limit: { tif: 'Ioc' } } }),
      trigger_unsupported: () => placed({ t: { trigger: { isMarket: true, triggerPx: '1', tpsl: 'tp' } } }),
      reduce_only_unsupported: () => placed({ r: true }),
      duplicate_cloid: async () => {
        await placed({ c: `0x${'ab'.repeat(16)}` });
        return placed({ c: `0x${'ab'.repeat(16)}` });
      },
      too_many_open_orders: async () => {
        const many = Array.from({ length: 1_000 }, () => ({ ...good, s: '0.0001' }));
        return acted(orderAction(...many), {}, 1);
      },
      inventory_exceeded: () => acted(orderAction({ ...good, s: '1000' }), {}, 2),
      refused_before: async () => {
        const request = signRequest(orderAction({ ...good, s: '0' }), 1, suite.nextNonce()) as SignedRequest;
        const decide = () => suite.running.gateway.decide({ signer: addressOf(1), request }, true);
        await decide();
        return JSON.stringify(await decide());
      },
      order_not_open: () => acted({ type: 'modify', oid: 99_999, order: good }),
      order_not_found: () => acted({ type: 'cancel', cancels: [{ a: 10000, o: 99_999 }] }),
      maker_suspended: async () => {
        await operate(suite.db, 'suspend', addressOf(2));
        return acted({ type: 'noop' }, {}, 2);
      },
      rate_limited: async () => {
        await suite.running.stop();
        await suite.start({ failuresPerMinute: 1 });
        const client = await connectWs(suite.running.url);
        const noop = (): object => signRequest({ type: 'noop' }, 60, suite.nextNonce());
        await client.post('action', noop());
        const answer = await client.post('action', noop());
        await client.close();
        return JSON.stringify(answer);
      },
      standby: () => faulty(async () => Promise.reject(new WriterLostError('order', 'a test'))),
      write_failed: () => {
        let failed = false;
        return faulty(async (write) => {
          if (failed) return write();
          failed = true;
          throw new Error('disk full');
        });
      },
      outcome_unknown: () => {
        let failing = false;
        return faulty(async (write) => {
          if (failing) throw new Error('no connection');
          failing = true;
          await write();
          throw new CommitUnknownError('order', new Error('no connection'));
        });
      },
    };

    /** One request to a gateway whose writer does as it is told. */
    async function faulty(tx: (write: () => Promise<unknown>) => Promise<unknown>): Promise<string> {
      await suite.running.stop();
      const wrap = (writer: Writer): Writer => ({
        ...writer,
        tx: async (write) => (await tx(() => writer.tx(write))) as never,
      });
      const running = await startGateway(suite.db, wrap);
      const body = signRequest({ type: 'noop' }, 1, suite.nextNonce());
      const { text, status } = await post(`${running.url}/exchange`, body);
      await running.stop();
      await suite.start();
      return `${status} ${text}`;
    }

    expect(Object.keys(answers).sort()).to.deep.equal([...documented].sort());
    expect([...documented].sort()).to.deep.equal([...coded].sort());
    for (const [code, answer] of Object.entries(answers)) {
      expect(await answer(), code).to.match(new RegExp(`^(503 |.*")${code}: `));
    }
  });
});
