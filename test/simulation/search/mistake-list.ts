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
    patches: [
      {
        file: 'keepers/watcher/tokens/holdings.ts',
        from: 'if (tokens.length === 0 || rpc.endpoints.length === 1)',
        to: 'if (tokens.length < 100)',
      },
      {
        file: 'core/holdings.ts',
        from: 'const ENOUGH_VOTES = 2;',
        to: 'const ENOUGH_VOTES = 1;',
      },
    ],
  },
  {
    name: 'convicted not penalised',
    args: ['--lies', 'omitSecondLog,otherHash,emptyCall'],
    patches: [
      {
        file: 'keepers/chain/pool.ts',
        from: '        if (error instanceof RpcContradictionError) convict(atFault, error.message);',
        to: '        if (error instanceof RpcContradictionError) throw error;',
      },
    ],
  },
  {
    name: 'nonce 3000 too high believed',
    args: ['--lies', 'nonceTooHigh'],
    patches: [
      {
        file: 'keepers/chain/nonces.ts',
        from: '      if (first === before && !isDoubtful) {',
        to: '      if (first >= 0) {',
      },
      {
        file: 'keepers/chain/outbox.ts',
        from: '    if (gapsFilledMs.length >= MAX_GAP_TRANSFERS) return false;',
        to: '',
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
        from: '  await reverseEntries(tx, generation, reversed);\n',
        to: '',
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
        from: '      await writer.tx(steps.write, steps.read);',
        to: '      status.nextBlock = write.toBlock + 1;\n      last = write.blocks.at(-1)!;\n      await writer.tx(steps.write, steps.read);',
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
  {
    name: 'steps of the wall clock stop posting',
    patches: [
      {
        file: 'keepers/poster/poster.ts',
        from: ', monotonicMs = deps.nowMs } = deps;',
        to: ' } = deps;\n  const monotonicMs = deps.nowMs;',
      },
    ],
  },
  {
    name: 'order filled by a dead hash',
    patches: [
      { file: 'ledger/chain/reversals.ts', from: "  'settled_orders',\n", to: '' },
      { file: 'ledger/chain/reversals.ts', from: '  await reopenOrders(tx, orders);\n', to: '' },
    ],
  },
  {
    name: 'order sent below its minimum',
    patches: [
      {
        file: 'keepers/executor/transaction.ts',
        from: '    minAmountOut: quote.minBuyUnits,',
        to: '    minAmountOut: (quote.minBuyUnits * 99n) / 100n,',
      },
    ],
  },
  {
    name: 'head of one endpoint believed',
    args: ['--lies', 'futureHead,dearGas'],
    patches: [{ file: 'liquidity/eth.ts', from: 'if (eth.survey === undefined ||', to: 'if (eth !== null ||' }],
  },
  {
    name: 'orders sent without end',
    patches: [
      { file: 'keepers/executor/executor.ts', from: 'if (signed >= deps.maxSends) {', to: 'if (signed >= 1_000) {' },
    ],
  },
  {
    name: 'one token stops everything',
    patches: [
      {
        file: 'keepers/watcher/tokens/tokens.ts',
        from: '    if (error instanceof RpcResponseError) return null;\n',
        to: '',
      },
    ],
  },
];
