// An agent that asks a model with the SDK, with the identity that the platform has given it.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { defaultBerth, Model } from "./berth-sdk/index.js";

const { HOST, PORT } = process.env;

createServer(async (request, response) => {
  const { inputs } = JSON.parse(await text(request));
  const answer = await new Model("own-model").chat(`You said: ${inputs}`);
  const [, claims] = (await defaultBerth().token()).split(".");
  const { sub } = JSON.parse(Buffer.from(claims, "base64url").toString());
  const body = { output: answer.text, workspace: await defaultBerth().workspace(), subject: sub };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}).listen(Number(PORT), HOST);
