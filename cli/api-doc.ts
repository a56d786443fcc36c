/** docs/openapi.json and the types of the example client, from the endpoints' schemas. `npm run docs:api` writes both. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import type { OpenAPI3 } from 'openapi-typescript';
import { ENDPOINTS } from '../server/endpoints.js';
import { openApiDocument } from '../server/openapi/document.js';
import { API_DESCRIPTION, API_TITLE, VERSION } from './version.js';

export const API_DOC = fileURLToPath(new URL('../docs/openapi.json', import.meta.url));
export const API_TYPES = fileURLToPath(new URL('../examples/api.d.ts', import.meta.url));

/** The two files' contents. */
export async function apiFiles(): Promise<{ document: string; types: string }> {
  const document = openApiDocument(ENDPOINTS, {
    title: API_TITLE,
    version: VERSION,
    description: API_DESCRIPTION,
    url: null,
  });
  const nodes = await openapiTS(document as unknown as OpenAPI3);
  return { document: `${JSON.stringify(document, null, 2)}\n`, types: COMMENT_HEADER + astToString(nodes) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { document, types } = await apiFiles();
  writeFileSync(API_DOC, document);
  writeFileSync(API_TYPES, types);
}
