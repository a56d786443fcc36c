/** Actions and queries of the order interface, signed by an account of the sandbox, sent to this server. */
import type { WireAction } from '../../core/wire/types.js';
import { createReadClient } from '../../sdk/src/index.js';
import { actionTypedData, agentTypedData } from '../../sdk/src/maker-signing.js';
import { splitSignature } from '../../sdk/src/wallet.js';
import type { Schemas } from '../../sdk/src/index.js';
import type { Address } from '../../core/types.js';
import { keyProvider } from '../src/wallet/key-provider.js';
import { typedDataJson } from '../src/wallet/signer.js';

interface Account {
  role: string;
  address: string;
  private_key: string;
}

interface Level {
  px: string;
  sz: string;
}

/** Spot markets are named by their asset less this. */
const SPOT_ASSET_BASE = 10_000;
const AGENT = '0x000000000000000000000000000000000000dEaD';

function made<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  more: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), more);
  element.append(...children);
  return element;
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);

async function asked(path: string, body: unknown): Promise<{ status: number; text: string }> {
  const reply = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await reply.text();
  try {
    return { status: reply.status, text: pretty(JSON.parse(text)) };
  } catch {
    return { status: reply.status, text };
  }
}

/** What may be sent, with the numbers of this deployment: an order far from the other side, which rests. */
function actionExamples(asset: number, level: Level | null): Record<string, unknown> {
  const { px: p, sz: s } = level ?? { px: '2500', sz: '0.1' };
  return {
    'order: sell, rests': {
      type: 'order',
      orders: [{ a: asset, b: false, p, s, r: false, t: { limit: { tif: 'Alo' } } }],
      grouping: 'na',
    },
    'order that is refused: off_tick': {
      type: 'order',
      orders: [{ a: asset, b: false, p: '2500.00001', s, r: false, t: { limit: { tif: 'Alo' } } }],
      grouping: 'na',
    },
    cancel: { type: 'cancel', cancels: [{ a: asset, o: 1 }] },
    'scheduleCancel: in a minute': { type: 'scheduleCancel', time: Date.now() + 60_000 },
    'scheduleCancel: clear': { type: 'scheduleCancel' },
    noop: { type: 'noop' },
    approveAgent: { type: 'approveAgent', agentAddress: AGENT, agentName: 'docs' },
  };
}

const queryExamples = (coin: string, user: string): Record<string, unknown> => ({
  l2Book: { type: 'l2Book', coin },
  openOrders: { type: 'openOrders', user },
  spotClearinghouseState: { type: 'spotClearinghouseState', user },
  userFills: { type: 'userFills', user },
  spotMeta: { type: 'spotMeta' },
  userRateLimit: { type: 'userRateLimit', user },
});

async function signed(
  action: { type?: unknown },
  account: Account,
  deployment: Schemas['Deployment'],
): Promise<object> {
  const nonce = Date.now();
  const { agentAddress, agentName } = action as { agentAddress?: unknown; agentName?: unknown };
  const named =
    action.type === 'approveAgent'
      ? agentTypedData({
          agent: String(agentAddress) as Address,
          name: typeof agentName === 'string' ? agentName : '',
          nonce,
          chainId: deployment.chain_id,
        })
      : {
          action,
          data: actionTypedData(action as WireAction, nonce, deployment.order_sources.includes('a') ? 'a' : 'b'),
        };
  const signature = await keyProvider(account.private_key, null).request({
    method: 'eth_signTypedData_v4',
    params: [account.address, typedDataJson(named.data)],
  });
  return { action: named.action, nonce, signature: splitSignature(signature as string) };
}

/** A form of examples, a text to change, and what was sent and answered. */
function panel(
  title: string,
  path: '/exchange' | '/info',
  examples: Record<string, unknown>,
  bodyOf: (written: object) => Promise<object> | object,
  more: Node[] = [],
): HTMLElement {
  const choice = made('select', {}, ...Object.keys(examples).map((name) => made('option', { value: name }, name)));
  const text = made('textarea', { rows: 10, spellcheck: false });
  const said = made('div', {});
  said.setAttribute('role', 'status');
  const fill = (): void => void (text.value = pretty(examples[choice.value]));
  choice.addEventListener('change', fill);
  fill();
  const form = made(
    'form',
    { className: 'try' },
    made('h2', {}, title),
    made('div', { className: 'row' }, made('label', { className: 'field' }, 'Example', choice), ...more),
    made('label', { className: 'field' }, path === '/exchange' ? 'Action' : 'Query', text),
    made('button', { type: 'submit', className: 'main' }, path === '/exchange' ? 'Sign and send' : 'Send'),
    said,
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void send().catch((error: unknown) =>
      said.replaceChildren(made('p', { className: 'bad' }, error instanceof Error ? error.message : String(error))),
    );
  });
  async function send(): Promise<void> {
    const written = JSON.parse(text.value) as unknown;
    if (typeof written !== 'object' || written === null) throw new Error('write an object');
    const body = await bodyOf(written);
    const { status, text: reply } = await asked(path, body);
    const curl = `curl -s ${window.location.origin}${path} -H 'content-type: application/json' -d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`;
    said.replaceChildren(
      made('h3', {}, `Answer: ${status}`),
      made('pre', { tabIndex: 0, className: 'answer' }, reply),
      made('h3', {}, 'Sent'),
      made('pre', { tabIndex: 0 }, pretty(body)),
      made('details', {}, made('summary', {}, 'As curl'), made('pre', { tabIndex: 0 }, curl)),
    );
  }
  return form;
}

async function show(place: HTMLElement): Promise<void> {
  const deployment = await createReadClient(window.location.origin).deployment();
  const [market] = deployment.markets;
  if (market === undefined) throw new Error('no market is listed yet');
  const coin = `@${market.asset - SPOT_ASSET_BASE}`;
  const book = (await (
    await fetch('/info', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'l2Book', coin }),
    })
  ).json()) as { levels?: [Level[], Level[]] } | null;
  const reply = deployment.sandbox ? await fetch('/sandbox/accounts') : null;
  const accounts = reply?.ok === true ? ((await reply.json()) as Account[]) : [];
  const makers = accounts.filter(({ role }) => role.startsWith('maker'));
  const signer = made('select', {}, ...makers.map(({ role }) => made('option', { value: role }, role)));
  const chosen = (): Account | undefined => makers.find(({ role }) => role === signer.value);
  const parts =
    makers.length === 0
      ? [made('p', {}, 'Nobody can sign here: this is no sandbox, or not the machine that it runs on.')]
      : [
          panel(
            'POST /exchange',
            '/exchange',
            actionExamples(market.asset, book?.levels?.[1].at(-1) ?? null),
            (action) => {
              const account = chosen();
              if (account === undefined) throw new Error('choose an account');
              return signed(action, account, deployment);
            },
            [made('label', { className: 'field' }, 'Signed by', signer)],
          ),
        ];
  const user = accounts.find(({ role }) => role === 'maker1')?.address ?? AGENT;
  place.replaceChildren(
    ...parts,
    panel('POST /info', '/info', queryExamples(coin, user), (query) => query),
  );
}

const place = document.getElementById('exchange');
if (place !== null)
  void show(place).catch((error: unknown) => {
    place.textContent = error instanceof Error ? error.message : String(error);
  });
