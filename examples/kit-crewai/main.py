"""An agent of CrewAI with a model, an MCP server and sandboxes of the platform."""

import asyncio
from typing import Any, Literal

from crewai import LLM, Agent
from crewai.tools import BaseTool, tool
from crewai.utilities.pydantic_schema_utils import create_model_from_schema
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

import berth


class McpTool(BaseTool):
    """A tool of an MCP server. CrewAI calls it from a thread; the session belongs to the event loop."""

    session: Any
    loop: Any

    def _run(self, **arguments) -> str:
        call = self.session.call_tool(self.name, arguments)
        result = asyncio.run_coroutine_threadsafe(call, self.loop).result()
        return "\n".join(getattr(each, "text", str(each)) for each in result.content)


async def answer(messages, thread):
    @tool("run_code")
    def run_code(language: Literal["javascript", "python", "shell"], code: str) -> str:
        """Runs code in a sandbox and returns what it printed."""
        return berth.run_code(language, code, thread)

    # The agent's token is renewed, so clients are made for one answer.
    token = berth.access_token()
    headers = {"authorization": "Bearer " + token}
    async with (
        streamablehttp_client(berth.MCP_URL, headers=headers) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        loop = asyncio.get_running_loop()
        served = [
            McpTool(
                name=each.name,
                description=each.description or each.name,
                args_schema=create_model_from_schema(each.inputSchema),
                session=session,
                loop=loop,
            )
            for each in (await session.list_tools()).tools
        ]
        agent = Agent(
            role="assistant",
            goal="Answer the last message of the conversation.",
            backstory=berth.SYSTEM_PROMPT,
            llm=LLM(model=berth.MODEL, custom_openai=True, base_url=berth.MODEL_URL, api_key=token),
            tools=[run_code, *served],
        )
        result = await asyncio.to_thread(agent.kickoff, messages)
    return result.raw


berth.serve(answer)
