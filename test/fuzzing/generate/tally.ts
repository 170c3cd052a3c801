import type { BuiltRequest } from './build-request.ts';
import type { Outcome } from './connection.ts';
import type { Operation } from './document.ts';

/** What was answered: a run that only ever saw refusals has tested little. */
export class Tally {
  private readonly byStatus = new Map<string, number>();
  private readonly byOperation = new Map<string, { success: number; refused: number }>();
  total = 0;
  successes = 0;

  count({ operation, isOffRoute }: BuiltRequest, outcome: Outcome): void {
    this.total++;
    const status = typeof outcome === 'string' ? outcome : `${outcome.status}${codeOf(outcome.body)}`;
    this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1);
    if (typeof outcome === 'string' || isOffRoute) return;
    const counts = this.byOperation.get(operation.name) ?? { success: 0, refused: 0 };
    this.byOperation.set(operation.name, counts);
    if (outcome.status < 300) counts.success++;
    else if (outcome.status >= 400) counts.refused++;
    if (outcome.status < 300) this.successes++;
  }

  /** Operations that never succeeded, or were never refused though the document says that they can be. */
  untried(operations: readonly Operation[]): { operation: Operation; why: string }[] {
    return operations.flatMap((operation) => {
      const { name, responses, parameters, body, needsToken } = operation;
      const { success = 0, refused = 0 } = this.byOperation.get(name) ?? {};
      // An operation without input, such as GET /openapi.json, cannot be called wrongly.
      const takesInput = parameters.length > 0 || body !== null || needsToken;
      const canRefuse = takesInput && Object.keys(responses).some((status) => status.startsWith('4'));
      return [
        ...(success === 0 ? [{ operation, why: `${name} never succeeded` }] : []),
        ...(refused === 0 && canRefuse ? [{ operation, why: `${name} was never refused` }] : []),
      ];
    });
  }

  toString(): string {
    const statuses = [...this.byStatus].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const operations = [...this.byOperation].map(
      ([name, { success, refused }]) => `  ${name}: ${success} 2xx, ${refused} 4xx`,
    );
    const share = Math.round((100 * this.successes) / this.total);
    const first = `${this.total} requests, ${share} % answered 2xx; ${statuses.map(([status, count]) => `${count} × ${status}`).join(', ')}`;
    return [first, ...operations].join('\n');
  }
}

function codeOf(body: Buffer): string {
  const [, code] = /^\{"error":\{"code":"(\w+)"/.exec(body.subarray(0, 100).toString()) ?? [];
  return code === undefined ? '' : ` ${code}`;
}
