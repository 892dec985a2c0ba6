/**
 * WebSocket subprotocols of the platform. A browser cannot set header fields of a WebSocket, but may offer subprotocols:
 * it offers `service` and `service.bearer.TOKEN`. Neither reaches the workload. A browser accepts only an answer that
 * chooses an offered subprotocol, so where the workload chooses none the gateway answers `service`.
 */

export const PROTOCOL_FIELD = "sec-websocket-protocol";

const BEARER = ".bearer.";

/** The token that was offered as a subprotocol; null when none was. `words` are the platform's (see brandWords). */
export function offeredBearer(offered: string | undefined, words: readonly string[]): string | null {
  if (offered === undefined || !offered.includes(BEARER)) return null;
  for (const protocol of listOf(offered))
    for (const word of words) if (protocol.startsWith(word + BEARER)) return protocol.slice((word + BEARER).length);
  return null;
}

/** The subprotocols for the workload; "" when none is left. */
export function withoutOwn(offered: string, words: readonly string[]): string {
  if (offeredBearer(offered, words) === null) return offered;
  const isOwn = (protocol: string): boolean =>
    words.some((word) => protocol === word || protocol.startsWith(word + BEARER));
  return listOf(offered)
    .filter((protocol) => !isOwn(protocol))
    .join(", ");
}

/** The subprotocol of the platform that the client offered beside its token; null when it offered none. */
export const ownChoice = (offered: string | undefined, words: readonly string[]): string | null =>
  offered === undefined || offeredBearer(offered, words) === null
    ? null
    : (listOf(offered).find((protocol) => words.includes(protocol)) ?? null);

const listOf = (offered: string): string[] => offered.split(",").map((protocol) => protocol.trim());
