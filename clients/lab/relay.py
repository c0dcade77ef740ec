"""A relay that forwards and records the bytes between client and gateway."""

import json
import socket
import threading
import zlib


class Relay:
    """Listens on a port of its own and relays to another one."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.talks = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            talk = Talk()
            self.talks.append(talk)
            threading.Thread(target=self.relay, args=(client, talk), daemon=True).start()

    def relay(self, client, talk):
        try:
            gateway = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        up = threading.Thread(target=pump, args=(client, gateway, talk.up), daemon=True)
        up.start()
        pump(gateway, client, talk.down)

    def close(self):
        self.listener.close()

    def exchanges(self):
        """Every request with its answer, in the order of the connections."""
        return [exchange for talk in list(self.talks) for exchange in talk.exchanges()]


def pump(source, sink, kept):
    try:
        while data := source.recv(65536):
            kept += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Talk:
    """Both directions of one connection."""

    def __init__(self):
        self.up = bytearray()
        self.down = bytearray()

    def exchanges(self):
        requests, answers = messages(bytes(self.up)), messages(bytes(self.down))
        # `100 Continue` is not an answer.
        answers = [it for it in answers if it["start"].split(" ")[1:2] != ["100"]]
        for at, request in enumerate(requests):
            method, _, rest = request["start"].partition(" ")
            answer = answers[at] if at < len(answers) else None
            yield Exchange(method, rest.rsplit(" ", 1)[0], request, answer)


class Exchange:
    def __init__(self, method, path, request, answer):
        self.method, self.path = method, path
        self.request, self.answer = request, answer
        self.status = int(answer["start"].split(" ")[1]) if answer else 0

    def body(self):
        """Parsed request body; None if it is not JSON."""
        if self.status == 101:
            return [parsed(text) or text for text in websocket_texts(self.request["body"])]
        return parsed(self.request["body"])

    def text(self):
        """Body of the answer."""
        return self.answer["body"].decode("utf-8", "replace") if self.answer else ""

    def said(self):
        if not self.answer:
            return ""
        if self.status == 101:
            return [parsed(text) or text for text in websocket_texts(self.answer["body"])]
        return parsed(self.answer["body"]) or self.text()

    def is_stream(self):
        kind = self.answer["headers"].get("content-type", "") if self.answer else ""
        return kind.startswith("text/event-stream")

    def to_json(self):
        headers = {
            name: "…" if name in SECRET else value
            for name, value in self.request["headers"].items()
        }
        return {
            "request": f"{self.method} {self.path}",
            "headers": headers,
            "body": self.body(),
            "status": self.status,
            "answer_headers": self.answer["headers"] if self.answer else {},
            "answer": self.said(),
            "whole": bool(self.answer and self.answer["whole"]),
        }


SECRET = {"authorization", "x-api-key", "x-goog-api-key"}


def websocket_texts(data):
    """Text messages of one direction of a WebSocket, in order. Compression is not negotiated."""
    texts, open_text, at = [], b"", 0
    while at + 2 <= len(data):
        final, kind, length = data[at] & 0x80, data[at] & 0x0F, data[at + 1] & 0x7F
        is_masked, at = data[at + 1] & 0x80, at + 2
        if length > 125:
            size = 2 if length == 126 else 8
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        mask = data[at : at + 4] if is_masked else bytes(4)
        at += 4 if is_masked else 0
        body = data[at : at + length]
        if len(body) < length:
            break
        at += length
        if kind in (0, 1):
            open_text += bytes(byte ^ mask[place % 4] for place, byte in enumerate(body)) if is_masked else body
            if final:
                texts.append(open_text.decode("utf-8", "replace"))
                open_text = b""
    return texts


def parsed(body):
    try:
        return json.loads(body)
    except ValueError:
        return None


def messages(data):
    """Splits one direction of an HTTP/1.1 connection into messages."""
    found = []
    while data:
        head, mark, rest = data.partition(b"\r\n\r\n")
        if not mark:
            break
        start, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body, data, whole = body_of(start, headers, rest)
        encoding = headers.get("content-encoding")
        if encoding in ("gzip", "deflate"):
            body = zlib.decompressobj(47).decompress(body)
        found.append({"start": start, "headers": headers, "body": body, "whole": whole})
    return found


def body_of(start, headers, rest):
    """Body, remaining bytes, and whether the body is complete."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = bytearray()
        while True:
            size, mark, after = rest.partition(b"\r\n")
            if not mark:
                return bytes(body), b"", False
            length = int(size.split(b";")[0], 16)
            if length == 0:
                return bytes(body), after.partition(b"\r\n")[2], True
            body += after[:length]
            if len(after) < length + 2:
                return bytes(body), b"", False
            rest = after[length + 2 :]
    if "content-length" in headers:
        length = int(headers["content-length"])
        return rest[:length], rest[length:], len(rest) >= length
    is_answer = start.startswith("HTTP/")
    if start.startswith("HTTP/1.1 101") or headers.get("upgrade", "").lower() == "websocket":
        return rest, b"", True
    # An answer without a length ends with the connection, and so does an upgraded protocol.
    return (rest, b"", True) if is_answer and rest else (b"", rest, True)
