/** Length is what makes guessing hopeless; no rules about signs and digits. */
export const PASSWORD_LENGTH_MIN = 10;
/** Longer texts are no password that the platform would have accepted. */
export const PASSWORD_LENGTH_MAX = 256;
