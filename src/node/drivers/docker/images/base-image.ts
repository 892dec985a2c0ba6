/**
 * The image that workloads start from unless they name another: made from the machine's own programs, as the local
 * driver's base image is, and imported into the engine once. Nothing is downloaded.
 */
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { tarStream } from "../../common/tar-stream.ts";
import type { BaseImage } from "../../local/images/base-image.ts";
import { createdSchema, imageSchema, imagesSchema } from "../engine/answers.ts";
import { type DockerClient, tolerating } from "../engine/docker-client.ts";
import { withHelper } from "../workload/helper.ts";
import { LABEL, ownedBy, type Role } from "../workload/record.ts";
import { baseRepo, encodePath } from "./docker-images.ts";

export interface BaseOptions {
  client: DockerClient;
  owner: string;
  brand: string;
  /** The machine's programs as folders. */
  base: BaseImage;
  /** Folder with the mount points that every image needs. */
  skeleton: string;
}

/** Raised when the import changes, so that an image of before is not taken for the new one. */
const LAYOUT = 1;
/** Parts of /usr that no program inside needs: they would double the size of the copy. */
const LEFT_OUT = [
  ...["doc", "info", "locale", "man"].map((name) => `usr/share/${name}/*`),
  ...["debug", "firmware", "modules"].map((name) => `usr/lib/${name}/*`),
  "usr/src/*",
];
/** For the container in which the image is put together, which never runs. */
const CAGE = { limits: { memoryMb: 64, cpus: 1 }, mounts: [] };

/** Answers the id of the image, importing it first where the engine does not have it. */
export async function importBase(options: BaseOptions): Promise<string> {
  const { client, owner, brand, base } = options;
  const repo = baseRepo(brand);
  const tag = `v${LAYOUT}-${base.digest.replace("sha256:", "").slice(0, 16)}`;
  const name = `${repo}:${tag}`;
  const there = await client.find(imageSchema, `/images/${encodePath(name)}/json`);
  if (there) return there.Id;
  const programs = await importPrograms(options);
  const made = await withHelper({ client, owner, image: programs, argv: ["/never-runs"], cage: CAGE }, (id) =>
    completed(options, id, { repo, tag }),
  );
  await forgetOthers(options, made);
  return made;
}

/** The machine's own folders. They are sent alone, because an archive of an import may hold each path once only. */
async function importPrograms({ client, base }: BaseOptions): Promise<string> {
  const folders = programsOf(base).flatMap(({ at, lowers }) => ["-C", rootOf(lowers.at(-1) ?? at, at), at.slice(1)]);
  const left = LEFT_OUT.map((pattern) => `--exclude=${pattern}`);
  const tar = tarStream(["--one-file-system", "--ignore-failed-read", ...left, ...folders]);
  const said = await client.text("POST", "/images/create", { query: { fromSrc: "-" }, tar, patient: true });
  return heard(said);
}

/** Adds what lies above the machine's folders to the container `id` and keeps the result under the name. */
async function completed(
  { client, owner, base, skeleton }: BaseOptions,
  id: string,
  name: { repo: string; tag: string },
): Promise<string> {
  const roots = base.parts.filter(({ at }) => at === "/").flatMap(({ lowers }) => lowers.toReversed());
  const additions = [
    ...[...roots, skeleton].map((dir) => ["-C", dir, "."]),
    ...programsOf(base).flatMap(({ at, lowers }) =>
      lowers
        .slice(0, -1)
        .toReversed()
        .map((lower) => ["-C", rootOf(lower, at), at.slice(1)]),
    ),
  ];
  for (const args of additions)
    await client.text("PUT", `/containers/${id}/archive`, {
      query: { path: "/" },
      tar: tarStream(args),
      patient: true,
    });
  const body = {
    Env: Object.entries(base.env).map(([key, value]) => `${key}=${value}`),
    WorkingDir: base.workDir,
    Labels: { [LABEL.node]: owner, [LABEL.role]: "base" satisfies Role },
  };
  const query = { container: id, ...name };
  return (await client.json(createdSchema, "POST", "/commit", { query, body, patient: true })).Id;
}

const programsOf = ({ parts }: BaseImage) => parts.filter(({ at }) => at !== "/");

/** The folder in which a layer lies at the path where workloads see it. */
const rootOf = (lower: string, at: string): string => (at === "/" ? lower : lower.slice(0, -at.length) || "/");

const lineSchema = z.object({ error: z.string().optional(), status: z.string().optional() });

/** The last line of the engine's answer: it answers 200, and tells of a failure there. */
export function heard(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const { error, status = "" } = lineSchema.parse(JSON.parse(lines.at(-1) ?? "{}"));
  if (error) throw new PlatformError("unavailable", `Docker did not take the image: ${error}`);
  return status;
}

/** Removes base images from before the machine's programs changed; those that a container stands on stay. */
async function forgetOthers({ client, owner, brand }: BaseOptions, kept: string): Promise<void> {
  const filters = { ...ownedBy(owner, "base"), reference: [baseRepo(brand)] };
  const all = await client.json(imagesSchema, "GET", "/images/json", { query: { filters } });
  for (const { Id: id } of all) if (id !== kept) await tolerating([404, 409], client.text("DELETE", `/images/${id}`));
}
