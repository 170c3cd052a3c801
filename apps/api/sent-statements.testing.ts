import pg from 'pg';
import { StatementGroup } from '#platform';

/**
 * Records the name or the text of each statement that this process sends, alone or in a group, by a spy on the Client of pg. Ends
 * with `jest.restoreAllMocks`. Empty the list to start over.
 */
export function recordStatements(): string[] {
  const sent: string[] = [];
  const query = Reflect.get(pg.Client.prototype, 'query') as (...all: unknown[]) => unknown;
  jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args) {
    const [statement] = args as unknown as [string | { name?: string; text: string } | StatementGroup];
    if (statement instanceof StatementGroup)
      sent.push(...statement.statements.map(({ name }) => name.replace(/-in-group$/, '')));
    else sent.push(typeof statement === 'string' ? statement : (statement.name ?? statement.text));
    return query.apply(this, args) as never;
  });
  return sent;
}
