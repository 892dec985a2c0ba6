/** Programs of the platform's own that run as a workload's foreground command; see `ExecConfig.builtin`. */
import { realpathSync } from "node:fs";

type Builtin = (argv: string[]) => Promise<void>;

export const BUILTINS: Readonly<Record<string, Builtin>> = {
  async "mcp-stdio"(argv) {
    const { startMcpBridge } = await import("./mcp/bridge.ts");
    const bridge = await startMcpBridge({ argv, ...listenAddress() });
    process.on("SIGTERM", () => {
      bridge.stop();
      process.exit(0);
    });
  },
  /** argv: the folder to serve. */
  async "mcp-files"([folder = "/data"]) {
    const [{ runMcpProgram }, { FILES_SERVER }] = await Promise.all([
      import("./mcp/program.ts"),
      import("./hub/files.ts"),
    ]);
    await runMcpProgram(FILES_SERVER, { root: realpathSync(folder) }, listenAddress());
  },
  /** argv: the SQLite file, unless the environment names a PostgreSQL. */
  async "mcp-sql"([file = ""]) {
    const [{ runMcpProgram }, { SQL_SERVER }] = await Promise.all([import("./mcp/program.ts"), import("./hub/sql.ts")]);
    const { POSTGRES_URL: url } = process.env;
    if (!url && file === "") throw new Error("there is neither a file nor POSTGRES_URL");
    await runMcpProgram(SQL_SERVER, url ? { url } : { file }, listenAddress());
  },
  /** argv: the ports to listen on. */
  async "code-interpreter"(ports) {
    await (await import("./interpreter/server.ts")).runInterpreter(ports.map(Number));
  },
  /** argv: the job as JSON. */
  async "build-files"([job = ""]) {
    (await import("./build/build-files.ts")).runBuildFiles(job);
  },
  async sql() {
    await (await import("./hub/sql-child.ts")).runSqlChild();
  },
};

const listenAddress = (): { host: string; port: number } => ({
  host: process.env.HOST ?? "127.0.0.1",
  port: Number(process.env.PORT ?? "8080"),
});
