import type { Logger } from 'pino';
import type { CustodyKind, GenerationWrite } from '../../ledger/types.js';
import type { Market } from '../../core/types.js';

const CUSTODY: Readonly<Record<CustodyKind, string>> = {
  deposited: 'deposit',
  requested: 'withdrawal requested',
  settled: 'withdrawal settled',
  executed: 'withdrawal executed',
};

/** One line per event of a generation that has become durable; curves that landed at the level `debug`, since each block has some. */
export function narrate(logger: Logger, markets: readonly Market[], write: GenerationWrite): void {
  const { generation } = write;
  const pairOf = (market: number): string | undefined => markets[market]?.pair;
  for (const { pair } of write.listed) logger.info({ generation, pair }, 'market listed');
  for (const event of write.custody) {
    const { kind, maker, token, amountUnits, readyAtSec, blockNumber, txHash, logIndex } = event;
    const claim = readyAtSec === null ? {} : { readyAtSec };
    const place = { block: blockNumber, txHash, logIndex };
    logger.info({ generation, maker, token, amountUnits: `${amountUnits}`, ...claim, ...place }, CUSTODY[kind]);
  }
  for (const { market, seq, deadlineSec, blockNumber, txHash } of write.posts) {
    logger.debug({ generation, pair: pairOf(market), seq, deadlineSec, block: blockNumber, txHash }, 'curve landed');
  }
  for (const { market, seq, blockNumber, txHash } of write.seqResets ?? []) {
    logger.info({ generation, pair: pairOf(market), seq, block: blockNumber, txHash }, 'sequence numbers given back');
  }
  for (const { fill, decomposition } of write.fills) {
    const { fillSeq, curveSeq, side, taker, blockNumber, txHash, logIndex } = fill;
    logger.info(
      {
        generation,
        pair: pairOf(fill.market),
        fillSeq,
        curveSeq,
        direction: side === 'ask' ? 'buy' : 'sell',
        baseUnits: `${fill.baseUnits}`,
        quoteUnits: `${fill.quoteUnits}`,
        feeUnits: `${fill.feeUnits}`,
        residualUnits: `${decomposition.residualUnits}`,
        taker,
        legs: decomposition.legs.length,
        block: blockNumber,
        txHash,
        logIndex,
      },
      'fill',
    );
  }
  for (const { owner, nonce, amountInUnits, amountOutUnits, txHash } of write.settledOrders ?? []) {
    const amounts = { amountInUnits: `${amountInUnits}`, amountOutUnits: `${amountOutUnits}` };
    logger.info({ generation, owner, nonce: `${nonce}`, ...amounts, txHash }, 'signed order filled');
  }
  if (write.halt !== null) {
    logger.fatal({ generation, code: write.halt.code }, `ledger halted: ${write.halt.message}`);
  }
}
