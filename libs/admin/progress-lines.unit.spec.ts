import { linesOf } from './progress-lines.ts';

interface Report {
  pages: number;
}

const describeReport = ({ pages }: Report, done: boolean) => ({ pages, done });
const never = new AbortController().signal;

/** Work of a page each time it is let go on. */
function pagedWork() {
  const state = { pages: 0, ended: false };
  let goOn: () => void = () => undefined;
  const work = async (onProgress: (report: Report) => void): Promise<Report> => {
    try {
      for (;;) {
        await new Promise<void>((resolve) => (goOn = resolve));
        state.pages++;
        if (state.pages === 5) return { pages: 5 };
        onProgress({ pages: state.pages });
      }
    } finally {
      state.ended = true;
    }
  };
  const page = async (): Promise<void> => {
    goOn();
    await new Promise(setImmediate);
  };
  return { state, work, page };
}

test('the latest report comes while the work goes on, and its last one at once', async () => {
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

test('who reads no further stops the work at its next report, and is let go when it has ended', async () => {
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

test('a signal stops the work at its next report, and the lines end', async () => {
  const { state, work, page } = pagedWork();
  const aborting = new AbortController();
  const lines = linesOf(describeReport, work, aborting.signal);
  const first = lines.next();
  aborting.abort();
  await page();
  expect(await first).toEqual({ done: true, value: undefined });
  expect(state).toEqual({ pages: 1, ended: true });
});

test('a failure of the work is thrown', async () => {
  const lines = linesOf(describeReport, () => Promise.reject(new Error('broken')), never);
  await expect(lines.next()).rejects.toThrow('broken');
});
