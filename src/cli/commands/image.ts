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
  {
    name: "build",
    group: GROUPS.verbs,
    summary: "build an image from a folder with a Dockerfile",
    details:
      "The server builds it; no Docker is needed there or here. What `.dockerignore` names is not sent. The build's output is shown as it comes. Sandboxes then run the image as NAME:TAG.",
    args: [{ name: "folder", about: "the build's context (default .)", optional: true }],
    options: [
      { flags: "-t, --tag <name>", about: "NAME or NAME:TAG (default: the folder's name)" },
      { flags: "-f, --file <path>", about: "the Dockerfile, below the folder (default Dockerfile)" },
      { flags: "--build-arg <name=value>", about: "a value for ARG", many: true },
      {
        flags: "--secret <id>",
        about: "for RUN --mount=type=secret: id=NAME,src=FILE or id=NAME,env=VARIABLE",
        many: true,
      },
      { flags: "--target <stage>", about: "the stage to build (default: the last)" },
      { flags: "--no-cache", about: "use no step of an earlier build again" },
      { flags: "--type <kind>", about: "what it is for (default sandbox)" },
      ...REMOTE,
    ],
    examples: ["berth image build . -t tool:1.2", "berth image build --build-arg VERSION=3 --target test"],
    run: async (call) => (await import("../actions/image-build.ts")).buildImage(call),
  },
  {
    name: "catalogue",
    group: GROUPS.verbs,
    summary: "list the images that come with the project, or build one of them",
    details: "With a name the server builds that image from its Dockerfile; sandboxes then run it as NAME.",
    args: [{ name: "name", about: "the image to build", optional: true }],
    options: REMOTE,
    examples: ["berth image catalogue", "berth image catalogue vite"],
    run: async (call) => (await import("../actions/image-catalogue.ts")).catalogue(call),
  },
  {
    name: "pull",
    group: GROUPS.verbs,
    summary: "pull an image from its registry",
    details:
      "Workloads then start from REFERENCE without asking the registry. With a name of your own, they run it as NAME:TAG. Credentials are those of a connection to the integration `registry`.",
    args: [
      { name: "reference", about: "such as python:3.12 or ghcr.io/acme/tool@sha256:…" },
      { name: "name", about: "NAME or NAME:TAG", optional: true },
    ],
    options: [{ flags: "--type <kind>", about: "with a name: what it is for (default sandbox)" }, ...REMOTE],
    examples: ["berth image pull python:3.12", "berth image pull ghcr.io/acme/tool:1.2 tool:1.2"],
    run: async (call) => (await import("../actions/image-pull.ts")).pullImage(call),
  },
  {
    name: "inspect",
    group: GROUPS.verbs,
    summary: "show an image: its tags, digests, sizes and events",
    args: [{ name: "image", about: "a reference, or [TYPE/]NAME[:TAG]" }],
    options: REMOTE,
    examples: ["berth image inspect python:3.12"],
    run: async (call) => (await import("../actions/image-pull.ts")).inspectImage(call),
  },
  {
    name: "remove",
    group: GROUPS.verbs,
    summary: "delete a tag that nothing uses; with its last tag an image goes",
    args: [{ name: "image", about: "a reference, or [TYPE/]NAME[:TAG]" }],
    options: REMOTE,
    examples: ["berth image remove python:3.12"],
    run: async (call) => (await import("../actions/image-pull.ts")).removeImage(call),
  },
  {
    name: "prune",
    group: GROUPS.verbs,
    summary: "delete every image that nothing uses and nobody borrows",
    details:
      "The images are named before and asked about. Where nobody can be asked, nothing is deleted and the command ends with 2, unless --yes is given.",
    args: [],
    options: [{ flags: "--yes", about: "do not ask" }, ...REMOTE],
    examples: ["berth image prune", "berth image prune --yes"],
    run: async (call) => (await import("../actions/image-pull.ts")).pruneImages(call),
  },
];
