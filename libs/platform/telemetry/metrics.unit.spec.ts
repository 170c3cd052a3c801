import { counter, gauge, onScrape, scrape } from './metrics.ts';

// Other spec files of this Jest worker have metrics too.
jest.resetModules();

const slots = gauge('spool_some_slots', 'Slots.');
counter('spool_some_total', 'Things.', { kind: ['one', 'two'], outcome: ['ok', 'failed'] });

test('counters start at 0 if their labels are known, and gauges have no value until they are set', async () => {
  const { text } = await scrape();
  for (const kind of ['one', 'two']) expect(text).toMatch(`\nspool_some_total{kind="${kind}",outcome="failed"} 0\n`);
  expect(text).toMatch('# TYPE spool_some_slots gauge');
  expect(text).not.toMatch(/^spool_some_slots /m);
});

const answersAnyway = async (): Promise<void> => {
  const ends = [
    onScrape(() => Promise.reject(new Error('unavailable'))),
    onScrape(() => new Promise(() => undefined)),
    onScrape(() => slots.set(4)),
  ];
  const { text, contentType } = await scrape();
  ends.forEach((end) => end());
  slots.remove();
  expect(contentType).toMatch(/^text\/plain/);
  expect(text).toMatch(/^spool_some_slots 4$/m);
};
test('a scrape is answered although a collector fails or does not return', answersAnyway, 10_000);
