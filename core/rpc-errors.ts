/** The two ways in which a request to a node fails. All layers pass these errors on unchanged. */

/** Methods that run foreign code: it decides how they end, and its gas how long their answers may be. */
export const CALL_METHODS: readonly string[] = ['eth_call', 'eth_estimateGas'];

/** The node answered, and its answer is an error. `code` is the JSON-RPC code, `data` whatever the node attached. */
export class RpcResponseError extends Error {
  readonly method: string;
  readonly code: number;
  readonly data: unknown;
  constructor(method: string, code: number, message: string, data: unknown) {
    super(`${method}: ${message}`);
    this.name = 'RpcResponseError';
    this.method = method;
    this.code = code;
    this.data = data;
  }
}

/** No usable answer: the node is unreachable, too slow, or not speaking JSON-RPC. Always worth another try. */
export class RpcUnavailableError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'RpcUnavailableError';
  }
}
