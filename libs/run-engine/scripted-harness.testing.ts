import type { Harness, StepContext, StepEvent, Tool, ToolContext, ToolResult } from '#agents';

/** Makes a harness whose step the test defines. */
export function scriptedHarness(step: (context: StepContext) => AsyncIterable<StepEvent>, tools: Tool[] = []): Harness {
  return { name: 'scripted', checkSettings: () => [], readiness: async () => [], tools: async () => tools, step };
}

export const scripted = { harness: { name: 'scripted' } };

type Execute = (context: ToolContext) => Promise<ToolResult>;

export function tool(name: string, execute: Execute, more: Partial<Tool> = {}): Tool {
  return {
    name,
    title: name,
    description: name,
    inputSchema: { type: 'object' },
    policy: 'allow',
    idempotent: false,
    execute: (_input, context) => execute(context),
    ...more,
  };
}

export const ok = (text: string): ToolResult => ({ text, isError: false });

export const message = (text: string, ...toolNames: string[]): StepEvent => ({
  type: 'message',
  text,
  toolCalls: toolNames.map((toolName) => ({ toolName, toolInput: {} })),
});

/** Makes a step that calls the tools first, and writes `answer` after they have run. */
export const useTools = (toolNames: string[], answer = 'done') =>
  async function* ({ transcript }: StepContext): AsyncGenerator<StepEvent> {
    yield transcript.some(({ role }) => role === 'tool') ? message(answer) : message('', ...toolNames);
  };

/** Makes a gate that the test opens. */
export function gate(): { open: () => void; opened: Promise<void>; reached: Promise<void>; pass: () => Promise<void> } {
  let open = (): void => undefined;
  let reach = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const pass = (): Promise<void> => {
    reach();
    return opened;
  };
  return { open, opened, reached, pass };
}
