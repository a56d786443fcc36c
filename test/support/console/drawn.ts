/** A component of the console as the text of its first drawing, without a browser: what effects and the server would bring is not there. */
import * as React from 'react';
import { createElement } from 'react';
import type { ComponentType, Context, ReactNode } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { ShownContext } from '../../../web/src/market-context.js';

// The console is compiled for another runtime of JSX than what compiles tests assumes, which calls React by its name.
Object.assign(globalThis, { React });

/** Typed as `unknown`: the console's own configuration of types, with those of a browser, is not that of tests. */
const exportOf = async (file: string, name: string): Promise<unknown> =>
  ((await import(new URL(`../../../web/src/${file}`, import.meta.url).href)) as Record<string, unknown>)[name];

/** Draws the export `name` of a file of web/src as the market page of `shown` would; returns what it says, with one space between its parts. */
export async function drawn(file: string, name: string, props: object, shown: object | null = null): Promise<string> {
  const component = (await exportOf(file, name)) as ComponentType<object>;
  const Platform = (await exportOf('platform.ts', 'PlatformContext')) as Context<unknown>;
  const platform = { read: {}, stream: { state: () => 'open' }, onStreamState: () => () => undefined };
  const inside: ReactNode = createElement(component, props);
  const html = renderToStaticMarkup(
    createElement(
      Platform.Provider,
      { value: platform },
      createElement(ShownContext, { value: shown as never }, inside),
    ),
  );
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#x27;/g, "'")
    .replace(/\s+/g, ' ')
    .trim();
}
