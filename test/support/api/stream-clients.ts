/** Clients of the WebSocket endpoint, closed after each test. */
import { addGeneration, fillOf } from '../gateway.js';
import { orderAction, type GatewaySuite } from '../gateway-suite.js';
import { WETH_USDC } from '../markets.js';
import { connectWs, type Frame, type WsClient } from '../ws.js';

export const ETHER = 10n ** 18n;

/** What both suites do with sockets: clients that are closed after each test, and fills of one order. */
export function socketsOf(suite: GatewaySuite) {
  const clients: { close(): Promise<void> }[] = [];
  async function connect(): Promise<WsClient> {
    const client = await connectWs(suite.running.url);
    clients.push(client);
    return client;
  }
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });

  const on = (channel: string) => (frame: Frame) => frame.channel === channel;
  const place = (index: number, ...orders: object[]) => suite.act(index, orderAction(...orders));
  const fill = async (oid: number, baseUnits: bigint, fillSeq: number): Promise<void> => {
    const order = suite.running.gateway.order(oid)?.order;
    if (order === undefined) throw new Error(`no order ${oid}`);
    await addGeneration(suite.db, fillOf(WETH_USDC, order, baseUnits, fillSeq));
    suite.running.gateway.onGeneration();
  };

  return { clients, connect, on, place, fill };
}
