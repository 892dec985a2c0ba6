"""Addresses with texts of the caller in them. No such text changes the part of the address in front of it."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx

from .errors import BerthError

#: What `encodeURIComponent` leaves as it is.
_UNRESERVED = "-_.!~*'()"
#: Clients and proxies resolve these, also in their encoded spellings and between backslashes.
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


def encoded(text: str) -> str:
    return quote(text, safe=_UNRESERVED)


def segment(name: str, value: str) -> str:
    """A name that is empty or dots would lead to another operation."""
    if value in ("", ".", ".."):
        raise BerthError("invalid_parameter", f"{name} must not be '{value}'.")
    return encoded(value)


def path_segment(path: str) -> str:
    """
    A path inside a sandbox, as one segment. Behind `./` a relative path is neither dots nor the name of an operation;
    `~` is the home directory only at the beginning.
    """
    return encoded(path if path.startswith(("/", "~")) else f"./{path}")


def url_below(address: str, path: str) -> str:
    """The URL of a path below an address, unless httpx would make another address of it."""
    parts = re.split(r"[/\\]", re.split(r"[?#]", path, maxsplit=1)[0])
    if not is_below(address, address + path) or any(_DOTS.fullmatch(part) for part in parts):
        rule = "must begin with a slash and must not have '.' or '..' between slashes"
        raise BerthError("invalid_parameter", f"The path '{path}' {rule}.")
    return address + path


def is_below(address: str, url: str) -> bool:
    try:
        base, sent = httpx.URL(address), httpx.URL(url)
    except httpx.InvalidURL:
        return False
    root, place = (each.raw_path.split(b"?")[0] for each in (base, sent))
    is_same_server = (sent.scheme, sent.netloc) == (base.scheme, base.netloc)
    return is_same_server and (place + b"/").startswith(root.rstrip(b"/") + b"/")
