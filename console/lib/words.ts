/** A name that is most likely free: the word and five letters. */
export const randomName = (word: string): string => `${word}-${Math.random().toString(36).slice(2, 7)}`;
