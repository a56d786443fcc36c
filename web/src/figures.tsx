import type { ReactNode } from 'react';
import type { Loadable } from './loadable.js';

interface FiguresProps<Row> {
  /** What screen readers call the table. */
  label: string;
  caption?: string;
  rows: Loadable<readonly Row[]>;
  /** Said where there are no rows. */
  empty: string;
  /** The first column names a row. */
  columns: readonly (readonly [name: string, value: (row: Row) => ReactNode])[];
}

/** A table of numbers per market or the like, and what is said while there is none. */
export function Figures<Row extends { pair: string }>({ label, caption, rows, empty, columns }: FiguresProps<Row>) {
  if (rows.data === null) return <p role="status">{rows.error ?? 'Loading …'}</p>;
  if (rows.data.length === 0) return <p role="status">{empty}</p>;
  const kind = (i: number): string | undefined => (i === 0 ? undefined : 'number');
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        {caption !== undefined && <caption>{caption}</caption>}
        <thead>
          <tr>
            {columns.map(([name], i) => (
              <th key={name} scope="col" className={kind(i)}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.data.map((row) => (
            <tr key={row.pair}>
              {columns.map(([name, value], i) => (
                <td key={name} className={kind(i)}>
                  {value(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
