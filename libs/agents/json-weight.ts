/** UTF-16 units of text that weigh as much as one value. */
const UNITS_PER_VALUE = 64;

/**
 * Returns the weight of a JSON value: one for each value in it, more for long texts and names. Stops soon after `most`, which
 * bounds the cost.
 */
export function jsonWeight(value: unknown, most: number): number {
  let weight = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && weight <= most) {
    const next = open.pop();
    weight += 1;
    if (typeof next === 'string') weight += next.length / UNITS_PER_VALUE;
    else if (Array.isArray(next)) weight += pushElements(open, next, most);
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        weight += 1 + name.length / UNITS_PER_VALUE;
        if (weight > most) break;
        open.push((next as Record<string, unknown>)[name]);
      }
    }
  }
  return weight;
}

/** Returns the least weight of the elements beyond `most`. */
function pushElements(open: unknown[], elements: readonly unknown[], most: number): number {
  if (elements.length > most) return elements.length;
  for (const element of elements) open.push(element);
  return 0;
}
