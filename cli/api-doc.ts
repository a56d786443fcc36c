/**
 * docs/openapi.json, docs/asyncapi.json, the types of the SDK and the ABIs of the contracts' package, from the schemas in use and from what the
 * contracts compiled to. `npm run docs:api` writes them.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import type { OpenAPI3 } from 'openapi-typescript';
import { writeAbiFiles } from '../contracts-package/generate.js';
import { ENDPOINTS } from '../server/endpoints.js';
import { openApiDocument } from '../server/openapi/document.js';
import { asyncApiDocument } from '../server/stream/document.js';
import { API_DESCRIPTION, API_TITLE, VERSION } from './version.js';

export const API_DOC = fileURLToPath(new URL('../docs/openapi.json', import.meta.url));
export const STREAM_DOC = fileURLToPath(new URL('../docs/asyncapi.json', import.meta.url));
export const API_TYPES = fileURLToPath(new URL('../sdk/src/read/schema.ts', import.meta.url));
export const STREAM_TYPES = fileURLToPath(new URL('../sdk/src/stream/schema.ts', import.meta.url));

/** The files' contents. */
export async function apiFiles(): Promise<{ document: string; stream: string; types: string; streamTypes: string }> {
  const info = { title: API_TITLE, version: VERSION, description: API_DESCRIPTION, url: null };
  const document = openApiDocument(ENDPOINTS, info);
  const stream = asyncApiDocument(info);
  const text = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
  return {
    document: text(document),
    stream: text(stream),
    types: await typesOf(document as unknown as OpenAPI3),
    streamTypes: await typesOf(streamShapes(stream)),
  };
}

const typesOf = async (document: OpenAPI3): Promise<string> => COMMENT_HEADER + astToString(await openapiTS(document));

/** The shapes of an AsyncAPI document, in the form that the generator of types reads, with the union of what the server sends. */
function streamShapes({ components, operations }: ReturnType<typeof asyncApiDocument>): OpenAPI3 {
  const requests = Object.keys(operations).map((name) => `${name}Request`);
  const sent = Object.entries(components.messages).filter(([name]) => !requests.includes(name));
  const schemas = { ...components.schemas, ServerFrame: { oneOf: sent.map(([, { payload }]) => payload) } };
  return {
    openapi: '3.1.0',
    info: { title: '', version: '' },
    paths: {},
    components: { schemas },
  } as unknown as OpenAPI3;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { document, stream, types, streamTypes } = await apiFiles();
  writeFileSync(API_DOC, document);
  writeFileSync(STREAM_DOC, stream);
  writeFileSync(API_TYPES, types);
  writeFileSync(STREAM_TYPES, streamTypes);
  writeAbiFiles();
}
