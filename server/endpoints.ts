import type { Endpoint } from './openapi/endpoint.js';
import { PROBE_ENDPOINTS } from './ops/probes.js';
import { ORDER_ENDPOINTS } from './orders/endpoints.js';
import { READ_ENDPOINTS } from './read/endpoints.js';
import { SWAP_ENDPOINTS } from './swap/endpoints.js';

/** Every HTTP endpoint that the OpenAPI document describes, in the order in which it lists them. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...READ_ENDPOINTS,
  ...ORDER_ENDPOINTS,
  ...SWAP_ENDPOINTS,
  ...PROBE_ENDPOINTS,
];
