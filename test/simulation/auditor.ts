/**
 * What must hold whatever happens. Reads the database past all code of the backend, and the chain as it truly is: by statements and sums of
 * its own, so that no mistake of the backend hides itself.
 */
import Database from 'better-sqlite3';
import type { Address, Hex } from '../../core/types.js';
import { decodeLog, parseRpcLog, type ChainEvent } from '../../keepers/chain/logs.js';
import type { KnownBlock } from './chain.js';
import type { Promises } from './clients.js';
import type { Backend } from './processes.js';
import type { Simulation } from './world.js';

/** What was known of the database at some commit. */
interface Mark {
  readonly opened: ReadonlySet<number>;
  readonly closed: ReadonlySet<number>;
  readonly generation: number;
  readonly haltNo: number;
  readonly reversals: number;
  readonly orderSeq: number;
}

export interface Auditor {
  /** Called for every commit, with the tables that have new rows; `afterStep` then looks. */
  committed(tables: ReadonlySet<string>): void;
  afterStep(): void;
  /** What processes say of themselves against what is so. */
  judgeReadiness(): void;
  /** What is known now. */
  mark(): Mark;
  /** Looks at nothing until `reopen`. */
  pause(): void;
  /** The database is another file from now on, in which nothing is known but what was at the mark. */
  reopen(path: string, mark: Mark): void;
  /** Ids of the signed orders that a database has. */
  swapsIn(path: string): ReadonlySet<string>;
  close(): void;
}

/** A ledger that says it is ready knows every block that has stood for so long. */
const READY_LAG_SEC = 25;
/** For so long after a reorganisation a process may not have seen it. */
const REORG_GRACE_MS = 30_000;

/**
 * How long the vault may hold more than is booked: a surplus is booked at most once a minute of a token, by the first scan after that, for which a
 * ledger that is ready has as long.
 */
const SURPLUS_MS = 60_000 + READY_LAG_SEC * 1_000;

/** More transfers to oneself than gaps that crashes and reorganisations leave. */
const MAX_GAPS = 40;

/** Each replacement pays a tenth more, from the base fee up to the ceiling. */
const MAX_PER_NONCE = 40;

/**
 * What a reorganisation may bring about, and how long after it. A settlement is mined again whatever becomes of the fills that it was for,
 * also by a process that has been away.
 */
const HALTS_OF_REORGS_MS: Readonly<Record<string, number>> = {
  canonical_mismatch: Number.POSITIVE_INFINITY,
  unbacked_claim: 120_000,
};

interface OrderEffect {
  type: string;
  oid?: number;
}

