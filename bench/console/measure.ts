/** What the console costs a browser: its first load, its frames under a fast stream, its memory. */
import { gzipSync } from 'node:zlib';
import type { CDPSession, Page } from 'playwright-core';
import { median } from '../gateway/measure.js';

/** gzip -9, as it is counted for the goal. */
const LEVEL = 9;

/** Bytes of all scripts that the first page loads until it shows the state of the platform. */
export async function scriptBytes(page: Page, url: string): Promise<number> {
  const scripts = new Set<string>();
  const note = (asked: { resourceType(): string; url(): string }): void => {
    if (asked.resourceType() === 'script') scripts.add(asked.url());
  };
  page.on('request', note);
  await page.goto(url);
  await page.locator('.pill.live').waitFor();
  page.off('request', note);
  let bytes = 0;
  for (const script of scripts)
    bytes += gzipSync(Buffer.from(await (await fetch(script)).arrayBuffer()), { level: LEVEL }).length;
  return bytes;
}

/** Notes when the page can be used, and each task that holds the main thread for more than 50 ms. */
const WATCH = `(() => {
  globalThis.longTasks = [];
  globalThis.usableMs = null;
  new PerformanceObserver((list) => list.getEntries().forEach(({ startTime, duration }) => longTasks.push({ startTime, duration })))
    .observe({ type: 'longtask', buffered: true });
  new MutationObserver((_changes, observer) => {
    if (document.querySelector('nav a') === null || document.querySelector('main h1') === null) return;
    usableMs = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
})()`;

export async function watch(page: Page): Promise<void> {
  await page.addInitScript(WATCH);
}

/** A page is interactive once it shows its links and heading, and the last long task that began before that was quiet for so long is over. */
const QUIET_MS = 500;

/**
 * Milliseconds from the start of the navigation until the page is interactive, with nothing in the cache, on a processor slowed down so many times;
 * median and worst of so many loads.
 */
export async function interactiveMs(
  { page, cdp }: { page: Page; cdp: CDPSession },
  url: string,
  { slowdown, loads }: { slowdown: number; loads: number },
): Promise<{ median: number; worst: number }> {
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  const found: number[] = [];
  for (let load = 0; load < loads; load += 1) {
    await page.goto(url);
    await page.locator('main h1').waitFor();
    await page.waitForTimeout(2_000);
    found.push(
      await page.evaluate<number>(`(() => {
        let end = usableMs;
        for (const { startTime, duration } of longTasks)
          if (startTime <= end + ${QUIET_MS}) end = Math.max(end, startTime + duration);
        return end;
      })()`),
    );
  }
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: false });
  return { median: median(found), worst: Math.max(...found) };
}

/** Counts changes of the table of bids by the frame of the browser in which they are drawn. */
const COUNT_FRAMES = `(() => {
  globalThis.drawn = 0;
  let isNoted = false;
  const table = [...document.querySelectorAll('.book table')].at(0);
  new MutationObserver(() => {
    if (isNoted) return;
    isNoted = true;
    requestAnimationFrame(() => { isNoted = false; });
    drawn += 1;
  }).observe(table, { childList: true, subtree: true, characterData: true });
})()`;

interface Frames {
  perSec: number;
  longTasks: number;
  longestMs: number;
}

/** How often the book of the market page is drawn in a second, and what held the main thread, over so many seconds. */
export async function framesOf(page: Page, seconds: number): Promise<Frames> {
  await page.evaluate(COUNT_FRAMES);
  await page.evaluate('longTasks.length = 0; drawn = 0');
  const beganMs = await page.evaluate<number>('performance.now()');
  await page.waitForTimeout(seconds * 1_000);
  return page.evaluate<Frames>(`({
    perSec: drawn * 1000 / (performance.now() - ${beganMs}),
    longTasks: longTasks.length,
    longestMs: Math.max(0, ...longTasks.map(({ duration }) => duration)),
  })`);
}

/** Bytes of the page's heap after a collection. */
export async function heapBytes(cdp: CDPSession): Promise<number> {
  // What a first collection lets go of by weak references is gone with the second.
  await cdp.send('HeapProfiler.collectGarbage');
  await cdp.send('HeapProfiler.collectGarbage');
  return (await cdp.send('Runtime.getHeapUsage')).usedSize;
}
