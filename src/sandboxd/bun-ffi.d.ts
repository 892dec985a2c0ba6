/** The part of Bun's foreign function interface that libc.ts uses. */
declare module "bun:ffi" {
  export interface Signature {
    args: string[];
    returns: string;
  }
  export function dlopen(
    path: string,
    symbols: Record<string, Signature>,
  ): { symbols: Record<string, (...args: (number | bigint | Uint8Array | null)[]) => number | bigint> };
}
