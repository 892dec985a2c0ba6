/** The server halves, in the same order as the declarations. */
import { driveBehaviour } from "./drive/behaviour.ts";
import type { Behaviour, Implementation } from "./port.ts";
import { volumeBehaviour } from "./volume/behaviour.ts";

export const BEHAVIOURS: readonly Behaviour[] = [driveBehaviour, volumeBehaviour];

/** Handlers of operations that belong to no kind. */
export const HANDLERS: readonly Implementation[] = [];
