/**
 * Fields of the read API's answers that have one value in every state of a ledger that trades at random, grouped by the reason. Other tests see those
 * change that random trading does not change. A path begins with the endpoint; [] is any item of a list. A list is named if it is always empty.
 */
export const CONSTANT_ANSWERS: Readonly<Record<string, readonly string[]>> = {
  'Of the deployment, which stays what it is: deployment.test.ts has others, checkpoints.test.ts those of a checkpoint.':
    [
      '/health.chain_id',
      '/health.deployment_id',
      '/health.version',
      '/v0/checkpoints/latest.deployment_id',
      '/v0/deployment.chain_id',
      '/v0/deployment.contracts.custodian.abi[].anonymous',
      '/v0/deployment.contracts.custodian.abi_hash',
      '/v0/deployment.contracts.custodian.address',
      '/v0/deployment.deployment_block',
      '/v0/deployment.deployment_id',
      '/v0/deployment.explorer_url',
      '/v0/deployment.rpc_url',
      '/v0/deployment.sandbox',
      '/v0/deployment.version',
      '/v0/deployment.wrapped_native',
      '/v0/status.chain_id',
      '/v0/status.deployment_id',
      '/v0/status.version',
      '/v0/makers/{maker}/limits.ledger.capital_flow_start_block',
      '/v0/makers/{maker}/limits.ledger.deployment_id',
    ],
  'No keeper runs here that anything could wait for: status.test.ts has withdrawals and orders that wait.': [
    '/v0/status.keepers[].waiting',
  ],
  'Nothing is wrong with what this world books: status.test.ts has what nobody owns.': [
    '/v0/status.ledger.holdings[].suspense',
    '/v0/status.ledger.holdings[].unattributed',
    '/v0/status.ledger.suspense.executions',
    '/v0/status.ledger.suspense.fills',
    '/v0/status.ledger.suspense.settlements',
  ],
  'No transaction is sent in this world: status.test.ts and accounts.test.ts have them.': [
    '/v0/operator/summary.gas.fills',
    '/v0/operator/summary.gas.posts',
    '/v0/operator/summary.gas.settlements',
    '/v0/operator/summary.pairs[].days[].gas.fills',
    '/v0/operator/summary.pairs[].days[].gas.posts',
    '/v0/operator/summary.pairs[].days[].gas.settlements',
    '/v0/operator/summary.pairs[].days[].gas_quote',
    '/v0/operator/summary.pairs[].total.gas.fills',
    '/v0/operator/summary.pairs[].total.gas.posts',
    '/v0/operator/summary.pairs[].total.gas.settlements',
    '/v0/operator/summary.pairs[].total.gas_quote',
    '/v0/status.keepers[].gas.budget_per_hour',
    '/v0/status.keepers[].gas.signer',
    '/v0/status.keepers[].gas.spent_last_hour',
    '/v0/status.transactions',
  ],
  'It answers, or it does not.': ['/health.status'],
  'Both markets of this world have one base token and one grid: read.test.ts has others.': [
    '/v0/deployment.markets[].base',
    '/v0/deployment.markets[].lot_size',
    '/v0/deployment.markets[].tick_size',
    '/v0/pairs[].base_token',
    '/v0/pairs[].lot_size',
    '/v0/pairs[].tick_size',
  ],
  'Only the first frame has it.': ['/ws fills.isSnapshot'],
  'The interval is the one that was asked for.': ['/v0/makers/{maker}/performance.interval'],
  'Nobody withdraws in this world, and all pay in at its first block: read.test.ts has every state of a withdrawal.': [
    '/v0/checkpoints/latest.makers[].balances[].reserved',
    '/v0/checkpoints/latest/proof.balances[].reserved',
    '/v0/makers/{maker}/limits.ledger.balances[].reserved',
    '/v0/makers/{maker}/withdrawals.events[].block_number',
    '/v0/makers/{maker}/withdrawals.events[].event',
    '/v0/makers/{maker}/withdrawals.events[].ready_at_sec',
    '/v0/makers/{maker}/withdrawals.withdrawals[].claim',
    '/v0/makers/{maker}/withdrawals.withdrawals[].outstanding',
    '/v0/makers/{maker}/withdrawals.withdrawals[].pending',
    '/v0/makers/{maker}/withdrawals.withdrawals[].pending_since_block',
    '/v0/makers/{maker}/withdrawals.withdrawals[].ready_at_sec',
    '/v0/makers/{maker}/withdrawals.withdrawals[].requests_short',
    '/v0/makers/{maker}/withdrawals.withdrawals[].settles_from_ms',
    '/v0/makers/{maker}/withdrawals.withdrawals[].state',
  ],
  'A number is final once it is attributed, and these are; read.test.ts asks for one that is not.': [
    '/v0/fills/{fill_seq}/decomposition.status',
  ],
  'Curves of this world are each cut after all fills before them, from books without exact steps: what is carried over is in publication.test.ts and chain tests of the curve.':
    [
      '/v0/curves/{pair}/{curve_seq}.prepared.exact_ask_knots',
      '/v0/curves/{pair}/{curve_seq}.prepared.exact_bid_knots',
      '/v0/curves/{pair}/{curve_seq}.raised_ask',
      '/v0/curves/{pair}/{curve_seq}.raised_bid',
      '/v0/curves/{pair}/{curve_seq}.snapshot.ask_volume',
      '/v0/curves/{pair}/{curve_seq}.snapshot.bid_volume',
    ],
  'Orders of this world have no client order ids: fill-cloids.test.ts has them.': [
    '/v0/makers/{maker}/fills.fills[].cloid',
  ],
  'Nobody signs an order in this world: history.test.ts has signed ones.': ['/v0/takers/{address}/swaps.swaps[].kind'],
  "A reorganisation of this world takes no deposit back: status.test.ts has one that does, and its time is the stand-in's.":
    [
      '/v0/operator/halts.reversals[].event_count',
      '/v0/operator/halts.reversals[].events',
      '/v0/operator/halts.reversals[].time_ms',
      '/v0/status.last_reversal.event_count',
      '/v0/status.last_reversal.events',
      '/v0/status.last_reversal.time_ms',
    ],
  'Nothing halts this world: status.test.ts has halts of both kinds.': ['/v0/operator/halts.halts'],
};

