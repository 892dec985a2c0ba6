/** A port for whoever must be told one before it listens. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that the system gives out itself: nobody gets one of these by chance in the meantime. */
const FIRST = 11_000;
const LAST = 32_000;

/** One that nobody listens on right now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    const server = createServer().listen(port);
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
