/** Requests to an application without a network: the same handlers, and what they answer. */
import { ServerResponse, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type Koa from 'koa';

export interface Answer {
  status: number;
  body: unknown;
}

/** Sends a request with JSON in it, if any, and resolves with the answer's status and JSON. */
export function ask(app: Koa, method: string, path: string, body?: object): Promise<Answer> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = { host: 'simulation', 'content-type': 'application/json', 'content-length': `${text.length}` };
  const request = Object.assign(Readable.from(text === '' ? [] : [Buffer.from(text)]), {
    ...{ method, url: path, headers, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 },
    socket: { remoteAddress: '192.0.2.1', encrypted: false },
  }) as unknown as IncomingMessage;
  return new Promise((resolve) => {
    const response = new ServerResponse(request);
    response.end = ((content?: string | Buffer | null) => {
      const said = content?.toString() ?? '';
      resolve({
        status: response.statusCode,
        body: said.startsWith('{') || said.startsWith('[') ? JSON.parse(said) : said,
      });
      return response;
    }) as typeof response.end;
    void app.callback()(request, response);
  });
}
