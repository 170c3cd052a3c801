import { linesOf } from './progress-lines.ts';

interface Report {
  pages: number;
}

const describeReport = ({ pages }: Report, done: boolean) => ({ pages, done });
const never = new AbortController().signal;

/** Work that does one page for each call of `page`. */
function pagedWork() {
  const state = { pages: 0, ended: false };
  let proceed: () => void = () => undefined;
  const work = async (onProgress: (report: Report) => void): Promise<Report> => {
    try {
      for (;;) {
        await new Promise<void>((resolve) => (proceed = resolve));
        state.pages++;
        if (state.pages === 5) return { pages: 5 };
        onProgress({ pages: state.pages });
      }
    } finally {
      state.ended = true;
    }
  };
  const page = async (): Promise<void> => {
    proceed();
    await new Promise(setImmediate);
  };
  return { state, work, page };
}

test('yields the latest report during the work, and the final one immediately', async () => {
  const { work, page } = pagedWork();
  const lines = linesOf(describeReport, work, never);
  const first = lines.next();
  await page();
  await page();
  expect(await first).toEqual({ done: false, value: { pages: 2, done: false } });
  const last = lines.next();
  for (let i = 0; i < 3; i++) await page();
  expect(await last).toEqual({ done: false, value: { pages: 5, done: true } });
  expect(await lines.next()).toEqual({ done: true, value: undefined });
});

test('stops the work at its next report when the reader leaves, and waits until it has ended', async () => {
  const { state, work, page } = pagedWork();
  const lines = linesOf(describeReport, work, never);
  const first = lines.next();
  await page();
  await first;
  const left = lines.return(undefined);
  await new Promise(setImmediate);
  expect(state.ended).toBe(false);
  await page();
  await left;
  expect(state).toEqual({ pages: 2, ended: true });
});

test('stops the work at its next report and ends the lines when the signal aborts', async () => {
  const { state, work, page } = pagedWork();
  const aborting = new AbortController();
  const lines = linesOf(describeReport, work, aborting.signal);
  const first = lines.next();
  aborting.abort();
  await page();
  expect(await first).toEqual({ done: true, value: undefined });
  expect(state).toEqual({ pages: 1, ended: true });
});

test('throws the error of the work', async () => {
  const lines = linesOf(describeReport, () => Promise.reject(new Error('broken')), never);
  await expect(lines.next()).rejects.toThrow('broken');
});
