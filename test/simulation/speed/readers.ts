/** A connection to each database that reads for all of its processes, past what each has of its own. */
import Database from 'better-sqlite3';
import { keepStatements } from '../../../ledger/db/dialects.js';

interface Readers {
  /** The one of the database that a connection is to, which is not in memory. */
  of(connection: { readonly name: string }): Database.Database;
  close(): void;
}

export function createReaders(): Readers {
  const readers = new Map<string, Database.Database>();
  return {
    of({ name }) {
      let reader = readers.get(name);
      if (reader === undefined) {
        reader = new Database(name, { readonly: true });
        keepStatements(reader);
        readers.set(name, reader);
      }
      return reader;
    },
    close() {
      for (const reader of readers.values()) reader.close();
      readers.clear();
    },
  };
}
