/** Components of the console as they are first drawn, without a browser: what effects and the server would bring is not there. */
import * as React from 'react';
import { createElement } from 'react';
import type { ComponentType, Context } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import type * as Wouter from 'wouter';
import { register, type NamespacedUnregister } from 'tsx/esm/api';

interface Drawn {
  /** What it says, with one space between its parts. */
  text: string;
  /** Properties of all its elements of a kind, handlers included, in the order in which they stand. */
  all(tag: string): Record<string, unknown>[];
}

/** One of each, however often this module is made: components call the React that was set last. */
const known = globalThis as {
  drawnElements?: { tag: unknown; props: Record<string, unknown> }[];
  drawnLoader?: NamespacedUnregister;
};
const elements = (known.drawnElements ??= []);
/** `npm test` has translated what Node loads by itself, to which the console's files don't belong. */
const loader = (known.drawnLoader ??= register({ namespace: 'drawn' }));

// What compiles tests does not know the console's configuration, and calls React by its name.
Object.assign(globalThis, {
  React: {
    ...React,
    createElement(...given: [type: never, props: never]) {
      const element = createElement(...given);
      elements.push({ tag: element.type, props: element.props as Record<string, unknown> });
      return element;
    },
  },
});

/** Untyped: the console's types are those of a browser, which tests don't have. In one namespace, so that each module is there once. */
const exportOf = async (file: string, name: string): Promise<unknown> =>
  ((await loader.import(`../../../web/src/${file}`, import.meta.url)) as Record<string, unknown>)[name];

/** Draws the export `name` of a file of web/src, where the market and the deployment are those of `shown`. */
export async function drawn(file: string, name: string, props: object, shown: object | null = null): Promise<Drawn> {
  const component = (await exportOf(file, name)) as ComponentType<object>;
  const Platform = (await exportOf('platform.ts', 'PlatformContext')) as Context<unknown>;
  const Shown = (await exportOf('market-context.ts', 'ShownContext')) as Context<unknown>;
  const { Router } = (await loader.import('wouter', import.meta.url)) as typeof Wouter;
  const platform = { read: {}, stream: { state: () => 'open' }, onStreamState: () => () => undefined };
  const inMarket = createElement(Shown, { value: shown }, createElement(component, props));
  const inPlatform = createElement(Platform, { value: platform }, inMarket);
  elements.length = 0;
  const html = renderToStaticMarkup(createElement(Router, { ssrPath: '/', ssrSearch: '', children: inPlatform }));
  const found = [...elements];
  return {
    text: html
      .replace(/<[^>]*>/g, ' ')
      .replace(/&#x27;/g, "'")
      .replace(/\s+/g, ' ')
      .trim(),
    all: (tag) => found.filter((element) => element.tag === tag).map((element) => element.props),
  };
}
