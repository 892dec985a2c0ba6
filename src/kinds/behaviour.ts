/** The server halves, in the same order as the declarations. */
import { accountHandlers } from "./account/handlers.ts";
import { driveBehaviour } from "./drive/behaviour.ts";
import type { Behaviour, Implementation } from "./port.ts";
import { volumeBehaviour } from "./volume/behaviour.ts";
import { workspaceHandlers } from "./workspace/handlers.ts";

export const BEHAVIOURS: readonly Behaviour[] = [driveBehaviour, volumeBehaviour];

/** Handlers of operations that belong to no kind. */
export const HANDLERS: readonly Implementation[] = [...accountHandlers, ...workspaceHandlers];