/** Endpoints that are left out here, each with the test that checks its answers. */
export const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'Queries of the wire: constant-fields.test.ts asks every type of them.': ['post /info'],
  'Replies to actions say what became of the action: order-actions.test.ts and gateway.test.ts.': ['post /exchange'],
  'Of a process, not of the ledger: ready.test.ts and standby.test.ts have both answers of each.': [
    'get /active',
    'get /live',
    'get /ready',
  ],
  'Of the swap API: swap-constants.test.ts asks every endpoint of it.': [
    'delete /api/v1/orders/{orderId}',
    'get /api/v1/orders',
    'get /api/v1/orders/{orderId}',
    'get /api/v1/price',
    'get /api/v1/tokens',
    'post /api/v1/orders',
    'post /api/v1/quote',
  ],
};

/** Frames with the same contents as answers of the read API; constant-fields.test.ts has the others. */
export const PLATFORM_FRAMES: readonly string[] = ['curves', 'fills', 'status'];

/** Frames with the same contents as answers of the swap API; swap-orders-stream.test.ts compares them. */
export const SWAP_FRAMES: readonly string[] = ['swapOrders'];

/** The same of answers of the swap API. A path begins with method and path of the endpoint, after `/api/v1`. */
export const CONSTANT_SWAP_ANSWERS: Readonly<Record<string, readonly string[]>> = {
  'Of the chain and of the deployment: swap-api.test.ts has tokens of other chains.': [
    'get /tokens[].chainId',
    'post /quote.approval.typedData.domain.chainId',
    'post /quote.approval.typedData.message.spender',
    'post /quote.permit2.allowanceTarget',
    'post /quote.permit2.spender',
    'post /quote.permit2.typedData.domain.chainId',
    'post /quote.permit2.typedData.domain.verifyingContract',
    'post /quote.permit2.typedData.message.spender',
  ],
  'Of what is signed: Permit2 names itself and its types, and there is one scheme.': [
    'post /quote.approval.typedData.primaryType',
    'post /quote.permit2.typedData.domain.name',
    'post /quote.permit2.typedData.primaryType',
    'post /quote.permit2.witnessTypeString',
    'post /quote.quote.signingScheme',
  ],
  'An order is filled whole or not at all.': ['post /quote.quote.partiallyFillable'],
  'Of the one token that takes approvals here, by owners who sign their first one, for all that it may be: swap-approval.test.ts has others.':
    [
      'post /quote.approval.typedData.domain.name',
      'post /quote.approval.typedData.domain.verifyingContract',
      'post /quote.approval.typedData.domain.version',
      'post /quote.approval.typedData.message.nonce',
      'post /quote.approval.typedData.message.value',
    ],
  'This world has one market: paths.test.ts has orders over two.': [
    'get /orders.orders[].makers[].pair',
    'get /orders/{orderId}.makers[].pair',
  ],
  'An order that was taken back has failed; one that is not is refused: swap-cancel.test.ts.': [
    'delete /orders/{orderId}.status',
  ],
};
