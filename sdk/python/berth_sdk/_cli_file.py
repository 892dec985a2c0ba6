"""
What the command line has stored: servers that the user has logged in to (`profiles.json`), and the server on this
machine (`credentials.json`).
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from .errors import BerthError

_LOCAL = "local"
#: Seconds. An older lock was left by a killed command; none holds it longer than one request.
_LOCK_AGE_MAX = 60.0


@dataclass
class StoredProfile:
    name: str
    url: str
    workspace: Optional[str]
    api_key: Optional[str]
    has_tokens: bool


def _folder() -> Path:
    return Path(os.environ.get("BERTH_DATA") or "~/.berth").expanduser()


def read_profiles() -> Dict[str, Any]:
    return _read(_folder() / "profiles.json")


def stored_profile() -> Optional[StoredProfile]:
    """None when nobody has logged in."""
    known = read_profiles()
    name = os.environ.get("BERTH_PROFILE") or known.get("current") or _LOCAL
    local = _read(_folder() / "credentials.json") if name == _LOCAL else {}
    profile = {**local, **known.get("profiles", {}).get(name, {})}
    url = profile.get("url")
    if not url:
        if name == _LOCAL:
            return None
        raise BerthError("no_profile", f"There is no profile '{name}'.")
    return StoredProfile(
        name,
        url.rstrip("/").removesuffix("/v0"),
        profile.get("workspace"),
        profile.get("apiKey"),
        bool(profile.get("tokens")),
    )


@contextmanager
def locked() -> Iterator[bool]:
    """Whether this process has the lock of the command line; it is released at the end of the block."""
    lock = _folder() / "profiles.json.lock"
    try:
        handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        try:
            if time.time() - lock.stat().st_mtime > _LOCK_AGE_MAX:
                lock.unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # released in this moment
        yield False
        return
    os.write(handle, str(os.getpid()).encode())
    os.close(handle)
    try:
        yield True
    finally:
        lock.unlink(missing_ok=True)


def replace_tokens(name: str, access_token: str, refresh_token: str, expires_at: float) -> None:
    """Written beside and renamed, so that nobody reads half of it."""
    known = read_profiles()
    tokens = {"accessToken": access_token, "refreshToken": refresh_token, "expiresAt": int(expires_at * 1000)}
    known["profiles"][name]["tokens"] = tokens
    path = _folder() / "profiles.json"
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(json.dumps(known, indent=2) + "\n")
    beside.replace(path)


def _read(path: Path) -> Dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise BerthError("unreadable_file", f"{path} is not JSON.") from error
    return value if isinstance(value, dict) else {}
