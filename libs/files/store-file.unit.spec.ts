import { plainFileName } from './store-file.ts';

describe('plainFileName', () => {
  it.each([
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['..', 'file'],
    ['', 'file'],
    ['line\nbreak\u0000.txt', 'linebreak.txt'],
    ['x'.repeat(300), 'x'.repeat(255)],
  ])('changes %j to %j', (name, plain) => {
    expect(plainFileName(name)).toBe(plain);
  });
});
