/** A subject that the guide can explain. */
export interface Topic {
  name: string;
  title: string;
  /** What messages about it contain, in lower case. */
  pattern: RegExp;
  /** Markdown. */
  text: string;
}

/** In the order in which they are tried: the first pattern that fits a message decides. */
export const TOPICS: readonly Topic[] = [
  {
    name: 'approvals',
    title: 'Approvals',
    pattern: /approv|confirm|permission|allow|reject|dangerous/,
    text: `Each tool has a **policy**: \`allow\`, \`ask\` or \`deny\`. The manifest of an Agent sets it by pattern.

With \`ask\`, the Run waits for a person:

1. The log gets a \`tool.confirmation.required\` entry with the tool and its arguments.
2. The Run has the status \`waiting_input\`. It occupies no worker, and can wait for days.
3. Somebody sends \`allow_once\` or \`reject_once\`. The first decision counts, and every reader of the Thread sees it.`,
  },
  {
    name: 'streams',
    title: 'Streams',
    pattern: /stream|live|event|reload|connection|offline|sse/,
    text: `Every fact of a Thread is an event in PostgreSQL. The stream sends its entries from any point on, and then live.

\`\`\`js
for await (const entry of thread.stream({ after: lastEventId })) state = reduceThread([entry], state);
\`\`\`

The id of each entry is the place to resume from. So a reload in the middle of an answer loses and repeats nothing.
Try it: ask me for a *long* answer, and reload the page.`,
  },
  {
    name: 'crashes',
    title: 'Crashes and retries',
    pattern: /crash|kill|durab|recover|retr|restart/,
    text: `A Run belongs to no process. A worker holds it by a **lease**, and renews the lease while it works.

| what happens | what Spool does |
|---|---|
| a worker is killed | another one continues after the last stored step |
| the queue loses its data | it is filled again from PostgreSQL |
| the provider fails | the step is repeated, with a pause |
| it still fails | the Run ends with an error that says whether a retry can help |

Text of an interrupted step is void. Clients remove it, and get the repeated step.`,
  },
  {
    name: 'files',
    title: 'Files',
    pattern: /file|upload|attach|artifact|document/,
    text: `A message can carry files: the caller uploads a draft, and names its id in the message. Tools read attachments, and save **artifacts**.

Attach a file to your next message. I tell you its name and size, which is all that a script can do with it.`,
  },
  {
    name: 'tools',
    title: 'Tools',
    pattern: /tool|mcp|server|function/,
    text: `The tools of an Agent come from **MCP servers** that its manifest names, over HTTP or as processes. File tools are built in.

A call has an id that stays the same when it is repeated. Spool repeats a call after a crash only if the tool says that this is safe.`,
  },
  {
    name: 'agents',
    title: 'Agents',
    pattern: /agent|manifest|model|openai|anthropic|llm|provider|gpt|claude/,
    text: `An Agent is a **manifest**: a model, instructions, tools and limits. Each change is a new version, and a Run keeps its version.

\`\`\`yaml
name: support
model: {provider: openai-compatible, name: my-model, apiKey: {env: OPENAI_API_KEY}}
instructions: Answer in one paragraph.
tools: [{pattern: 'refund_*', policy: ask}]
\`\`\`

Start Spool with \`OPENAI_API_KEY\`, \`OPENAI_BASE_URL\` or \`ANTHROPIC_API_KEY\` set, and \`npm start\` also publishes an assistant with a real model.`,
  },
  {
    name: 'threads',
    title: 'Threads and Runs',
    pattern: /thread|\bruns?\b|spool|conversation|how does|what is/,
    text: `A **Thread** is a conversation. A **Run** is the work on one message: model steps and tool calls, until the answer is complete.

An application creates a Thread for a user, sends messages, and reads or follows the log. Everything that you see here is built from that log.`,
  },
];
