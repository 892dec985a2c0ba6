import { startGateway } from "./gateway-harness.ts";
import { troubleSuite } from "./trouble-suite.ts";

troubleSuite(startGateway);
