/** Reads the question of a DNS message, and refuses it. */

const HEADER_BYTES = 12;
const LABEL_BYTES_MAX = 63;
/** Type and class, after the name. */
const QUESTION_TAIL_BYTES = 4;
const REFUSED = 5;

export interface DnsQuestion {
  name: string;
  /** Header and question as sent. */
  bytes: Buffer;
}

/** Null when the message does not ask for exactly one name. */
export function readQuestion(query: Buffer): DnsQuestion | null {
  if (query.length < HEADER_BYTES || (query.readUInt8(2) & 0xf8) !== 0 || query.readUInt16BE(4) !== 1) return null;
  const labels: string[] = [];
  for (let at = HEADER_BYTES; at < query.length; ) {
    const length = query.readUInt8(at);
    const next = at + 1 + length;
    if (length === 0) {
      const end = next + QUESTION_TAIL_BYTES;
      return end <= query.length ? { name: labels.join("."), bytes: query.subarray(0, end) } : null;
    }
    if (length > LABEL_BYTES_MAX || next > query.length) return null;
    const label = query.toString("latin1", at + 1, next);
    // A dot inside a label would read like two labels.
    if (label.includes(".")) return null;
    labels.push(label);
    at = next;
  }
  return null;
}

/** The question as an answer without content. */
export function refusedAnswer({ bytes }: DnsQuestion): Buffer {
  const answer = Buffer.from(bytes);
  // Flags: response, recursion available, recursion desired copied from the question.
  answer.writeUInt16BE(0x8080 | (bytes.readUInt16BE(2) & 0x0100) | REFUSED, 2);
  // No answers, authorities or additional records.
  answer.fill(0, 6, HEADER_BYTES);
  return answer;
}
