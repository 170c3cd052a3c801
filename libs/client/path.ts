/** Returns a path with ids in it. Throws TypeError for a value that is no id, because it could lead to another path. */
export function path(texts: TemplateStringsArray, ...ids: string[]): string {
  for (const id of ids) if (!/^[\w-]+$/.test(id)) throw new TypeError(`"${id}" is not an id.`);
  return String.raw({ raw: texts }, ...ids);
}
