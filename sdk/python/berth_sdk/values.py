"""Plain values that calls return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Optional

from .errors import BerthError


@dataclass(frozen=True)
class Finished:
    """The end of a command. An exit code other than 0 is a result, not an error; -1 is a death by signal."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class OutputLine:
    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True)
class ProcessState:
    pid: str
    name: str
    command: str
    status: Literal["running", "completed", "failed", "stopped", "killed"]
    #: None while the process runs.
    exit_code: Optional[int]
    working_dir: str

    @staticmethod
    def of(answer: Any) -> ProcessState:
        if not isinstance(answer, dict) or not isinstance(answer.get("pid"), str):
            raise BerthError("not_json", "The sandbox did not describe a process.")
        status = answer["status"]
        return ProcessState(
            answer["pid"],
            answer.get("name", ""),
            answer.get("command", ""),
            status,
            None if status == "running" else int(answer.get("exitCode", -1)),
            answer.get("workingDir", ""),
        )


@dataclass(frozen=True)
class FileEntry:
    name: str
    path: str
    type: Literal["file", "directory"]
    #: Bytes; 0 for a directory.
    size: int
    permissions: str
    last_modified: str

    @staticmethod
    def of(type: Literal["file", "directory"], entry: Dict[str, Any]) -> FileEntry:
        size, permissions = entry.get("size", 0), entry.get("permissions", "")
        return FileEntry(entry["name"], entry["path"], type, size, permissions, entry.get("lastModified", ""))


@dataclass(frozen=True)
class FileChange:
    #: CREATE, WRITE, REMOVE, RENAME or CHMOD, several joined with `|`.
    op: str
    path: str


@dataclass(frozen=True)
class FoundText:
    path: str
    #: From 1.
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class LogLine:
    #: RFC 3339 with nanoseconds.
    timestamp: str
    message: str
    #: 1 trace, 5 debug, 9 info, 13 warning, 17 error, 21 fatal, 0 unknown.
    severity: int
    #: The line as the server tells it.
    record: Dict[str, Any]


@dataclass(frozen=True)
class ChatAnswer:
    #: The text of the first choice.
    text: str
    #: The whole answer, in the words of OpenAI.
    body: Dict[str, Any]


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    input_schema: Dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    #: The texts of the content, joined with newlines.
    text: str
    content: List[Dict[str, Any]]
    is_error: bool
    structured_content: Optional[Dict[str, Any]]


@dataclass(frozen=True)
class CodeResult:
    """A value in the forms that it has; images are base64. `is_main`: the value of the last expression."""

    is_main: bool
    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    json: Any = None
    javascript: Optional[str] = None
    extra: Optional[Dict[str, Any]] = None

    @classmethod
    def of(cls, message: Dict[str, Any]) -> "CodeResult":
        forms = {name: message[name] for name in cls.__dataclass_fields__ if name in message}
        return cls(is_main=message["is_main_result"], **forms)


@dataclass(frozen=True)
class CodeError:
    name: str
    value: str
    traceback: str


@dataclass
class CodeExecution:
    """The end of an execution. An error of the code is a result; it is not raised."""

    text: Optional[str] = None
    results: List[CodeResult] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""
    error: Optional[CodeError] = None


@dataclass(frozen=True)
class CodeContext:
    id: str
    language: str
    cwd: str
