export interface TextEdit {
  oldText: string;
  newText: string;
  replaceAll: boolean;
  /** The most bytes of the edited file. It is checked before the file is made. */
  maxBytes: number;
}

export function editText(
  file: Uint8Array<ArrayBuffer>,
  edit: TextEdit,
): { count: number; bytes: Uint8Array<ArrayBuffer> } | { refused: string };
