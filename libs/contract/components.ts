import { z } from 'zod';

/** Schemas that have a name in the OpenAPI document. */
export const components = z.registry<{ id: string }>();
