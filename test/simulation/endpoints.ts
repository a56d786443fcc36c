/** Endpoints of the simulated chain, reached over a simulated network: they delay, fail, lag, hold on to lost branches, and lie. */
import type { Address, Hex } from '../../core/types.js';
import { RpcResponseError } from '../../keepers/chain/rpc.js';
import { LIES, type Answer } from './lies.js';
import { never } from './scheduler.js';
import { nameOf, strikes, type Simulation } from './world.js';

/** What an endpoint is like at the moment. */
interface Endpoint {
  readonly name: string;
  state: 'honest' | 'down' | 'lagging' | 'stale' | 'lying';
  untilMs: number;
  /** Of a lying one. */
  lie: string;
  /** Heights that a lagging one lacks. */
  lagBlocks: number;
  /** The head that a stale one holds on to. */
  staleHead: Hex | null;
}

export interface Endpoints {
  readonly all: readonly Endpoint[];
  readonly urls: readonly string[];
  /** Tokens that answer no call, whoever asks. */
  readonly silentTokens: Set<Address>;
  readonly fetch: typeof fetch;
}

interface Request {
  id: number;
  method: string;
  params: unknown[];
}

const TIMEOUT_MS = 5_000;
const BALANCE_OF = '0x70a08231';
const heightOf = (tag: unknown): number => Number.parseInt(String(tag), 16);

