/** Commands for drives beside those of their operations. */
import { type CommandSpec, GROUPS } from "../command.ts";
import { REMOTE } from "./options.ts";

export const driveVerbs: readonly CommandSpec[] = [
  {
    name: "s3",
    group: GROUPS.verbs,
    summary: "print the environment with which S3 clients open a drive",
    details:
      "The lines hold temporary credentials with your rights; after their end, run the command again. The bucket has the name of the drive.",
    args: [{ name: "name", about: "the drive", offers: "name" }],
    options: [
      { flags: "--seconds <n>", about: "how long the credentials are valid, 60 to 43200 (default 3600)" },
      ...REMOTE,
    ],
    examples: ['eval "$(berth drive s3 shared)" && aws s3 ls s3://shared'],
    run: async (call) => (await import("../actions/drive-s3.ts")).printS3Environment(call),
  },
];
