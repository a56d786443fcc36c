/** What a person at the page does where the market moves or the machine is slow: looks, and tries again, for a bounded time. */
import type { Locator, Page, Route } from 'playwright-core';

/** What passes by itself: the page says it with its code, and asks to try again. */
const PASSES =
  /\((?:NOTHING_QUOTED|BELOW_MINIMUM|InsufficientOutput|InsufficientDepth|CurveExpired|NotTradable|REVERTED|REPLACED)\)/;
/** Long enough for the next curve on a machine that is busy. */
const PATIENCE_MS = 90_000;
const PAUSE_MS = 1_000;
/** A press that the page took shows something by then, on the slowest machine. */
const TAKEN_MS = 10_000;

interface Pressed {
  /** Shown once the press was taken, whatever comes of it. */
  taken: Locator;
  done: Locator;
  /** What went wrong, in words. */
  failed: Locator;
  /** What is to be done before pressing again. */
  again?: () => Promise<void>;
}

/**
 * Presses a button until it is done. A price that ends between the look and the press takes the press away with the button; that, and a
 * failure that passes by itself, is tried again. Any other failure is thrown as the page tells it.
 */
export async function pressUntilDone(button: Locator, { taken, done, failed, again }: Pressed): Promise<void> {
  for (const endMs = Date.now() + PATIENCE_MS; ;) {
    await button.click();
    const isTaken = await seen(taken.first(), TAKEN_MS);
    if (isTaken) await done.or(failed).first().waitFor();
    if (isTaken && !(await failed.first().isVisible())) return;
    const said = isTaken ? await failed.first().innerText() : 'the button was pressed, and nothing happened';
    if (Date.now() > endMs || (isTaken && !PASSES.test(said))) throw new Error(said);
    await again?.();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Whether something is shown within so much time. */
export const seen = (what: Locator, withinMs: number): Promise<boolean> =>
  what.waitFor({ timeout: withinMs }).then(
    () => true,
    () => false,
  );

/** Answers to what matches are changed on their way to the page; returns what ends it. Never one that says "as before", which has no body. */
export async function tamper(page: Page, glob: string, change: (body: string) => string): Promise<() => Promise<void>> {
  const handler = async (route: Route): Promise<void> => {
    const { 'if-none-match': _tag, ...headers } = route.request().headers();
    const answer = await route.fetch({ headers });
    const body = await answer.text();
    await route.fulfill({ response: answer, body: answer.ok() ? change(body) : body });
  };
  await page.route(glob, handler);
  return () => page.unrouteAll({ behavior: 'ignoreErrors' });
}

/** Remembers each alert of the page from now on, however short it is shown; returns what waits for one. */
export async function rememberAlerts(page: Page): Promise<(text: string) => Promise<void>> {
  await page.evaluate(`(() => {
    globalThis.alerts = new Set();
    const look = () => document.querySelectorAll('[role=alert]').forEach(({ textContent }) => alerts.add(textContent));
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    look();
  })()`);
  return async (text) => {
    for (let looks = 0; ; looks += 1) {
      const all = await page.evaluate<string[]>('[...globalThis.alerts]');
      if (all.some((one) => one.includes(text))) return;
      if (looks === 600) throw new Error(`no alert said "${text}" but these: ${all.join(' | ')}`);
      await page.waitForTimeout(100);
    }
  };
}
