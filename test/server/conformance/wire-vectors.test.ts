import { readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { migrate, openDb } from '../../../ledger/db/db.js';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import type { Db } from '../../../ledger/types.js';
import type { Address } from '../../../core/types.js';
import { addGeneration, deposit, freshDatabase, operate, post, startGateway } from '../../support/gateway.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

interface Vector {
  name: string;
  signer: Address;
  action: { type: string } & Record<string, unknown>;
  nonce: number;
  vaultAddress?: Address | null;
  expiresAfter?: number | null;
  isTestnet?: boolean;
  signature?: { r: string; s: string; v: number };
}

interface Trap {
  name: string;
  baseVector?: string;
  wireAction?: object;
  wireP?: string;
  recovered?: string;
}

interface Vectors {
  keys: { master: { address: Address }; agent: { address: Address } };
  l1: Vector[];
  userSigned: Vector[];
  pythonSdkPublished: Vector[];
  traps: Trap[];
}

const file = new URL('../../fixtures/wire-vectors.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;
const MASTER = vectors.keys.master.address.toLowerCase() as Address;

/** As the Python and Rust clients print them: integers, so that leading zeros vanish. */
const short = (hex: string): string => hex.replace(/^0x0+/, '0x');

const bodyOf = ({ action, nonce, signature, vaultAddress, expiresAfter }: Vector) => ({
  action,
  nonce,
  signature: signature === undefined ? undefined : { r: short(signature.r), s: short(signature.s), v: signature.v },
  vaultAddress: vaultAddress ?? null,
  expiresAfter: expiresAfter ?? null,
});

/** What the venue answers to each kind of request, by the name of its recording; the first that fits counts. */
const ANSWERS: readonly [RegExp, RegExp][] = [
  [/^order-ioc/, /"error":"ioc_unsupported: Order could not immediately match/],
  [/^order-reduceonly/, /"error":"reduce_only_unsupported: Reduce-only is invalid for spot trading\."/],
  [/^order-trigger-to/, /"error":"trigger_unsupported: Trigger orders are not supported/],
  [/^order-(tpsl|priority)-grouping/, /"err","response":"grouping_unsupported: /],
  [/^order-builder-f10/, /"err","response":"builder_fee_unsupported: Builder fee has not been approved\."/],
  [/^order-perp/, /"error":"unknown_asset: Unknown asset\. asset=1"/],
  [
    /^order-vault/,
    /"err","response":"vault_unsupported: Vault not registered: 0x1719884eb866cb12b2287399b15f7db5e7d775ea"/,
  ],
  [
    /^(evmUserModify|setReferrer|ccxt-approveBuilderFee)/,
    /"err","response":"unsupported_action: \w+ is not supported"/,
  ],
  [/^modify-always-place/, /^\{"status":"ok","response":\{"type":"default"\}\}$/],
  [/^batchModify-always-place/, /"type":"order","data":\{"statuses":\[\{"resting":\{"oid":1\}\}\]\}/],
  [/^modify/, /"err","response":"order_not_open: Cannot modify canceled or filled order/],
  [/^(ccxt-)?batchModify/, /"statuses":\[(\{"error":"order_not_open: [^"]+"\},?)+\]/],
  [/^(ccxt-)?cancel/, /"type":"cancel","data":\{"statuses":\[(\{"error":"order_not_found: [^"]+"\},?)+\]/],
  [/^(ccxt-)?(scheduleCancel|noop)|^noop/, /^\{"status":"ok","response":\{"type":"default"\}\}$/],
  [/^approveAgent-revoke/, /"err","response":"agent_not_found: /],
  [/^approveAgent/, /^\{"status":"ok","response":\{"type":"default"\}\}$/],
  [
    /^(ccxt-)?order/,
    /"type":"order","data":\{"statuses":\[(\{"resting":\{"oid":\d+(,"cloid":"0x[0-9a-f]{32}")?\}\},?)+\]/,
  ],
];

/** The Python recordings name perpetuals, which are refused entry by entry once the signer is known. */
const PYTHON_ANSWERS: readonly [RegExp, RegExp][] = [
  [/^order/, /"statuses":\[\{"error":"unknown_asset: Unknown asset\. asset=1"\}\]/],
  [/^scheduleCancel/, /^\{"status":"ok","response":\{"type":"default"\}\}$/],
];

const answerTo = (name: string, answers: typeof ANSWERS): RegExp => {
  const found = answers.find(([pattern]) => pattern.test(name));
  if (found === undefined) throw new Error(`no answer for ${name}`);
  return found[1];
};

/** The venue of the recordings, anew each time: a copy of a file on SQLite; on PostgreSQL an order log that is empty again. */
async function createVenues(kind: 'sqlite' | 'pg'): Promise<{ open: () => Promise<Db>; dispose: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'curvebook-vectors-'));
  const file = (name: string) => openDb(`sqlite:${join(folder, name)}`);
  const pg = kind === 'pg' ? await freshDatabase('pg') : null;
  const db = await (pg === null ? file('template.sqlite') : pg.open());
  await migrate(db);
  const entries = [
    ...deposit('weth', MASTER, WETH.address, 10n ** 21n),
    ...deposit('usdc', MASTER, USDC.address, 10n ** 13n),
  ];
  await addGeneration(db, { listed: [WETH_USDC, WETH_DAI], entries });
  await operate(db, 'approve', MASTER);
  await db.close();
  let copies = 0;
  return {
    async open() {
      if (pg === null) {
        copies += 1;
        await copyFile(join(folder, 'template.sqlite'), join(folder, `${copies}.sqlite`));
        return file(`${copies}.sqlite`);
      }
      const emptied = await pg.open();
      await emptied.knex('order_log').delete();
      return emptied;
    },
    async dispose() {
      await pg?.dispose();
      await rm(folder, { recursive: true });
    },
  };
}

const kinds: ('sqlite' | 'pg')[] = process.env.DATABASE_URL?.startsWith('postgres') ? ['sqlite', 'pg'] : ['sqlite'];
kinds.forEach(declareOn);

function declareOn(kind: 'sqlite' | 'pg'): void {
  describe(`recorded requests over HTTP on ${kind}`, () => {
    let venues: Awaited<ReturnType<typeof createVenues>>;

    before(async () => {
      venues = await createVenues(kind);
    });
    after(() => venues.dispose());

    /** Sends requests to a venue of their own, one after the other, at the time of the first one's nonce. */
    async function send(
      bodies: readonly ({ nonce: number } & Record<string, unknown>)[],
      sources: readonly ('a' | 'b')[] = ['a', 'b'],
    ) {
      const db = await venues.open();
      const running = await startGateway(db, undefined, { sources });
      running.time.nowMs = () => (bodies[0]?.nonce ?? 0) + 1;
      try {
        let text = '';
        for (const body of bodies) text = (await post(`${running.url}/exchange`, body)).text;
        return { text, rows: await readOrderRows(db.knex, { after: 0, limit: 10 }) };
      } finally {
        await running.stop();
        await db.close();
      }
    }

    const recorded = (name: string): Vector => {
      const found = [...vectors.l1, ...vectors.userSigned].find((vector) => vector.name === name);
      if (found === undefined) throw new Error(`no recording ${name}`);
      return found;
    };
    const trap = (name: string): Trap => {
      const found = vectors.traps.find((one) => one.name === name);
      if (found === undefined) throw new Error(`no trap ${name}`);
      return found;
    };
    const SIGNER_UNKNOWN = /unknown_signer|unknown_account|bad_signature/;

    it('covers the whole recording', () => {
      const { l1, userSigned, pythonSdkPublished, traps } = vectors;
      expect([l1, userSigned, pythonSdkPublished, traps].map((list) => list.length)).to.deep.equal([63, 19, 15, 6]);
    });

    for (const vector of [...vectors.l1, ...vectors.userSigned].filter(({ name }) => name !== 'order-by-agent')) {
      it(`answers ${vector.name}`, async () => {
        const { text, rows } = await send([bodyOf(vector)]);
        expect(text).to.match(answerTo(vector.name, ANSWERS)).and.not.match(SIGNER_UNKNOWN);
        const signers = rows.map((row) => [row.maker, row.signer, row.nonce]);
        const stored = !/^(evmUserModify|setReferrer|order-vault|ccxt-approveBuilderFee)/.test(vector.name);
        expect(signers).to.deep.equal(stored ? [[MASTER, vector.signer.toLowerCase(), vector.nonce]] : []);
      });
    }

    it('answers order-by-agent once the agent is approved', async () => {
      const body = bodyOf(recorded('order-by-agent'));
      expect((await send([body])).text).to.match(/unknown_signer: User or API Wallet 0x1563915e.* does not exist\./);
      const { text, rows } = await send([bodyOf(recorded('approveAgent-unnamed/mainnet')), body]);
      expect(text).to.match(/"resting":\{"oid":1\}/);
      expect(rows.at(-1)).to.include({ maker: MASTER, signer: vectors.keys.agent.address.toLowerCase() });
    });

    vectors.pythonSdkPublished.forEach((vector, index) => {
      it(`answers ${vector.name} of the Python SDK's own tests (${index + 1})`, async () => {
        const { text, rows } = await send([bodyOf(vector)]);
        if (vector.name.startsWith('dummy')) expect(text).to.match(/action\.type: is not a known action/);
        else if (vector.signature === undefined) expect(text).to.match(/signature/);
        else {
          expect(text).to.match(answerTo(vector.name, PYTHON_ANSWERS));
          expect(rows[0]).to.include({ maker: MASTER, nonce: vector.nonce });
        }
      });
    });

    it('takes what the client hyperliquid 1.7.7 signs as nil, sent as null or not at all', async () => {
      const nonce = 1_700_000_000_000;
      const cleared = {
        r: '0xed7c0bcfc56aec352f573e61ea69a0ce9475ff0eb1ed98e761eeff254836b018',
        s: '0x7103d5fd57139ab0167992a221f257ab8f76b6ea8da2cebd00f2bedeaa865374',
        v: 27,
      };
      for (const action of [{ type: 'scheduleCancel', time: null }, { type: 'scheduleCancel' }]) {
        const { text, rows } = await send([{ action, nonce, signature: cleared }]);
        expect(text).to.equal('{"status":"ok","response":{"type":"default"}}');
        expect(rows[0]).to.deep.include({ maker: MASTER, effects: [{ type: 'schedule', timeMs: null }] });
      }
      const order = { a: 10000, b: true, p: '2500.25', s: '0.5', r: false, t: { limit: { tif: 'Gtc' } }, c: null };
      const signature = {
        r: '0xbc6ffbe35848c2f3411f341cc32cccc8575bcde6194f2ddfc8ddfa33ad902c09',
        s: '0x7451dd8db33825712158db2e429dbd563b5f69afb75fee5ec29cc8e7ebbb0bb3',
        v: 28,
      };
      const placed = await send([{ action: { type: 'order', orders: [order], grouping: 'na' }, nonce, signature }]);
      expect(placed.text).to.match(/"statuses":\[\{"resting":\{"oid":1\}\}\]/);
    });

    it('is not caught by the traps', async () => {
      const base = bodyOf(recorded('order-gtc-cloid/mainnet'));
      const resting = /"resting":\{"oid":1,"cloid":"0x00112233445566778899aabbccddeeff"\}/;
      // Checked as the other network, an unrelated address comes out.
      const other = await send([base], ['b']);
      expect(other.text).to.contain(
        `User or API Wallet ${trap('verified-as-other-network').recovered} does not exist.`,
      );
      const shuffled = { ...base, action: trap('json-key-order-shuffled').wireAction };
      expect((await send([shuffled])).text).to.match(resting);
      const padded = structuredClone(base) as unknown as { action: { orders: { p: string }[] }; nonce: number };
      padded.action.orders[0]!.p = trap('trailing-zero-price').wireP ?? '';
      expect((await send([padded])).text).to.match(resting);
      expect((await send([{ ...base, expiresAfter: null, vaultAddress: null }])).text).to.match(resting);
      expect((await send([{ ...base, expiresAfter: undefined, vaultAddress: undefined }])).text).to.match(resting);
      // Numbers beyond 2^32, and leading zeros of r and s, are part of the recordings above.
      expect((await send([bodyOf(recorded('scheduleCancel-time/mainnet'))])).text).to.match(/"ok"/);
      const signatures = [...vectors.l1, ...vectors.userSigned].flatMap(({ signature }) => [
        signature?.r,
        signature?.s,
      ]);
      expect(signatures.filter((hex) => short(hex ?? '').length < 66).length).to.be.greaterThan(3);
    });
  });
}
