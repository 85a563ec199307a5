"""Floods: clients that misbehave beside clients that do not. `make bench-floods` runs it.

For each kind of flood: how long a connection of it lives, what the server then holds, and the p99 of honest GetDocument
calls (four connections of gRPC, each with one call in flight) beside it, over the p99 in the same run just before. The
attackers connect again as soon as they are cut off. They run on the same machine: what they take of the processors
counts, too.
"""

import argparse
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time

import grpc
from google.cloud.firestore_v1.types import CommitRequest, Document, GetDocumentRequest, Value, Write

DATABASE = "projects/demo-floods/databases/(default)"
SERVICE = "/google.firestore.v1.Firestore/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    """A header that no table of HPACK remembers; lengths below 127."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def request_headers(method):
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", SERVICE + method), (":authority", "localhost"),
             ("content-type", "application/grpc"), ("te", "trailers"), ("authorization", "Bearer owner")]
    return b"".join(literal(name, value) for name, value in pairs)


def get_message(document):
    body = GetDocumentRequest.serialize(GetDocumentRequest(name=f"{DATABASE}/documents/{document}"))
    return b"\0" + len(body).to_bytes(4, "big") + body


class Peer:
    """A raw connection; `alive` is false once the server has closed or said GOAWAY."""

    def __init__(self, port, http2=True, settings=b"", reads=True):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.reads = reads
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # A send that waits is held up by the server, not cut off by it.
        self.socket.settimeout(60)
        if http2:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def send(self, data):
        self.socket.sendall(data)

    def drain(self):
        """Takes what has come; raises once the connection is over."""
        if not self.reads:
            return
        self.socket.setblocking(False)
        try:
            while True:
                got = self.socket.recv(1 << 16)
                if not got:
                    raise ConnectionResetError
        except BlockingIOError:
            pass
        finally:
            self.socket.settimeout(60)


def rapid_reset(port, until):
    headers, stream, peer = request_headers("GetDocument"), 1, Peer(port)
    while time.monotonic() < until:
        batch = b""
        for _ in range(50):
            batch += frame(HEADERS, 4, stream, headers) + frame(RESET, 0, stream, (8).to_bytes(4, "big"))
            stream += 2
        peer.send(batch)
        peer.drain()
    return peer


def control(kind, payload):
    def flood(port, until):
        peer = Peer(port)
        while time.monotonic() < until:
            peer.send(frame(kind, 0, 0, payload) * 50)
            peer.drain()
        return peer
    return flood


def continuation(port, until):
    peer = Peer(port)
    peer.send(frame(HEADERS, 0, 1, request_headers("GetDocument")))
    while time.monotonic() < until:
        peer.send(frame(CONTINUATION, 0, 1, literal("x-" + "a" * 20, "b" * 100) * 8))
        peer.drain()
    return peer


def zero_window(port, until):
    """Asks for large documents and leaves no room for an answer."""
    peer = Peer(port, settings=(4).to_bytes(2, "big") + (0).to_bytes(4, "big"))
    headers, message, stream = request_headers("GetDocument"), get_message("floods/large"), 1
    while time.monotonic() < until:
        if stream < 1_800:  # below the limit of open streams
            peer.send(frame(HEADERS, 4, stream, headers) + frame(DATA, 1, stream, message))
            stream += 2
        else:
            time.sleep(0.05)
        peer.drain()
    return peer


def never_reads(port, until):
    """Asks for large documents over REST, one after the other, and takes nothing."""
    peer = Peer(port, http2=False, reads=False)
    request = f"GET /v1/{DATABASE}/documents/floods/large HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    peer.socket.settimeout(0.2)
    rest = request * 200
    while time.monotonic() < until:
        try:
            if rest:
                rest = rest[peer.socket.send(rest):]
            else:
                time.sleep(0.2)
        except TimeoutError:
            pass
        # The end shows in the connection's state, behind what waits unread: CLOSE or CLOSE_WAIT.
        if peer.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (7, 8):
            raise ConnectionResetError
    return peer


def slow_loris(port, until):
    """A request's head, a byte at a time."""
    peer = Peer(port, http2=False)
    peer.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    while time.monotonic() < until:
        peer.send(b"a")
        time.sleep(0.25)
        peer.drain()
    return peer


