"""Lines in and out, on pipes of the test's own."""

import os
import threading
import unittest

from toolgate_worker.protocol import id_of_oversized
from toolgate_worker.stdio import MAX_QUEUED_BYTES_OF_NEWS, LineReader, LineWriter, Oversized


def lines(*chunks: bytes, limit: int = 1000) -> list[object]:
    """Reads chunks that arrive one by one."""
    reading, writing = os.pipe()

    def feed() -> None:
        for chunk in chunks:
            os.write(writing, chunk)
        os.close(writing)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        return list(LineReader(reading, limit))
    finally:
        feeder.join()
        os.close(reading)


class Reader(unittest.TestCase):
    def test_lines(self) -> None:
        cases = [
            ([], []),
            ([b"a\nb\n"], [b"a", b"b"]),
            ([b"a", b"b\n", b"\n", b"c"], [b"ab", b"", b"c"]),
            ([b"\r\n"], [b"\r"]),
            ([b"x" * 1000, b"\n"], [b"x" * 1000]),
        ]
        for chunks, expected in cases:
            with self.subTest(chunks):
                self.assertEqual(lines(*chunks), expected)

    def test_oversized_lines_keep_their_edges(self) -> None:
        for count in (1001, 1513, 2000, 65_536, 200_000):
            with self.subTest(count):
                text = bytes(97 + number % 26 for number in range(count))
                first, second = lines(text[:700], text[700:], b"\nnext\n")
                self.assertEqual(first, Oversized(text[:512], text[-512:], count))
                self.assertEqual(second, b"next")

    def test_ids_of_oversized_lines(self) -> None:
        cases = [
            (b'{"jsonrpc":"2.0","id":7,"method":', b"", 7),
            (b'{"id":"a","jsonrpc":"2.0",', b"", "a"),
            (b'{"method":"x","params":{"id":1,', b'xx"},"id":8}', 8),
            (b'{"method":"x","params":{"id":1,', b'xx"},"jsonrpc":"2.0","id":9}', 9),
            (b'{"method":"x","params":{"id":1,', b'xx","id":3}}', None),
            (b'{"id":1.5,"method"', b"", None),
            (b"garbage", b"garbage", None),
        ]
        for head, tail, expected in cases:
            with self.subTest(head, tail=tail):
                self.assertEqual(id_of_oversized(head, tail), expected)


class Writer(unittest.TestCase):
    def test_news_is_dropped_while_the_host_does_not_read(self) -> None:
        reading, writing = os.pipe()
        writer = LineWriter(writing, on_failure=lambda: None)
        sent = 3 * MAX_QUEUED_BYTES_OF_NEWS // 1000
        for _ in range(sent):
            writer.write_news(b"n" * 1000)
        writer.write(b"result")
        received = bytearray()

        def read() -> None:
            while chunk := os.read(reading, 65_536):
                received.extend(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        writer.close(60)
        os.close(writing)
        reader.join()
        os.close(reading)
        self.assertTrue(received.endswith(b"\nresult\n"))
        self.assertLess(received.count(b"\n"), sent)

    def test_failure_is_reported(self) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        failed = threading.Event()
        writer = LineWriter(writing, failed.set)
        writer.write(b"lost")
        self.assertTrue(failed.wait(60))
        writer.write(b"ignored")
        writer.close(60)
        os.close(writing)


if __name__ == "__main__":
    unittest.main()