export function createAuditor(
  world: Simulation,
  backend: Backend,
  promises: Promises,
  reorganisedMs: () => number,
  path: string,
  /** Of which nobody says what the vault holds, so that nothing of it can be booked that no event explains. */
  isSilent: (token: Address) => boolean,
): Auditor {
  const { chain, record, scheduler } = world;
  let db = new Database(path, { readonly: true });
  let isDue = false;
  let isPaused = false;
  /** Tables with rows that nothing here has looked at. */
  const grown = new Set(['reversals', 'generations', 'order_log', 'halts']);
  let generation = 0;
  let haltNo = 0;
  let reversals = 0;
  let orderSeq = 0;
  let settlementNo = 0;
  /** When each settlement was first seen in the database. */
  const settledMs = new Map<number, number>();
  const surplusSinceMs = new Map<string, number>();
  const opened = new Set<number>();
  const closed = new Set<number>();
  const explained = new Set<number>();
  const statements = new Map<string, Database.Statement>();

  function rows<T>(sql: string, ...bindings: unknown[]): T[] {
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = db.prepare(sql)));
    return statement.all(...bindings) as T[];
  }

  const violate = (what: string): void => record.violate(`${scheduler.nowMs()} ${what}`);

  /** Events of a block, by the contracts that the backend reads. */
  function eventsOf(block: KnownBlock): { event: ChainEvent; txHash: Hex; logIndex: number }[] {
    const { contracts } = chain.setting.manifest;
    const { custodian, curveBook, entrypoint, orderSettler } = contracts;
    const ours = [custodian, curveBook, entrypoint, orderSettler].map((one) => one!.toLowerCase());
    return block.receipts
      .flatMap((receipt) => (receipt['logs'] as unknown[]).map(parseRpcLog))
      .filter(({ address }) => ours.includes(address))
      .flatMap((log) => {
        const event = decodeLog(log);
        return event === null ? [] : [{ event, txHash: log.txHash, logIndex: log.logIndex }];
      });
  }

  /** All that the ledger has adds up, and is what the vault has. */
  function auditBalances(): void {
    const sums = new Map<string, bigint>();
    const vault = new Map<string, bigint>();
    for (const row of rows<{ account: string; token: Address; balance_units: string }>(
      'select account, token, balance_units from balances',
    )) {
      const units = BigInt(row.balance_units);
      sums.set(row.token, (sums.get(row.token) ?? 0n) + units);
      if (row.account === 'vault') vault.set(row.token, units);
      const isMaker = row.account.startsWith('0x') && row.account !== chain.setting.address('owner');
      if (isMaker && units < 0n) violate(`overdrawn: ${row.account} has ${units} of ${row.token}`);
    }
    for (const [token, sum] of sums) if (sum !== 0n) violate(`conservation: rows of ${token} sum to ${sum}`);
    const [head] = rows<{ to_block: number; block_hash: Hex }>(
      'select to_block, block_hash from generations order by generation desc limit 1',
    );
    const [halt] = standingHalts();
    if (head === undefined || halt !== undefined) return;
    if (chain.at(head.to_block)?.hash !== head.block_hash) return;
    for (const [token, units] of vault) {
      const held = chain.held(token as Address, head.to_block);
      if (held < -units) violate(`conservation: the vault has ${held} of ${token}, the ledger ${-units}`);
      if (held <= -units || isSilent(token as Address)) surplusSinceMs.delete(token);
      else if (!surplusSinceMs.has(token)) surplusSinceMs.set(token, scheduler.nowMs());
      // What nobody explains waits to be booked until others say the same.
      const sinceMs = scheduler.nowMs() - (surplusSinceMs.get(token) ?? scheduler.nowMs());
      if (sinceMs > SURPLUS_MS)
        violate(`conservation: the vault has ${held} of ${token}, the ledger ${-units} for ${sinceMs} ms`);
    }
  }

  /** No claim is above its balance, but where a reorganisation took the balance, which a halt tells until the operator has lowered the claim. */
  function auditClaims(): void {
    const codes = standingHalts().map(({ code }) => code);
    if (codes.some((code) => code !== 'unbacked_claim')) return;
    for (const one of rows<{ maker: string; token: string; claim_units: string; balance_units: string | null }>(
      `select claims.maker, claims.token, claim_units, balance_units from claims
       left join balances on account = claims.maker and balances.token = claims.token`,
    )) {
      if (BigInt(one.claim_units) <= BigInt(one.balance_units ?? '0')) continue;
      if (codes.length === 0 || !isOfReorg(one))
        violate(`over-claim: ${one.maker} may take ${one.claim_units} of ${one.token} and has ${one.balance_units}`);
    }
  }

  /**
   * Whether the settlement that raised a claim was prepared before the chain, as far as anybody saw it, lost blocks. One that lowers it, as the
   * operator asks for until one lands, puts no claim above its balance, whenever it was prepared.
   */
  function isOfReorg({ maker, token }: { maker: string; token: string }): boolean {
    if (!mayFollowReorg('unbacked_claim')) return false;
    const raise = rows<{ no: number; amount_units: string; previous_units: string }>(
      `select settlement_no as no, amount_units, previous_units from settlements
       where maker = ? and token = ? order by settlement_no desc`,
      maker,
      token,
    ).find((one) => BigInt(one.amount_units) > BigInt(one.previous_units));
    const preparedMs = settledMs.get(raise?.no ?? 0) ?? Number.NEGATIVE_INFINITY;
    return preparedMs <= reorganisedMs() + REORG_GRACE_MS;
  }

  function noteSettlements(): void {
    for (const { no } of rows<{ no: number }>(
      'select settlement_no as no from settlements where settlement_no > ? order by settlement_no',
      settlementNo,
    )) {
      settledMs.set(no, scheduler.nowMs());
      settlementNo = no;
    }
  }

  const mayFollowReorg = (code: string): boolean =>
    scheduler.nowMs() - reorganisedMs() <= (HALTS_OF_REORGS_MS[code] ?? Number.NEGATIVE_INFINITY);

  const standingHalts = (): { halt_no: number; code: string; message: string }[] =>
    rows(
      `select halt_no, code, message from halts
       where halt_no > coalesce((select max(clears_halt_no) from operator_log), 0) and not exists (
         select 1 from reversals where reversals.clears_halt_no >= halts.halt_no
           and (halts.generation is null or halts.generation > reversals.kept_generation)) order by halt_no`,
    );

  function auditReversals(): void {
    const [{ count } = { count: 0 }] = rows<{ count: number }>('select count(*) as count from reversals');
    if (count === reversals) return;
    record.count('ledger reversed');
    reversals = count;
    // The ledger begins anew at an earlier block.
    surplusSinceMs.clear();
  }

  /** What was booked since, event by event. */
  function auditGenerations(): void {
    for (const one of rows<{ generation: number; from_block: number; to_block: number; block_hash: Hex }>(
      'select generation, from_block, to_block, block_hash from generations where generation > ? order by generation',
      generation,
    )) {
      generation = one.generation;
      record.count('generation booked');
      let block = chain.byHash(one.block_hash);
      if (block === undefined) {
        violate(`invented: generation ${one.generation} ends with block ${one.block_hash}, which nobody mined`);
        continue;
      }
      const blocks: KnownBlock[] = [];
      for (; block !== undefined && block.number >= one.from_block; block = chain.byHash(block.parentHash))
        blocks.push(block);
      compareEvents(one.generation, blocks.flatMap(eventsOf));
    }
  }

  function compareEvents(of: number, truth: { event: ChainEvent; txHash: Hex; logIndex: number }[]): void {
    const told = new Map<string, string>();
    for (const { event, txHash, logIndex } of truth) {
      const key = `${txHash}:${logIndex}`;
      if (event.type === 'swap') {
        told.set(
          key,
          `fill ${event.fillSeq} ${event.curveSeq} ${event.baseUnits} ${event.quoteUnits} ${event.feeUnits}`,
        );
        record.count('fill on-chain');
        record.count(`fill of ${event.marketId}`);
      } else if (['deposited', 'requested', 'settled', 'executed'].includes(event.type) && 'maker' in event) {
        told.set(key, `${event.type} ${event.maker} ${event.token} ${saturated(event.amountUnits)}`);
        record.count(`${event.type} on-chain`);
      } else if (event.type === 'orderFilled') {
        const { owner, nonce, amountInUnits, amountOutUnits, feeUnits } = event;
        told.set(key, `order ${owner} ${nonce} ${amountInUnits} ${amountOutUnits} ${feeUnits}`);
      } else if (event.type === 'posted' || event.type === 'touched') {
        record.count(`${event.type} on-chain`);
        record.count(`curve of ${event.marketId}`);
      }
    }
    const booked = new Map<string, string>();
    for (const row of rows<Record<string, string | number>>(
      `select tx_hash, log_index, fill_seq, curve_seq, base_units, quote_units, fee_units from fills where generation = ?`,
      of,
    ))
      booked.set(
        `${row['tx_hash']}:${row['log_index']}`,
        `fill ${row['fill_seq']} ${row['curve_seq']} ${row['base_units']} ${row['quote_units']} ${row['fee_units']}`,
      );
    for (const row of rows<Record<string, string | number>>(
      'select tx_hash, log_index, kind, maker, token, amount_units from custody_events where generation = ?',
      of,
    ))
      booked.set(
        `${row['tx_hash']}:${row['log_index']}`,
        `${row['kind']} ${row['maker']} ${row['token']} ${row['amount_units']}`,
      );
    for (const row of rows<Record<string, string | number>>(
      `select tx_hash, log_index, owner, nonce, amount_in_units, amount_out_units, fee_units
       from settled_orders where generation = ?`,
      of,
    ))
      booked.set(
        `${row['tx_hash']}:${row['log_index']}`,
        `order ${row['owner']} ${row['nonce']} ${row['amount_in_units']} ${row['amount_out_units']} ${row['fee_units']}`,
      );
    for (const [key, what] of told)
      if (booked.get(key) !== what) violate(`lost: ${what} (${key}) is booked as ${booked.get(key) ?? 'nothing'}`);
    for (const [key, what] of booked) if (!told.has(key)) violate(`invented: ${what} (${key})`);
    const [sum] = rows<{ missing: number }>(
      `select count(*) as missing from fills where generation = ? and missing_base_units <> '0'`,
      of,
    );
    if (sum !== undefined && sum.missing > 0) violate(`unexplained: a fill of generation ${of} has no book behind it`);
  }

  function auditOrders(): void {
    for (const row of rows<{ order_seq: number; effects: string }>(
      'select order_seq, effects from order_log where order_seq > ? order by order_seq',
      orderSeq,
    )) {
      orderSeq = row.order_seq;
      const parsed = JSON.parse(row.effects) as OrderEffect[] | { effects: OrderEffect[] };
      for (const { type, oid } of Array.isArray(parsed) ? parsed : parsed.effects) {
        if (oid === undefined) continue;
        if (type === 'open') {
          if (opened.has(oid)) violate(`order ${oid} is opened twice`);
          opened.add(oid);
        } else if (type === 'close') closed.add(oid);
      }
    }
  }

  function auditPromises(): void {
    for (const oid of promises.placed.keys()) {
      if (explained.has(oid)) continue;
      explained.add(oid);
      if (!opened.has(oid)) violate(`acknowledged order ${oid} is not in the log`);
    }
    for (const oid of promises.canceled)
      if (!closed.has(oid)) violate(`acknowledged cancel of ${oid} is not in the log`);
  }

  /** Nothing is paid for twice, and nothing is sent for nothing. */
  function auditOutbox(): void {
    const [gaps] = rows<{ count: number }>(`select count(*) as count from outbox where tx_key like 'gap:%'`);
    if (gaps !== undefined && gaps.count > MAX_GAPS) violate(`wasted: ${gaps.count} transfers that fill gaps`);
    for (const one of rows<{ tx_key: string; count: number }>(
      `select tx_key, count(distinct nonce) as count from outbox
       where tx_key like 'settle:%' or tx_key like 'post:%' or tx_key like 'order:%' group by tx_key having count(distinct nonce) > 1`,
    ))
      violate(`sent twice: ${one.tx_key} has ${one.count} nonces`);
    const [most] = rows<{ signer: string; nonce: number; count: number }>(
      'select signer, nonce, count(*) as count from outbox group by signer, nonce order by count desc limit 1',
    );
    record.most('transactions of a nonce', most?.count ?? 0);
    if (most !== undefined && most.count > MAX_PER_NONCE)
      violate(`replaced without end: nonce ${most.nonce} of ${most.signer} has ${most.count} transactions`);
    for (const one of rows<{ order_id: string; count: number }>(
      `select order_id, count(*) as count from swap_attempts join
         (select distinct tx_key from outbox) as signed on signed.tx_key = swap_attempts.tx_key
       group by order_id having count(*) > ${backend.config.SWAP_MAX_SENDS}`,
    ))
      violate(`tried without end: order ${one.order_id} was sent ${one.count} times`);
  }

  function auditHalts(): void {
    for (const { halt_no, code, message } of rows<{ halt_no: number; code: string; message: string }>(
      'select halt_no, code, message from halts where halt_no > ? order by halt_no',
      haltNo,
    )) {
      haltNo = halt_no;
      // Nothing is booked while it stands.
      surplusSinceMs.clear();
      record.count(`halt ${code}`);
      record.trace(() => `halt ${code}: ${message}`);
      // Nobody takes anything from this vault, and every curve and settlement is the backend's own.
      if (!mayFollowReorg(code)) violate(`false halt ${code}: ${message}`);
    }
  }

  return {
    committed(tables) {
      isDue = true;
      for (const table of tables) grown.add(table);
    },
    afterStep() {
      if (!isDue || isPaused) return;
      isDue = false;
      const before = generation;
      if (grown.has('reversals')) auditReversals();
      if (grown.has('generations')) auditGenerations();
      if (grown.has('order_log')) auditOrders();
      auditPromises();
      if (grown.has('halts')) auditHalts();
      grown.clear();
      if (generation !== before) auditOutbox();
      if (generation !== before) auditBalances();
      noteSettlements();
      if (generation !== before) auditClaims();
    },
    judgeReadiness() {
      const nowMs = scheduler.nowMs();
      for (const place of backend.places) {
        const { actor, readiness, status } = place;
        if (actor === null || readiness === null || status === null || actor.frozenUntilMs > nowMs) continue;
        if (actor.clockAheadMs !== 0) continue;
        const { ready } = scheduler.as(actor, readiness);
        if (!ready) continue;
        record.count('ready');
        const { nextBlock, scannedBlockHash } = status();
        const isCanonical = chain.at(nextBlock - 1)?.hash === scannedBlockHash;
        if (!isCanonical && nowMs - reorganisedMs() > REORG_GRACE_MS)
          violate(`readiness: ${place.name} is ready at block ${scannedBlockHash}, which the chain has not`);
        // Since when the first block stands that it does not know.
        const missing = chain.at(nextBlock);
        const lagSec = missing === undefined ? 0 : nowMs / 1_000 - missing.timestampSec;
        if (lagSec > READY_LAG_SEC) violate(`readiness: ${place.name} is ready and ${lagSec} s behind`);
      }
    },
    mark: () => ({ opened: new Set(opened), closed: new Set(closed), generation, haltNo, reversals, orderSeq }),
    pause() {
      isPaused = true;
    },
    swapsIn(copy) {
      const other = new Database(copy, { readonly: true });
      const found = other.prepare<[], { id: string }>('select id from swap_orders').all();
      other.close();
      return new Set(found.map(({ id }) => id));
    },
    reopen(next, mark) {
      db.close();
      statements.clear();
      ({ generation, haltNo, reversals, orderSeq } = mark);
      for (const [own, known] of [
        [opened, mark.opened],
        [closed, mark.closed],
      ] as const) {
        own.clear();
        for (const oid of known) own.add(oid);
      }
      explained.clear();
      surplusSinceMs.clear();
      // Of an earlier time than any that follows.
      settledMs.clear();
      isDue = true;
      isPaused = false;
      for (const table of ['reversals', 'generations', 'order_log', 'halts']) grown.add(table);
      db = new Database(next, { readonly: true });
      [{ no: settlementNo } = { no: 0 }] = rows<{ no: number }>(
        'select coalesce(max(settlement_no), 0) as no from settlements',
      );
    },
    close: () => void db.close(),
  };
}

const LIMIT = 2n ** 128n - 1n;
const saturated = (units: bigint): bigint => (units > LIMIT ? LIMIT : units);
