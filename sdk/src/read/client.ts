import { CurvebookError } from '../errors.js';
import { createHttp } from '../http.js';
import type { HttpOptions } from '../http.js';
import type { components, paths } from './schema.js';

/** Shapes of the API's answers by their names in its document, such as `Schemas['Decomposition']`. */
export type Schemas = components['schemas'];

type Json<T> = T extends { content: { 'application/json': infer B } } ? B : never;

/** Paths that can be read. */
export type ReadPath = { [P in keyof paths]: paths[P] extends { get: object } ? P : never }[keyof paths];

type Get<P extends ReadPath> = paths[P] extends { get: infer G } ? G : never;

/** What GET answers there. */
export type Answer<P extends ReadPath> = Get<P> extends { responses: { 200: infer R } } ? Json<R> : never;

type Parameters<P extends ReadPath> = Get<P> extends { parameters: infer Q } ? Q : never;

type Part<P extends ReadPath, K extends 'path' | 'query'> = K extends keyof Parameters<P>
  ? Parameters<P>[K]
  : undefined;

/** Parameters of a path, by where they stand. */
export interface Asked<P extends ReadPath> {
  path?: NonNullable<Part<P, 'path'>>;
  query?: NonNullable<Part<P, 'query'>>;
  signal?: AbortSignal;
}

/** Most answers that are kept, so that the server sends them again only if their ETags changed. */
const MAX_KEPT = 64;

/** The read API of one server. Its answers are not proven: `@curvebook/sdk/verify` has functions for those that can be checked. */
export interface ReadClient {
  readonly url: string;
  /** Any GET path of the OpenAPI document. An answer with an ETag is sent again only when it has changed. Throws CurvebookError. */
  get<P extends ReadPath>(path: P, asked?: Asked<P>): Promise<Answer<P>>;
  /** A query of the order interface: POST /info. The type of the reply is the one that you name; it is not checked. */
  info<T = unknown>(query: { type: string } & Record<string, unknown>, signal?: AbortSignal): Promise<T>;
  deployment(): Promise<Answer<'/v0/deployment'>>;
  status(): Promise<Answer<'/v0/status'>>;
  pairs(): Promise<Answer<'/v0/pairs'>>;
  book(pair: string): Promise<Answer<'/v0/book/{pair}'>>;
  curve(pair: string, curveSeq: number): Promise<Answer<'/v0/curves/{pair}/{curve_seq}'>>;
  fills(pair: string, limit?: number): Promise<Answer<'/v0/fills'>>;
  decomposition(pair: string, fillSeq: number): Promise<Answer<'/v0/fills/{fill_seq}/decomposition'>>;
  limits(maker: string): Promise<Answer<'/v0/makers/{maker}/limits'>>;
  withdrawals(maker: string): Promise<Answer<'/v0/makers/{maker}/withdrawals'>>;
  checkpoint(): Promise<Answer<'/v0/checkpoints/latest'>>;
  proof(maker: string): Promise<Answer<'/v0/checkpoints/latest/proof'>>;
}

/** A client of the server at `url`, such as `http://127.0.0.1:8080`. It sends nothing before its first call. */
export function createReadClient(url: string, options: HttpOptions = {}): ReadClient {
  const http = createHttp(url, options);
  const kept = new Map<string, { etag: string; body: unknown }>();

  async function get<P extends ReadPath>(path: P, { path: parts, query, signal }: Asked<P> = {}): Promise<Answer<P>> {
    const place = placeOf(path, parts ?? {}, query ?? {});
    const known = kept.get(place);
    const reply = await http(place, { etag: known?.etag, signal });
    if (reply.status === 304) {
      if (known === undefined) throw new CurvebookError('HTTP_ERROR', `${place}: 304 to a request without a tag`);
      return known.body as Answer<P>;
    }
    kept.delete(place);
    if (reply.etag !== null) {
      kept.set(place, { etag: reply.etag, body: reply.body });
      const oldest = kept.keys().next().value;
      if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    }
    return reply.body as Answer<P>;
  }

  return {
    url,
    get,
    async info<T>(query: { type: string }, signal?: AbortSignal): Promise<T> {
      return (await http('/info', { method: 'POST', body: query, signal })).body as T;
    },
    deployment: () => get('/v0/deployment'),
    status: () => get('/v0/status'),
    pairs: () => get('/v0/pairs'),
    book: (pair) => get('/v0/book/{pair}', { path: { pair } }),
    curve: (pair, curveSeq) => get('/v0/curves/{pair}/{curve_seq}', { path: { pair, curve_seq: `${curveSeq}` } }),
    fills: (pair, limit) => get('/v0/fills', { query: limit === undefined ? { pair } : { pair, limit } }),
    decomposition: (pair, fillSeq) =>
      get('/v0/fills/{fill_seq}/decomposition', { path: { fill_seq: `${fillSeq}` }, query: { pair } }),
    limits: (maker) => get('/v0/makers/{maker}/limits', { path: { maker } }),
    withdrawals: (maker) => get('/v0/makers/{maker}/withdrawals', { path: { maker } }),
    checkpoint: () => get('/v0/checkpoints/latest'),
    proof: (maker) => get('/v0/checkpoints/latest/proof', { query: { maker } }),
  };
}

function placeOf(path: string, parts: Record<string, unknown>, query: Record<string, unknown>): string {
  const place = path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = parts[name];
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw new CurvebookError('BAD_ARGUMENT', `${path} needs ${name}`);
    }
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      search.set(name, `${value}`);
  }
  return search.size === 0 ? place : `${place}?${search.toString()}`;
}
