import { spawnGuarded } from './guarded-process.ts';

test('has ended its program when end() resolves', async () => {
  for (let time = 0; time < 20; time++) {
    const program = await spawnGuarded('sleep', ['60']);
    program.signal('SIGSTOP'); // alive until now, and a stopped program ends too
    await program.end();
    expect(() => program.signal('SIGCONT')).toThrow('ESRCH');
  }
});
