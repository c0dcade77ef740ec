"""Per-session state: bounded, expiring, kept in this process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from .errors import ToolError

MAX_SESSIONS = 10_000
SESSION_TTL_SECONDS = 3600.0
MAX_SESSION_ENTRIES = 1_000


class Session(MutableMapping[str, Any]):
    """State of one session: a dictionary that tools of the same session share.

    Single operations are atomic. Hold `lock` for a sequence of them.
    """

    def __init__(self, max_entries: int = MAX_SESSION_ENTRIES) -> None:
        self.lock = threading.RLock()
        self._entries: dict[str, Any] = {}
        self._max_entries = max_entries
        self._users = 0
        self._used_at = 0.0

    def __getitem__(self, key: str) -> Any:
        with self.lock:
            return self._entries[key]

    def __setitem__(self, key: str, value: Any) -> None:
        with self.lock:
            if key not in self._entries and len(self._entries) >= self._max_entries:
                raise ToolError(
                    f"the session holds {self._max_entries} entries, which is the limit"
                )
            self._entries[key] = value

    def __delitem__(self, key: str) -> None:
        with self.lock:
            del self._entries[key]

    def __iter__(self) -> Iterator[str]:
        with self.lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)


class Sessions:
    """Sessions by id, least recently used first. Sessions of running calls are never evicted."""

    def __init__(
        self,
        max_sessions: int = MAX_SESSIONS,
        ttl_seconds: float = SESSION_TTL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._max_sessions = max_sessions
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def acquire(self, session_id: str) -> Session:
        """Returns the session, creating it if needed, and keeps it until `release`."""
        with self._lock:
            self._evict()
            session = self._sessions.setdefault(session_id, Session())
            session._users += 1
            self._touch(session_id, session)
            self._evict()
            return session

    def release(self, session_id: str) -> None:
        """Ends one use of a session. Its time to live starts again."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is not None:
                session._users -= 1
                self._touch(session_id, session)
            self._evict()

    def _touch(self, session_id: str, session: Session) -> None:
        session._used_at = self._clock()
        self._sessions.move_to_end(session_id)

    def _evict(self) -> None:
        expired_before = self._clock() - self._ttl_seconds
        excess = len(self._sessions) - self._max_sessions
        evicted = []
        for session_id, session in self._sessions.items():
            if excess <= 0 and session._used_at > expired_before:
                break
            if session._users == 0:
                evicted.append(session_id)
                excess -= 1
        for session_id in evicted:
            del self._sessions[session_id]
