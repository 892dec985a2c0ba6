/** What a question means: the embedding of its last text, beside all that has to be the same. */

export interface Meaning {
  /** Tells questions apart that differ in more than their last text. */
  frame: string;
  /** Of length 1. */
  vector: Float32Array;
  /** The numbers in the text. Embeddings hardly tell 2019 from 2020, and the answers differ. */
  numbers: string;
}

/** The longest vector of today's embedding models has 4096 numbers. */
const DIMENSIONS_MAX = 8192;

/** Null when this is no embedding. */
export function meaningOf(frame: string, text: string, embedding: unknown): Meaning | null {
  if (!Array.isArray(embedding) || embedding.length === 0 || embedding.length > DIMENSIONS_MAX) return null;
  if (!embedding.every((value) => Number.isFinite(value))) return null;
  const vector = Float32Array.from(embedding as number[]);
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  if (!(length > 0) || !Number.isFinite(length)) return null;
  return { frame, vector: vector.map((value) => value / length), numbers: text.match(/\d+/g)?.join(" ") ?? "" };
}

/** The cosine of the angle between two embeddings; -1 where the questions cannot mean the same. */
export function similarityOf(one: Meaning, other: Meaning | null): number {
  if (!other || one.numbers !== other.numbers || one.vector.length !== other.vector.length) return -1;
  let sum = 0;
  // A question is compared with a thousand others: an iterator here takes ten times as long.
  for (let index = 0; index < one.vector.length; index += 1)
    sum += (one.vector[index] as number) * (other.vector[index] as number);
  return Math.min(1, sum);
}
