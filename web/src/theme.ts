/** Light, dark, or whatever the system says. */
type Theme = 'system' | 'light' | 'dark';

const KEY = 'curvebook.theme';
const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

/** What was chosen in this browser; `system` where nothing was, or where nothing may be stored. */
export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return ORDER.find((theme) => theme === stored) ?? 'system';
  } catch {
    return 'system';
  }
}

/** Shows the theme and keeps the choice. */
export function applyTheme(theme: Theme): void {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset.theme;
  else dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser that stores nothing shows the theme until the page is left.
  }
}

/** What is shown now, whoever chose it. */
export function shownTheme(): 'light' | 'dark' {
  const { theme } = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') return theme;
  return darkSystem().matches ? 'dark' : 'light';
}

const darkSystem = (): MediaQueryList => window.matchMedia('(prefers-color-scheme: dark)');

/** Calls `listener` when another theme may be shown: what is drawn on a canvas does not follow by itself. Returns what ends it. */
export function onTheme(listener: () => void): () => void {
  const system = darkSystem();
  const chosen = new MutationObserver(listener);
  chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  system.addEventListener('change', listener);
  return () => {
    chosen.disconnect();
    system.removeEventListener('change', listener);
  };
}

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? 'system';
}
