"""Floods: abusive clients next to honest clients. `make bench-floods` runs it.

For each kind of flood it prints the lifetime of a connection, the server's memory, and the p99 latency of honest
GetDocument calls (four gRPC connections with one call in flight each) during the flood, relative to the p99 in the same run
before it. Attackers connect again as soon as they are disconnected or receive GOAWAY. They run on the same machine, so
their processor time counts too; the first row measures it. With `--lives` it prints how long one connection of each kind
lives, all at the same time, up to `--seconds` (the slow kinds take minutes).
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import grpc
from google.cloud.firestore_v1.types import (
    CommitRequest, Document, GetDocumentRequest, ListenRequest, ListenResponse, RunQueryRequest, RunQueryResponse, Target,
    Value, Write)

import flood_kinds
from flood_kinds import DATABASE, FLOODS, PARENT, SERVICE, query

Ports = collections.namedtuple("Ports", "firestore database sink")


def attack(name, ports, seconds, results):
    """Runs one attacker, which connects again as soon as it is disconnected."""
    flood, _ = FLOODS[name]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            flood(ports, until)
            results.put(None)
        except OSError:
            results.put(time.monotonic() - began)


def attackers(name, ports, count, seconds, results):
    threads = [threading.Thread(target=attack, args=(name, ports, seconds, results)) for _ in range(count)]
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
            call(request, metadata=[("authorization", "Bearer owner")], timeout=60, wait_for_ready=True)
            latencies.append(time.monotonic() - began)
    results.put(latencies)


def honest_mix(port, seconds, results):
    """Makes calls over one connection, twenty at a time: small and large gets, commits, queries and listens. Puts the number of
    calls and the failures."""
    owner = [("authorization", "Bearer owner")]
    made, failed = 0, collections.Counter()
    large = Value(string_value="x" * 900_000)
    commit = CommitRequest(database=DATABASE, writes=[
        Write(update=Document(name=f"{PARENT}/written/{number}", fields={"t": large})) for number in range(8)])
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)]) as channel:
        def method(name, kind, request, response):
            return getattr(channel, kind)(
                SERVICE + name, request_serializer=request.serialize, response_deserializer=response.deserialize)
        get = method("GetDocument", "unary_unary", GetDocumentRequest, Document)
        put = channel.unary_unary(SERVICE + "Commit", request_serializer=CommitRequest.serialize)
        run = method("RunQuery", "unary_stream", RunQueryRequest, RunQueryResponse)
        watch = method("Listen", "stream_stream", ListenRequest, ListenResponse)

        def listen(collection):
            done = threading.Event()

            def requests():
                yield ListenRequest(database=DATABASE, add_target=Target(
                    query=Target.QueryTarget(parent=PARENT, structured_query=query(collection)), target_id=1))
                done.wait(60)
            try:
                for response in watch(requests(), metadata=owner, timeout=30):
                    if response.target_change.target_change_type == 3:
                        return
            finally:
                done.set()
        kinds = {
            "small get": lambda: get(GetDocumentRequest(name=f"{PARENT}/floods/small"), metadata=owner, timeout=30),
            "large get": lambda: get(GetDocumentRequest(name=f"{PARENT}/floods/large"), metadata=owner, timeout=30),
            "commit of 7 MB": lambda: put(commit, metadata=owner, timeout=30),
            "query of 2 MB": lambda: list(run(
                RunQueryRequest(parent=PARENT, structured_query=query("medium")), metadata=owner, timeout=30)),
            "listen to 2 MB": lambda: listen("medium"),
        }
        calls = [*kinds, *["small get"] * 15]
        until = time.monotonic() + seconds
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            while time.monotonic() < until:
                for kind, ended in [(kind, pool.submit(kinds[kind])) for kind in calls]:
                    made += 1
                    error = ended.exception()
                    if isinstance(error, grpc.RpcError):
                        failed[f"{kind}: {error.code().name}"] += 1
                    elif error:
                        raise error
                time.sleep(0.05)
    results.put((made, failed))


def latencies(port, seconds, clients=4):
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=honest, args=(port, seconds, results)) for _ in range(clients)]
    for process in processes:
        process.start()
    found = sorted(latency for _ in processes for latency in results.get())
    for process in processes:
        process.join()
    return len(found) / seconds, found[len(found) // 2] * 1000, found[int(len(found) * 0.99)] * 1000


def resident(process, field="VmRSS"):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def address_space(memory):
    """Gives the server the address space of a machine with `memory` MiB: it plans with half of its address space."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory << 21, memory << 21))
    return limit if memory else None


def promise(memory):
    """The memory that the server promises to stay within, in MiB: a quarter for connections, an eighth for sorting, a quarter
    for the store's cache."""
    if not memory:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return memory * 5 / 8


