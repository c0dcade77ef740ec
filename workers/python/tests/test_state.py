"""Sessions: bounds and expiry, with a clock of the test's own."""

import unittest

from toolgate_worker.errors import ToolError
from toolgate_worker.state import Session, Sessions


class State(unittest.TestCase):
    def setUp(self) -> None:
        self.now = 0.0

    def sessions(self, **options: float) -> Sessions:
        return Sessions(clock=lambda: self.now, **options)

    def use(self, sessions: Sessions, name: str) -> Session:
        session = sessions.acquire(name)
        sessions.release(name)
        return session

    def test_state_is_kept_and_expires(self) -> None:
        sessions = self.sessions(ttl_seconds=10)
        self.use(sessions, "a")["x"] = 1
        self.now = 9
        self.assertEqual(dict(self.use(sessions, "a")), {"x": 1})
        self.now = 18
        self.assertEqual(dict(self.use(sessions, "a")), {"x": 1})
        self.now = 28
        self.assertEqual(dict(self.use(sessions, "a")), {})

    def test_least_recently_used_goes_first(self) -> None:
        sessions = self.sessions(max_sessions=2)
        for name in ("a", "b", "a", "c"):
            self.use(sessions, name)["name"] = name
        self.assertEqual(len(sessions), 2)
        self.assertEqual(dict(self.use(sessions, "a")), {"name": "a"})
        self.assertEqual(dict(self.use(sessions, "b")), {})

    def test_sessions_in_use_stay(self) -> None:
        sessions = self.sessions(max_sessions=1, ttl_seconds=1)
        held = sessions.acquire("held")
        held["x"] = 1
        self.now = 100
        for name in ("a", "b", "c"):
            self.use(sessions, name)
        self.assertIs(sessions.acquire("held"), held)

    def test_entries_are_bounded(self) -> None:
        session = Session(max_entries=2)
        session.update(a=1, b=2)
        session["a"] = 3
        with self.assertRaises(ToolError):
            session["c"] = 4
        del session["a"]
        session["c"] = 4
        self.assertEqual(dict(session), {"b": 2, "c": 4})


if __name__ == "__main__":
    unittest.main()
