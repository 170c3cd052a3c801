import { isFields, type Fields } from './json-fields.ts';

/** The type of an error that the provider sent in its answer. Its message is the JSON of what was sent. */
export const REPORTED = 'reported_in_answer';

/** Codes of an error object that says that there is no error. */
const NO_ERROR: readonly unknown[] = [0, 200, '0', '200'];

/**
 * Returns the error that an event of an answer is or holds, if any: in the field `error`, by its type, in a choice that ended so,
 * or bare, as a message without anything that an answer has. An empty error beside an answer is none.
 */
export function errorIn(event: Fields): Fields | undefined {
  const { error, choices, message, detail, type, object, usage } = event;
  const isTold = isFields(error)
    ? !NO_ERROR.includes(error.code) && Object.values(error).some((value) => value !== null && value !== '')
    : typeof error === 'string' && error !== '';
  if (isTold || object === 'error' || type === 'error') return event;
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  if (isFields(choice) && choice.finish_reason === 'error') return choice;
  const isBare = [message, detail].some((text) => typeof text === 'string') && !choices && !usage && !object;
  // Events of other types may have a message too, such as the status of a gateway.
  return isBare && (typeof type !== 'string' || /error|exception/i.test(type)) ? event : undefined;
}
