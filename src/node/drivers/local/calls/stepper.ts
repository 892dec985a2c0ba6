/**
 * A 350-byte executable that performs a list of system calls.
 *
 * Putting a process into namespaces needs some sixty system calls that Node cannot make, in a process with one thread,
 * on machines where nothing may be installed. Spawning a tool for each costs milliseconds; a JavaScript runtime that
 * makes them through a foreign-function interface has several threads, which the kernel does not let into a user
 * namespace. So the calls are data, made in TypeScript (`program.ts`), and this loop is all the machine code there is:
 *
 *   map the program on descriptor 3 at PROGRAM_BASE
 *   p = first step
 *   forever: r = syscall(p.number, p.args); *p.result = r; p = r is an error ? p.onError : r == 0 ? p.onZero : p.onValue
 *
 * The program ends by a step that calls exit or execve. The executable is written once and never changes, so no launch
 * races with a writer of its text (ETXTBSY).
 */
export type Arch = "x64" | "arm64";

/** Where a program is mapped; all its pointers are absolute. Far from the executable, the heap and the stack. */
export const PROGRAM_BASE = 0x1000_0000;
export const PROGRAM_BYTES_MAX = 0x10_0000; // a launch takes about 20 KB

export const STEP_WORDS = 11; // number, six arguments, result pointer, onError, onZero, onValue

const CODE: Record<Arch, { machine: number; hex: string }> = {
  arm64: {
    machine: 183,
    hex: `
      0000a2d2  mov  x0, #0x10000000   // mmap(PROGRAM_BASE,
      0102a0d2  mov  x1, #0x100000     //   PROGRAM_BYTES_MAX,
      620080d2  mov  x2, #3            //   PROT_READ | PROT_WRITE,
      430280d2  mov  x3, #0x12         //   MAP_PRIVATE | MAP_FIXED,
      640080d2  mov  x4, #3            //   descriptor 3,
      050080d2  mov  x5, #0            //   offset 0)
      c81b80d2  mov  x8, #222
      010000d4  svc  #0
      1300a2d2  mov  x19, #0x10000000  // p
      680240a9  ldp  x8, x0, [x19]     // next:
      610a41a9  ldp  x1, x2, [x19, #16]
      631242a9  ldp  x3, x4, [x19, #32]
      655243a9  ldp  x5, x20, [x19, #48]
      010000d4  svc  #0
      800200f9  str  x0, [x20]
      1ffc3fb1  cmn  x0, #4095
      c2000054  b.hs error
      600000b4  cbz  x0, zero
      732a40f9  ldr  x19, [x19, #80]
      f6ffff17  b    next
      732640f9  ldr  x19, [x19, #72]   // zero:
      f4ffff17  b    next
      732240f9  ldr  x19, [x19, #64]   // error:
      f2ffff17  b    next`,
  },
  x64: {
    machine: 62,
    hex: `
      b809000000    mov  eax, 9           // mmap(
      bf00000010    mov  edi, 0x10000000  //   PROGRAM_BASE,
      be00001000    mov  esi, 0x100000    //   PROGRAM_BYTES_MAX,
      ba03000000    mov  edx, 3           //   PROT_READ | PROT_WRITE,
      41ba12000000  mov  r10d, 0x12       //   MAP_PRIVATE | MAP_FIXED,
      41b803000000  mov  r8d, 3           //   descriptor 3,
      4531c9        xor  r9d, r9d         //   offset 0)
      0f05          syscall
      bb00000010    mov  ebx, 0x10000000  // p
      488b03        mov  rax, [rbx]       // next:
      488b7b08      mov  rdi, [rbx+8]
      488b7310      mov  rsi, [rbx+16]
      488b5318      mov  rdx, [rbx+24]
      4c8b5320      mov  r10, [rbx+32]
      4c8b4328      mov  r8, [rbx+40]
      4c8b4b30      mov  r9, [rbx+48]
      0f05          syscall
      488b4b38      mov  rcx, [rbx+56]
      488901        mov  [rcx], rax
      483d01f0ffff  cmp  rax, -4095
      7311          jae  error
      4885c0        test rax, rax
      7406          je   zero
      488b5b50      mov  rbx, [rbx+80]
      ebc9          jmp  next
      488b5b48      mov  rbx, [rbx+72]    // zero:
      ebc3          jmp  next
      488b5b40      mov  rbx, [rbx+64]    // error:
      ebbd          jmp  next`,
  },
};

const TEXT_ADDRESS = 0x40_0000;
const HEADER_BYTES = 64 + 56;
const PAGE_BYTES = 0x1_0000; // the largest page size of either architecture

/** A static ELF executable: one header, one loadable segment, the loop above. */
export function stepperExecutable(arch: Arch): Buffer {
  const { machine, hex } = CODE[arch];
  const code = Buffer.concat(
    hex
      .trim()
      .split("\n")
      .map((line) => Buffer.from(line.trim().split(" ")[0] ?? "", "hex")),
  );
  const file = Buffer.alloc(HEADER_BYTES + code.length);
  file.write("\x7fELF", "latin1");
  file.set([2, 1, 1], 4); // 64 bits, little-endian, version 1
  file.writeUInt16LE(2, 16); // ET_EXEC
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(TEXT_ADDRESS + HEADER_BYTES), 24); // entry
  file.writeBigUInt64LE(64n, 32); // program header follows the file header
  file.writeUInt16LE(64, 52);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt32LE(1, 64); // PT_LOAD
  file.writeUInt32LE(5, 68); // readable, executable
  file.writeBigUInt64LE(0n, 72);
  file.writeBigUInt64LE(BigInt(TEXT_ADDRESS), 80);
  file.writeBigUInt64LE(BigInt(TEXT_ADDRESS), 88);
  file.writeBigUInt64LE(BigInt(file.length), 96);
  file.writeBigUInt64LE(BigInt(file.length), 104);
  file.writeBigUInt64LE(BigInt(PAGE_BYTES), 112);
  code.copy(file, HEADER_BYTES);
  return file;
}
