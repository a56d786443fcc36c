import type { Token } from './terms.js';

interface TokenFieldProps {
  label: string;
  tokens: readonly Token[];
  token: Token;
  onToken(address: string): void;
  value: string;
  /** Left out where the amount follows from the other one. */
  onValue?(text: string): void;
  problem?: string | null;
}

/** An amount and its token. */
export function TokenField({ label, tokens, token, onToken, value, onValue, problem = null }: TokenFieldProps) {
  return (
    <div className="tokenfield">
      <label className="field">
        {label}
        <input
          value={value}
          readOnly={onValue === undefined}
          onChange={({ target }) => onValue?.(target.value)}
          inputMode="decimal"
          autoComplete="off"
          placeholder={onValue === undefined ? '…' : '0.0'}
          aria-invalid={problem !== null}
        />
      </label>
      <label>
        <span className="unseen">{label}: token</span>
        <select value={token.address} onChange={({ target }) => onToken(target.value)}>
          {tokens.map(({ address, symbol }) => (
            <option key={address} value={address}>
              {symbol}
            </option>
          ))}
        </select>
      </label>
      {problem !== null && (
        <p role="alert" className="bad">
          {problem}
        </p>
      )}
    </div>
  );
}
