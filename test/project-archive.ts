/** Archives of small projects, as a client would send them. */
import { gzipSync } from "node:zlib";

export function projectArchive(files: Record<string, string | Buffer>): Buffer {
  const blocks = Object.entries(files).flatMap(([path, content]) => {
    const data = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(path, 0);
    // What begins like a script or a program is meant to be run.
    header.write(data.subarray(0, 2).toString() === "#!" ? "0000755\0" : "0000644\0", 100);
    header.write(`${data.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write("        0", 148);
    header.write("ustar\0", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, data, Buffer.alloc((512 - (data.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}
