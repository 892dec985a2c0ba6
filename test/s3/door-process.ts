/** The S3 door alone, over two folders, as a process that a test may kill: `node door-process.ts FILES WORK`. */
import { openBareDoor } from "./bare-door.ts";

const [, , files = "", work = ""] = process.argv;
const { port } = await openBareDoor({ files, work });
process.stdout.write(`${port}\n`);
