// The process that serves one mount of a drive of another node; see src/drivefs.
import { tuneStart } from "./tune-start.js";

tuneStart();
await import("../src/drivefs/fuse/process.ts");
