/** Reads the question of a DNS message, refuses it, or answers it with addresses. */
import { parseAddress } from "./address-class.ts";

const HEADER_BYTES = 12;
const LABEL_BYTES_MAX = 63;
/** Type and class, after the name. */
const QUESTION_TAIL_BYTES = 4;
const [NO_ERROR, NO_SUCH_NAME, REFUSED] = [0, 3, 5];
const TYPES: Record<number, 4 | 16> = { 1: 4, 28: 16 };
const CLASS_IN = 1;
/** DNS compression pointer to the name in the question. */
const SAME_NAME = 0xc000 | HEADER_BYTES;
/** Names of workloads change hands; a second is as long as a change takes elsewhere. */
const TTL_SECONDS = 1;

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
export const refusedAnswer = (question: DnsQuestion): Buffer => answerTo(question, REFUSED);

/** Null: nobody has the name. A name without an address of the asked kind has an empty answer. */
export function addressAnswer(question: DnsQuestion, addresses: readonly string[] | null): Buffer {
  if (addresses === null) return answerTo(question, NO_SUCH_NAME);
  const { bytes } = question;
  const tail = bytes.length - QUESTION_TAIL_BYTES;
  const size = bytes.readUInt16BE(tail + 2) === CLASS_IN ? TYPES[bytes.readUInt16BE(tail)] : undefined;
  const records = addresses
    .map(parseAddress)
    .filter((address): address is Uint8Array => address !== null && address.length === size)
    .map((address) => {
      const record = Buffer.alloc(12);
      record.writeUInt16BE(SAME_NAME, 0);
      bytes.copy(record, 2, tail);
      record.writeUInt32BE(TTL_SECONDS, 6);
      record.writeUInt16BE(address.length, 10);
      return Buffer.concat([record, address]);
    });
  return answerTo(question, NO_ERROR, records);
}

function answerTo({ bytes }: DnsQuestion, code: number, records: readonly Buffer[] = []): Buffer {
  const answer = Buffer.from(bytes);
  // Flags: response, recursion available, recursion desired copied from the question.
  answer.writeUInt16BE(0x8080 | (bytes.readUInt16BE(2) & 0x0100) | code, 2);
  // No authorities or additional records.
  answer.fill(0, 6, HEADER_BYTES);
  answer.writeUInt16BE(records.length, 6);
  return Buffer.concat([answer, ...records]);
}
