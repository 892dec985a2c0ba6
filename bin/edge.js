// An edge process of the server, which starts it; see src/edge.
import { tuneStart } from "./tune-start.js";

tuneStart();
const { runEdge } = await import("../src/edge/process/main.ts");
runEdge();
