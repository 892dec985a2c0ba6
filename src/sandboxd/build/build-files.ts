/**
 * `sandboxd build-files JOB`: the changes of files in an image build; see lib/build-files.ts. Names are bytes: a stage
 * may hold names that are no text.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { BuildFilesJob, MakeFolder, PutFiles, TakeFiles } from "../../lib/build-files.ts";
import { type BytePath, baseName, folderOf, fromText, joinPath, toBytes, toText } from "../files/byte-path.ts";
import { isArchive, unpackInto } from "./archives.ts";
import { type Changes, copyEntry, makeFolders, setOwnerAndMode } from "./copying.ts";
import { findSources } from "./matching.ts";
import { ownerFrom } from "./owner.ts";

/** Folders of the kernel and the platform, which belong to no image. */
const NOT_OF_THE_IMAGE: ReadonlySet<string> = new Set(["/proc", "/sys", "/dev", "/run/berth", "/run/build"]);

export function runBuildFiles(text: string): void {
  run(JSON.parse(text) as BuildFilesJob).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  });
}

async function run(job: BuildFilesJob): Promise<void> {
  if (job.do === "folder") makeFolder(job);
  else if (job.do === "take") take(job);
  else await put(job);
}

function makeFolder({ path, owner }: MakeFolder): void {
  makeFolders(fromText(path), ownerFrom(owner === "" ? "0:0" : owner));
}

/** One folder for each source that was found, with the source itself in it, or `files` of a folder. */
const CONTENT = "content";
const IS_FOLDER = "is-folder";

function take({ sources, into }: TakeFiles): void {
  const root = fromText("/");
  const changes: Changes = { owner: null, mode: null, skips: NOT_OF_THE_IMAGE };
  findSources(root, sources).forEach((source, index) => {
    const place = fromText(`${into}/${String(index).padStart(6, "0")}`);
    mkdirSync(toBytes(place));
    const isFolder = statSync(toBytes(source)).isDirectory();
    if (isFolder) writeFileSync(toBytes(joinPath(place, fromText(IS_FOLDER))), "");
    const name = isFolder ? fromText(CONTENT) : baseName(source);
    copyEntry(source, joinPath(place, name), changes, { follow: true });
  });
}

async function put(job: PutFiles): Promise<void> {
  const owner = job.owner === null ? null : ownerFrom(job.owner);
  const changes: Changes = { owner, mode: job.mode, skips: NOT_OF_THE_IMAGE };
  const target = fromText(job.target);
  const sources = job.sources === null ? taken(job.from) : given(job.from, job.sources);
  const intoFolder = job.intoFolder || sources.length + job.files.length > 1 || isFolder(target);
  for (const { path, isFolder: whole } of sources) {
    if (whole) {
      makeFolders(target, owner);
      copyEntry(path, target, changes, { follow: true, inside: true });
    } else if (job.unpacks && (await isArchive(path))) {
      makeFolders(target, owner);
      await unpackInto(path, target);
    } else {
      const place = intoFolder ? joinPath(target, baseName(path)) : target;
      makeFolders(folderOf(place), owner);
      copyEntry(path, place, changes, { follow: true });
    }
  }
  for (const { name, content } of job.files) {
    const place = intoFolder ? joinPath(target, fromText(name)) : target;
    makeFolders(folderOf(place), owner);
    writeFileSync(toBytes(place), content, { mode: 0o644 });
    setOwnerAndMode(place, owner ?? { uid: 0, gid: 0 }, job.mode ?? 0o644);
  }
}

interface Source {
  path: BytePath;
  isFolder: boolean;
}

const given = (from: string, patterns: readonly string[]): Source[] =>
  findSources(fromText(from), patterns).map((path) => ({ path, isFolder: isFolder(path) }));

/** What `take` left, in its order. */
function taken(from: string): Source[] {
  const root = fromText(from);
  return findSources(root, ["*/*"])
    .filter((path) => toText(baseName(path)) !== IS_FOLDER)
    .map((path) => ({ path, isFolder: exists(joinPath(folderOf(path), fromText(IS_FOLDER))) }));
}

const isFolder = (path: BytePath): boolean =>
  statSync(toBytes(path), { throwIfNoEntry: false })?.isDirectory() ?? false;

function exists(path: BytePath): boolean {
  try {
    readFileSync(toBytes(path));
    return true;
  } catch {
    return false;
  }
}
