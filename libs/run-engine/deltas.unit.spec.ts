import { fixedClock, measureTurns } from '#testing';
import { DeltaGatherer, DeltaWriter, type Delta } from './deltas.ts';

const text = (deltas: Delta[]) => deltas.map(({ data }) => data.text).join('');

describe('DeltaGatherer', () => {
  it('sends the first delta immediately, then every 50 ms', () => {
    const gatherer = new DeltaGatherer();
    expect(gatherer.dueIn(0)).toBeNull();
    gatherer.add('assistant.text_added', 'a');
    expect(gatherer.dueIn(1_000)).toBe(0);
    gatherer.take(1_000);
    gatherer.add('assistant.text_added', 'b');
    expect(gatherer.dueIn(1_010)).toBe(40);
    expect(gatherer.dueIn(1_050)).toBe(0);
    expect(gatherer.dueIn(1_090)).toBe(0);
  });

  it('sends 2 KiB immediately', () => {
    const gatherer = new DeltaGatherer();
    gatherer.take(0);
    gatherer.add('assistant.text_added', 'x'.repeat(2047));
    expect(gatherer.dueIn(1)).toBe(49);
    gatherer.add('assistant.text_added', 'x');
    expect(gatherer.dueIn(1)).toBe(0);
  });

  it('gathers the largest message completely', async () => {
    for (const letter of ['x', 'ä', '漢', '😀']) {
      const message = letter.repeat((1024 * 1024) / letter.length);
      const gatherer = new DeltaGatherer();
      await measureTurns(
        () => {
          gatherer.take(0);
          gatherer.add('assistant.text_added', message);
        },
        { maxMs: 50 },
      );
      expect(text(gatherer.take(0))).toBe(message);
    }
  });

  it('joins deltas of one kind and keeps the order of kinds', () => {
    const gatherer = new DeltaGatherer();
    gatherer.add('assistant.thinking_added', 'hm');
    gatherer.add('assistant.thinking_added', 'm');
    gatherer.add('assistant.text_added', 'a');
    gatherer.add('assistant.text_added', 'b');
    gatherer.add('assistant.thinking_added', 'so');
    expect(gatherer.take(0)).toEqual([
      { type: 'assistant.thinking_added', data: { text: 'hmm' } },
      { type: 'assistant.text_added', data: { text: 'ab' } },
      { type: 'assistant.thinking_added', data: { text: 'so' } },
    ]);
    expect(gatherer.take(0)).toEqual([]);
  });

  it('splits a text larger than a delta between characters', () => {
    const gatherer = new DeltaGatherer();
    const long = 'x' + '😀'.repeat(2_000);
    for (const part of [long.slice(0, 5), long.slice(5, 4_001), long.slice(4_001)])
      gatherer.add('assistant.text_added', part);
    const deltas = gatherer.take(0);
    expect(text(deltas)).toBe(long);
    expect(Math.max(...deltas.map(({ data }) => Buffer.byteLength(data.text)))).toBeLessThanOrEqual(2_048);
    expect(deltas).toHaveLength(4);
  });
});

describe('DeltaWriter', () => {
  /** Makes a writer with a clock, one timer, and an append that ends with `answer`. */
  function makeWriter() {
    const clock = fixedClock(0);
    const sent: Delta[][] = [];
    let answer: { resolve: () => void; reject: (error: Error) => void } | null = null;
    let timer: { callBack: () => void; at: number } | null = null;
    const writer = new DeltaWriter({
      claim: {
        record: (deltas) => {
          sent.push(deltas);
          return new Promise((resolve, reject) => (answer = { resolve, reject }));
        },
      },
      now: clock.now,
      setTimer: (callBack, ms) => {
        timer = { callBack, at: clock.now() + ms };
        return () => (timer = null);
      },
    });
    const advance = (ms: number): void => {
      clock.advance(ms);
      if (timer !== null && timer.at <= clock.now()) {
        const { callBack } = timer;
        timer = null;
        callBack();
      }
    };
    return {
      writer,
      sent,
      advance,
      answer: () => answer,
      sentTexts: () => sent.map(text),
      hasTimer: () => timer !== null,
    };
  }

  it('sends what arrives in one turn together', async () => {
    const { writer, advance, sentTexts, hasTimer } = makeWriter();
    writer.add('assistant.text_added', 'a');
    writer.add('assistant.text_added', 'b');
    expect(sentTexts()).toEqual([]);
    advance(0);
    expect(sentTexts()).toEqual(['ab']);
    expect(hasTimer()).toBe(false);
  });

  it('sends nothing of a step that ends in its first turn', async () => {
    const { writer, advance, sentTexts } = makeWriter();
    writer.add('assistant.text_added', 'a');
    expect(text(await writer.finish())).toBe('a');
    advance(100);
    expect(sentTexts()).toEqual([]);
  });

  it('sends one append at a time, and gathers the next deltas meanwhile', async () => {
    const { writer, advance, answer, sentTexts } = makeWriter();
    writer.add('assistant.text_added', 'a');
    advance(0);
    writer.add('assistant.text_added', 'b');
    advance(200);
    writer.add('assistant.text_added', 'c');
    expect(sentTexts()).toEqual(['a']);
    answer()?.resolve();
    await Promise.resolve();
    advance(0);
    expect(sentTexts()).toEqual(['a', 'bc']);
  });

  it('waits for the rest of 50 ms after a faster append', async () => {
    const { writer, advance, answer, sentTexts } = makeWriter();
    writer.add('assistant.text_added', 'a');
    advance(0);
    answer()?.resolve();
    await Promise.resolve();
    writer.add('assistant.text_added', 'b');
    advance(49);
    expect(sentTexts()).toEqual(['a']);
    writer.add('assistant.text_added', 'c');
    advance(1);
    expect(sentTexts()).toEqual(['a', 'bc']);
  });

  it('returns the unsent deltas from `finish`, after the append under way', async () => {
    const { writer, advance, answer, sentTexts, hasTimer } = makeWriter();
    writer.add('assistant.text_added', 'a');
    advance(0);
    writer.add('assistant.text_added', 'b');
    const finished = writer.finish();
    advance(100);
    answer()?.resolve();
    expect(text(await finished)).toBe('b');
    expect(sentTexts()).toEqual(['a']);
    expect(hasTimer()).toBe(false);
  });

  it('throws the error of an append at the next delta and at the end', async () => {
    const { writer, advance, answer } = makeWriter();
    writer.add('assistant.text_added', 'a');
    advance(0);
    answer()?.reject(new Error('refused'));
    await new Promise(setImmediate);
    expect(() => writer.add('assistant.text_added', 'b')).toThrow('refused');
    await expect(writer.finish()).rejects.toThrow('refused');
  });
});
