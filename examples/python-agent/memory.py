"""What an agent remembers of a conversation, kept by the platform under the thread id of the request."""

import json
import os
import time
from urllib.parse import quote
from urllib.request import Request, urlopen

API = os.environ.get("BL_API_URL")
TIMEOUT_SECONDS = 10
token = {"text": "", "until": 0.0}


def recall(thread):
    """The messages of this thread so far; none without a thread, or without a platform."""
    return call("GET", path_of(thread), headers=credentials())["messages"] if thread and API else []


def remember(thread, messages):
    if thread and API:
        call("POST", path_of(thread) + "/messages", json.dumps({"messages": messages}), credentials())


def credentials():
    """Who is asking: the key that was given, or else the agent itself."""
    if os.environ.get("BL_API_KEY"):
        return {"x-service-authorization": "Bearer " + os.environ["BL_API_KEY"]}
    if token["until"] < time.time():
        basic = {"authorization": "Basic " + os.environ.get("BL_CLIENT_CREDENTIALS", "")}
        answer = call("POST", "/oauth/token", json.dumps({"grant_type": "client_credentials"}), basic)
        token.update(text=answer["access_token"], until=time.time() + answer["expires_in"] - 60)
    return {"x-service-authorization": "Bearer " + token["text"]}


def path_of(thread):
    return f"/agents/{os.environ.get('BL_NAME')}/threads/{quote(thread, safe='')}"


def call(method, path, body=None, headers=None):
    data = None if body is None else body.encode()
    request = Request(API + path, data, {"content-type": "application/json", **(headers or {})}, method=method)
    with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)
