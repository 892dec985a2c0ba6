/**
 * Turns a layer's notes into the marks that an overlay reads: a character device 0/0 for a removed file, an extended
 * attribute for an opaque folder. The job that unpacked the layer has the right to make neither. The kernel resolves
 * each path below the layer's own descriptor and refuses links on the way (openat2).
 */
import type { LayerNotes } from "../../../../unpack/layer.ts";
import type { Program } from "../calls/program.ts";
import type { Spawner } from "../calls/spawner.ts";
import { AT_FDCWD, O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH, RESOLVE } from "../calls/syscalls.ts";
import { type Identity, makePidNamespace } from "../workload/launch-program.ts";

const WHITEOUT_MODE = 0o020000; // a character device with number 0
/** About as many steps and names as fit one program. */
const MARKS_PER_PROGRAM = 400;
const NAME_BYTES_PER_PROGRAM = 256 * 1024;

export async function writeMarks(
  spawner: Spawner,
  layer: string,
  { removed, opaque }: LayerNotes,
  identity: Identity,
): Promise<void> {
  const attribute = process.getuid?.() === 0 ? "trusted.overlay.opaque" : "user.overlay.opaque";
  const marks: Mark[] = [
    ...removed.map((place) => ({ place, write: removeMark })),
    ...opaque.map((place) => ({ place, write: opaqueMark(attribute) })),
  ];
  for (const some of portions(marks)) {
    await spawner.run("The unpacking of a layer", (program) => {
      // The root of a user namespace can write to folders that their owner closed.
      if (identity.kind === "user") makePidNamespace(program, identity, 0);
      const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
      const root = program.open("openat", [AT_FDCWD, layer, flags, 0], "open the layer");
      for (const { place, write } of some) write(program, root, place);
    });
  }
}

interface Mark {
  place: string;
  write: (program: Program, root: number, place: string) => void;
}

function* portions(marks: Mark[]): Generator<Mark[]> {
  let some: Mark[] = [];
  let bytes = 0;
  for (const mark of marks) {
    some.push(mark);
    bytes += Buffer.byteLength(mark.place);
    if (some.length < MARKS_PER_PROGRAM && bytes < NAME_BYTES_PER_PROGRAM) continue;
    yield some;
    [some, bytes] = [[], 0];
  }
  if (some.length > 0) yield some;
}

function openFolder(program: Program, root: number, place: string): number {
  const { BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV } = RESOLVE;
  const how = program.words([O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV]);
  return program.open("openat2", [root, place === "" ? "." : place, how, 24], "open a folder of the layer");
}

function removeMark(program: Program, root: number, place: string): void {
  const slash = place.lastIndexOf("/");
  const name = place.slice(slash + 1);
  const folder = openFolder(program, root, place.slice(0, Math.max(0, slash)));
  program.step("unlinkat", [folder, name, 0], "take a note away");
  program.step("mknodat", [folder, name, WHITEOUT_MODE, 0], "mark a file as removed");
  program.close(folder);
}

const opaqueMark =
  (attribute: string): Mark["write"] =>
  (program, root, place) => {
    const folder = openFolder(program, root, place);
    program.step("fsetxattr", [folder, attribute, "y", 1, 0], "mark a folder as opaque");
    program.close(folder);
  };
