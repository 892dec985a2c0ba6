"""An agent of LlamaIndex with a model, an MCP server and sandboxes of the platform."""

import asyncio
from typing import Literal

import httpx
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

import berth

llm = OpenAILike(
    model=berth.MODEL,
    api_base=berth.MODEL_URL,
    api_key="set by AsAgent",
    is_chat_model=True,
    is_function_calling_model=True,
    async_http_client=httpx.AsyncClient(auth=berth.AsAgent(), timeout=berth.TIMEOUT_SECONDS),
)


async def answer(messages, thread):
    async def run_code(language: Literal["javascript", "python", "shell"], code: str) -> str:
        """Runs code in a sandbox and returns what it printed."""
        return await asyncio.to_thread(berth.run_code, language, code, thread)

    mcp = BasicMCPClient(berth.MCP_URL, headers={"authorization": "Bearer " + berth.access_token()})
    tools = [FunctionTool.from_defaults(async_fn=run_code), *(await McpToolSpec(client=mcp).to_tool_list_async())]
    agent = FunctionAgent(llm=llm, tools=tools, system_prompt=berth.SYSTEM_PROMPT)
    *before, question = messages
    history = [ChatMessage(role=each["role"], content=each["content"]) for each in before]
    return str(await agent.run(question["content"], chat_history=history))


berth.serve(answer)
