import { choices } from './choices.ts';

test('offers each once, by name, and tells those apart that are called the same', () => {
  const [ann, ben, other] = [
    { id: '01M819JVZNX5AFVMG1PP3BM1G9', name: 'Ann' },
    { id: '01M819JW08EPSZTAP367P7M7W1', name: 'Ben' },
    { id: '01M819JW1TXBJ3N8P2PMFABWBS', name: 'Ann' },
  ] as const;
  expect(choices([ben, ann], undefined, [ann])).toEqual([
    { value: ann.id, label: 'Ann' },
    { value: ben.id, label: 'Ben' },
  ]);
  expect(choices([ben, other, ann]).map(({ label }) => label)).toEqual([
    'Ann (01M8…3BM1G9)',
    'Ann (01M8…FABWBS)',
    'Ben',
  ]);
});
