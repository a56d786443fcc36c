import { z } from 'zod';
import { errorSchema } from '../read/schemas.js';
import type { Endpoint, Parameter } from './endpoint.js';

export interface DocumentInfo {
  title: string;
  version: string;
  description: string;
  /** Base URL as clients see it; null leaves it to the place that the document was read from. */
  url: string | null;
}

type Json = Record<string, unknown>;

export interface OpenApiDocument extends Json {
  openapi: '3.1.1';
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json> };
}

/** Every answer of a rate-limited route carries these. */
const RATE_LIMIT_HEADERS: Json = {
  'x-ratelimit-limit': header('requests per window'),
  'x-ratelimit-remaining': header('requests left in this window'),
  'x-ratelimit-reset': header('end of the window, Unix milliseconds'),
};

const UNEXPECTED = 'INTERNAL_ERROR: unexpected; the operator finds the cause in the log';

const STARTING =
  'NOT_READY: the server starts, or starts again; nothing was stored, and retry-after says when to come back';

/** Of servers with the role `reader`. */
const READING =
  'REPLICA_LAG or READ_ONLY: this server only reads, and is too far behind or can not store that; STANDBY, WRITE_FAILED or OUTCOME_UNKNOWN: it hands over what is stored, and nobody took it, too much waits, or nobody told';

const RETRY_HEADER: Json = { 'retry-after': header('seconds until the next window') };

/** Described in words: as further content types they would force generated clients to distinguish the type of every answer. */
const DOWNLOADS = 'with a format all rows as application/x-ndjson or text/csv, without an ETag';

const ETAG_HEADER: Json = { description: 'names this answer, for If-None-Match', schema: { type: 'string' } };

/** The OpenAPI 3.1 document of the endpoints, in their order. Schemas with an id are shared under `components`. */
export function openApiDocument(endpoints: readonly Endpoint[], info: DocumentInfo): OpenApiDocument {
  const schemas: Record<string, Json> = {};
  const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): Json => jsonSchema(schema, io, schemas);
  const paths: OpenApiDocument['paths'] = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method]: operation(endpoint, schemaOf) };
  }
  return {
    openapi: '3.1.1',
    info: { title: info.title, version: info.version, description: info.description },
    servers: [{ url: info.url ?? '/' }],
    tags: [...new Set(endpoints.map((endpoint) => endpoint.group))].map((name) => ({ name })),
    paths,
    components: { schemas },
  };
}

type SchemaOf = (schema: z.ZodType, io: 'input' | 'output') => Json;

function operation(endpoint: Endpoint, schemaOf: SchemaOf): Json {
  const { params = {}, query = {}, isWire = false } = endpoint;
  const limits = isWire ? {} : RATE_LIMIT_HEADERS;
  const refusal = isWire
    ? { 'text/plain': { schema: { type: 'string' } } }
    : { 'application/json': { schema: schemaOf(errorSchema, 'output') } };
  const parameters = [
    ...Object.entries(params).map(([name, one]) => parameter(name, 'path', { ...one, required: true }, schemaOf)),
    ...Object.entries(query).map(([name, one]) => parameter(name, 'query', one, schemaOf)),
  ];
  const responses: Record<string, Json> = {
    200: {
      description: endpoint.downloads === true ? `${endpoint.summary}; ${DOWNLOADS}` : endpoint.summary,
      headers: endpoint.tagged === true ? { ...RATE_LIMIT_HEADERS, etag: ETAG_HEADER } : limits,
      content: { 'application/json': { schema: schemaOf(endpoint.answer, 'output') } },
    },
  };
  if (endpoint.tagged === true) {
    responses[304] = {
      description: 'The answer to If-None-Match: your copy is still true',
      headers: { ...RATE_LIMIT_HEADERS, etag: ETAG_HEADER },
    };
  }
  for (const [status, description] of Object.entries(endpoint.alsoAnswers ?? {})) {
    responses[status] = {
      description,
      headers: RATE_LIMIT_HEADERS,
      content: { 'application/json': { schema: schemaOf(endpoint.answer, 'output') } },
    };
  }
  for (const [status, description] of Object.entries({ ...endpoint.refusals, 500: UNEXPECTED })) {
    responses[status] = {
      description: status === '503' && !isWire ? `${description}; ${READING}` : description,
      headers: status === '429' ? { ...limits, ...RETRY_HEADER } : limits,
      content: refusal,
    };
  }
  // Probes answer 503 in their own shape; other endpoints with a 503 of their own use the error envelope.
  responses[503] ??= {
    description: isWire ? STARTING : `${STARTING}; ${READING}`,
    headers: RETRY_HEADER,
    content: refusal,
  };
  return {
    operationId: operationId(endpoint),
    tags: [endpoint.group],
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(endpoint.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(endpoint.body, 'input') } },
          },
        }),
    responses,
  };
}

/** `getV0BookPair` for GET /v0/book/{pair}. */
function operationId({ method, path }: Endpoint): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return method + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('');
}

function parameter(name: string, where: 'path' | 'query', one: Parameter, schemaOf: SchemaOf): Json {
  return {
    name,
    in: where,
    required: one.required ?? false,
    description: one.description,
    schema: schemaOf(one.schema, 'input'),
    ...(one.example === undefined ? {} : { example: one.example }),
  };
}

/** Moves what zod puts under `$defs` to the document's components. OpenAPI 3.1 schemas are JSON Schema 2020-12 as they are. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', shared: Record<string, Json>): Json {
  const { $schema: _dialect, $defs, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' }) as Json;
  const { id, ...own } = repoint(rest) as Json;
  for (const [name, definition] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    const { id: _name, ...body } = repoint(definition) as Json;
    shared[name] = body;
  }
  if (typeof id !== 'string') return own;
  if (own.$ref === undefined) shared[id] = own;
  return { $ref: `#/components/schemas/${id}` };
}

function repoint(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(repoint);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === '$ref' && typeof item === 'string' ? item.replace('#/$defs/', '#/components/schemas/') : repoint(item),
    ]),
  );
}

function header(description: string): Json {
  return { description, schema: { type: 'integer' } };
}