def fill(ports):
    def text(value):
        return Value(string_value=value)
    writes = [
        Write(update=Document(name=f"{DATABASE}/documents/floods/small", fields={"t": text("x" * 300)})),
        Write(update=Document(name=f"{DATABASE}/documents/floods/large", fields={"t": text("x" * 1_000_000)})),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{ports.firestore}") as channel:
        channel.unary_unary(SERVICE + "Commit", request_serializer=CommitRequest.serialize)(
            CommitRequest(database=DATABASE, writes=writes), metadata=[("authorization", "Bearer owner")])
        for first in range(0, 3_000, 500):
            channel.unary_unary(SERVICE + "Commit", request_serializer=CommitRequest.serialize)(
                CommitRequest(database=DATABASE, writes=[
                    Write(update=Document(name=f"{DATABASE}/documents/many/{number}", fields={"t": text("x" * 300)}))
                    for number in range(first, first + 500)]),
                metadata=[("authorization", "Bearer owner")])
        for collection, count, size, step in (("medium", 400, 5_000, 200), ("huge", 20, 900_000, 4)):
            for first in range(0, count, step):
                channel.unary_unary(SERVICE + "Commit", request_serializer=CommitRequest.serialize)(
                    CommitRequest(database=DATABASE, writes=[
                        Write(update=Document(
                            name=f"{PARENT}/{collection}/{number}", fields={"t": text("x" * size)}))
                        for number in range(first, first + step)]),
                    metadata=[("authorization", "Bearer owner")])
    urllib.request.urlopen(urllib.request.Request(
        f"http://127.0.0.1:{ports.database}/large.json?ns=demo-floods&print=silent", method="PUT",
        data=b'"' + b"x" * 1_000_000 + b'"')).read()


def swallow(listener):
    """Runs the sink: accepts connections and discards their bytes."""
    def take(connection):
        while connection.recv(1 << 16):
            pass
    while True:
        threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", default=".build/release/hearth")
    parser.add_argument("--seconds", type=float, default=8, help="duration of each flood in seconds")
    parser.add_argument("--only", default="", help="run only floods whose names contain one of these strings, separated by commas")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each flood, whose medians are printed")
    parser.add_argument("--memory", type=int, default=0, help="MiB of memory that the server may plan with; 0 for the machine's")
    parser.add_argument("--addresses", type=int, default=1, help="addresses that the attackers use, at most 200")
    parser.add_argument("--lives", action="store_true", help="print the lifetime of one connection of each kind")
    options = parser.parse_args()
    flood_kinds.addresses = options.addresses
    listener = socket.create_server(("127.0.0.1", 0))
    sink = multiprocessing.Process(target=swallow, args=(listener,), daemon=True)
    sink.start()
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.hearth, "serve", "--emulator", "--data", directory, "--firestore-port", "0",
             "--database-port", "0", "--hub-port", "0", "--log-level", "critical"], stdout=subprocess.PIPE, text=True,
            preexec_fn=address_space(options.memory))
        try:
            found = {}
            for line in server.stdout:
                for name in ("Cloud Firestore", "Realtime Database"):
                    if line.startswith(name):
                        found[name] = int(line.rsplit(":", 1)[1])
                if line.strip() == "ready":
                    break
            ports = Ports(found["Cloud Firestore"], found["Realtime Database"], listener.getsockname()[1])
            fill(ports)
            names = [name for name in FLOODS if any(part in name for part in options.only.split(","))]
            if options.lives:
                return live(ports, names, options.seconds)
            latencies(ports.firestore, 2)
            print(f"Load of the machine at the beginning: {os.getloadavg()[0]:.1f}\n")
            print("| flood | attackers | cut off | life of a connection, median (longest) | MiB before, highest (promised) | "
                  "honest calls, refused | calls/s before, during | p99 before, during | ratio |")
            print("|---|---|---|---|---|---|---|---|---|", flush=True)
            for name in names:
                measure(server, ports, name, FLOODS[name][1], options)
        finally:
            server.terminate()
            server.wait()
            sink.terminate()


def live(ports, names, seconds):
    """Prints the lifetime of one connection of each kind."""
    print("| connection | lives | ends with |\n|---|---|---|", flush=True)

    def one(name):
        began = time.monotonic()
        try:
            FLOODS[name][0](ports, began + seconds)
            print(f"| {name} | open after {seconds:.0f} s | |\n", end="", flush=True)
        except OSError as error:
            print(f"| {name} | {time.monotonic() - began:.2f} s | {error} |\n", end="", flush=True)

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(server, ports, name, count, options):
    rounds = []
    lives = []
    open_at_end = 0
    calls, refused = 0, collections.Counter()
    for _ in range(options.rounds):
        memory = resident(server)
        rate, _, p99 = latencies(ports.firestore, options.seconds / 2)
        results = multiprocessing.Queue()
        flood = multiprocessing.Process(target=attackers, args=(name, ports, count, options.seconds + 1, results))
        # From here on VmHWM is the highest resident size.
        with open(f"/proc/{server.pid}/clear_refs", "w") as references:
            references.write("5")
        flood.start()
        time.sleep(0.5)
        mixed = multiprocessing.Queue()
        mix = multiprocessing.Process(target=honest_mix, args=(ports.firestore, options.seconds, mixed))
        mix.start()
        rate_during, _, p99_during = latencies(ports.firestore, options.seconds)
        made, failed = mixed.get()
        mix.join()
        calls += made
        refused += failed
        memory_during = resident(server, "VmHWM")
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
    ratio, rate, rate_during, p99, p99_during, memory, _ = sorted(rounds)[len(rounds) // 2]
    memory_during = max(highest for *_, highest in rounds)
    lives.sort()
    life = f"{lives[len(lives) // 2]:.2f} s ({lives[-1]:.2f} s)" if lives else "not yet"
    print(f"| {name} | {count} | {len(lives)}, {open_at_end} open at the end | {life} | "
          f"{memory:.0f}, {memory_during:.0f} ({promise(options.memory):.0f}) | {calls}, {dict(refused) or 0} | {rate:.0f}, {rate_during:.0f} | {p99:.1f}, {p99_during:.1f} ms | "
          f"{ratio:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
