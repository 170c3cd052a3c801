import type { FastifyInstance } from 'fastify';
import { BOUNDS } from '#domain';
import { isLargeJson, largeJson } from '#platform';

/** The size, bytes, from which a page of entries or of final outputs ends early. A single item may be larger. */
export const ANSWER_BYTES = BOUNDS.transcripts.page.value;

/** Writes large JSON answers in steps. An answer of 8 MiB in one step would block the event loop for tens of milliseconds. */
export function installLargeAnswers(fastify: FastifyInstance): void {
  fastify.addHook('preSerialization', (_request, reply, payload, done) => {
    if (!isLargeJson(payload)) return done(null, payload);
    largeJson(payload).then((text) => {
      // Fastify sends a Buffer unchanged, although its types require text.
      void reply.serializer(() => text as unknown as string);
      done(null, payload);
    }, done);
  });
}
