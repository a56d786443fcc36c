/** What waits in memory while the archive can't be written and sending goes on without it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Hex } from '../../../core/types.js';
import { openArchive, type Archive } from '../../../keepers/archive/archive.js';
import { decodeBatch, type ArchiveBatch } from '../../../keepers/archive/format.js';
import { createFolderStore, type ArchiveStore } from '../../../keepers/archive/store.js';
import type { Settlement } from '../../../ledger/types.js';

const KEY: Hex = `0x${'11'.repeat(32)}`;

/** One settlement is some 400 characters. */
const entryOf = (first: number, count: number): Parameters<Archive['write']>[0] => ({
  settlements: Array.from({ length: count }, (_, i): Settlement => ({
    settlementNo: first + i,
    maker: `0x${'aa'.repeat(20)}`,
    token: `0x${'bb'.repeat(20)}`,
    amountUnits: 1n,
    basis: 1n,
    previousUnits: 0n,
    cutGeneration: 1,
    cutBlock: 1,
    checkpointSeq: 1,
    preparedMs: 1,
    preparedBy: 'settler',
    operatorSeq: null,
    txKey: `settle:${first}`,
  })),
});

describe('an archive that can not be written', () => {
  let files: ArchiveBatch[];
  let stored: Uint8Array[];
  let isBroken: boolean;
  /** Files are there, and whether they are durable is unknown. */
  let isUnsure: boolean;
  let nowMs: number;

  const store = (): ArchiveStore => ({
    filesPerFolder: 1_000,
    lastNumber: () => Promise.resolve(files.length),
    firstNumber: () => Promise.resolve(Math.min(1, files.length)),
    read: (number) => Promise.resolve(Buffer.from(stored[number - 1]!)),
    write(number, bytes) {
      if (isBroken) return Promise.reject(new Error('disk full'));
      const there = stored[number - 1];
      if (there !== undefined && !Buffer.from(there).equals(bytes)) return Promise.resolve(false);
      if (there === undefined) {
        stored.push(bytes);
        files.push(decodeBatch(bytes, 'a file').batch);
      }
      return isUnsure ? Promise.reject(new Error('the folder could not be synced')) : Promise.resolve(true);
    },
    setAside: () => Promise.resolve(),
    removeFolder: () => Promise.resolve(),
  });

  beforeEach(() => {
    files = [];
    stored = [];
    isBroken = true;
    isUnsure = false;
    nowMs = 1_000;
  });

  const written = (): number[] => files.flatMap(({ settlements }) => settlements.map((one) => one.settlementNo));

  it('is given later what waited in memory, in its order, however many entries', async () => {
    const archive = await openArchive({ store: store(), deploymentId: 'd', privateKey: KEY, nowMs: () => nowMs });
    for (let first = 1; first <= 1_010; first += 1) {
      await archive.write(entryOf(first, 1), { keep: true }).catch(() => undefined);
    }
    nowMs = 9_000;
    expect(archive.status()).to.include({ failures: 1_010, failing: true, waitingSinceMs: 1_000, dropped: 0 });
    isBroken = false;
    await archive.write(entryOf(1_011, 1));
    expect(written()).to.deep.equal(Array.from({ length: 1_011 }, (_, i) => i + 1));
    expect(archive.status()).to.include({ failing: false, waitingSinceMs: null, dropped: 0 });
  });

  it('has once what was there when its write failed, as the file that it was, and what waited behind it', async () => {
    isBroken = false;
    const deps = { store: store(), deploymentId: 'd', privateKey: KEY, nowMs: () => (nowMs += 1) };
    const archive = await openArchive(deps);
    isUnsure = true;
    for (const first of [1, 2]) await archive.write(entryOf(first, 1), { keep: true }).catch(() => undefined);
    expect(archive.status()).to.include({ failures: 2, failing: true, files: 0 });
    isUnsure = false;
    await archive.write(entryOf(3, 1));
    expect(written()).to.deep.equal([1, 2, 3]);
    expect(files.map(({ number }) => number)).to.deep.equal([1, 2, 3]);
    expect(archive.status()).to.include({ failing: false, files: 3 });
  });

  it('has it once, too, where another writer went on after that file', async () => {
    isBroken = false;
    const deps = { store: store(), deploymentId: 'd', privateKey: KEY, nowMs: () => (nowMs += 1) };
    const [archive, other] = [await openArchive(deps), await openArchive(deps)];
    isUnsure = true;
    await archive.write(entryOf(1, 1), { keep: true }).catch(() => undefined);
    isUnsure = false;
    await other.write(entryOf(2, 1));
    await archive.write(entryOf(3, 1));
    expect(written()).to.deep.equal([1, 2, 3]);
  });

  it('gives a number to one content, which may be written again', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'curvebook-archive-'));
    try {
      const folder = createFolderStore(dir);
      const [one, another] = [Buffer.from('one'), Buffer.from('another')];
      expect([await folder.write(1, one), await folder.write(1, one), await folder.write(1, another)]).to.deep.equal([
        true,
        true,
        false,
      ]);
      expect(await folder.read(1)).to.deep.equal(one);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('has no more kept for it than its share of memory, counted by what entries hold, and counts what it dropped', async () => {
    const deps = { store: store(), deploymentId: 'd', privateKey: KEY, nowMs: () => nowMs };
    const archive = await openArchive({ ...deps, maxKeptChars: 10_000 });
    // One is too large by itself, and small ones still have room.
    await archive.write(entryOf(1, 100), { keep: true }).catch(() => undefined);
    for (let first = 101; first <= 200; first += 1) {
      await archive.write(entryOf(first, 1), { keep: true }).catch(() => undefined);
    }
    const { dropped } = archive.status();
    expect(dropped).to.be.within(50, 90);
    isBroken = false;
    await archive.write(entryOf(201, 1));
    expect(written()).to.have.length(101 - dropped + 1);
    expect(written().slice(0, 3)).to.deep.equal([101, 102, 103]);
    expect(archive.status(), 'what is lost waits no more').to.include({
      failing: false,
      waitingSinceMs: null,
      dropped,
    });
    isBroken = true;
    await archive.write(entryOf(202, 1), { keep: true }).catch(() => undefined);
    expect(archive.status().dropped, 'what was written made room').to.equal(dropped);
  });
});
