/**
 * For test files and for servers that tests start from the sources: loading the platform fills the youngest heap again
 * and again, and a larger one (in megabytes) saves a tenth of the CPU time. Installed servers (`test/installed`) start as
 * they ship.
 */
export const HEAP_FLAGS: readonly string[] = ["--min-semi-space-size=16", "--max-semi-space-size=32"];
