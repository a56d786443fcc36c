/**
 * Loaded before all tests: whatever a test fetches of a path that the OpenAPI document may describe has to be as the document says, with
 * the headers that it names, whether or not the test looks at it.
 */
import { conformAnswer, conformWire } from './api/openapi.js';

/** The public interface that the document is about; the ports for machines are not. */
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
