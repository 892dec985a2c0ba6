/** On standard streams, for both eras; with the word `handshake` for the older one alone. */
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { everythingServer } from "./everything-server.ts";

if (process.argv[2] === "handshake") await everythingServer({ era: "legacy" }).connect(new StdioServerTransport());
else serveStdio((context) => everythingServer(context));
