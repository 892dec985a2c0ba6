/** Commands for images beside those of their operations. */
import { type CommandSpec, GROUPS } from "../command.ts";
import { REMOTE } from "./options.ts";

export const imageVerbs: readonly CommandSpec[] = [
  {
    name: "load",
    group: GROUPS.verbs,
    summary: "take in an image from a file, as `docker save` writes it",
    details: "Sandboxes then run it as NAME:TAG. Without a name it is called like the file, without a tag latest.",
    args: [
      { name: "file", about: "a docker or OCI archive, compressed or not" },
      { name: "name", about: "NAME or NAME:TAG", optional: true },
    ],
    options: [{ flags: "--type <kind>", about: "what it is for (default sandbox)" }, ...REMOTE],
    examples: ["berth image load tool.tar", "berth image load tool.tar.gz tool:1.2"],
    run: async (call) => (await import("../actions/image.ts")).loadImage(call),
  },
];
