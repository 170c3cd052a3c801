import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventTypes, eventTypesWith } from '#domain';

const TRANSCRIPT = eventTypesWith('inTranscript');
const MESSAGES = eventTypesWith('inMessages');
const ENDS = ['run.completed', 'run.failed', 'run.cancelled', 'run.expired'];
const SETS = eventTypes(({ openStep }) => openStep === 'sets');
const CLEARS = eventTypes(({ openStep }) => openStep === 'clears');
const OF_TOOLS = ['tool.started', 'tool.completed'];
const VISIBLE = eventTypes(({ openStep, entry }) => openStep === 'sets' && entry === 'agent.message.delta');

// The statements have constants, so that the planner uses partial indexes.
test.each<[string, RegExp, string[][]]>([
  ['migrations/0001-initial.sql', /type in \(('message\.added',[^)]*)\)/g, [TRANSCRIPT]],
  ['read-transcript.sql', /type in \(([^)]*)\)/g, [TRANSCRIPT]],
  ['read-transcript-bytes.sql', /type in \(([^)]*)\)/g, [TRANSCRIPT, CLEARS]],
  ['read-transcript-bytes.sql', /deltas\.type = ('[^']*')/g, [VISIBLE]],
  ['read-stopped-texts.sql', /type in \(([^)]*)\)/g, [CLEARS]],
  ['read-stopped-texts.sql', /deltas\.type = ('[^']*')/g, [VISIBLE]],
  ['migrations/0021-message-indices.sql', /type in \(([^)]*)\)/g, [MESSAGES]],
  ['read-messages.sql', /events\.run_id = queued\.run_id\s+and type in \(([^)]*)\)/g, [MESSAGES]],
  ['read-messages.sql', /events\.type in \(([^)]*)\)/g, [SETS]],
  ['read-messages.sql', /where type in \(([^)]*)\)/g, [ENDS]],
  ['../admin/queries/run-content.sql', /type in \(([^)]*)\)/g, [MESSAGES]],
  ['../run-engine/find-open-step.sql', /type in \(([^)]*)\)/g, [SETS, [...SETS, ...CLEARS, ...OF_TOOLS]]],
])('%s has the event types of the table, matching %s', (fileName, pattern, lists) => {
  const text = readFileSync(join(import.meta.dirname, fileName), 'utf8');
  const found = [...text.matchAll(pattern)].map(([, list = '']) => list.trim().split(/,\s+/).toSorted());
  expect(found).toEqual(lists.map((list) => list.map((type) => `'${type}'`).toSorted()));
});
