import assert from "node:assert/strict";
import { test } from "node:test";
import { seccompFilter } from "./seccomp.ts";
import type { Arch } from "./stepper.ts";

const ALLOW = "allow";

interface Call {
  number: number;
  arg0?: number;
  arg1?: number;
  machine?: number;
}

const MACHINE: Record<Arch, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Runs the program as the kernel would; answers "allow" or the error number. */
function judge(arch: Arch, { number, arg0 = 0, arg1 = 0, machine = MACHINE[arch] }: Call): typeof ALLOW | number {
  const filter = seccompFilter(arch);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(machine, 4);
  data.writeUInt32LE(arg0 >>> 0, 16);
  data.writeUInt32LE(arg1 >>> 0, 24);
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, yes, no] = [filter.readUInt16LE(at * 8), filter.readUInt8(at * 8 + 2), filter.readUInt8(at * 8 + 3)];
    const k = filter.readUInt32LE(at * 8 + 4);
    if (code === 0x20) accumulator = data.readUInt32LE(k);
    else if (code === 0x06) return k === 0x7fff0000 ? ALLOW : k & 0xffff;
    else if (code === 0x15) at += accumulator === k ? yes : no;
    else if (code === 0x25) at += accumulator > k ? yes : no;
    else if (code === 0x45) at += (accumulator & k) !== 0 ? yes : no;
    else assert.fail(`an instruction that is not in the list: ${code}`);
  }
  return assert.fail("the program ran past its end");
}

const [EPERM, ENOSYS, EAFNOSUPPORT] = [1, 38, 97];
const rows: [what: string, x64: number, arm64: number, call: Omit<Call, "number">, verdict: typeof ALLOW | number][] = [
  ["read", 0, 63, {}, ALLOW],
  ["execve", 59, 221, {}, ALLOW],
  ["ptrace", 101, 117, {}, ALLOW],
  ["mount", 165, 40, {}, EPERM],
  ["setns", 308, 268, {}, EPERM],
  ["unshare", 272, 97, {}, EPERM],
  ["bpf", 321, 280, {}, EPERM],
  ["keyctl", 250, 219, {}, EPERM],
  ["perf_event_open", 298, 241, {}, EPERM],
  ["userfaultfd", 323, 282, {}, EPERM],
  ["open_tree", 428, 428, {}, EPERM],
  ["io_uring_setup", 425, 425, {}, ENOSYS],
  ["clone3", 435, 435, {}, ENOSYS],
  ["a call of the future", 900, 900, {}, ENOSYS],
  ["a thread", 56, 220, { arg0: 0x3d0f00 }, ALLOW],
  ["a fork", 56, 220, { arg0: 17 }, ALLOW],
  ["a user namespace", 56, 220, { arg0: 0x10000000 | 17 }, EPERM],
  ["a network namespace", 56, 220, { arg0: 0x40000000 }, EPERM],
  ["an internet socket", 41, 198, { arg0: 2 }, ALLOW],
  ["a netlink socket", 41, 198, { arg0: 16 }, ALLOW],
  ["a socket to the hypervisor", 41, 198, { arg0: 40 }, EAFNOSUPPORT],
  ["a packet socket", 41, 198, { arg0: 17 }, EAFNOSUPPORT],
  ["terminal size", 16, 29, { arg1: 0x5413 }, ALLOW],
  ["typing into a terminal", 16, 29, { arg1: 0x5412 }, EPERM],
  ["another architecture", 0, 63, { machine: 0x40000003 }, ENOSYS],
];
for (const [what, x64, arm64, call, verdict] of rows) {
  test(`${what}: ${verdict}`, () => {
    assert.equal(judge("x64", { number: x64, ...call }), verdict);
    assert.equal(judge("arm64", { number: arm64, ...call }), verdict);
  });
}

test("calls in the x32 manner do not exist", () => {
  assert.equal(judge("x64", { number: 0x40000000 | 165 }), ENOSYS);
});
