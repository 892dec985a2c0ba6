/** The same behind Node's own HTTP server, which takes what the fast lane leaves. */

import { doorSuite } from "./door-suite.ts";
import { startBehindNode } from "./gateway-harness.ts";

doorSuite(startBehindNode);
