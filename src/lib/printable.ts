/**
 * Makes foreign text safe for a terminal. Control characters could move the cursor, rename the window or hide text.
 * Characters that a terminal does not draw are shown as their numbers: with them a text reads differently than it is.
 */
export const printable = (text: string): string => text.replace(CONTROL, "\uFFFD").replace(UNSEEN, numberOf);

/** JSON of the same value, in which characters that a terminal obeys or does not draw are written as escapes. */
export const printableJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(OBEYED_OR_UNSEEN, jsonEscape);

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for; tab and newline may stay
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g;

/** Zero widths, tags, fillers, directions, soft hyphens and line separators. Emoji keep what joins and colours them. */
const UNSEEN =
  /(?!(?<=\p{Emoji})\uFE0F|(?<=\p{Extended_Pictographic}[\uFE0F\u{1F3FB}-\u{1F3FF}]?)\u200D(?=\p{Extended_Pictographic}))[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/gu;

const OBEYED_OR_UNSEEN = /[\u007F-\u009F\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}]/gu;

const numberOf = (found: string): string => `\\u{${found.codePointAt(0)?.toString(16).toUpperCase()}}`;

/** JSON writes characters beyond the first 65536 as two escapes. */
const jsonEscape = (found: string): string =>
  Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
