/** Commands about the program itself. */

import { type CommandSpec, GROUPS, text } from "../command.ts";
import { completionScript, SHELLS, type Shell } from "../completion.ts";

export const moreCommands: readonly CommandSpec[] = [
  {
    name: "completion",
    group: GROUPS.more,
    summary: "print a completion script for a shell",
    args: [{ name: "shell", about: SHELLS.join(", "), offers: SHELLS }],
    examples: [
      "bash: echo 'source <(berth completion bash)' >> ~/.bashrc",
      "zsh:  berth completion zsh > ~/.zfunc/_berth   (with fpath+=~/.zfunc before compinit)",
      "fish: berth completion fish > ~/.config/fish/completions/berth.fish",
    ],
    run: async ({ args, context }) => {
      context.print(completionScript(text(args[0]) as Shell, context.commands()));
      return undefined;
    },
  },
];
