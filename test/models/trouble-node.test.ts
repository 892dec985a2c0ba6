/** The same behind Node's own HTTP server, which takes what the fast lane leaves. */
import { startBehindNode } from "./gateway-harness.ts";
import { troubleSuite } from "./trouble-suite.ts";

troubleSuite(startBehindNode);
