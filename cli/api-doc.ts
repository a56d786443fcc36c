/**
 * docs/openapi.json, docs/asyncapi.json, the types of the example client and the ABIs of the contracts' package, from the schemas in use and from
 * what the contracts compiled to. `npm run docs:api` writes them.
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
export const API_TYPES = fileURLToPath(new URL('../examples/api.d.ts', import.meta.url));

/** The files' contents. */
export async function apiFiles(): Promise<{ document: string; stream: string; types: string }> {
  const info = { title: API_TITLE, version: VERSION, description: API_DESCRIPTION, url: null };
  const document = openApiDocument(ENDPOINTS, info);
  const nodes = await openapiTS(document as unknown as OpenAPI3);
  const text = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
  return {
    document: text(document),
    stream: text(asyncApiDocument(info)),
    types: COMMENT_HEADER + astToString(nodes),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { document, stream, types } = await apiFiles();
  writeFileSync(API_DOC, document);
  writeFileSync(STREAM_DOC, stream);
  writeFileSync(API_TYPES, types);
  writeAbiFiles();
}
