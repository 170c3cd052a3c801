import { chmod, cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseManifests, type AgentManifestInput } from '#agents';
import { eventually } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import { getThread, postEvents, readLog, send, waitForEntry, type Caller, type LogEntry } from '../support/client.ts';
import { addAgent } from '../support/more-agents.ts';
import { ScriptedProvider } from '../support/provider/scripted-provider.ts';
import { startSystem, type System } from '../support/system.ts';

const ROOT = join(import.meta.dirname, '../..');
const SALES = 'region,sales\nnorth,1200\nsouth,800\n';

interface File {
  id: string;
  name: string;
  kind: string;
  size: number;
}

/** The manifests of examples/agents, as they stand but for where the provider and the handbook are. */
describe('the examples of agents', () => {
  let provider: ScriptedProvider;
  let system: System;
  let api: Caller;
  let handbook: string;

  beforeAll(async () => {
    handbook = await mkdtemp(join(tmpdir(), 'spool-handbook-'));
    await cp(join(ROOT, 'examples/handbook'), handbook, { recursive: true });
    // Tool servers of a worker that is root run as nobody.
    await chmod(handbook, 0o777);
    provider = await ScriptedProvider.start();
    const programs = {
      TOOL_SERVER_COMMANDS: join(dirname(process.execPath), 'npx'),
      TOOL_SERVER_FOLDERS: `${ROOT},${handbook}:rw`,
    };
    const env = { OPENAI_API_KEY: provider.apiKey, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1', ...programs };
    system = await startSystem({ env });
    api = (await system.startApi()).caller;
    await system.startWorker();
  }, 90_000);

  afterAll(async () => {
    await system.stop();
    await provider.close();
    await rm(handbook, { recursive: true, force: true });
  });

  /** The manifest of the file, its text changed as an owner would. */
  async function publish(
    name: string,
    edit: (text: string) => string,
    more: Partial<AgentManifestInput['model']> = {},
  ) {
    const file = join(ROOT, 'examples/agents', name);
    const { manifests, problems } = parseManifests(edit(await readFile(file, 'utf8')), file);
    expect(problems).toEqual([]);
    const { model, ...manifest } = manifests[0]!.manifest;
    const agentId = await addAgent(system, { ...manifest, ...(model ? { model: { ...model, ...more } } : {}) });
    return { ...api, agentId };
  }

  /** A Thread with the figures attached to its first message. */
  async function ask(caller: Caller, text: string): Promise<string> {
    const form = new FormData();
    form.set('file', new Blob([SALES]), 'sales.csv');
    const headers = { authorization: `Bearer ${caller.token}` };
    const url = `${caller.baseUrl}/agents/${caller.agentId}/files`;
    const upload = (await (await fetch(url, { method: 'POST', headers, body: form })).json()) as { file: File };
    const { status, body } = await send<{ thread: { id: string } }>(
      caller,
      'POST',
      `/agents/${caller.agentId}/threads`,
      {
        userId: 'customer-7',
        input: { type: 'user.message', content: [{ type: 'text', text }] },
        resources: [{ type: 'file', file_id: upload.file.id }],
      },
    );
    expect(status).toBe(201);
    return body.thread.id;
  }

  async function finalText(caller: Caller, threadId: string): Promise<string> {
    const run = await eventually(
      async () => {
        const { run: newest } = (await getThread(caller, threadId)).body;
        return newest && ['completed', 'failed', 'waiting_input'].includes(newest.status) ? newest : undefined;
      },
      { what: 'the Run has ended', timeoutMs: 30_000 },
    );
    expect(run).toMatchObject({ status: 'completed', error: null });
    return run.finalOutput!.text;
  }

  const filesOf = async (caller: Caller, threadId: string): Promise<File[]> =>
    (await send<{ files: File[] }>(caller, 'GET', `/threads/${threadId}/files`)).body.files;

  async function download({ baseUrl, token }: Caller, fileId: string): Promise<string> {
    const response = await fetch(`${baseUrl}/files/${fileId}/content`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return response.text();
  }

  const ofTools = (log: LogEntry[]) =>
    log
      .filter(({ type }) => type.startsWith('tool.'))
      .map((entry) => `${entry.type.slice('tool.'.length)} ${(entry as { toolName?: string }).toolName}`);

  it('echo answers what it is told', async () => {
    const caller = await publish('echo.yaml', (text) => text);
    expect(await finalText(caller, await ask(caller, 'hello'))).toBe('You said: hello');
  });

  it.each([
    ['a hosted endpoint', (text: string) => text, true],
    [
      'Ollama, by the two lines that it marks',
      (text: string) => text.replace(/^( +).*# Ollama: (.*)$/gm, '$1$2'),
      false,
    ],
  ])(
    'the assistant, on %s, reads the figures and leaves a report that is downloaded as it was written',
    async (where, edit, hosted) => {
      if (!hosted)
        expect(edit(await readFile(join(ROOT, 'examples/agents/assistant.yaml'), 'utf8'))).toContain('11434/v1');
      // The one that Ollama is played by wants a key too.
      const caller = await publish('assistant.yaml', edit, {
        baseUrl: provider.openaiUrl,
        apiKey: { env: 'OPENAI_API_KEY' },
      });
      const threadId = await ask(caller, `script: report on ${where}`);
      expect(await finalText(caller, threadId)).toBe('The report is in report.md.');

      const files = await filesOf(caller, threadId);
      expect(files).toEqual([
        expect.objectContaining({ name: 'sales.csv', kind: 'attachment' }),
        expect.objectContaining({ name: 'report.md', kind: 'artifact' }),
      ]);
      expect(await download(caller, files[1]!.id)).toBe('# Sales\n\nNorth leads — 1,200 of 2,000.\n');
      const log = await readLog(caller, threadId);
      const about = log.filter(({ content }) => content === files[1]!.id).map(({ type }) => type);
      expect(about).toEqual(['file.changed', 'session_files.updated']);
      const asked = provider.requests.filter(({ line }) => line === `script: report on ${where}`);
      expect(asked.map(({ step, refusal }) => [step, refusal])).toEqual([0, 1, 2].map((step) => [step, null]));
      // What the tool read of the attachment.
      expect(JSON.stringify(asked[1]!.body)).toContain('south,800');
    },
  );

  it('the analyst uses both its tool servers, and asks before it changes the handbook', async () => {
    const caller = await publish('analyst.yaml', (text) => text.replaceAll('examples/handbook', handbook), {
      baseUrl: provider.openaiUrl,
    });
    const threadId = await ask(caller, `script: analysis\n${handbook}`);
    await waitForEntry(caller, threadId, 'tool.confirmation.required');
    const requests = (await readLog(caller, threadId)).filter(({ type }) => type === 'tool.confirmation.required');
    expect(requests).toHaveLength(2);
    for (const [i, decision] of ['allow_once', 'reject_once'].entries()) {
      const event = { type: 'permission_decision', requestId: requests[i]!.content, decision };
      expect((await postEvents(caller, threadId, event)).status).toBe(200);
    }
    expect(await finalText(caller, threadId)).toBe('Done, as far as I was allowed to.');

    expect(await readFile(join(handbook, 'allowed.md'), 'utf8')).toBe('Allowed.\n');
    await expect(readFile(join(handbook, 'refused.md'))).rejects.toThrow('ENOENT');
    const asked = provider.requests.filter(({ script }) => script === 'analysis');
    // Regions above 1,000 come first, says the handbook; and the sum is that of the other server.
    expect(JSON.stringify(asked[1]!.body)).toContain('is reported first');
    expect(JSON.stringify(asked[2]!.body)).toContain('2000');
    const log = await readLog(caller, threadId);
    expect(ofTools(log).filter((entry) => entry.startsWith('use.started'))).toEqual([
      'use.started read_file',
      'use.started handbook__read_text_file',
      'use.started everything__get-sum',
      'use.started write_file',
      'use.started handbook__write_file',
    ]);
    await expectHealthy(system.database);
  });
});
