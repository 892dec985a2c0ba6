import type { Behaviour } from "../port.ts";
import { scheduleExecution } from "./kind.ts";

export const scheduleExecutionBehaviour: Behaviour = { kind: scheduleExecution };
