/**
 * Changes of files in an image build, as the builder asks the daemon for them (`sandboxd build-files JOB`). The program
 * runs as root of a workload that has the image's files as its root, so a link leads nowhere else.
 */
export type BuildFilesJob = MakeFolder | TakeFiles | PutFiles;

/** WORKDIR */
export interface MakeFolder {
  do: "folder";
  path: string;
  /** `user` or `user:group`, by name or number; empty: root. */
  owner: string;
}

/** The first half of `COPY --from`: copies files out of their stage, each source into a folder of its own. */
export interface TakeFiles {
  do: "take";
  /** Paths or patterns below the root. */
  sources: string[];
  /** An empty folder. */
  into: string;
}

/** COPY and ADD. */
export interface PutFiles {
  do: "put";
  /** Folder with the sources. */
  from: string;
  /** Paths or patterns below `from`; null: what TakeFiles left there. */
  sources: string[] | null;
  files: { name: string; content: string }[];
  target: string;
  /** The target is a folder, whether or not it exists. */
  intoFolder: boolean;
  /** Null: the owners of the sources. */
  owner: string | null;
  mode: number | null;
  /** Archives among the sources are unpacked. */
  unpacks: boolean;
}

/** Longest job: the kernel's limit for one argument of a program, less a reserve. */
export const BUILD_JOB_BYTES_MAX = 120 * 1024;
