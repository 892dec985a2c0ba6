"""Makes the call of every test vector with the installed SDK; prints one outcome a line. Arguments: how (sync, async), vectors, server."""

import asyncio
import inspect
import json
import os
import re
import sys
from dataclasses import asdict

import berth_sdk
from berth_sdk import BerthError

HOW, VECTORS, SERVER = sys.argv[1:]
# Loading certificates is the slowest part of a new client, and the server of the vectors has none.
PLAIN = {"verify": False}


def known(name):
    return getattr(berth_sdk, ("Async" if HOW == "async" else "") + name)


def snake(word):
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", word).lower()


def named(options):
    return {snake(key): value for key, value in options.items()}


async def given(value):
    return await value if inspect.isawaitable(value) else value


async def collected(items):
    if hasattr(items, "__aiter__"):
        return [item async for item in items]
    return list(items)


def with_key(url):
    return known("Berth")(url=url, api_key="key", workspace="main", http_options=PLAIN)


def with_token(url):
    return known("Berth")(url=url, client_credentials=("id", "secret"), http_options=PLAIN)


def operation(berth, args):
    method = getattr(berth.api, snake(args["operation"]))
    source = args["input"]
    return method(*source.get("params", {}).values(), **named(source.get("query", {})))


async def box(url):
    return await given(known("Sandbox").get("box", berth=with_key(url)))


async def api(url, args):
    return await given(operation(with_key(url), args))


async def api_with_token(url, args):
    return await given(operation(with_token(url), args))


async def profile(url, args):
    os.environ["BERTH_PROFILE"] = url.rsplit("/", 1)[1]
    return await given(operation(known("Berth")(), args))


async def elsewhere(url, args):
    os.environ["BERTH_PROFILE"] = url.rsplit("/", 1)[1]
    return await given(operation(known("Berth")(url=f"{url}/elsewhere"), args))


async def fetch(url, args):
    same = await given(known("Sandbox").get("box", berth=with_token(url)))
    response = await given(same.fetch(args["port"], args["path"]))
    return [response.status_code, response.text]


async def items(url, args):
    return await given(operation(with_key(url), args).to_list())


async def create(url, args):
    return (await given(known("Sandbox").create(**named(args["options"]), berth=with_key(url)))).name


async def token(url, args):
    berth = with_token(url)
    return [await given(berth.token()) for _ in range(args["times"])]


async def run(url, args):
    done = await given((await box(url)).run(args["command"], **named(args["options"])))
    return {"exitCode": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}


async def run_code(url, args):
    done = asdict(await given((await box(url)).run_code(args["code"], **named(args["options"]))))
    for result in done["results"]:
        result["isMain"] = result.pop("is_main")
    done["results"] = [{key: value for key, value in each.items() if value is not None} for each in done["results"]]
    return done


async def create_code_context(url, args):
    return asdict(await given((await box(url)).create_code_context(**named(args["options"]))))


async def read(url, args):
    return await given((await box(url)).files.read(args["path"]))


async def write(url, args):
    return await given((await box(url)).files.write(args["path"], args["data"], **named(args["options"])))


async def listed(url, args):
    entries = await given((await box(url)).files.list(args["path"]))
    return [[entry.type, entry.path, entry.size] for entry in entries]


async def remove(url, args):
    return await given((await box(url)).files.remove(args["path"]))


async def write_many(url, args):
    return await given((await box(url)).files.write_many(args["path"], args["files"]))


async def find(url, args):
    return await given((await box(url)).files.find(args["path"], args["pattern"]))


async def unmount(url, args):
    return await given((await box(url)).drives.unmount(args["path"]))


async def agent_fetch(url, args):
    agent = known("Agent")(args["agent"], berth=with_key(url))
    return (await given(agent.fetch(args["path"]))).status_code


async def process_logs(url, args):
    process = await given((await box(url)).process(args["id"]))
    return [[line.stream, line.text] for line in await collected(process.logs())]


async def tool(url, args):
    server = known("McpServer")(args["function"], berth=with_key(url))
    return (await given(server.call(args["name"], args["arguments"]))).text


async def chat(url, args):
    return (await given(known("Model")(args["model"], berth=with_key(url)).chat(args["input"]))).text


async def chat_stream(url, args):
    return await collected(known("Model")(args["model"], berth=with_key(url)).chat_stream(args["input"]))


async def ask(url, args):
    agent = known("Agent")(args["agent"], berth=with_key(url))
    return await given(agent.ask(args["inputs"], **named(args["options"])))


async def job(url, args):
    told = []
    started = known("Job")(args["job"], berth=with_key(url)).run(args["tasks"])
    record = await given(started.wait(on_progress=lambda now: told.append(now["status"])))
    return [record["status"], told]


CALLS = {
    "api": api,
    "apiWithToken": api_with_token,
    "profile": profile,
    "elsewhere": elsewhere,
    "fetch": fetch,
    "list": items,
    "create": create,
    "token": token,
    "run": run,
    "runCode": run_code,
    "createCodeContext": create_code_context,
    "files.read": read,
    "files.write": write,
    "files.list": listed,
    "files.remove": remove,
    "files.writeMany": write_many,
    "files.find": find,
    "unmount": unmount,
    "agent.fetch": agent_fetch,
    "process.logs": process_logs,
    "tool": tool,
    "chat": chat,
    "chatStream": chat_stream,
    "ask": ask,
    "job": job,
}


async def main():
    for index, vector in enumerate(json.loads(VECTORS)):
        try:
            outcome = {"returns": await CALLS[vector["call"]](f"{SERVER}/{index}", vector["args"])}
        except BerthError as error:
            names = {"code": "code", "status": "status", "message": "message", "retryable": "retryable"}
            names.update(nextStep="next_step", requestId="request_id")
            outcome = {"throws": {key: getattr(error, name) for key, name in names.items()}}
        print(json.dumps(outcome), flush=True)


asyncio.run(main())