/** Endpoints named rpc1, rpc2, … */
export function createEndpoints(world: Simulation, count: number): Endpoints {
  const all = Array.from({ length: count }, (_, i): Endpoint => ({
    name: `rpc${i + 1}`,
    state: 'honest',
    untilMs: 0,
    lie: '',
    lagBlocks: 0,
    staleHead: null,
  }));
  const { scheduler, decisions, record } = world;
  const silentTokens = new Set<Address>();

  async function fetchLike(url: unknown, init: { body?: unknown; signal?: AbortSignal } = {}): Promise<unknown> {
    const actor = scheduler.current();
    if (actor === undefined || actor.isDead) return never();
    const { hostname } = url instanceof URL ? url : new URL(String(url));
    const endpoint = all.find(({ name }) => hostname === name)!;
    const body = JSON.parse(String(init.body)) as Request | Request[];
    const requests = Array.isArray(body) ? body : [body];
    const where = nameOf(actor);
    if (strikes(world, 'crashAtRequest', where)) {
      scheduler.kill(actor);
      return never();
    }
    const isCutOff = endpoint.state === 'down' || actor.offlineUntilMs > scheduler.nowMs();
    if (isCutOff || strikes(world, 'rpcHang', where)) {
      await scheduler.sleep(TIMEOUT_MS);
      throw new Error('timed out');
    }
    if (strikes(world, 'rpcRefuse', where)) throw new Error('connection refused');
    const thereMs = decisions.int(`latency:${where}`, 1, 12);
    const slowMs = strikes(world, 'rpcSlow', where) ? decisions.int('slowMs', 200, 4_000) : 0;
    await scheduler.sleep(thereMs + slowMs);
    const answers: object[] = [];
    for (const request of requests) answers.push({ id: request.id, ...(await answer(endpoint, request)) });
    record.trace(
      () =>
        `${scheduler.nowMs()} ${where} ${endpoint.name}/${endpoint.state} ${requests.map(({ method }) => method).join()}`,
    );
    await scheduler.sleep(decisions.int(`latency:${where}`, 1, 12));
    if (actor.isDead) return never();
    const text = JSON.stringify(Array.isArray(body) ? answers : answers[0]);
    return { ok: true, status: 200, body: [Buffer.from(text)] };
  }

  async function answer(endpoint: Endpoint, { method, params }: Request): Promise<Answer> {
    const truth = await perform(endpoint, method, params);
    if (endpoint.state !== 'lying') return truth;
    const said = LIES[endpoint.lie]!({ chain: world.chain, decisions }, method, params, structuredClone(truth));
    if (JSON.stringify(said) !== JSON.stringify(truth)) record.count(`lie ${endpoint.lie}`);
    return said;
  }

  async function perform(endpoint: Endpoint, method: string, params: unknown[]): Promise<Answer> {
    try {
      if (method === 'eth_sendRawTransaction') return { result: await world.chain.sendRaw(params[0] as Hex) };
      return { result: await view(endpoint, method, params) };
    } catch (error) {
      if (!(error instanceof RpcResponseError)) throw error;
      const { code, message, data } = error;
      return { error: { code, message: message.replace(/^\w+: /, ''), ...(data === undefined ? {} : { data }) } };
    }
  }

  /** What an honest endpoint says from where it is. */
  async function view(endpoint: Endpoint, method: string, params: unknown[]): Promise<unknown> {
    const { chain } = world;
    if (method === 'eth_call' && silentTokens.has((params[0] as { to: Address }).to))
      throw new RpcResponseError(method, 3, 'execution reverted', '0x');
    if (endpoint.state === 'stale' && endpoint.staleHead !== null) {
      const branch = branchOf(endpoint.staleHead);
      const answered = branch(method, params);
      if (answered !== undefined) return answered;
    }
    const headNumber = chain.head().number - (endpoint.state === 'lagging' ? endpoint.lagBlocks : 0);
    if (method === 'eth_blockNumber') return `0x${headNumber.toString(16)}`;
    if (method === 'eth_getBlockByNumber' && params[0] !== 'latest' && heightOf(params[0]) > headNumber) return null;
    const tagAt = { eth_getBlockByNumber: 0, eth_call: 1, eth_getTransactionCount: 1 }[method];
    if (tagAt === undefined) return chain.rpc.call(method, params);
    const tag = params[tagAt];
    const at = tag === 'latest' || tag === undefined ? `0x${headNumber.toString(16)}` : tag;
    if (heightOf(at) > headNumber) throw new RpcResponseError(method, -32_001, 'header not found', undefined);
    return chain.rpc.call(
      method,
      params.map((one, i) => (i === tagAt ? at : one)),
    );
  }

  /** A branch that lost, as whoever still follows it tells of it; undefined for what it answers like everybody else. */
  function branchOf(head: Hex): (method: string, params: unknown[]) => unknown {
    const { chain } = world;
    const top = chain.byHash(head)!;
    const blockAt = (number: number) => {
      let block = top;
      while (block.number > number) {
        if (chain.at(block.number)?.hash === block.hash) return chain.at(number);
        block = chain.byHash(block.parentHash)!;
      }
      return number > top.number ? undefined : block;
    };
    return (method, params) => {
      const number = params[0] === 'latest' ? top.number : Number.parseInt(String(params[0]), 16);
      if (method === 'eth_blockNumber') return top.header['number'];
      if (method === 'eth_getBlockByNumber') return blockAt(number)?.header ?? null;
      if (method === 'eth_getBlockReceipts') return chain.byHash(params[0] as Hex)?.receipts ?? null;
      if (method === 'eth_call' || method === 'eth_getTransactionCount') {
        const block = params[1] === 'latest' || params[1] === undefined ? top : blockAt(heightOf(params[1]));
        const [about] = params as [{ to: Address; data: string } | Address];
        if (typeof about === 'string') return block?.counts.get(about);
        return about.data.startsWith(BALANCE_OF) ? block?.held.get(about.to) : undefined;
      }
      if (method !== 'eth_getLogs') return undefined;
      const filter = params[0] as { fromBlock: string; toBlock: string; address: readonly string[] };
      const [from, to] = [Number.parseInt(filter.fromBlock, 16), Number.parseInt(filter.toBlock, 16)];
      const wanted = new Set(filter.address.map((one) => one.toLowerCase()));
      const logs: unknown[] = [];
      for (let at = from; at <= Math.min(to, top.number); at += 1) {
        for (const receipt of blockAt(at)?.receipts ?? []) logs.push(...(receipt['logs'] as { address: string }[]));
      }
      return logs.filter((log) => wanted.has((log as { address: string }).address));
    };
  }

  return {
    all,
    silentTokens,
    urls: all.map(({ name }) => `http://${name}/`),
    fetch: fetchLike as unknown as typeof fetch,
  };
}
