import {
  currentRun,
  openQuestions,
  reduceThread,
  SpoolError,
  type OpenQuestion,
  type PublicFile,
  type StreamStatus,
  type Thread,
  type ThreadMessages,
} from '#client';
import { CommandError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { showControls, showInLine } from '../text.ts';
import type { Access } from './access.ts';
import { findFile, saveFile, uploadFile } from './files.ts';
import { chatHelp, parseDecision, parseInput, type ChatCommand } from './input.ts';
import { ignoreDecided } from './plain.ts';
import { Renderer } from './render.ts';
import { Screen, type Line } from './screen.ts';

/** Runs a chat on the terminal until the person exits. Throws CommandError and SpoolError. */
export async function chatOnTerminal(session: Session, access: Access, allowsAll: boolean): Promise<void> {
  await new TerminalChat(access, allowsAll, session.coloured).run();
}

const ACTIVE: ReadonlySet<string> = new Set(['queued', 'running', 'waiting_input']);
const RETRIABLE: ReadonlySet<string> = new Set(['failed', 'cancelled', 'expired']);

interface Unsent {
  text: string;
  files: PublicFile[];
  /** Whether the text is on the screen already. */
  wasShown: boolean;
}

/** A chat on a terminal. Derives the screen from the messages of the Thread, so other clients can act at the same time. */
class TerminalChat {
  private readonly screen: Screen;
  private renderer: Renderer;
  private thread: Thread | null = null;
  private following = new AbortController();
  private state: ThreadMessages = { messages: [] };
  /** Runs that the messages do not show yet. */
  private readonly pending = new Set<string>();
  /** Requests that were decided here, and Runs that were stopped here. */
  private readonly decided = new Set<string>();
  private readonly stopped = new Set<string>();
  private question: OpenQuestion | null = null;
  /** Files that were uploaded for the next message. */
  private readonly files: PublicFile[] = [];
  /** Messages that are sent when no Run is active. Until then, the service can refuse them. */
  private readonly waiting: Unsent[] = [];
  private isSending = false;
  private busy = 0;
  private inputs = Promise.resolve();
  private status: StreamStatus = 'live';
  private end!: { resolve: () => void; reject: (error: unknown) => void };
  private readonly ended = new Promise<void>((resolve, reject) => (this.end = { resolve, reject }));
  private hasLeft = false;

  constructor(
    private readonly access: Access,
    private allowsAll: boolean,
    private readonly coloured: boolean,
  ) {
    this.renderer = new Renderer(coloured);
    this.screen = new Screen({
      line: (line) => this.enqueue(() => this.take(line)),
      interrupt: () => this.interrupt(),
      close: () => this.leave(),
    });
  }

  async run(): Promise<void> {
    const { agentName, threadId } = this.access;
    this.note(`Chat with ${agentName}. /help lists the commands; Ctrl+C stops an answer, or exits.`);
    if (threadId !== null) this.open(threadId);
    this.update();
    try {
      await this.ended;
    } finally {
      this.hasLeft = true;
      this.following.abort();
      this.screen.close();
    }
  }

  private open(threadId: string): void {
    this.thread = this.access.client.thread(threadId);
    const following = (this.following = new AbortController());
    this.follow(this.thread, following.signal).catch((error: unknown) => {
      if (!following.signal.aborted) this.end.reject(error);
    });
  }

  private async follow(thread: Thread, signal: AbortSignal): Promise<void> {
    const { messages, lastEventId } = await thread.messages({ signal });
    signal.throwIfAborted();
    this.show({ messages });
    const onStatus = (status: StreamStatus, error: SpoolError | null): void => {
      if (signal.aborted || status === this.status) return;
      if (status === 'reconnecting' && error !== null) this.note(`Connection lost: ${error.message} Reconnecting.`);
      this.status = status;
    };
    for await (const entry of thread.stream({ after: lastEventId, signal, onStatus })) {
      if (signal.aborted) return;
      this.show(reduceThread([entry], this.state));
    }
  }

  private show(state: ThreadMessages): void {
    this.state = state;
    for (const { runId } of state.messages) if (runId !== null) this.pending.delete(runId);
    const text = this.renderer.render(state.messages);
    if (text !== '') this.screen.write(text);
    this.update();
  }

  /** Does what the state needs: allows a call, sends a waiting message, or shows or hides the prompt. */
  private update(): void {
    if (this.hasLeft) return;
    this.question = openQuestions(this.state.messages).find(({ requestId }) => !this.decided.has(requestId)) ?? null;
    const { question } = this;
    if (question !== null && this.allowsAll) {
      this.decided.add(question.requestId);
      void this.act(() => this.decide(question, 'allow_once'));
    } else if (question !== null) {
      this.screen.ask(`Allow ${showInLine(question.toolName)}? [y/n] `, question.requestId);
    } else if (this.busy > 0 || this.activeRunId() !== null) {
      this.screen.hide();
    } else if (this.waiting.length > 0) {
      this.enqueue(() => this.sendNext());
    } else {
      this.screen.write(this.renderer.startLine());
      this.screen.ask('> ', null);
    }
  }

  private activeRunId(): string | null {
    const run = currentRun(this.state.messages);
    if (run !== null && ACTIVE.has(run.status)) return run.id;
    return [...this.pending][0] ?? null;
  }

  /** Lines and messages are handled one after the other. */
  private enqueue(what: () => Promise<void>): void {
    this.inputs = this.inputs.then(() => this.act(what));
  }

  /** Runs an action with the message prompt hidden. Shows errors of the command or service; ends the chat on others. */
  private async act(what: () => Promise<void>): Promise<void> {
    this.busy++;
    this.update();
    try {
      await what();
    } catch (error) {
      if (error instanceof CommandError || error instanceof SpoolError) this.note(`Error: ${error.message}`);
      else this.end.reject(error);
    } finally {
      this.busy--;
      this.update();
    }
  }

  private async take({ text, askedId, wasShown }: Line): Promise<void> {
    const input = parseInput(text);
    if (input.type === 'command') await this.commands[input.name](input.rest);
    else if (input.type === 'unknown') this.note(`Unknown command ${input.word}; /help lists the commands.`);
    else if (askedId !== null) await this.answer(askedId, text);
    else if (text.trim() !== '') this.waiting.push({ text: input.text, files: this.files.splice(0), wasShown });
  }

  private async answer(askedId: string, text: string): Promise<void> {
    const { question } = this;
    const decision = parseDecision(text);
    if (question?.requestId !== askedId) this.note('This call was already decided.');
    else if (decision === null) this.note('Answer y or n, or /stop.');
    else await this.decide(question, decision);
  }

  private readonly commands: Record<ChatCommand, (rest: string) => Promise<void>> = {
    stop: async () => {
      const runId = this.activeRunId();
      if (runId === null) this.note('No answer is active.');
      else await this.stop(runId);
    },
    retry: async () => {
      const run = currentRun(this.state.messages);
      if (this.thread === null || run === null || !RETRIABLE.has(run.status)) {
        return this.note('Only a failed or stopped answer can be retried.');
      }
      this.await((await this.thread.retry(run.id)).id);
    },
    file: async (path) => {
      const file = await uploadFile(this.access.client, this.access.agentId, path);
      this.files.push(file);
      this.note(`Attached to the next message: ${this.files.map(({ name }) => name).join(', ')}`);
    },
    save: async (text) => {
      const found = findFile(this.state.messages, text);
      await saveFile(this.access.client, found);
      this.note(`Saved ${found.path}.`);
    },
    new: async () => {
      this.noteThread();
      this.following.abort();
      this.thread = null;
      this.state = { messages: [] };
      this.pending.clear();
      this.waiting.length = 0;
      this.files.length = 0;
      this.renderer = new Renderer(this.coloured);
      this.note('New chat.');
    },
    help: async () => this.screen.write(this.renderer.line(chatHelp())),
    quit: async () => this.leave(),
  };

  /** Sends the first message that waits. After a failure, none waits any more, and their files are those of the next message. */
  private async sendNext(): Promise<void> {
    const [next] = this.waiting;
    if (next === undefined || this.activeRunId() !== null) return;
    this.isSending = true;
    try {
      await this.send(next);
      this.waiting.shift();
    } catch (error) {
      this.noteUnsent();
      this.files.unshift(...this.waiting.splice(0).flatMap(({ files }) => files));
      throw error;
    } finally {
      this.isSending = false;
    }
  }

  private async send({ text, files, wasShown }: Unsent): Promise<void> {
    const { client, agentId, userId } = this.access;
    const options = { files: files.map(({ id }) => id) };
    if (wasShown) this.renderer.expectTyped(text);
    const sent = this.thread?.send(text, options) ?? client.agent(agentId).send(text, { userId, ...options });
    const run = await sent.catch((error: unknown) => {
      this.renderer.forgetTyped(text);
      throw error;
    });
    this.await(run.id);
    if (this.thread === null) this.open(run.threadId);
  }

  private await(runId: string): void {
    if (this.state.messages.every((message) => message.runId !== runId)) this.pending.add(runId);
  }

  private async decide({ requestId }: OpenQuestion, decision: 'allow_once' | 'reject_once'): Promise<void> {
    this.decided.add(requestId);
    try {
      await this.thread?.decide(requestId, decision).catch(ignoreDecided);
    } catch (error) {
      this.decided.delete(requestId);
      this.allowsAll = false;
      throw error;
    }
  }

  private async stop(runId: string): Promise<void> {
    this.stopped.add(runId);
    await this.thread?.interrupt(runId);
  }

  private interrupt(): void {
    const runId = this.activeRunId();
    if (runId === null || this.stopped.has(runId)) this.leave();
    else void this.act(() => this.stop(runId));
  }

  private leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    this.screen.hide();
    this.noteThread();
    this.end.resolve();
  }

  private noteUnsent(): void {
    for (const { text } of this.waiting) this.note(`Not sent: ${text}`);
  }

  private noteThread(): void {
    const [first] = this.waiting;
    if (this.isSending && first !== undefined) {
      this.waiting.shift();
      this.note(`Maybe sent: ${first.text}`);
    }
    this.noteUnsent();
    if (this.thread === null) return;
    const state = this.activeRunId() === null ? '' : 'The Run continues. ';
    this.note(`${state}To continue: spool chat --thread ${this.thread.id}`);
  }

  private note(text: string): void {
    this.screen.write(this.renderer.line(showControls(text)));
  }
}
