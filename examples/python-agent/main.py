"""An agent in Python, with nothing but the standard library: answers at once, or word by word as a stream."""

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from memory import recall, remember

HOST = os.environ.get("HOST", "127.0.0.1")
PORT = int(os.environ.get("PORT", "8000"))
BODY_BYTES_MAX = 1024 * 1024


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, {"agent": "python", "usage": 'POST {"inputs": "hello"}'})

    def do_POST(self):
        size = int(self.headers.get("content-length") or 0)
        if size > BODY_BYTES_MAX:
            return self.answer(413, {"error": "the body is too large"})
        try:
            inputs = json.loads(self.rfile.read(size)).get("inputs", "")
        except (ValueError, AttributeError):
            return self.answer(400, {"error": 'the body must be JSON with an "inputs" member'})
        thread = self.headers.get("x-service-thread-id")
        turn = len(recall(thread)) // 2 + 1
        output = f"You wrote {len(str(inputs).split())} words: {inputs}"
        if turn > 1:
            output += f" (turn {turn} of this conversation)"
        remember(thread, [{"role": "user", "content": inputs}, {"role": "assistant", "content": output}])
        if parse_qs(urlsplit(self.path).query).get("stream") == ["true"]:
            return self.stream(output.split(" "))
        self.answer(200, {"output": output})

    def stream(self, words):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for word in words:
            self.wfile.write(f"data: {json.dumps(word)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer((HOST, PORT), Agent)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
print(f"listening on http://{HOST}:{server.server_address[1]}", flush=True)
server.serve_forever()
