/** What the console makes of a wallet: which chain it is read on, what becomes of what it sent, and what is remembered of that. */
import { expect } from 'chai';
import type { Address, Hex } from '../../core/types.js';
import { callData } from '../../sdk/src/wallet.js';
import { createPendings, mostKept, sameAs } from '../../web/src/wallet/pending.js';
import type { Pending } from '../../web/src/wallet/pending.js';
import { chainOf, readsOf } from '../../web/src/wallet/provider.js';
import { signerOf } from '../../web/src/wallet/signer.js';

const HASH = `0x${'ab'.repeat(32)}`;
const ACCOUNT = `0x${'44'.repeat(20)}`;
const WETH: Address = `0x42${'0'.repeat(37)}6`;
const CUSTODIAN: Address = `0x${'22'.repeat(20)}`;
const deployment = { deployment_id: 'one', chain_id: 8453, rpc_url: null, contracts: {} } as unknown as Parameters<
  typeof signerOf
>[2];
const deposit = { to: CUSTODIAN, data: callData('deposit(address,uint256)', [WETH, 7n]) };

type Answer = unknown;
/** One answer for good, or one after the other, the last for good; an Error is thrown. */
type Answers = Record<string, Answer>;

const MINED = { eth_getTransactionByHash: { nonce: '0x7' }, eth_getTransactionCount: '0x8' };
const SENT = { eth_getTransactionByHash: { nonce: '0x7' }, eth_getTransactionCount: '0x7' };

