/**
 * Loaded before all tests: every answer that a test fetches from a path of the described interface must match the OpenAPI document, headers included,
 * even if the test does not read it.
 */
import { conformAnswer, conformWire } from './api/openapi.js';

/** Paths that the OpenAPI document describes. Metrics and health of other ports are not among them. */
const DESCRIBED = /^\/(health$|v0\/|api\/v1\/)/;
const WIRE = /^\/(exchange|info)$/;
const HERE = new Set(['127.0.0.1', 'localhost', '[::1]']);

const fetchAnything = globalThis.fetch;

globalThis.fetch = async (input, init) => {
  const response = await fetchAnything(input, init);
  // Not by another Request, which would take the body of the first.
  const { url, method } =
    input instanceof Request ? input : { url: input.toString(), method: init?.method?.toUpperCase() ?? 'GET' };
  const { hostname, pathname } = new URL(url);
  if (HERE.has(hostname) && DESCRIBED.test(pathname) && /^(GET|POST)$/.test(method)) {
    await conformAnswer(method, url, response.clone());
  }
  if (HERE.has(hostname) && WIRE.test(pathname) && method === 'POST') {
    const asked = input instanceof Request ? '' : init?.body;
    await conformWire(pathname, typeof asked === 'string' ? asked : '', response.clone());
  }
  return response;
};
