"""The one error class of the SDK, made of every error shape that a server has."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional, Tuple

from .generated.next_steps import NEXT_STEPS

#: Statuses after which the same request may succeed.
_RETRYABLE = {429, 502, 503, 504}
#: Codes for answers that have a sentence and no code, as those from inside a sandbox.
_CODE_OF_STATUS = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "too_large",
    422: "refused",
    429: "rate_limited",
}


class BerthError(Exception):
    """A call that failed. `next_step` says what to do about it."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        next_step: Optional[str] = None,
        retryable: bool = False,
        request_id: Optional[str] = None,
        body: Any = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        #: A word for programs: `not_found`, `SANDBOX_ALREADY_EXISTS`, `unreachable`.
        self.code = code
        self.message = message
        #: The HTTP status; 0 when no answer arrived.
        self.status = status
        self.next_step = next_step or NEXT_STEPS.get(code) or NEXT_STEPS.get(str(status)) or ""
        #: Whether the very same request may succeed later.
        self.retryable = retryable
        #: Identifies the request in the server's log.
        self.request_id = request_id
        #: The whole answer.
        self.body = body
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


def error_of(status: int, headers: Mapping[str, str], text: str) -> BerthError:
    """Reads the error shapes of the management API, of sandbox records, of the gateway, of sandboxes and of OAuth."""
    body = _parsed(text)
    answer = body if isinstance(body, dict) else {}
    gateway = answer.get("error") if isinstance(answer.get("error"), dict) else None
    said = gateway if gateway is not None else answer
    code, sentence = _code_and_sentence(status, answer, gateway)
    retryable = said.get("retryable")
    return BerthError(
        code,
        sentence or f"The server answered {status} ({code}).",
        status=status,
        next_step=_word(said.get("action")),
        retryable=retryable if isinstance(retryable, bool) else status in _RETRYABLE,
        request_id=headers.get("x-request-id"),
        body=text if body is None else body,
        retry_after=_seconds(headers.get("retry-after")),
    )


def _code_and_sentence(status: int, answer: Dict[str, Any], gateway: Optional[Dict[str, Any]]) -> Tuple[str, Optional[str]]:
    fallback = _CODE_OF_STATUS.get(status, "failed")
    if gateway is not None:
        return _word(gateway.get("code")) or fallback, _word(gateway.get("message"))
    error = _word(answer.get("error"))
    sentence = _word(answer.get("message")) or _word(answer.get("error_description"))
    # Inside a sandbox `error` is the sentence.
    if error is not None and " " in error and sentence is None:
        return fallback, error
    return error or _word(answer.get("code")) or fallback, sentence


def _word(value: Any) -> Optional[str]:
    return value if isinstance(value, str) and value != "" else None


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # a page of something else than Berth: the status tells