FLOODS = {
    "rapid reset": (rapid_reset, 8), "PING": (control(PING, b"\0" * 8), 8), "SETTINGS": (control(SETTINGS, b""), 8),
    "CONTINUATION": (continuation, 8), "zero window": (zero_window, 8), "never reads": (never_reads, 32),
    "slow loris": (slow_loris, 200),
}


def attack(name, port, seconds, results):
    """One attacker: connects again as soon as it is cut off."""
    flood, _ = FLOODS[name]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            flood(port, until)
            results.put(None)
        except OSError:
            results.put(time.monotonic() - began)


def attackers(name, port, count, seconds, results):
    threads = [threading.Thread(target=attack, args=(name, port, seconds, results)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def honest(port, seconds, results):
    latencies = []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(
            SERVICE + "GetDocument", request_serializer=GetDocumentRequest.serialize,
            response_deserializer=Document.deserialize)
        request = GetDocumentRequest(name=f"{DATABASE}/documents/floods/small")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            call(request, metadata=[("authorization", "Bearer owner")], timeout=60)
            latencies.append(time.monotonic() - began)
    results.put(latencies)


def latencies(port, seconds, clients=4):
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=honest, args=(port, seconds, results)) for _ in range(clients)]
    for process in processes:
        process.start()
    found = sorted(latency for _ in processes for latency in results.get())
    for process in processes:
        process.join()
    return len(found) / seconds, found[len(found) // 2] * 1000, found[int(len(found) * 0.99)] * 1000


def resident(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def fill(port):
    def text(value):
        return Value(string_value=value)
    writes = [
        Write(update=Document(name=f"{DATABASE}/documents/floods/small", fields={"t": text("x" * 300)})),
        Write(update=Document(name=f"{DATABASE}/documents/floods/large", fields={"t": text("x" * 1_000_000)})),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary(SERVICE + "Commit", request_serializer=CommitRequest.serialize)(
            CommitRequest(database=DATABASE, writes=writes), metadata=[("authorization", "Bearer owner")])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", default=".build/release/hearth")
    parser.add_argument("--seconds", type=float, default=8, help="of each flood")
    parser.add_argument("--only", default="", help="floods whose name holds this")
    parser.add_argument("--rounds", type=int, default=3, help="of each flood; the medians are printed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.hearth, "serve", "--emulator", "--data", directory, "--firestore-port", "0",
             "--database-port", "0", "--log-level", "critical"], stdout=subprocess.PIPE, text=True)
        try:
            port = 0
            for line in server.stdout:
                if line.startswith("Cloud Firestore"):
                    port = int(line.rsplit(":", 1)[1])
                if line.strip() == "ready":
                    break
            fill(port)
            latencies(port, 2)
            print("| flood | attackers | cut off | life of a connection, median (longest) | MiB before, during | "
                  "calls/s before, during | p99 before, during | ratio |")
            print("|---|---|---|---|---|---|---|---|", flush=True)
            for name, (_, count) in FLOODS.items():
                if options.only in name:
                    measure(server, port, name, count, options)
        finally:
            server.terminate()
            server.wait()


def measure(server, port, name, count, options):
    rounds = []
    lives = []
    open_at_end = 0
    for _ in range(options.rounds):
        memory = resident(server)
        rate, _, p99 = latencies(port, options.seconds / 2)
        results = multiprocessing.Queue()
        flood = multiprocessing.Process(target=attackers, args=(name, port, count, options.seconds + 1, results))
        flood.start()
        time.sleep(0.5)
        rate_during, _, p99_during = latencies(port, options.seconds)
        memory_during = resident(server)
        while flood.is_alive() or not results.empty():
            try:
                life = results.get(timeout=0.2)
            except Exception:
                continue
            if life is None:
                open_at_end += 1
            else:
                lives.append(life)
        flood.join()
        rounds.append((p99_during / p99, rate, rate_during, p99, p99_during, memory, memory_during))
    ratio, rate, rate_during, p99, p99_during, memory, memory_during = sorted(rounds)[len(rounds) // 2]
    lives.sort()
    life = f"{lives[len(lives) // 2]:.2f} s ({lives[-1]:.2f} s)" if lives else "not yet"
    print(f"| {name} | {count} | {len(lives)}, {open_at_end} open at the end | {life} | "
          f"{memory:.0f}, {memory_during:.0f} | {rate:.0f}, {rate_during:.0f} | {p99:.1f}, {p99_during:.1f} ms | "
          f"{ratio:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
