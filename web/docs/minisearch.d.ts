/** As much of the search library as the docs use. */
declare module 'minisearch' {
  export interface SearchResult {
    id: unknown;
    /** Terms of the index that were matched. */
    terms: string[];
  }

  export default class MiniSearch<T> {
    constructor(options: {
      fields: (keyof T & string)[];
      tokenize: (text: string) => string[];
      searchOptions: { boost: Partial<Record<keyof T, number>>; prefix: boolean; fuzzy: number; combineWith: 'AND' };
    });
    addAll(documents: readonly T[]): void;
    search(query: string): SearchResult[];
  }
}
