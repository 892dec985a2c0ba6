"""
Sandboxes, models, agents, MCP tools and jobs of a Berth server.

    from berth_sdk import Sandbox

    with Sandbox.create() as box:
        print(box.run("uname -a").stdout)

Every class has an asynchronous twin: `AsyncSandbox`, `AsyncModel`, …
"""

from ._async.agent import AsyncAgent, AsyncThread
from ._async.berth import AsyncBerth, async_default_berth
from ._async.call import AsyncItems
from ._async.job import AsyncExecution, AsyncJob
from ._async.mcp import AsyncMcpServer
from ._async.model import AsyncModel
from ._async.sandbox import AsyncSandbox
from ._async.storage import AsyncDrive, AsyncVolume
from ._async.usage import async_model_usage, async_usage
from ._sync.agent import Agent, Thread
from ._sync.berth import Berth, default_berth
from ._sync.call import Items
from ._sync.job import Execution, Job
from ._sync.mcp import McpServer
from ._sync.model import Model
from ._sync.sandbox import Sandbox
from ._sync.storage import Drive, Volume
from ._sync.usage import model_usage, usage
from .errors import BerthError
from .values import (
    ChatAnswer,
    CodeContext,
    CodeError,
    CodeExecution,
    CodeResult,
    FileChange,
    FileEntry,
    Finished,
    FoundText,
    LogLine,
    OutputLine,
    ProcessState,
    Tool,
    ToolResult,
)

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AsyncAgent",
    "AsyncBerth",
    "AsyncDrive",
    "AsyncExecution",
    "AsyncItems",
    "AsyncJob",
    "AsyncMcpServer",
    "AsyncModel",
    "AsyncSandbox",
    "AsyncThread",
    "AsyncVolume",
    "Berth",
    "BerthError",
    "ChatAnswer",
    "CodeContext",
    "CodeError",
    "CodeExecution",
    "CodeResult",
    "Drive",
    "Execution",
    "FileChange",
    "FileEntry",
    "Finished",
    "FoundText",
    "Items",
    "Job",
    "LogLine",
    "McpServer",
    "Model",
    "OutputLine",
    "ProcessState",
    "Sandbox",
    "Thread",
    "Tool",
    "ToolResult",
    "Volume",
    "async_default_berth",
    "async_model_usage",
    "async_usage",
    "default_berth",
    "model_usage",
    "usage",
]
