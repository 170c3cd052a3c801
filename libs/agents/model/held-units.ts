import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { BOUNDS } from '#domain';
import { HarnessError } from '../harness.ts';
import type { ProviderName } from './model-settings.ts';

const MAX_HELD = BOUNDS.answers.held.value;
/** What an entry counts besides its text, because an answer could have any number of empty ones. */
const FRAME = 64;

/**
 * Counts what the providers' packages hold of a stream without emitting it. Both keep arguments of calls that they cannot name
 * yet, ids and citations. `Answer` counts only what they emit. Takes events as the provider sent them, of any shape.
 */
class HeldUnits {
  private units = 0;
  /** The last id of each call by its index. */
  private readonly ids = new Map<unknown, unknown>();

  constructor(private readonly provider: ProviderName) {}

  /** Throws HarnessError (`output_too_large`). */
  take(event: unknown): void {
    if (this.provider === 'anthropic') this.units += anthropicUnits(event);
    else this.takeCompatible(event);
    if (this.units > MAX_HELD) throw new HarnessError('output_too_large');
  }

  private takeCompatible(event: unknown): void {
    const [choice] = listOf(fieldsOf(event).choices);
    for (const call of listOf(fieldsOf(fieldsOf(choice).delta).tool_calls)) {
      const { index, id, extra_content: extra, function: called } = fieldsOf(call);
      this.units += unitsOf(fieldsOf(called).arguments);
      // Most providers send the id once, or the same one with each piece.
      if (this.ids.has(index) && (id ?? this.ids.get(index)) === this.ids.get(index)) continue;
      this.units += FRAME + unitsOf(id) + unitsOf(extra);
      this.ids.set(index, id);
    }
  }
}

/** Events whose content is emitted at once, or forgotten. */
const PASSING_EVENTS: readonly unknown[] = ['ping', 'content_block_stop', 'message_stop'];
const PASSING_DELTAS: readonly unknown[] = ['text_delta', 'thinking_delta', 'signature_delta'];

function anthropicUnits(event: unknown): number {
  const { type, delta } = fieldsOf(event);
  if (PASSING_EVENTS.includes(type)) return 0;
  if (type !== 'content_block_delta') return FRAME + unitsOf(event);
  const { type: deltaType, partial_json: json } = fieldsOf(delta);
  if (PASSING_DELTAS.includes(deltaType)) return 0;
  return deltaType === 'input_json_delta' ? unitsOf(json) : FRAME + unitsOf(delta);
}

/** Returns the units of all texts in a value of JSON, with a frame for each entry of a list or map. */
function unitsOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let units = 0;
  for (const [key, field] of Object.entries(value)) units += FRAME + key.length + unitsOf(field);
  return units;
}

const fieldsOf = (value: unknown): Record<string, unknown> => Object(value) as Record<string, unknown>;
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/**
 * Ends a stream with HarnessError (`output_too_large`) when the provider's package holds too much of it. The stream needs raw
 * chunks. Passes on only those that report usage, because others, such as `ping`, must not end the provider's silence.
 */
export function withBoundedHeld(
  parts: ReadableStream<LanguageModelV3StreamPart>,
  provider: ProviderName,
): ReadableStream<LanguageModelV3StreamPart> {
  const held = new HeldUnits(provider);
  const bound = new TransformStream<LanguageModelV3StreamPart, LanguageModelV3StreamPart>({
    transform(part, controller) {
      if (part.type !== 'raw') return controller.enqueue(part);
      held.take(part.rawValue);
      const { usage, message } = fieldsOf(part.rawValue);
      if ((usage ?? fieldsOf(message).usage ?? null) !== null) controller.enqueue(part);
    },
  });
  return parts.pipeThrough(bound);
}
