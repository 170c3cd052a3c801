import { allowedCommand, NotAllowed, requireNetwork, type Allowances } from './allowances.ts';
import type { Harnesses, ReadinessIssue } from './harness.ts';
import type { AgentManifest, SecretReference } from './manifest.ts';
import { issueText } from './manifest-issues.ts';
import { optionalSecrets, requiredSecrets, resolveSecret, SecretMissing, type PlacedSecret } from './secrets.ts';

/** It is asked before each message. A secret that has come, or gone, is seen within this time. */
const FRESH_MS = 2_000;

/** A part of a manifest that the installation does not allow. */
export interface NotAllowedPart {
  path: string;
  error: NotAllowed;
}

type ToolServerInput = AgentManifest['toolServers'][number];

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
    const message = 'a fallback model, or a tool server that is not required, has no credential';
    return [...(await this.issuesOf(optionalSecrets(manifest), message)), ...this.refusedServers(manifest, false)];
  }

  /** Returns what the manifest names although this installation does not allow it. */
  async notAllowed(manifest: AgentManifest): Promise<NotAllowedPart[]> {
    const secrets = [...requiredSecrets(manifest), ...optionalSecrets(manifest)];
    const named = secrets.map(async ({ path, reference }): Promise<NotAllowedPart[]> => {
      const error = await this.problemOf(reference);
      return error instanceof NotAllowed ? [{ path, error }] : [];
    });
    const servers = manifest.toolServers.flatMap((server, i) => this.refusedParts(server, i));
    return [...(await Promise.all(named)).flat(), ...servers];
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

  private async issuesOf(secrets: PlacedSecret[], message: string): Promise<ReadinessIssue[]> {
    const found = secrets.map(async ({ path, reference }): Promise<ReadinessIssue[]> => {
      const error = await this.problemOf(reference);
      return error === null ? [] : [{ message, detail: `${path}: ${error.message}` }];
    });
    return (await Promise.all(found)).flat();
  }

  private async problemOf(reference: SecretReference): Promise<SecretMissing | NotAllowed | null> {
    try {
      await resolveSecret(reference, this.options.allowances);
      return null;
    } catch (error) {
      if (error instanceof SecretMissing || error instanceof NotAllowed) return error;
      throw error;
    }
  }

  private refusedServers({ toolServers }: AgentManifest, required: boolean): ReadinessIssue[] {
    const message = `a tool server${required ? '' : ' that is not required'} is not allowed here`;
    const parts = toolServers.flatMap((server, i) =>
      server.required === required ? this.refusedParts(server, i) : [],
    );
    return parts.map(({ path, error }) => ({ message, detail: `${path}: ${error.message}` }));
  }

  /** Returns the parts of a tool server that this installation does not allow: its program, or the network. */
  private refusedParts(server: ToolServerInput, i: number): NotAllowedPart[] {
    if (!('command' in server)) return [];
    const { allowances } = this.options;
    const part = (field: string, check: () => unknown) => refusal(`toolServers.${i}.${field}`, check);
    return [
      ...part('command', () => allowedCommand(server.command, allowances)),
      ...(server.network ? part('network', () => requireNetwork(allowances)) : []),
    ];
  }
}

function refusal(path: string, check: () => unknown): NotAllowedPart[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error;
    return [{ path, error }];
  }
}
