/**
 * Replaces text in a file. Small edits are made where they are asked for; large ones are the task `edit-text`. Plain
 * JavaScript, because the task pool loads it; edit-text-worker.d.mts has the types.
 */
import { isUtf8 } from 'node:buffer';

/** Returns the file with the replacement made and how many times, or a sentence that says why it cannot be made. */
export function editText(file, { oldText, newText, replaceAll, maxBytes }) {
  if (oldText === '') return { refused: 'old_text is empty: write_file makes a whole file.' };
  if (oldText === newText) return { refused: 'old_text and new_text are the same.' };
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (!isUtf8(bytes)) return { refused: 'The file is not UTF-8 text.' };
  // One character for each byte: matches are the same as in the text, and positions count bytes.
  const text = bytes.latin1Slice();
  const [before, after] = asWritten(text, Buffer.from(oldText), Buffer.from(newText));
  const searched = before.latin1Slice();
  const first = text.indexOf(searched);
  if (first === -1)
    return { refused: 'old_text is not in the file. It must be exactly what is there, white space included.' };
  // Overlapping matches are ambiguous, too.
  const isOnly = text.indexOf(searched, first + 1) === -1;
  if (!isOnly && !replaceAll) {
    return { refused: 'old_text is in the file more than once. Give more of what is around it, or set replace_all.' };
  }
  const count = countFrom(text, searched, first);
  const size = bytes.byteLength + count * (after.byteLength - before.byteLength);
  if (size > maxBytes) return { refused: `The edited file would have ${size} bytes. It can have at most ${maxBytes}.` };
  return { count, bytes: replaced(bytes, { text, searched, first, after, size }) };
}

function countFrom(text, searched, first) {
  let count = 0;
  for (let at = first; at !== -1; at = text.indexOf(searched, at + searched.length)) count++;
  return count;
}

function replaced(bytes, { text, searched, first, after, size }) {
  const result = new Uint8Array(size);
  let [from, to] = [0, 0];
  for (let at = first; at !== -1; at = text.indexOf(searched, from)) {
    to = put(result, to, bytes, from, at);
    to = put(result, to, after, 0, after.byteLength);
    from = at + searched.length;
  }
  put(result, to, bytes, from, bytes.byteLength);
  return result;
}

/** For a few bytes a loop is faster than a call. */
const FEW = 32;

function put(target, to, source, from, end) {
  if (end - from > FEW) target.set(source.subarray(from, end), to);
  else for (let i = from; i < end; i++) target[to + i - from] = source[i];
  return to + end - from;
}

/** Models write `\n` even if lines end in `\r\n`. */
function asWritten(text, before, after) {
  if (text.includes(before.latin1Slice()) || !text.includes('\r\n')) return [before, after];
  const withReturns = (part) => Buffer.from(part.latin1Slice().replaceAll(/\r?\n/g, '\r\n'), 'latin1');
  return [withReturns(before), withReturns(after)];
}

export default (edit, bytes) => {
  const { bytes: edited, ...value } = editText(bytes, edit);
  return { value, bytes: edited };
};
