/** Checks answers against the OpenAPI document: the server must answer nothing that it does not describe. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument } from '../../../server/openapi/document.js';
import { ENDPOINTS } from '../../../server/endpoints.js';
import { INFO_REPLIES, type InfoType } from '../../../server/orders/info/schemas.js';

type Json = Record<string, unknown>;

export const DOCUMENT = openApiDocument(ENDPOINTS, { title: 'Curvebook', version: '0', description: '', url: null });

/** Types of downloads, which the description of a 200 names. */
const DOWNLOADS = /^(application\/x-ndjson|text\/csv)$/;

const BASE = 'https://curvebook.test/openapi.json';

const ajv = new Ajv2020({ strict: false });
ajv.addSchema({ ...DOCUMENT, $id: BASE });

const validators = new Map<string, ValidateFunction>();

/** Throws unless the document knows the route and the status, and the body has the shape that it says. */
export function conform(method: string, url: string, status: number, body: unknown): void {
  const path = pathOf(new URL(url, BASE).pathname);
  const operation = path === null ? undefined : DOCUMENT.paths[path]?.[method.toLowerCase()];
  if (path === null || operation === undefined) {
    if (status === 404 || status === 405) return;
    throw new Error(`the document does not know ${method} ${url}`);
  }
  conformTo(path, method, status, body);
}

/** The same of a whole answer: the headers that the document names must be there, too. Reads the body. */
export async function conformAnswer(method: string, url: string, response: Response): Promise<void> {
  const { status, headers } = response;
  const text = await response.text();
  const path = pathOf(new URL(url).pathname);
  const operation = path === null ? undefined : DOCUMENT.paths[path]?.[method.toLowerCase()];
  const described = (operation?.responses as Json | undefined)?.[status] as Json | undefined;
  const type = (headers.get('content-type') ?? '').split(';')[0]!;
  const isDownload = DOWNLOADS.test(type) && String(described?.description).includes(type);
  const missing = Object.keys((described?.headers ?? {}) as Json).filter(
    (name) => !headers.has(name) && !(isDownload && name === 'etag'),
  );
  if (missing.length > 0) throw new Error(`${method} ${url} -> ${status} has no ${missing.join(', ')}`);
  if (isDownload) return;
  if (status === 304 && described !== undefined && text === '') return;
  if (!/^application\/json/.test(headers.get('content-type') ?? ''))
    throw new Error(`${method} ${url} -> ${status} is no JSON`);
  conform(method, url, status, JSON.parse(text));
}

/** The kinds of queries that tests have asked. */
const answeredQueries = new Set<string>();

/**
 * The same for an answer of the order interface, whose refusals are text. The answer to a query must match the schema for the query's type.
 */
export async function conformWire(path: string, asked: string, response: Response): Promise<void> {
  const { status } = response;
  const text = await response.text();
  const described = DOCUMENT.paths[path]?.post?.responses as Json;
  if (described[status] === undefined) throw new Error(`the document does not know status ${status} of POST ${path}`);
  const isJson = /^application\/json/.test(response.headers.get('content-type') ?? '');
  if (status === 429 && isJson && text === 'null' && response.headers.has('retry-after')) return;
  if (isJson !== (status === 200)) throw new Error(`POST ${path} -> ${status} is ${isJson ? '' : 'not '}JSON`);
  if (!isJson) return;
  conformTo(path, 'POST', status, JSON.parse(text));
  if (path !== '/info') return;
  const { type } = JSON.parse(asked) as { type: InfoType };
  const judged = INFO_REPLIES[type].safeParse(JSON.parse(text));
  if (!judged.success) throw new Error(`the answer to ${type} differs from its schema: ${judged.error.message}`);
  answeredQueries.add(type);
}

/** The same for the route that the document calls `path`, whatever was asked for. */
export function conformTo(path: string, method: string, status: number, body: unknown): void {
  const operation = DOCUMENT.paths[path]?.[method.toLowerCase()];
  const response = (operation?.responses as Json | undefined)?.[status] as Json | undefined;
  if (response === undefined) throw new Error(`the document does not know status ${status} of ${method} ${path}`);
  const validate = validatorOf(`#/paths/${pointer(path)}/${method.toLowerCase()}/responses/${status}`);
  if (!validate(body)) {
    throw new Error(`${method} ${path} -> ${status} differs from the document: ${ajv.errorsText(validate.errors)}`);
  }
}

function validatorOf(response: string): ValidateFunction {
  const ref = `${BASE}${response}/content/application~1json/schema`;
  const known = validators.get(ref) ?? ajv.compile({ $ref: ref });
  validators.set(ref, known);
  return known;
}

/** The described path that a concrete one belongs to. */
function pathOf(concrete: string): string | null {
  const parts = concrete.split('/');
  const found = Object.keys(DOCUMENT.paths).find((path) => {
    const own = path.split('/');
    return own.length === parts.length && own.every((part, i) => part.startsWith('{') || part === parts[i]);
  });
  return found ?? null;
}

const pointer = (path: string): string => encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'));
