/** Makes foreign text safe for a terminal: control characters could move the cursor, rename the window or hide text. */
export const printable = (text: string): string => text.replace(CONTROL, "\uFFFD");

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for; tab and newline may stay
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g;
