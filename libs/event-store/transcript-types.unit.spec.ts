import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventTypesWith } from '#domain';

test.each(['migrations/0001-initial.sql', 'read-transcript.sql', 'read-transcript-bytes.sql'])(
  '%s has the types of the transcript, in the words of the index, so that the planner uses the index',
  (fileName) => {
    const text = readFileSync(join(import.meta.dirname, fileName), 'utf8');
    const [, list = ''] = /type in \(('message\.added', [^)]*)\)/.exec(text) ?? [];
    expect(list.split(', ').toSorted()).toEqual(
      eventTypesWith('inTranscript')
        .map((type) => `'${type}'`)
        .toSorted(),
    );
  },
);
