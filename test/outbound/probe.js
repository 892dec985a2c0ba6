/** Runs inside a workload, during its build and while it serves: tells what the workload reaches outside. */
const net = require("node:net");

const MOMENT_MS = 2000;
const PATIENCE_MS = 60_000;

const why = (error) => (error.cause instanceof Error ? `${error.message}: ${why(error.cause)}` : error.message);
const said = (answer) => answer.headers.get("proxy-error") ?? answer.text();

async function fetched(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return `${answer.status} ${await said(answer)}`;
  } catch (error) {
    return `error ${why(error)}`;
  }
}

/** Raw TCP to an address. What the packet filter drops is waited for in vain. */
const raw = () =>
  new Promise((resolve) => {
    const socket = net.connect(7000, "203.0.113.2", () => socket.setTimeout(PATIENCE_MS));
    socket.setTimeout(MOMENT_MS, () => socket.destroy(new Error("silence")));
    socket.on("error", (error) => resolve(`error ${error.code ?? error.message}`));
    socket.on("data", (text) => resolve(String(text)));
  });

async function probe() {
  const [good, bad, api, tcp] = await Promise.all([
    ...[fetched("http://good.test/"), fetched("http://bad.test/"), fetched("https://api.test/")],
    raw(),
  ]);
  const hasSecret = Object.values(process.env).some((value) => value.includes("sk-never-inside"));
  return { good, bad, api, tcp, hasSecret };
}

module.exports = { probe };
if (require.main === module) probe().then((result) => console.log(JSON.stringify(result)));
