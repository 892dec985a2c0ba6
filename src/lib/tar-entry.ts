/** Entries of a tar archive: regular files alone, in the format that every reader knows. */
const BLOCK = 512;
const NAME_BYTES_MAX = 100;

/** The blocks before the content of a file. */
export function tarHead(path: string, sizeBytes: number, mode: number): Buffer[] {
  const name = Buffer.from(path);
  // A long path needs a record of its own before the file.
  const long =
    name.length >= NAME_BYTES_MAX
      ? [header("././@LongLink", name.length + 1, 0o644, "L"), name, Buffer.alloc(1), tarPadding(name.length + 1)]
      : [];
  return [...long, header(name.subarray(0, NAME_BYTES_MAX - 1).toString("latin1"), sizeBytes, mode, "0")];
}

/** What follows the content of a file, up to the next block. */
export const tarPadding = (sizeBytes: number): Buffer => Buffer.alloc((BLOCK - (sizeBytes % BLOCK)) % BLOCK);

export const TAR_END = Buffer.alloc(2 * BLOCK);

function header(path: string, size: number, mode: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(path, 0, "latin1");
  block.write(`${mode.toString(8).padStart(7, "0")}\0`, 100);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write(`        ${type}`, 148);
  block.write("ustar\0", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
