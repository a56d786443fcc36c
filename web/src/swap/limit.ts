/** The limit of a limit order: what is typed, or until then what the page suggests. Another sold or bought token begins with none. */
interface Limit {
  /** Null until the suggestion is typed over. */
  typed: string | null;
  /** What the market brought when the page first knew it for `of`, which names tokens and amount. It does not follow the price. */
  suggested: { of: string; text: string } | null;
}

export const NO_LIMIT: Limit = { typed: null, suggested: null };

/** What the field shows for these tokens and this amount: what was suggested for others is no limit of theirs. */
export const limitText = ({ typed, suggested }: Limit, of: string | null): string =>
  typed ?? (suggested?.of === of ? (suggested?.text ?? '') : '');

export const suggestedFor = (limit: Limit, of: string, text: string): Limit =>
  limit.suggested?.of === of ? limit : { ...limit, suggested: { of, text } };

/** After another amount was entered: a limit that was typed stays, and a field that was emptied takes a suggestion again. */
export const withAmount = (limit: Limit): Limit => (limit.typed === '' ? NO_LIMIT : limit);
