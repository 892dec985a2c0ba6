/** Programs of the platform's own that run as a workload's foreground command; see `ExecConfig.builtin`. */

type Builtin = (argv: string[]) => Promise<void>;

export const BUILTINS: Readonly<Record<string, Builtin>> = {
  async "mcp-stdio"(argv) {
    const { startMcpBridge } = await import("./mcp-bridge.ts");
    const bridge = await startMcpBridge({ argv, ...listenAddress() });
    process.on("SIGTERM", () => {
      bridge.stop();
      process.exit(0);
    });
  },
};

const listenAddress = (): { host: string; port: number } => ({
  host: process.env.HOST ?? "127.0.0.1",
  port: Number(process.env.PORT ?? "8080"),
});
