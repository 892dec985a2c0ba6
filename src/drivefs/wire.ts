/** What a mount of a drive asks the server that has its files, and what that server answers. */

/** The part of a drive that a mount shows. Sent first, by the process that serves the mount. */
export interface MountAsk {
  /** Node that has the drive. */
  node: string;
  drive: string;
  /** Folder of the drive, from its root. */
  path: string;
  readOnly: boolean;
}

/** A file as the mount knows it: where it was seen last, and which one it is. Names are bytes as latin1 characters. */
export interface FileRef {
  /** Names from the root of the mount to its folder. */
  folder: string[];
  /** Identity of that folder; see identityOf. */
  up: string;
  /** Empty for the root of the mount itself. */
  name: string;
  /** Identity of the file. What has another one by now is not the file that was meant. */
  id: string;
}

/** A name in a folder, whatever it is. */
export interface EntryRef {
  folder: string[];
  up: string;
  name: string;
}

export interface Changes {
  mode?: number;
  uid?: number;
  gid?: number;
  size?: number;
  /** Seconds; "now" by the clock of the server that has the file. */
  atime?: number | "now";
  mtime?: number | "now";
}

export interface NewFile extends EntryRef {
  mode: number;
  uid: number;
  gid: number;
}

/** Questions by name. `fh` is a handle that `open`, `create` or `openFolder` answered with. */
export interface Asks {
  root: Record<string, never>;
  lookup: EntryRef;
  stat: FileRef & { fh?: number };
  change: FileRef & { fh?: number; changes: Changes };
  readLink: FileRef;
  makeFile: NewFile;
  makeFolder: NewFile;
  makeLink: NewFile & { target: string };
  hardLink: { file: FileRef; to: EntryRef };
  remove: EntryRef;
  removeFolder: EntryRef;
  rename: { from: EntryRef; to: EntryRef };
  open: FileRef & { flags: number };
  create: NewFile & { flags: number };
  read: { fh: number; offset: number; bytes: number };
  write: { fh: number; offset: number };
  sync: { fh: number; dataOnly: boolean };
  syncFolder: FileRef;
  close: { fh: number };
  openFolder: FileRef;
  /** The next names of an open folder. */
  names: { fh: number };
  space: Record<string, never>;
}

export type AskName = keyof Asks;

/** The attributes of a file come as the bytes that the kernel's protocol has for them; see attributes.ts. */
export interface AnswerHead {
  id: number;
  /** Number of an error; the rest is absent then. */
  errno?: number;
  /** Identity of the file whose attributes are the body. */
  file?: string;
  fh?: number;
  /** Names and types of `names`; empty at the end. */
  entries?: [name: string, type: number][];
  space?: Record<"bsize" | "blocks" | "bfree" | "bavail" | "files" | "ffree", number>;
}

export interface AskHead {
  id: number;
  ask: AskName;
  args: Asks[AskName];
}

export interface Answer extends Omit<AnswerHead, "id" | "errno"> {
  body?: Buffer;
}

/** The first answer of a server: the mount may be served. Anything else is a refusal with its reason. */
export interface Greeting {
  ready?: true;
  refusal?: string;
}

export const latin = (bytes: Buffer): string => bytes.toString("latin1");
export const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");
