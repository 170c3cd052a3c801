/**
 * Returns a part of an OpenAPI document in which every object takes only the properties that it names. The published
 * documents leave answers open to fields of later releases. A check of this release must still detect unintended fields.
 */
export function closeSchemas<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map((item: unknown) => closeSchemas(item)) as Part;
  if (typeof part !== 'object' || part === null) return part;
  const closed = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, closeSchemas<unknown>(value)]));
  const isOpen = closed['type'] === 'object' && 'properties' in closed && !('additionalProperties' in closed);
  return { ...closed, ...(isOpen ? { additionalProperties: false } : {}) } as Part;
}
