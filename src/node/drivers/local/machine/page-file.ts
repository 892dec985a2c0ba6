/**
 * Small files that change often. Replacing a file makes the file system write it to the disk at once, which costs a
 * create more than everything else the driver does. Content that fits one page is instead written over the old content:
 * the kernel writes a page as a whole, so a killed server leaves either the old or the new content.
 */
import { closeSync, fstatSync, openSync, renameSync, writeFileSync, writeSync } from "node:fs";

const PAGE_BYTES = 4096;

/** Writes text that may be padded with trailing blanks, such as JSON. */
export function writePage(path: string, text: string): void {
  const blank = Buffer.alloc(Math.max(PAGE_BYTES - Buffer.byteLength(text), 0), " ");
  const bytes = Buffer.concat([Buffer.from(text), blank]);
  if (bytes.length === PAGE_BYTES && overwrite(path, bytes)) return;
  writeFileSync(`${path}.new`, bytes, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** False when the file does not exist or is not one page long. */
function overwrite(path: string, page: Buffer): boolean {
  let fd: number;
  try {
    fd = openSync(path, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  try {
    if (fstatSync(fd).size !== PAGE_BYTES) return false;
    writeSync(fd, page, 0, PAGE_BYTES, 0);
    return true;
  } finally {
    closeSync(fd);
  }
}
