// A web application: one page, and the API that it asks.
import { createServer } from "node:http";

const { HOST = "127.0.0.1", PORT = "8080", GREETING = "Hello" } = process.env;
const started = Date.now();

const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>app-web</title>
<h1 id="greeting">…</h1>
<p>Up for <span id="up">…</span> s.</p>
<script>
  fetch("api/status").then((response) => response.json()).then(({ greeting, upSeconds }) => {
    document.getElementById("greeting").textContent = greeting;
    document.getElementById("up").textContent = upSeconds;
  });
</script>
`;

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://host");
  if (pathname === "/") return send(response, 200, "text/html; charset=utf-8", PAGE);
  if (pathname === "/api/status") {
    const upSeconds = Math.floor((Date.now() - started) / 1000);
    return send(response, 200, "application/json", JSON.stringify({ greeting: GREETING, upSeconds }));
  }
  send(response, 404, "text/plain", "not found\n");
});

function send(response, status, type, body) {
  response.writeHead(status, { "content-type": type }).end(body);
}

server.listen(Number(PORT), HOST, () => console.log(`listening on http://${HOST}:${server.address().port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
