/** The two ways in which asking a node fails; who asks through several layers knows them by these. */

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
