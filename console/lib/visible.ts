/**
 * Characters that nobody sees, as their numbers. A model reads them: a definition could say one thing to the person who
 * approves it and another to the model.
 */
export const visible = (text: string): string =>
  text.replace(UNSEEN, (found) => `\\u{${found.codePointAt(0)?.toString(16).toUpperCase()}}`);

/** What Unicode says is not drawn (tags, zero widths, variants), directions, private and unassigned ones, line separators. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u007F-\u009F\u2800]/gu;
