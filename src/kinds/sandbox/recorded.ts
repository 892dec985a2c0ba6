import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { sandbox } from "./kind.ts";
import type { SandboxState } from "./state.ts";

/** What the record of a sandbox says about it. */
export const stateOf = (resource: Resource): SandboxState => ofKind(sandbox, resource).state;
