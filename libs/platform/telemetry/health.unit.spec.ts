import { HealthCheck } from './health.ts';

test('concurrent callers share one probe, and the next caller starts another', async () => {
  let looks = 0;
  const works = () => Promise.resolve(++looks === 1);
  const health = new HealthCheck({ part: { name: 'It does not answer', means: 'nothing.', works } });
  const together = await Promise.all([health.look(), health.look(), health.look()]);
  expect(together.map(({ part }) => part.works)).toEqual([true, true, true]);
  expect((await health.look()).part.works).toBe(false);
  expect(looks).toBe(2);
});
