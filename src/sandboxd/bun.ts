/**
 * The few things the daemon takes from Bun. Everything else is the Node API, which Bun implements, so that types and
 * linting are the same as in the rest of the project; only this file and bun-ffi.d.ts know the runtime's own surface.
 */
export interface Terminal {
  write(data: string | Uint8Array): number;
  resize(cols: number, rows: number): void;
  close(): void;
}

export interface TerminalOptions {
  cols: number;
  rows: number;
  data(terminal: Terminal, chunk: Uint8Array): void;
}

export interface SpawnOptions {
  cwd?: string;
  env?: Record<string, string | undefined>;
  stdio?: ("ignore" | "inherit" | "pipe" | number)[];
  /** Starts the child in its own session, and so in a process group that one signal reaches. */
  detached?: boolean;
  uid?: number;
  gid?: number;
  /** A pseudo terminal instead of stdio. */
  terminal?: TerminalOptions;
  onExit?(child: Child, exitCode: number | null, signalCode: number | null, error?: Error): void;
}

export interface Child {
  readonly pid: number;
  readonly exited: Promise<number>;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  readonly stdout: ReadableStream<Uint8Array> | undefined;
  readonly terminal: Terminal | undefined;
  kill(signal?: string | number): void;
  unref(): void;
}

/** One connection to PostgreSQL. */
export interface Sql {
  unsafe(text: string, params?: unknown[]): Promise<unknown[] & { count?: number }>;
  close(): Promise<void>;
}

/**
 * Writes to a non-blocking descriptor. `flush` waits until the reader has taken the bytes. Does not close the
 * descriptor.
 */
export interface FileSink {
  write(chunk: Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
  end(): number | Promise<number>;
}

export interface Transpiler {
  transformSync(code: string): string;
}

interface Bun {
  readonly version: string;
  readonly main: string;
  spawn(argv: string[], options: SpawnOptions): Child;
  SQL: new (url: string, options: { max: number; connectionTimeout: number }) => Sql;
  file(fd: number): { writer(): FileSink };
  Transpiler: new (options: { loader: "js" | "ts"; target: "node"; replMode: true }) => Transpiler;
  gc(wait: boolean): void;
  shrink(): void;
}

const bun = (globalThis as unknown as { Bun: Bun }).Bun;

export const bunVersion = (): string => bun.version;
export const spawn = (argv: string[], options: SpawnOptions): Child => bun.spawn(argv, options);

export const fileSink = (fd: number): FileSink => bun.file(fd).writer();

/** Turns code as people type it into a prompt into a script; see interpreter/javascript.ts. */
export const transpilerForCells = (loader: "js" | "ts"): Transpiler =>
  new bun.Transpiler({ loader, target: "node", replMode: true });

const SQL_CONNECT_SECONDS = 10;

export const openSql = (url: string): Sql => new bun.SQL(url, { max: 1, connectionTimeout: SQL_CONNECT_SECONDS });

export const collectGarbage = (): void => bun.gc(true);

/** Collects garbage and gives free memory back to the system. */
export function shrinkMemory(): void {
  bun.gc(true);
  bun.shrink();
}

/** How to start this very program again: the compiled executable, or bun with the entry script in development. */
export const selfArgv = (): string[] =>
  bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, bun.main];
