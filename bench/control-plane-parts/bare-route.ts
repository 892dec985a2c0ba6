/** The floor of a point read: a Fastify route that checks a bearer and answers. */
import Fastify from "fastify";

const app = Fastify();
app.get("/v0/drives/:name", async (request, reply) => {
  if (request.headers.authorization !== `Bearer ${process.env.BENCH_KEY}`) return reply.code(401).send();
  return { ok: true };
});
const url = await app.listen({ port: 0, host: "127.0.0.1" });
process.on("SIGTERM", () => process.exit(0));
console.error(`API ${url}/v0`);
