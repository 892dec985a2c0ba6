import { doorSuite } from "./door-suite.ts";
import { startGateway } from "./gateway-harness.ts";

doorSuite(startGateway);
