import { readSql } from './read-sql.ts';

/** A statement that PostgreSQL parses and plans once per connection. pg sends only its name after the first time. */
export interface NamedStatement {
  name: string;
  text: string;
}

/**
 * Returns the only statement in the file, named after the file. `:include(other.sql)` stands for the text of a file in the same
 * folder, and `:include(other.sql $2=$3)` for its text with other parameters. `directory` is the caller's `import.meta.dirname`.
 */
export function namedStatement(directory: string, fileName: string): NamedStatement {
  const include = (_: string, other: string, renamed: string): string => {
    const names = new Map([...renamed.matchAll(/(\$\d+)=(\$\d+)/g)].map(([, from, to]) => [from, to]));
    return readSql(directory, other).replace(/\$\d+/g, (name) => names.get(name) ?? name);
  };
  return {
    name: fileName.replace(/\.sql$/, ''),
    text: readSql(directory, fileName).replace(/:include\((\S+?)((?: \$\d+=\$\d+)*)\)/g, include),
  };
}

/** Returns pg's setting for how long a client waits for the response to one statement, milliseconds. Default: the pool's. */
export function queryTimeout(timeoutMs: number | undefined): { query_timeout?: number } {
  return timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
}

/** The timeout of queries that look up by key. One that takes longer has lost its connection. */
export const BY_KEY = queryTimeout(5_000);
