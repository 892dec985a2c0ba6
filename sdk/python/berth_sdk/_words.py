"""Queries, random words and lines."""

from __future__ import annotations

import codecs
import random
import string
import uuid
from typing import Any, Dict, List, Mapping
from urllib.parse import urlencode


def query_text(query: Mapping[str, Any]) -> str:
    given = {key: _text(value) for key, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def random_word(length: int) -> str:
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=length))


def new_key() -> str:
    return str(uuid.uuid4())


def without_none(values: Mapping[str, Any]) -> Dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


class Lines:
    """Cuts bytes into lines at newlines only: texts may hold other separators."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, chunk: bytes) -> List[str]:
        *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        return lines

    def end(self) -> List[str]:
        return [self._rest] if self._rest else []


class Events:
    """Finds the `data` of server-sent events among lines."""

    def __init__(self) -> None:
        self._data: List[str] = []

    def add(self, raw: str) -> List[str]:
        line = raw[:-1] if raw.endswith("\r") else raw
        if line.startswith("data:"):
            self._data.append(line[5:][1:] if line[5:].startswith(" ") else line[5:])
        elif line == "":
            return self.end()
        return []

    def end(self) -> List[str]:
        data, self._data = self._data, []
        return ["\n".join(data)] if data else []
