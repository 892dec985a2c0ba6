import { PlatformError } from "../../contract/errors.ts";
import type { Behaviour } from "../port.ts";
import { vpc } from "./kind.ts";

export const vpcBehaviour: Behaviour = {
  kind: vpc,
  childrenFirst: true,
  async guardDelete({ name, workspace }, { store }) {
    const [user] = await store.resources.listWithSpecText(
      [workspace],
      ["sandbox"],
      [`"vpc":${JSON.stringify(name)}`],
      1,
    );
    if (user)
      throw new PlatformError("conflict", `vpc '${name}' is in use by sandbox '${user.name}'. Delete that first.`);
  },
};
