import type { Behaviour } from "../port.ts";
import { servedAtOnce } from "../workload/behaviour.ts";
import { model } from "./kind.ts";

export const modelBehaviour: Behaviour = {
  kind: model,
  prepare({ spec }) {
    spec.enabled ??= true;
  },
  outlook: servedAtOnce,
};
