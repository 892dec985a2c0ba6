import type { Behaviour } from "../port.ts";
import { integrationConnection } from "./kind.ts";

export const integrationConnectionBehaviour: Behaviour = { kind: integrationConnection };
