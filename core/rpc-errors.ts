/** The two ways in which a request to a node fails. All layers pass these errors on unchanged. */

/** The node answered, and its answer is an error. `code` is the JSON-RPC code, `data` whatever the node attached. */
export class RpcResponseError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(method: string, code: number, message: string, data: unknown) {
    super(`${method}: ${message}`);
    this.name = 'RpcResponseError';
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
