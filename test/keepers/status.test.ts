import { expect } from 'chai';
import {
  judgeReadiness,
  MAX_CLOCK_SKEW_MS,
  MAX_HEAD_AGE_MS,
  MAX_LEDGER_AGE_MS,
  type WatcherStatus,
} from '../../keepers/watcher/status.js';

const NOW = 1_700_000_000_000;

function healthy(overrides: Partial<WatcherStatus> = {}): WatcherStatus {
  return {
    inventoryRevision: 3,
    durableInventoryRevision: 3,
    nextBlock: 11,
    scannedBlockHash: '0xaa',
    observedHead: 10,
    observedHeadTimestampMs: NOW - 1_000,
    lastSuccessfulScanMs: NOW - 500,
    catchingUp: false,
    failedWrite: false,
    solvency: [],
    findings: [],
    halt: null,
    ...overrides,
  };
}

describe('readiness of the ledger', () => {
  it('is ready when nothing stands in the way', () => {
    expect(judgeReadiness(healthy(), NOW)).to.deep.equal({ ready: true, reason: null });
  });

  const cases: [string, Partial<WatcherStatus>, string][] = [
    ['no block was ever scanned', { scannedBlockHash: null }, 'missing_canonical_state'],
    ['the scan is behind the head', { catchingUp: true }, 'startup_catch_up'],
    ['the ledger halted', { halt: { code: 'shortfall', message: '', byOperator: false } }, 'integrity_halt'],
    ['the operator halted', { halt: { code: 'operator', message: '', byOperator: true } }, 'operator_halt'],
    ['the last write failed', { failedWrite: true }, 'failed_write'],
    ['the last scan is too old', { lastSuccessfulScanMs: NOW - MAX_LEDGER_AGE_MS - 1 }, 'stale_ledger'],
    ['the head is too old', { observedHeadTimestampMs: NOW - MAX_HEAD_AGE_MS - 1 }, 'chain_stalled'],
    ['the head is of a time to come', { observedHeadTimestampMs: NOW + MAX_CLOCK_SKEW_MS + 1 }, 'clock_skew'],
    ['the last scan is of a time to come', { lastSuccessfulScanMs: NOW + MAX_CLOCK_SKEW_MS + 1 }, 'clock_skew'],
  ];
  for (const [when, overrides, reason] of cases) {
    it(`is not ready when ${when}`, () => {
      expect(judgeReadiness(healthy(overrides), NOW)).to.deep.equal({ ready: false, reason });
    });
  }

  it('stays ready at exactly the oldest age allowed', () => {
    const status = healthy({
      lastSuccessfulScanMs: NOW - MAX_LEDGER_AGE_MS,
      observedHeadTimestampMs: NOW - MAX_HEAD_AGE_MS,
    });
    expect(judgeReadiness(status, NOW).ready).to.equal(true);
  });

  it('stays ready while blocks are a little ahead', () => {
    expect(judgeReadiness(healthy({ observedHeadTimestampMs: NOW + MAX_CLOCK_SKEW_MS }), NOW).ready).to.equal(true);
  });

  it('names a halt before anything else', () => {
    const status = healthy({
      halt: { code: 'canonical_mismatch', message: '', byOperator: false },
      scannedBlockHash: null,
      lastSuccessfulScanMs: 0,
    });
    expect(judgeReadiness(status, NOW).reason).to.equal('integrity_halt');
  });
});
