/** Shortest password. Length alone makes guessing infeasible, so there are no rules about character classes. */
export const PASSWORD_LENGTH_MIN = 10;
/** Longest password; a longer text is never accepted. */
export const PASSWORD_LENGTH_MAX = 256;
