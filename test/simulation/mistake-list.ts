/** Each is small: one or a few pieces of text, and what stands in their place. */

export interface Mistake {
  name: string;
  patches: readonly { file: string; from: string; to: string }[];
  /** How the simulator is started to look for it. */
  args?: readonly string[];
}

export const MISTAKES: readonly Mistake[] = [
  {
    name: 'omitted second log',
    args: ['--lies', 'omitSecondLog'],
    patches: [
      { file: 'keepers/watcher/scan/scan.ts', from: 'events: decodeAll(proven) }', to: 'events: decodeAll(first) }' },
      {
        file: 'keepers/watcher/scan/scan.ts',
        from: 'function compare(\n  rpc: Rpc,',
        to: 'function compare(\n  rpc: Rpc | null,',
      },
      {
        file: 'keepers/watcher/scan/scan.ts',
        from: '  if (wrong === undefined) return;',
        to: '  if (wrong !== rpc) return;',
      },
    ],
  },
  {
    name: 'balance 5 too high booked',
    args: ['--lies', 'balanceTooHigh'],
    patches: [],
  },
  {
    name: 'convicted not penalised',
    args: ['--lies', 'omitSecondLog,otherHash,emptyCall'],
    patches: [
      {
        file: 'keepers/chain/pool.ts',
        from: '  function convict(one: Endpoint, problem: string): void {',
        to: '  function convict(one: Endpoint, problem: string): void {\n    if (one.failures >= 0) return;',
      },
    ],
  },
  {
    name: 'nonce 3000 too high believed',
    args: ['--lies', 'nonceTooHigh'],
    patches: [
      {
        file: 'keepers/chain/nonces.ts',
        from: '      if (first === before) {',
        to: '      if (first >= 0) {',
      },
    ],
  },
  {
    name: 'no fence for a zombie',
    patches: [{ file: 'ledger/db/writers.ts', from: 'if (held !== 1)', to: 'if (held > 1)' }],
  },
  {
    name: 'sent again by another nonce',
    patches: [
      {
        file: 'keepers/chain/outbox.ts',
        from: 'await broadcast(await signAndStore(request, nonce, newest));',
        to: 'await broadcast(await signAndStore(requestOf(newest), nonce + 1, undefined));',
      },
    ],
  },
  {
    name: 'fills kept after a reorg',
    patches: [
      {
        file: 'ledger/chain/reversals.ts',
        from: '  await reverseEntries(tx, generation, generationsToReverse(reversals, request));\n',
        to: '  void generationsToReverse(reversals, request);\n',
      },
    ],
  },
  {
    name: 'settled above the balance',
    patches: [
      {
        file: 'core/claim-state.ts',
        from: 'return maxBig(minBig(outstandingUnits, balanceUnits), 0n);',
        to: 'return maxBig(minBig(outstandingUnits, 10n * balanceUnits), 0n);',
      },
      {
        file: 'core/claim-state.ts',
        from: 'return worstUnits <= balanceUnits - settledUnits || worstUnits === 0n;',
        to: 'return worstUnits + settledUnits + balanceUnits >= 0n;',
      },
    ],
  },
  {
    name: 'lost acknowledged order',
    patches: [
      {
        file: 'server/orders/group-commit.ts',
        from: 'if (landed.length > 0 && sameRows(landed, rowsOf(plans))) {',
        to: 'if (plans.length > 0 || sameRows(landed, rowsOf(plans))) {',
      },
    ],
  },
  {
    name: 'answered before the commit',
    patches: [
      {
        file: 'server/orders/group-commit.ts',
        from: '        if (rows.length > 0) await steps.append(tx, rows);',
        to: '        group.forEach((waiting, index) => waiting.resolve(plans[index]!.answer));\n        if (rows.length > 0) await steps.append(tx, rows);',
      },
    ],
  },
  {
    name: 'cursor before the events',
    patches: [
      {
        file: 'keepers/watcher/watcher.ts',
        from: '      await writer.tx((tx) => commitGeneration(tx, db, write, { operator: deps.operator }));',
        to: '      status.nextBlock = write.toBlock + 1;\n      last = write.blocks.at(-1)!;\n      await writer.tx((tx) => commitGeneration(tx, db, write, { operator: deps.operator }));',
      },
      {
        file: 'keepers/watcher/watcher.ts',
        from: '      status.failedWrite = true;\n      mustReload = true;',
        to: '      status.failedWrite = true;',
      },
    ],
  },
  {
    name: 'stale and ready',
    patches: [
      {
        file: 'keepers/watcher/status.ts',
        from: 'export const MAX_LEDGER_AGE_MS = 5_000;',
        to: 'export const MAX_LEDGER_AGE_MS = 5_000_000;',
      },
      {
        file: 'keepers/watcher/status.ts',
        from: 'export const MAX_HEAD_AGE_MS = 10_000;',
        to: 'export const MAX_HEAD_AGE_MS = 10_000_000;',
      },
    ],
  },
  {
    name: 'half of a batch of logs',
    patches: [
      {
        file: 'keepers/watcher/derive/derive.ts',
        from: '        draft.custody.push(custodyEvent(log, event, context.claims));\n',
        to: "        if (event.type === 'requested' && log.logIndex > 2) break;\n        draft.custody.push(custodyEvent(log, event, context.claims));\n",
      },
    ],
  },
];
