/** Imported as text. */
declare const text: string;
export = text;
