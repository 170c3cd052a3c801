export interface TextEdit {
  oldText: string;
  newText: string;
  replaceAll: boolean;
}

/** The text with the replacement made, and how many times; or why it cannot be, a sentence. */
export function editText(text: string, edit: TextEdit): { text: string; count: number } | { refused: string } {
  if (edit.oldText === '') return { refused: 'old_text is empty: write_file makes a whole file.' };
  if (edit.oldText === edit.newText) return { refused: 'old_text and new_text are the same.' };
  const { oldText, newText } = asWritten(text, edit);
  const first = text.indexOf(oldText);
  if (first === -1)
    return { refused: 'old_text is not in the file. It must be exactly what is there, white space included.' };
  // Two that overlap are two as well: which one is meant?
  const isOnly = text.indexOf(oldText, first + 1) === -1;
  if (!isOnly && !edit.replaceAll) {
    return { refused: 'old_text is in the file more than once. Give more of what is around it, or set replace_all.' };
  }
  const parts = text.split(oldText);
  return { text: parts.join(newText), count: parts.length - 1 };
}

/** Models write `\n`, also where lines end in `\r\n`. */
function asWritten(text: string, { oldText, newText }: TextEdit): Pick<TextEdit, 'oldText' | 'newText'> {
  if (text.includes(oldText) || !text.includes('\r\n')) return { oldText, newText };
  const withReturns = (part: string): string => part.replaceAll(/\r?\n/g, '\r\n');
  return { oldText: withReturns(oldText), newText: withReturns(newText) };
}
