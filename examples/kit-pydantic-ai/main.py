"""An agent of Pydantic AI with a model, an MCP server and sandboxes of the platform."""

import asyncio
from typing import Literal

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import berth


def as_message(message) -> ModelMessage:
    if message["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(content=message["content"])])
    return ModelResponse(parts=[TextPart(content=message["content"])])


async def answer(messages, thread):
    # The agent's token is renewed, so clients are made for one answer.
    token = berth.access_token()
    model = OpenAIChatModel(berth.MODEL, provider=OpenAIProvider(base_url=berth.MODEL_URL, api_key=token))
    mcp = MCPToolset(berth.MCP_URL, headers={"authorization": "Bearer " + token})
    agent = Agent(model, instructions=berth.SYSTEM_PROMPT, toolsets=[mcp])

    @agent.tool_plain
    async def run_code(language: Literal["javascript", "python", "shell"], code: str) -> str:
        """Runs code in a sandbox and returns what it printed."""
        return await asyncio.to_thread(berth.run_code, language, code, thread)

    *before, question = messages
    async with agent:
        result = await agent.run(question["content"], message_history=[as_message(each) for each in before])
    return result.output


berth.serve(answer)
