import { runMain } from '#platform';
import { createProgram } from './program.ts';

runMain(async () => {
  await createProgram().parseAsync();
});
