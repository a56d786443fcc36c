/** Endpoints at which tokens answer as a test says: a single endpoint that lies about them, or, with the same lies at all endpoints, faulty tokens. */
import type { Address, Hex } from '../../../core/types.js';
import { RpcResponseError, type Rpc } from '../../../keepers/chain/rpc.js';

/** Selectors of what keepers ask tokens. */
export const ASKED = {
  balanceOf: '0x70a08231',
  symbol: '0x95d89b41',
  decimals: '0x313ce567',
  transfer: '0xa9059cbb',
} as const;

/** The answer instead of the true one; null for a revert, undefined for the truth; a promise for a late answer, or for none at all. */
export type Lie = (truth: Hex | null, block: string) => Hex | null | undefined | Promise<Hex>;

/** Lies by token and selector. A test puts them in and takes them out. */
export type Lies = Map<string, Lie>;

export const lieOn = (lies: Lies, token: Address, asked: keyof typeof ASKED, lie: Lie): void =>
  void lies.set(`${token}:${ASKED[asked]}`, lie);

export const word = (units: bigint): Hex => `0x${units.toString(16).padStart(64, '0')}`;
export const more =
  (units: bigint): Lie =>
  (truth) =>
    truth === null ? null : word(BigInt(truth) + units);

/** The same chain as `rpc`, seen through lies. `reverts` is how the endpoint words a revert. */
export function lyingRpc(rpc: Rpc, lies: Lies, { name = rpc.name, reverts = 'execution reverted' } = {}): Rpc {
  const revert = (): RpcResponseError =>
    new RpcResponseError('eth_call', reverts === 'execution reverted' ? 3 : -32_015, reverts, undefined);
  async function call(method: string, params: unknown[] = []): Promise<unknown> {
    const [{ to, data } = {}, block] = params as [{ to?: string; data?: string }?, string?];
    const lie = method === 'eth_call' ? lies.get(`${to}:${data?.slice(0, 10)}`) : undefined;
    if (lie === undefined) return rpc.call(method, params);
    const truth = (await rpc.call(method, params).catch((error: unknown) => {
      if (error instanceof RpcResponseError) return null;
      throw error;
    })) as Hex | null;
    const said = await lie(truth, block ?? 'latest');
    const answer = said === undefined ? truth : said;
    if (answer === null) throw revert();
    return answer;
  }
  return {
    name,
    call,
    async batch(requests) {
      const answers: unknown[] = [];
      for (const { method, params } of requests) answers.push(await call(method, params));
      return answers;
    },
  };
}
