import { eventually } from './eventually.ts';

it('returns the first truthy answer', async () => {
  const answers = [undefined, null, false, 0, 'there'];
  await expect(eventually(() => answers.shift(), { what: 'it is there' })).resolves.toBe('there');
});

it('takes a throw for "not yet"', async () => {
  let calls = 0;
  const ask = (): number => {
    if (++calls < 3) throw new Error('not yet');
    return calls;
  };
  await expect(eventually(ask, { what: 'it has been called often enough' })).resolves.toBe(3);
});

it('names what it waited for, and the last error as the cause', async () => {
  const broken = new Error('the door is shut');
  const waiting = eventually(() => Promise.reject<boolean>(broken), { what: 'the door opens', timeoutMs: 20 });
  await expect(waiting).rejects.toThrow(/20 ms in vain until the door opens.*the door is shut/);
  await expect(waiting).rejects.toHaveProperty('cause', broken);
});

it('names the last answer', async () => {
  const waiting = eventually(() => null, { what: 'the row is written', timeoutMs: 20 });
  await expect(waiting).rejects.toThrow('Last answer: null');
});

it('ends in time when the question itself is never answered', async () => {
  const waiting = eventually(() => new Promise<boolean>(() => undefined), { what: 'somebody answers', timeoutMs: 20 });
  await expect(waiting).rejects.toThrow('the question is still open');
});