function providerThat(answers: Answers) {
  const asked: { method: string; params: readonly unknown[] }[] = [];
  const lists = new Map(
    Object.entries(answers).map(([method, all]) => [method, Array.isArray(all) ? [...all] : [all]]),
  );
  const known: Answers = {
    ...{ eth_chainId: '0x2105', eth_call: '0x', eth_estimateGas: '0x1a6f7', eth_sendTransaction: HASH },
    eth_getTransactionReceipt: null,
  };
  const request = ({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> => {
    asked.push({ method, params });
    const list = lists.get(method);
    const answer = list === undefined ? known[method] : list.length > 1 ? list.shift() : list[0];
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { asked, provider: { request } };
}

/** A store of the browser, that may be full or closed. */
function storage(text: string | null = null, refuses: 'nothing' | 'writing' | 'all' = 'nothing') {
  const held = { text };
  const refuse = (): never => {
    throw new Error('no storage');
  };
  const area = {
    getItem: () => (refuses === 'all' ? refuse() : held.text),
    setItem: (_name: string, value: string) => void (refuses === 'nothing' ? (held.text = value) : refuse()),
    removeItem: () => void (refuses === 'nothing' ? (held.text = null) : refuse()),
  };
  return { held, area: () => area };
}

/** A wallet whose time passes as it is looked at. */
function walletThat(answers: Answers, pendings = createPendings(storage().area)) {
  const { asked, provider } = providerThat(answers);
  let nowMs = 0;
  const time = { now: () => nowMs, pause: (ms: number) => Promise.resolve(void (nowMs += ms)) };
  const signer = signerOf(provider, ACCOUNT, deployment, { pendings, time });
  const send = async (): Promise<string> => (await signer.sendTransaction?.(deposit)) ?? '';
  const failure = async (): Promise<unknown> => send().then(String, (error: unknown) => error);
  return { asked, pendings, send, failure, sent: () => asked.filter(({ method }) => method === 'eth_sendTransaction') };
}

describe('a transaction that a wallet has sent', () => {
  it('is looked for again when a look fails, and its hash is never lost', async () => {
    const busy = Object.assign(new Error('Too Many Requests'), { code: -32005 });
    for (const method of ['eth_getTransactionByHash', 'eth_getTransactionCount', 'eth_getTransactionReceipt']) {
      const answers: Answers = { ...MINED, eth_getTransactionReceipt: { status: '0x1' } };
      const wallet = walletThat({ ...answers, [method]: [busy, new TypeError('Failed to fetch'), answers[method]] });
      expect(await wallet.send(), method).to.equal(HASH);
      const lost = walletThat({ ...answers, [method]: busy });
      const error = (await lost.failure()) as Error;
      expect(error, method).to.include({ code: 'NOT_MINED' });
      expect(error.message).to.contain(HASH);
      expect(lost.sent().length).to.equal(1);
    }
  });

  it('is not given up on because a wallet never answers a look', async () => {
    let looks = 0;
    const { provider } = providerThat({ ...MINED, eth_getTransactionReceipt: { status: '0x1' } });
    const hanging = {
      request: (ask: { method: string }) =>
        ask.method === 'eth_getTransactionReceipt' && looks++ === 0
          ? new Promise<unknown>(() => undefined)
          : provider.request(ask),
    };
    const time = { now: () => 0, pause: () => Promise.resolve(), lookMs: 20 };
    const signer = signerOf(hanging, ACCOUNT, deployment, { pendings: createPendings(storage().area), time });
    expect(await signer.sendTransaction?.(deposit)).to.equal(HASH);
  });

  it('is not called replaced by what another chain counts', async () => {
    // For six looks the wallet is on Ethereum, where the account has sent many more; then it comes home, or does not.
    for (const isBack of [true, false]) {
      const { provider } = providerThat({ eth_getTransactionByHash: { nonce: '0x7' } });
      let looks = 0;
      const isHome = (): boolean => looks < 3 || (isBack && looks >= 9);
      const moving = {
        request: (ask: { method: string }): Promise<unknown> => {
          if (ask.method === 'eth_chainId') return Promise.resolve(isHome() ? '0x2105' : '0x1');
          if (ask.method === 'eth_getTransactionCount') return Promise.resolve(isHome() ? '0x7' : '0xff');
          if (ask.method === 'eth_getTransactionReceipt' && looks === 12) return Promise.resolve({ status: '0x1' });
          return provider.request(ask);
        },
      };
      let nowMs = 0;
      const pause = (ms: number): Promise<void> => Promise.resolve(void ((nowMs += ms), (looks += 1)));
      const time = { now: () => nowMs, pause };
      const signer = signerOf(moving, ACCOUNT, deployment, { pendings: createPendings(storage().area), time });
      const told = await signer.sendTransaction?.(deposit).catch((error: unknown) => (error as { code: string }).code);
      expect(told).to.equal(isBack ? HASH : 'NOT_MINED');
    }
  });

  it('is called replaced only by another transaction of its own account', async () => {
    const replaced = walletThat(MINED);
    expect(await replaced.failure()).to.include({ code: 'REPLACED' });
    // A smart account's is sent by somebody else, whose nonces have nothing to do with the account's.
    const bundled = { nonce: '0x7', from: `0x${'99'.repeat(20)}` };
    expect(await walletThat({ ...MINED, eth_getTransactionByHash: bundled }).failure()).to.include({
      code: 'NOT_MINED',
    });
    const own = { nonce: '0x7', from: ACCOUNT.toUpperCase().replace('0X', '0x') };
    expect(await walletThat({ ...MINED, eth_getTransactionByHash: own }).failure()).to.include({ code: 'REPLACED' });
  });

  it('names its chain, and is not sent where the wallet moved before', async () => {
    const good = walletThat({ ...MINED, eth_getTransactionReceipt: { status: '0x1' } });
    await good.send();
    expect(good.sent().map(({ params: [one] }) => (one as { chainId: string }).chainId)).to.deep.equal(['0x2105']);
    const moved = walletThat({ eth_chainId: ['0x2105', '0x1'] });
    expect(await moved.failure()).to.include({ code: 'WRONG_CHAIN' });
    expect(moved.sent()).to.deep.equal([]);
  });

  it('is not waited for where the wallet names none', async () => {
    for (const eth_sendTransaction of [null, '0xab', { hash: HASH }]) {
      const wallet = walletThat({ eth_sendTransaction });
      expect(await wallet.failure()).to.include({ code: 'NO_HASH' });
      expect(wallet.pendings.all()).to.deep.equal([]);
    }
  });
});

describe('what the console remembers of it', () => {
  const one: Pending = {
    ...{ hash: HASH, account: ACCOUNT, deployment: 'one', act: 'deposit', token: WETH },
    ...{ units: '7', nonce: null, sentMs: 0 },
  };

  it('is kept from the moment that the wallet names the hash, until it is mined', async () => {
    const { held, area } = storage();
    const pendings = createPendings(area);
    const during: string[] = [];
    pendings.onChange(() => during.push(held.text ?? ''));
    const wallet = walletThat({ ...MINED, eth_getTransactionReceipt: [null, { status: '0x1' }] }, pendings);
    await wallet.send();
    expect(JSON.parse(during[0] ?? '')).to.deep.equal([{ ...one, sentMs: JSON.parse(during[0] ?? '')[0].sentMs }]);
    expect(held.text).to.equal(null);
    expect(pendings.ended()).to.deep.equal([]);
  });

  it('outlives the page when it is not mined, with its nonce once that is known', async () => {
    const { area } = storage();
    await walletThat(SENT, createPendings(area)).failure();
    const [kept, ...more] = createPendings(area).all();
    expect(more).to.deep.equal([]);
    expect(kept).to.include({ hash: HASH, act: 'deposit', token: WETH, units: '7', nonce: '7' });
  });

  it('is told as reverted or replaced, also on another page, until that is closed', async () => {
    for (const [answers, fate] of [
      [{ ...MINED, eth_getTransactionReceipt: { status: '0x0' } }, 'reverted'],
      [MINED, 'replaced'],
    ] as const) {
      const { pendings, failure } = walletThat(answers);
      expect(await failure()).to.include({ code: fate.toUpperCase() });
      expect(pendings.all()).to.deep.equal([]);
      expect(pendings.ended().map(({ hash, fate: told }) => [hash, told])).to.deep.equal([[HASH, fate]]);
      pendings.drop(HASH);
      expect(pendings.ended()).to.deep.equal([]);
    }
  });

  it('names each call that the page sends by what it does', async () => {
    const words = (n: bigint): Hex =>
      callData('swap(address,address,uint256,uint256,address,uint256)', [WETH, CUSTODIAN, n, 1n, WETH, 2n]);
    for (const [to, data, expected] of [
      [CUSTODIAN, words(5n), { act: 'swap', token: WETH, units: '5' }],
      [WETH, callData('approve(address,uint256)', [CUSTODIAN, 3n]), { act: 'approve', token: WETH, units: '3' }],
      [
        CUSTODIAN,
        callData('requestWithdraw(address,uint256)', [WETH, 2n]),
        { act: 'requestWithdraw', token: WETH, units: '2' },
      ],
      [CUSTODIAN, callData('executeWithdraw(address)', [WETH]), { act: 'executeWithdraw', token: WETH, units: null }],
      [CUSTODIAN, '0x12345678', { act: 'other', token: CUSTODIAN, units: null }],
    ] as const) {
      const pendings = createPendings(storage().area);
      pendings.add({ hash: HASH, account: ACCOUNT, deployment: 'one' }, { to, data });
      expect(pendings.all()[0], data.slice(0, 10)).to.include(expected);
    }
  });

  it('is read as something that anybody may have written', () => {
    const read = (text: string) => createPendings(storage(text).area).all();
    expect(read(JSON.stringify([one]))).to.deep.equal([one]);
    for (const text of ['', '{', 'null', '{}', '"x"', '[null]', '[[]]', '[1]'])
      expect(read(text), text).to.deep.equal([]);
    const bad: Record<string, unknown[]> = {
      hash: ['0xab', `${HASH}0`, 1, null, `javascript:${HASH}`],
      account: ['0x1', null],
      deployment: [5, 'x'.repeat(101)],
      act: ['Send all', 'constructor', null],
      token: ['WETH', null],
      units: ['-1', '1.5', 5, '9'.repeat(79)],
      nonce: ['0x7', 7, ''],
      sentMs: ['0', -1, 1.5, null],
    };
    for (const [field, values] of Object.entries(bad))
      for (const value of values)
        expect(read(JSON.stringify([{ ...one, [field]: value }])), `${field} ${String(value)}`).to.deep.equal([]);
    // What is not known is not kept either.
    expect(read(JSON.stringify([{ ...one, html: '<b>' }]))).to.deep.equal([one]);
    expect(read(JSON.stringify([one, one])), 'twice').to.deep.equal([one]);
  });

  it('is bounded, the newest first', () => {
    const { held, area } = storage();
    const pendings = createPendings(area);
    const hashOf = (i: number): string => `0x${i.toString(16).padStart(64, '0')}`;
    for (let i = 0; i < mostKept + 5; i += 1)
      pendings.add({ hash: hashOf(i), account: ACCOUNT, deployment: 'one' }, deposit);
    expect(pendings.all().length).to.equal(mostKept);
    expect(pendings.all()[0]?.hash).to.equal(hashOf(mostKept + 4));
    const many = Array.from({ length: 1_000 }, (_, i) => ({ ...one, hash: hashOf(i) }));
    expect(createPendings(storage(JSON.stringify(many)).area).all().length).to.equal(mostKept);
    expect((JSON.parse(held.text ?? '') as unknown[]).length).to.equal(mostKept);
  });

  it('lasts as long as the page where nothing may be stored', () => {
    for (const refuses of ['writing', 'all'] as const) {
      const pendings = createPendings(storage(null, refuses).area);
      pendings.add({ hash: HASH, account: ACCOUNT, deployment: 'one' }, deposit);
      expect(
        pendings.all().map(({ hash }) => hash),
        refuses,
      ).to.deep.equal([HASH]);
      pendings.drop(HASH);
      expect(pendings.all()).to.deep.equal([]);
    }
    const none = createPendings(() => {
      throw new Error('no storage at all');
    });
    expect(none.all()).to.deep.equal([]);
  });

  it('takes what another tab wrote, and overwrites none of it', () => {
    const { area } = storage();
    const [here, there] = [createPendings(area), createPendings(area)];
    here.add({ hash: HASH, account: ACCOUNT, deployment: 'one' }, deposit);
    const other = `0x${'cd'.repeat(32)}`;
    there.add({ hash: other, account: ACCOUNT, deployment: 'one' }, deposit);
    expect(here.all().map(({ hash }) => hash)).to.deep.equal([other, HASH]);
    expect(here.all()).to.equal(here.all());
    there.drop(HASH);
    expect(here.all().map(({ hash }) => hash)).to.deep.equal([other]);
  });

  it('says which act would be done twice: of the same account, deployment and token alone', () => {
    const wanted = { account: ACCOUNT, deployment: 'one', token: WETH };
    const waits = (act: 'swap' | 'deposit' | 'requestWithdraw' | 'executeWithdraw', change = {}) =>
      sameAs([one], { ...wanted, act, ...change }) !== null;
    expect(waits('deposit')).to.equal(true);
    for (const act of ['swap', 'requestWithdraw', 'executeWithdraw'] as const) expect(waits(act), act).to.equal(false);
    for (const change of [{ account: CUSTODIAN }, { deployment: 'two' }, { token: CUSTODIAN }])
      expect(waits('deposit', change)).to.equal(false);
    // Deposits and swaps begin with an allowance.
    const approve = { ...one, act: 'approve' } as const;
    for (const [act, is] of Object.entries({ deposit: true, swap: true, requestWithdraw: false } as const))
      expect(sameAs([approve], { ...wanted, act: act as 'swap' }) !== null, act).to.equal(is);
  });
});

describe('the chain that a page is told of', () => {
  const home = { chain_id: 8453, rpc_url: 'http://endpoint' };
  const session = (chainId: number | null) => ({ name: 'Wallet', provider: providerThat({}).provider, chainId });

  it('is asked of the wallet only while that is on it, else of the endpoint, else of nobody', () => {
    const here = session(8453);
    expect(chainOf(here, home)?.provider).to.equal(here.provider);
    for (const elsewhere of [session(1), session(null), null]) {
      expect(chainOf(elsewhere, home)?.source).to.equal('8453/http://endpoint');
      expect(chainOf(elsewhere, { ...home, rpc_url: null })).to.equal(null);
    }
    expect(chainOf(here, home)?.source).not.to.equal(chainOf(null, home)?.source);
    expect(chainOf({ ...here, name: 'Other' }, home)?.source).not.to.equal(chainOf(here, home)?.source);
  });

  it('is never another one, also where the wallet moves without a word', async () => {
    const { provider } = providerThat({ eth_chainId: ['0x2105', '0x2105', '0x2105', '0x1'], eth_call: '0x01' });
    const reads = readsOf(provider, { ...home, rpc_url: null });
    const call = { method: 'eth_call', params: [] };
    expect(await reads.request(call)).to.equal('0x01');
    // It moved between the answer and the look at where it is.
    expect(await reads.request(call).catch((error: unknown) => error)).to.include({ code: 'WRONG_CHAIN' });
    expect(await reads.request(call).catch((error: unknown) => error)).to.include({ code: 'WRONG_CHAIN' });
    const asked: string[] = [];
    const fetcher = ((url: string) => {
      asked.push(url);
      return Promise.resolve(new Response('{"result":"0x02"}'));
    }) as typeof fetch;
    expect(await readsOf(provider, home, fetcher).request(call)).to.equal('0x02');
    expect(asked).to.deep.equal(['http://endpoint']);
    const broken = providerThat({ eth_call: new Error('execution reverted') });
    expect(await readsOf(broken.provider, home, fetcher).request(call).catch(String)).to.contain('execution reverted');
  });
});
