import { randomUUID } from 'node:crypto';
import type { LanguageModelV3Message, LanguageModelV3Prompt, LanguageModelV3ToolResultOutput } from '@ai-sdk/provider';
import { BOUNDS } from '#domain';
import { ownTurn, pauseIfLong } from '#platform';
import { jsonWeight } from '../json-weight.ts';
import type { Fetch } from './providers.ts';

/** UTF-16 units of a text, or bytes of a file, that is written by itself. */
const LARGE = BOUNDS.transcripts.part.value;
/** Likewise the weight of an input. */
const LARGE_INPUT = BOUNDS.transcripts.input.value;

type Part = Exclude<LanguageModelV3Message['content'], string>[number];

/**
 * The large parts of a request. The provider's package serializes a request in one step, which takes long for megabytes: so it
 * is given marks in their place, and each part is written by itself when the request is sent.
 */
export class LargeParts {
  private readonly mark = `large-${randomUUID()}`;
  /** The JSON of each. Of texts without the quotation marks around it. */
  private readonly parts: (() => string)[] = [];

  /** The prompt with marks in the place of its large parts. In slices: even to measure an input can take milliseconds. */
  async take(prompt: LanguageModelV3Prompt): Promise<LanguageModelV3Prompt> {
    const messages: LanguageModelV3Prompt = [];
    for (const message of prompt) {
      if (message.role === 'system') {
        messages.push(message);
        continue;
      }
      const content: Part[] = [];
      for (const part of message.content) {
        content.push(this.markPart(part));
        await pauseIfLong();
      }
      messages.push({ ...message, content } as LanguageModelV3Message);
    }
    return messages;
  }

  /** Returns a `fetch` that writes the parts where their marks are. */
  writing(fetch: Fetch): Fetch {
    return async (input, init) => {
      if (typeof init?.body !== 'string' || this.parts.length === 0) return fetch(input, init);
      await ownTurn();
      const body = await this.write(init.body);
      await ownTurn();
      return fetch(input, { ...init, body });
    };
  }

  private async write(body: string): Promise<Uint8Array<ArrayBuffer>> {
    // An input stands for itself, or within a text as JSON.
    const marks = new RegExp(
      `"${this.mark}-(\\d+)-input"|\\\\"${this.mark}-(\\d+)-input\\\\"|${this.mark}-(\\d+)-text`,
      'g',
    );
    const pieces: Buffer[] = [];
    let from = 0;
    for (const { 0: found, 1: input, 2: inputInText, 3: text, index } of body.matchAll(marks)) {
      const json = this.parts[Number(input ?? inputInText ?? text)]?.() ?? '';
      pieces.push(Buffer.from(body.slice(from, index)));
      pieces.push(Buffer.from(inputInText === undefined ? json : jsonInText(json)));
      from = index + found.length;
      await pauseIfLong();
    }
    await ownTurn();
    return Buffer.concat([...pieces, Buffer.from(body.slice(from))]);
  }

  private markPart(part: Part): Part {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return { ...part, text: this.markText(part.text) };
      case 'file':
        return part.data instanceof Uint8Array ? { ...part, data: this.markBytes(part.data) } : part;
      case 'tool-call':
        return jsonWeight(part.input, LARGE_INPUT) > LARGE_INPUT
          ? { ...part, input: this.markInput(part.input) }
          : part;
      case 'tool-result':
        return { ...part, output: this.markOutput(part.output) };
      default:
        return part;
    }
  }

  private markOutput(output: LanguageModelV3ToolResultOutput): LanguageModelV3ToolResultOutput {
    if (output.type === 'text' || output.type === 'error-text')
      return { ...output, value: this.markText(output.value) };
    if (output.type !== 'content') return output;
    const value = output.value.map((part) => {
      if (part.type === 'text') return { ...part, text: this.markText(part.text) };
      return part.type === 'image-data' ? { ...part, data: this.markText(part.data) } : part;
    });
    return { ...output, value };
  }

  private markText(text: string): string {
    return text.length <= LARGE ? text : `${this.add(() => jsonInText(text))}-text`;
  }

  private markBytes(bytes: Uint8Array): string {
    const { buffer, byteOffset, byteLength } = bytes;
    return `${this.add(() => Buffer.from(buffer, byteOffset, byteLength).toString('base64'))}-text`;
  }

  private markInput(input: unknown): string {
    return `${this.add(() => JSON.stringify(input))}-input`;
  }

  private add(part: () => string): string {
    return `${this.mark}-${this.parts.push(part) - 1}`;
  }
}

/** A text as it stands in JSON, between the quotation marks. */
const jsonInText = (text: string): string => JSON.stringify(text).slice(1, -1);
