/** Counts what a person does at a page, whatever drives the mouse. */
import type { Page } from 'playwright-core';

/**
 * Counts from now on, over reloads of the tab, too: a click is one, a field that is typed into is one, however much is typed, and a list that is chosen from
 * is two, since it opens first. The function returned tells how many it were since its last call.
 */
export async function countClicks(page: Page): Promise<() => Promise<number>> {
  await page.addInitScript(COUNT);
  await page.evaluate(COUNT);
  return async () => {
    const count = await page.evaluate<string>("sessionStorage.getItem('clicks') ?? '0'");
    await page.evaluate("sessionStorage.setItem('clicks', '0'); globalThis.typed = null");
    return parseInt(count, 10);
  };
}

const COUNT = `(() => {
  if (globalThis.counted) return;
  globalThis.counted = true;
  globalThis.typed = null;
  const add = (n) => sessionStorage.setItem('clicks', String(parseInt(sessionStorage.getItem('clicks') ?? '0', 10) + n));
  const kindOf = ({ target }) => target.tagName === 'SELECT' ? 'list' : target.tagName === 'INPUT' && !/^(?:radio|checkbox|file)$/.test(target.type) ? 'text' : 'other';
  document.addEventListener('click', (event) => {
    // Fields are counted when they are typed into. A label's own click is followed by that of what it labels.
    if (event.isTrusted && kindOf(event) === 'other' && event.target.closest('label input') === event.target.closest('label')?.control) add(1);
    else if (event.isTrusted && kindOf(event) === 'other' && event.target.closest('label') === null) add(1);
  }, true);
  document.addEventListener('change', (event) => {
    if (kindOf(event) === 'list') add(2);
  }, true);
  document.addEventListener('input', (event) => {
    if (kindOf(event) !== 'text' || globalThis.typed === event.target) return;
    globalThis.typed = event.target;
    add(1);
  }, true);
})()`;
