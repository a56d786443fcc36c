import { nameMarkets } from '../../core/token-names.js';
import type { Market, Token, Address } from '../../core/types.js';
import { readSaid } from '../../ledger/chain/markets.js';
import { tokenOf } from '../watcher/tokens/tokens.js';
import { readRows } from '../../ledger/db/rows.js';
import { same, type Verification } from './verification.js';

const CHECK = 'blocks';

/** Checks that the tokens of each market have the metadata of the listing, and the names that follow from it. */
export async function verifyListings({ q, markets }: Verification): Promise<void> {
  const rows = await readRows(q, 'markets', { orderBy: ['market'] });
  const said = (token: Token, text: string | null): Token =>
    text === null ? token : tokenOf(token.address, readSaid(text));
  const again = markets.map((market, i): Market => {
    const { base_said: base = null, quote_said: quote = null } = rows[i] ?? {};
    return { ...market, base: said(market.base, base), quote: said(market.quote, quote) };
  });
  const tokensOf = ({ base, quote }: Market): Token[] => [base, quote];
  same(CHECK, 'the tokens of all markets', markets.map(tokensOf), nameMarkets(again).map(tokensOf));
}

/** Generation in which each token was first traded by a listed pair. */
export async function servedFrom({ q, markets }: Pick<Verification, 'q' | 'markets'>): Promise<Map<Address, number>> {
  const served = new Map<Address, number>();
  for (const { market, generation } of await readRows(q, 'markets')) {
    const { base, quote } = markets[market]!;
    for (const { address } of [base, quote]) {
      served.set(address, Math.min(served.get(address) ?? generation, generation));
    }
  }
  return served;
}
