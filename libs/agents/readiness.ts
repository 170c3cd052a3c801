import { allowedCommand, NotAllowed, requireNetwork, type Allowances } from './allowances.ts';
import type { Harnesses, ReadinessIssue } from './harness.ts';
import type { AgentManifest } from './manifest.ts';
import { issueText } from './manifest-issues.ts';
import { optionalSecrets, requiredSecrets, resolveSecret, SecretMissing, type PlacedSecret } from './secrets.ts';

/** It is asked before each message. A secret that has come, or gone, is seen within this time. */
const FRESH_MS = 2_000;

/** The kinds of problems with secrets that are reported. */
type Problems = readonly (typeof SecretMissing | typeof NotAllowed)[];
const ANY: Problems = [SecretMissing, NotAllowed];

export interface ReadinessCheckOptions {
  harnesses: Harnesses;
  allowances: Allowances;
  now: () => number;
}

/** What manifests lack to run in this process, remembered for two seconds a manifest. */
export class ReadinessCheck {
  private readonly known = new WeakMap<
    AgentManifest,
    { issues: Promise<readonly ReadinessIssue[]>; askedAt: number }
  >();

  constructor(private readonly options: ReadinessCheckOptions) {}

  of(manifest: AgentManifest): Promise<readonly ReadinessIssue[]> {
    const now = this.options.now();
    const known = this.known.get(manifest);
    if (known !== undefined && now - known.askedAt < FRESH_MS) return known.issues;
    const issues = this.find(manifest);
    this.known.set(manifest, { issues, askedAt: now });
    // A failure is not worth remembering.
    issues.catch(() => this.known.delete(manifest));
    return issues;
  }

  /** What it lacks and can do without. Asked by operators only, so it is not remembered. */
  async warnings(manifest: AgentManifest): Promise<ReadinessIssue[]> {
    const message = 'a tool server that is not required has no credential';
    return [...(await this.issuesOf(optionalSecrets(manifest), message)), ...this.refusedServers(manifest, false)];
  }

  /** Returns what the manifest names although this installation does not allow it: `PATH: MESSAGE`. */
  async notAllowed(manifest: AgentManifest): Promise<string[]> {
    const secrets = [...requiredSecrets(manifest), ...optionalSecrets(manifest)];
    const issues = [
      ...(await this.issuesOf(secrets, '', [NotAllowed])),
      ...this.refusedServers(manifest, true),
      ...this.refusedServers(manifest, false),
    ];
    return issues.map(({ detail }) => detail);
  }

  private async find(manifest: AgentManifest): Promise<ReadinessIssue[]> {
    const secrets = await this.issuesOf(requiredSecrets(manifest), 'a credential is missing');
    const missing = [...secrets, ...this.refusedServers(manifest, true)];
    const { name } = manifest.harness;
    const harness = this.options.harnesses.get(name);
    if (harness === undefined) {
      return [
        { message: 'its harness is missing', detail: `There is no harness ${JSON.stringify(name)}.` },
        ...missing,
      ];
    }
    const wrong = harness.checkSettings(manifest).map((issue) => ({
      message: 'the settings of its harness are wrong',
      detail: `The manifest has invalid harness settings: ${issueText(issue)}.`,
    }));
    // It may count on its settings.
    return [...wrong, ...missing, ...(wrong.length > 0 ? [] : await harness.readiness(manifest))];
  }

  private async issuesOf(secrets: PlacedSecret[], message: string, of: Problems = ANY): Promise<ReadinessIssue[]> {
    const found = secrets.map(async ({ path, reference }): Promise<ReadinessIssue[]> => {
      const error = await resolveSecret(reference, this.options.allowances).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null) return [];
      if (!(error instanceof SecretMissing || error instanceof NotAllowed)) throw error;
      return of.some((kind) => error instanceof kind) ? [{ message, detail: `${path}: ${error.message}` }] : [];
    });
    return (await Promise.all(found)).flat();
  }

  /** Finds programs that this installation does not start, and networks that it does not give. */
  private refusedServers({ toolServers }: AgentManifest, required: boolean): ReadinessIssue[] {
    const { allowances } = this.options;
    const message = `a tool server${required ? '' : ' that is not required'} is not allowed here`;
    return toolServers.flatMap((server, i) => {
      if (!('command' in server) || server.required !== required) return [];
      const issues = (field: string, check: () => unknown) => refusal(`toolServers.${i}.${field}`, message, check);
      return [
        ...issues('command', () => allowedCommand(server.command, allowances)),
        ...(server.network ? issues('network', () => requireNetwork(allowances)) : []),
      ];
    });
  }
}

function refusal(path: string, message: string, check: () => unknown): ReadinessIssue[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error;
    return [{ message, detail: `${path}: ${error.message}` }];
  }
}
