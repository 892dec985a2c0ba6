/**
 * Answers DNS queries for names below `localhost`, which always mean the loopback address (RFC 6761). Some resolvers do
 * not know that and send a query: the platform's addresses inside a workload are such names.
 */
const HEADER_BYTES = 12;
const LABEL_BYTES_MAX = 63;
const TYPE_A = 1;
const CLASS_IN = 1;
const LOOPBACK = [127, 0, 0, 1];
const TTL_SECONDS = 60;
/** DNS compression pointer to the name in the question. */
const SAME_NAME = [0xc0, HEADER_BYTES];

/** The answer to a query for a name below `localhost`; null for every other message. */
export function answerLoopback(query: Buffer): Buffer | null {
  const end = endOfLocalhostName(query);
  if (end === null || query.length < end + 4) return null;
  const isAddress = query.readUInt16BE(end) === TYPE_A && query.readUInt16BE(end + 2) === CLASS_IN;
  const answer = Buffer.concat([
    query.subarray(0, end + 4),
    ...(isAddress
      ? [Buffer.from([...SAME_NAME, 0, TYPE_A, 0, CLASS_IN, 0, 0, 0, TTL_SECONDS, 0, LOOPBACK.length, ...LOOPBACK])]
      : []),
  ]);
  // Flags: response, authoritative, recursion available, recursion desired copied from the query.
  answer.writeUInt16BE(0x8480 | (query.readUInt16BE(2) & 0x0100), 2);
  answer.writeUInt16BE(isAddress ? 1 : 0, 6);
  answer.writeUInt32BE(0, 8);
  return answer;
}

/** Offset after the name of the only question; null when the name is not below `localhost`. */
function endOfLocalhostName(query: Buffer): number | null {
  if (query.length < HEADER_BYTES || (query.readUInt8(2) & 0xf8) !== 0 || query.readUInt16BE(4) !== 1) return null;
  let last = "";
  let count = 0;
  for (let at = HEADER_BYTES; at < query.length; count += 1) {
    const length = query.readUInt8(at);
    if (length === 0) return count > 1 && last === "localhost" ? at + 1 : null;
    if (length > LABEL_BYTES_MAX) return null;
    last = query.toString("latin1", at + 1, at + 1 + length).toLowerCase();
    at += 1 + length;
  }
  return null;
}
