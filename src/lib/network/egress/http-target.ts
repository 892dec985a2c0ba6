/** Methods and paths of HTTP requests in rules. */

export interface HttpRequest {
  method: string;
  /** As sent, with the query. */
  path: string;
}

/** `/v1/*` matches every path that begins with /v1/; a pattern without the star matches exactly that path. */
export function pathMatches(pattern: string, path: string): boolean {
  const plain = plainRequestPath(path);
  return pattern.endsWith("*") ? plain.startsWith(pattern.slice(0, -1)) : plain === pattern;
}

/** Without the query, with escapes decoded, dots resolved and repeated slashes merged: the path that a server may see. */
export function plainRequestPath(path: string): string {
  let plain = path.replace(/[?#].*$/s, "");
  // A server may decode twice; after three rounds nothing is left that a server would decode further.
  for (let round = 0; round < 3; round++) plain = decoded(plain);
  const parts: string[] = [];
  for (const part of plain.replaceAll("\\", "/").split("/")) {
    // Some servers drop what follows a semicolon before they resolve dots.
    const [dots = ""] = part.split(";", 1);
    if (dots === "..") parts.pop();
    else if (part !== "" && dots !== ".") parts.push(part);
  }
  return `/${parts.join("/")}${plain.length > 1 && plain.endsWith("/") && parts.length > 0 ? "/" : ""}`;
}

/** Escapes that are no UTF-8 keep none of the others from being decoded. */
const decoded = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => Buffer.from(escapes.replaceAll("%", ""), "hex").toString());
