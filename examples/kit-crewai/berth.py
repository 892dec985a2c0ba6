"""Made by `npm run generate` from scripts/kits/berth.py: what every kit in Python needs of the platform.

It is who the agent is, where its model, MCP server and sandbox are, what it remembers of a thread, and the HTTP server
around it.
"""

import asyncio
import hashlib
import json
import os
import signal
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import httpx

ENV = os.environ
API = ENV.get("BL_API_URL", "http://127.0.0.1:8080/v0")
RUN = ENV.get("BL_RUN_URL", "http://127.0.0.1:8080")
WORKSPACE = ENV.get("BL_WORKSPACE", "main")
NAME = ENV.get("BL_NAME", "agent")
MODEL = ENV.get("MODEL", "chat")
# The model, for any client of OpenAI's API.
MODEL_URL = f"{RUN}/{WORKSPACE}/models/{MODEL}/v1"
# An MCP server of the workspace: the template mcp-hello, until MCP_SERVER names another.
MCP_URL = f"{RUN}/{WORKSPACE}/functions/{ENV.get('MCP_SERVER', 'mcp-hello')}/mcp"
SYSTEM_PROMPT = "You are a helpful assistant. Use your tools instead of guessing. Answer briefly."
BODY_BYTES_MAX = 1024 * 1024
# A sandbox ends this long after its last use.
SANDBOX_IDLE = "10m"
# Seconds for one call of the platform; code in a sandbox may take its time.
TIMEOUT_SECONDS = 120
INTERPRETERS = {"javascript": "node", "python": "python3", "shell": "sh"}
token = {"text": "", "until": 0.0}
client = httpx.Client(timeout=TIMEOUT_SECONDS)


def access_token() -> str:
    """The key that was given, or else a token of the agent itself, renewed a minute before it ends."""
    if ENV.get("BL_API_KEY"):
        return ENV["BL_API_KEY"]
    if token["until"] < time.time():
        basic = {"authorization": "Basic " + ENV.get("BL_CLIENT_CREDENTIALS", "")}
        answer = client.post(f"{API}/oauth/token", json={"grant_type": "client_credentials"}, headers=basic)
        said = parsed(answer)
        token.update(text=said["access_token"], until=time.time() + said["expires_in"] - 60)
    return token["text"]


class AsAgent(httpx.Auth):
    """The agent's credentials, for clients that take an httpx client of their own."""

    def auth_flow(self, request):
        request.headers["authorization"] = "Bearer " + access_token()
        yield request


def run_code(language: str, code: str, thread: str | None) -> str:
    """Runs code in a sandbox of the thread, which is made when it is first needed; returns what the code printed."""
    name = "code-" + hashlib.sha256(f"{NAME}/{thread or uuid.uuid4()}".encode()).hexdigest()[:16]
    policy = {"type": "ttl-idle", "value": SANDBOX_IDLE, "action": "delete"}
    spec = {"lifecycle": {"expirationPolicies": [policy]}}
    call("POST", f"{API}/sandboxes?createIfNotExist=true", {"metadata": {"name": name}, "spec": spec})
    box = f"{RUN}/{WORKSPACE}/sandboxes/{name}"
    file = f"/tmp/code-{uuid.uuid4()}"
    call("PUT", f"{box}/filesystem/{quote(file, safe='')}", {"content": code})
    command = f"{INTERPRETERS.get(language, 'sh')} {file}"
    done = call("POST", f"{box}/process", {"command": command, "waitForCompletion": True})
    if done["exitCode"] == 0:
        return done["stdout"]
    return f"exit code {done['exitCode']}\n{done['stdout']}{done['stderr']}"


def thread_url(thread: str) -> str:
    return f"{API}/agents/{NAME}/threads/{quote(thread, safe='')}"


def recall(thread: str) -> list | None:
    """The messages so far. `berth dev` runs an agent that the platform does not know before its deployment."""
    answer = client.get(thread_url(thread), auth=AsAgent())
    return None if answer.status_code == 404 else parsed(answer)["messages"]


def call(method: str, url: str, body: dict):
    headers = {"x-service-workspace": WORKSPACE}
    return parsed(client.request(method, url, json=body, headers=headers, auth=AsAgent()))


def parsed(answer: httpx.Response):
    if not answer.is_success:
        raise RuntimeError(f"The platform answered {answer.status_code}: {answer.text}")
    return answer.json() if answer.content else None


def explained(message: str) -> str:
    """The message with the next step, where there is one."""
    if f"Model {MODEL} does not exist" not in message:
        return message
    return f"{message} Make a model called {MODEL}, as docs/kits.md shows, or name another: MODEL=NAME berth deploy."


def serve(answer) -> None:
    """`await answer(messages, thread)` gets the conversation, the question last, and returns a text."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def reply(inputs: str, thread: str | None) -> str:
        known = recall(thread) if thread else None
        question = {"role": "user", "content": inputs}
        output = asyncio.run_coroutine_threadsafe(answer([*(known or []), question], thread), loop).result()
        if thread and known is not None:
            added = [question, {"role": "assistant", "content": output}]
            call("POST", f"{thread_url(thread)}/messages", {"messages": added})
        return output

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                length = int(self.headers.get("content-length") or 0)
                if length > BODY_BYTES_MAX:
                    return self.send(413, {"error": "the body is too large"})
                asked = json.loads(self.rfile.read(length))
                inputs = asked.get("inputs") if isinstance(asked, dict) else None
                if not isinstance(inputs, str) or inputs == "":
                    return self.send(400, {"error": '"inputs" must be a text'})
                self.send(200, {"output": reply(inputs, self.headers.get("x-service-thread-id"))})
            except json.JSONDecodeError as error:
                self.send(400, {"error": str(error)})
            except Exception as error:  # a failed turn must not end the server
                self.log_error("%r", error)
                self.send(502, {"error": explained(str(error))})

        def send(self, status, body):
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer((ENV.get("HOST", "127.0.0.1"), int(ENV.get("PORT", "8000"))), Handler)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"listening on http://{server.server_address[0]}:{server.server_address[1]}", flush=True)
    server.serve_forever()
