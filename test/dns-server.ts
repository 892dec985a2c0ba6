/** A DNS server of one zone file, on a free UDP port: enough of the protocol to be asked by a real resolver. */
import { createSocket } from "node:dgram";
import { once } from "node:events";

export interface DnsServer {
  /** address:port */
  address: string;
  /** Name, a blank and the type, such as "example.test TXT" -> values. A name may start with "*.". */
  zone: Map<string, string[]>;
  /** Answers nothing but "refused" while this is set. */
  refusing: boolean;
  stop(): Promise<void>;
}

const TYPES: Record<number, string> = { 1: "A", 5: "CNAME", 16: "TXT", 28: "AAAA" };
const RCODE = { ok: 0, noName: 3, refused: 5 };

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const server: DnsServer = {
    address: "",
    zone: new Map(),
    refusing: false,
    async stop() {
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
  socket.on("message", (query, from) => {
    const { name, type, end } = readQuestion(query);
    const known = [...server.zone.keys()].some((key) => matches(key.split(" ")[0] ?? "", name));
    const answers = [...server.zone].flatMap(([key, values]) => {
      const [pattern = "", word] = key.split(" ");
      return matches(pattern, name) && word === TYPES[type] ? values.map((value) => encode(type, value)) : [];
    });
    const rcode = server.refusing ? RCODE.refused : known ? RCODE.ok : RCODE.noName;
    socket.send(respond(query, end, rcode, type, rcode === RCODE.ok ? answers : []), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  server.address = `127.0.0.1:${socket.address().port}`;
  return server;
}

/** The whole answer to a question, with the values that `lookUp` knows. For servers that change their mind. */
export function answerQuestion(query: Buffer, lookUp: (name: string, type: string) => string[]): Buffer {
  const { name, type, end } = readQuestion(query);
  const values = lookUp(name, TYPES[type] ?? "");
  return respond(
    query,
    end,
    RCODE.ok,
    type,
    values.map((value) => encode(type, value)),
  );
}

const matches = (pattern: string, name: string): boolean =>
  pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) && name !== pattern.slice(2) : name === pattern;

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function encode(type: number, value: string): Buffer {
  if (TYPES[type] === "A") return Buffer.from(value.split(".").map(Number));
  if (TYPES[type] === "TXT") return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return encodeName(value);
}

const encodeName = (name: string): Buffer =>
  Buffer.concat([
    ...name.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.from([0]),
  ]);

function respond(query: Buffer, end: number, rcode: number, type: number, answers: Buffer[]): Buffer {
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | rcode, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  const records = answers.map((data) => {
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0); // the name of the question
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(60, 6);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}
