"""Tests of the Realtime Database with Google's Admin SDK for Python over REST and event streams, and with a plain
WebSocket client of protocol version 5."""

import asyncio
import json
import queue
import threading
import urllib.error
import urllib.request
import uuid

import firebase_admin
import pytest
import websockets
from firebase_admin import credentials, db, exceptions

from conftest import eventually

# When a stream is closed, the SDK's reading thread raises an error about its lost connection.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def close(stream, place):
    """Ends a stream. The SDK notices this only when an event arrives, so this function causes one."""
    nudge = threading.Timer(0.2, lambda: place.child("nudge").set(1))
    nudge.start()
    stream.close()
    nudge.join()


class NoCredential(credentials.Base):
    """A credential, which the SDK requires and the emulator does not."""

    def get_credential(self):
        return None


@pytest.fixture
def app(shared_hearth):
    application = firebase_admin.initialize_app(
        NoCredential(),
        {"databaseURL": f"http://{shared_hearth.database}/?ns=demo", "projectId": shared_hearth.project},
        name=uuid.uuid4().hex,
    )
    yield application
    firebase_admin.delete_app(application)


@pytest.fixture
def place(app):
    """A separate location for each test."""
    return db.reference(f"tests/{uuid.uuid4().hex}", app=app)


def test_set_get_delete(place):
    place.set({"name": "tea", "stock": 41, "tags": ["a", None, "c"], "half": 1.5, "yes": True})
    assert place.get() == {"name": "tea", "stock": 41, "tags": ["a", None, "c"], "half": 1.5, "yes": True}
    assert place.child("stock").get() == 41
    assert place.get(shallow=True) == {"name": True, "stock": True, "tags": True, "half": True, "yes": True}
    place.child("stock").delete()
    assert place.child("stock").get() is None
    place.delete()
    assert place.get() is None


def test_unusual_keys_and_text(place):
    value = {"żółć 😀": "ü\n\"quoted\"", "a b&c=d e%f+g": 9007199254740993, "-": -1}
    place.set(value)
    assert place.get() == value
    assert place.child("a b&c=d e%f+g").get() == 9007199254740993


def test_update_is_atomic_over_paths(place):
    place.set({"a": {"x": 1, "y": 2}, "b": 1})
    place.update({"a/x": 5, "c": {"new": True}, "b": None})
    assert place.get() == {"a": {"x": 5, "y": 2}, "c": {"new": True}}


def test_push_makes_ordered_keys(place):
    keys = [place.push({"n": n}).key for n in range(5)]
    assert keys == sorted(keys) and len(set(keys)) == 5 and all(len(key) == 20 for key in keys)
    assert [entry["n"] for entry in place.order_by_key().get().values()] == [0, 1, 2, 3, 4]


def test_server_values(place):
    place.set({"n": 1})
    place.update({"n": {".sv": {"increment": 4}}, "at": {".sv": "timestamp"}})
    value = place.get()
    assert value["n"] == 5
    assert value["at"] > 1_600_000_000_000


def put_rules(shared_hearth, rules):
    """Replaces the rules of the namespace `demo`, as an administrator."""
    request = urllib.request.Request(
        f"http://{shared_hearth.database}/.settings/rules.json?ns=demo",
        data=rules.encode(),
        method="PUT",
        headers={"Authorization": "Bearer owner"},
    )
    return json.load(urllib.request.urlopen(request, timeout=10))


def test_queries(place, shared_hearth):
    scores = '"scores": {".indexOn": ".value"}'
    answer = put_rules(
        shared_hearth,
        '{ /* for this test */ "rules": {".read": true, ".write": true, "tests": {"$test": {".indexOn": "height", ' + scores + "}}}}",
    )
    assert answer == {"status": "ok"}
    with pytest.raises(exceptions.InvalidArgumentError, match="Index not defined"):
        place.order_by_child("weight").get()
    place.set(
        {
            "bruhath": {"height": 24, "order": "x"},
            "lambeo": {"height": 2.1},
            "linhe": {"height": 0.6},
            "ptero": {"height": 0.6, "order": "p"},
            "stego": {"height": 4},
            "trike": {"height": 3},
            "none": {"weight": 1},
        }
    )
    by_height = place.order_by_child("height")
    assert list(by_height.get()) == ["none", "linhe", "ptero", "lambeo", "trike", "stego", "bruhath"]
    assert list(place.order_by_child("height").limit_to_last(2).get()) == ["stego", "bruhath"]
    assert list(place.order_by_child("height").limit_to_first(2).get()) == ["none", "linhe"]
    assert list(place.order_by_child("height").start_at(3).get()) == ["trike", "stego", "bruhath"]
    assert list(place.order_by_child("height").start_at(1).end_at(3).get()) == ["lambeo", "trike"]
    assert list(place.order_by_child("height").equal_to(0.6).get()) == ["linhe", "ptero"]
    assert list(place.order_by_key().start_at("n").end_at("q").get()) == ["none", "ptero"]
    place.child("scores").set({"a": 3, "b": 1, "c": 2})
    assert list(place.child("scores").order_by_value().get()) == ["b", "c", "a"]
    assert list(place.child("scores").order_by_value().limit_to_last(1).get()) == ["a"]


def test_etags(place):
    place.set(1)
    value, etag = place.get(etag=True)
    assert value == 1
    assert place.get_if_changed(etag) == (False, None, None)
    done, value, newer = place.set_if_unchanged(etag, 2)
    assert (done, value) == (True, 2) and newer != etag
    done, value, current = place.set_if_unchanged(etag, 3)
    assert (done, value, current) == (False, 2, newer)
    changed, value, current = place.get_if_changed(etag)
    assert (changed, value, current) == (True, 2, newer)
    assert place.child("absent").get(etag=True)[1] == "null_etag"


def test_all_transactions_of_many_threads_take_effect(place):
    place.set(0)
    errors = []

    def work():
        try:
            for _ in range(10):
                place.transaction(lambda value: (value or 0) + 1)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert place.get() == 40


def test_listen_sees_every_change_in_order(place):
    place.set({"a": 1})
    events = queue.Queue()
    stream = place.listen(events.put)
    try:
        first = events.get(timeout=10)
        assert (first.event_type, first.path, first.data) == ("put", "/", {"a": 1})
        place.child("b").set([1, 2])
        place.update({"a": 2, "c/d": True})
        place.child("a").delete()
        seen = [events.get(timeout=10) for _ in range(3)]
        assert (seen[0].event_type, seen[0].path, seen[0].data) == ("put", "/b", [1, 2])
        assert (seen[1].event_type, seen[1].path, seen[1].data) == ("patch", "/", {"a": 2, "c/d": True})
        assert (seen[2].event_type, seen[2].path, seen[2].data) == ("put", "/a", None)
    finally:
        close(stream, place)


def test_listen_survives_kill(hearth):
    application = firebase_admin.initialize_app(
        NoCredential(), {"databaseURL": f"http://{hearth.database}/?ns=demo"}, name=uuid.uuid4().hex
    )
    try:
        place = db.reference("kept", app=application)
        place.set({"n": 1})
        events = queue.Queue()
        stream = place.listen(events.put)
        assert events.get(timeout=10).data == {"n": 1}
        place.child("n").set(2)
        assert events.get(timeout=10).data == 2
        hearth.kill()
        hearth.start()
        assert eventually(lambda: place.get()) == {"n": 2}
        assert events.get(timeout=20).data == {"n": 2}
        place.child("n").set(3)
        assert events.get(timeout=10).data == 3
        close(stream, place)
    finally:
        firebase_admin.delete_app(application)


def test_errors_equal_those_of_firebase(place, shared_hearth):
    with pytest.raises(exceptions.InvalidArgumentError, match="Invalid data"):
        place.set({"a.b": 1})
    with pytest.raises(ValueError):
        place.child("x.y")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{shared_hearth.database}/a?ns=demo")
    assert refused.value.code == 404
    assert json.load(refused.value) == {"error": "append .json to your request URI to use the REST API."}


# Protocol version 5 over a WebSocket.


class Wire:
    """A client of protocol version 5 that sends only what a test sends."""

    def __init__(self, socket):
        self.socket = socket
        self.number = 0

    async def receive(self):
        text = await asyncio.wait_for(self.socket.recv(), 10)
        if text.isdigit():
            text = "".join([await asyncio.wait_for(self.socket.recv(), 10) for _ in range(int(text))])
        return json.loads(text)

    async def data(self):
        message = await self.receive()
        assert message["t"] == "d", message
        return message["d"]

    async def send(self, action, body):
        self.number += 1
        text = json.dumps({"t": "d", "d": {"r": self.number, "a": action, "b": body}})
        if len(text) <= 16384:
            await self.socket.send(text)
        else:
            pieces = [text[start : start + 16384] for start in range(0, len(text), 16384)]
            await self.socket.send(str(len(pieces)))
            for piece in pieces:
                await self.socket.send(piece)
        return self.number

    async def ask(self, action, body):
        """Sends a request. Returns the pushes before its response, and the response."""
        number = await self.send(action, body)
        pushes = []
        while True:
            message = await self.data()
            if message.get("r") == number:
                return pushes, message["b"]
            pushes.append(message)


def over_socket(server, *scripts, parameters="v=5&ns=demo"):
    async def play():
        wires = []
        for _ in scripts:
            socket = await websockets.connect(f"ws://{server.database}/.ws?{parameters}", max_size=None)
            wires.append(Wire(socket))
            hello = (await wires[-1].receive())["d"]
            assert hello["t"] == "h" and hello["d"]["v"] == "5" and hello["d"]["h"] == server.database
            wires[-1].session = hello["d"]["s"]
        try:
            await asyncio.gather(*[script(wire) for script, wire in zip(scripts, wires)])
        finally:
            for wire in wires:
                await wire.socket.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_socket_own_write_is_pushed_before_its_acknowledgement(shared_hearth):
    async def script(wire):
        place = f"/sockets/{uuid.uuid4().hex}"
        pushes, answer = await wire.ask("q", {"p": place, "h": ""})
        assert (pushes, answer) == ([], {"s": "ok", "d": {}})
        pushes, answer = await wire.ask("p", {"p": place + "/stock", "d": 42})
        assert pushes == [{"a": "d", "b": {"p": place[1:] + "/stock", "d": 42}}]
        assert answer == {"s": "ok", "d": ""}

    over_socket(shared_hearth, script)


def test_socket_transaction_with_stale_hash(shared_hearth):
    async def script(wire):
        place = f"/sockets/{uuid.uuid4().hex}"
        await wire.ask("p", {"p": place, "d": 41})
        assert (await wire.ask("p", {"p": place, "d": 1, "h": ""}))[1]["s"] == "datastale"
        answer = (await wire.ask("p", {"p": place, "d": 42, "h": "FKQEQrg9eSmOibuEATBfMSlup8g="}))[1]
        assert answer == {"s": "ok", "d": ""}

    over_socket(shared_hearth, script)


def test_socket_large_messages_both_ways(shared_hearth):
    async def script(wire):
        place = f"/sockets/{uuid.uuid4().hex}"
        text = "aé€😀" * 40_000
        assert (await wire.ask("p", {"p": place, "d": text}))[1]["s"] == "ok"
        assert (await wire.ask("g", {"p": place, "q": {}}))[1]["d"] == text

    over_socket(shared_hearth, script)


def test_socket_on_disconnect_runs_when_the_connection_breaks(shared_hearth):
    place = f"/sockets/{uuid.uuid4().hex}"
    ready = asyncio.Event()

    async def leaver(wire):
        assert (await wire.ask("o", {"p": place, "d": {"on": False, "at": {".sv": "timestamp"}}}))[1]["s"] == "ok"
        assert (await wire.ask("p", {"p": place, "d": {"on": True}}))[1]["s"] == "ok"
        await asyncio.wait_for(ready.wait(), 10)
        wire.socket.transport.abort()

    async def watcher(wire):
        await wire.ask("q", {"p": place, "h": ""})
        ready.set()
        while True:
            body = (await wire.data())["b"]
            if body["d"] and body["d"].get("on") is False:
                assert body["d"]["at"] > 1_600_000_000_000
                return

    over_socket(shared_hearth, leaver, watcher)


RULES = {
    "rules": {
        "users": {"$uid": {".read": "auth.uid == $uid", ".write": "auth.uid == $uid && auth.role != 'guest'"}},
        "public": {".read": True, ".write": "auth != null", ".validate": "newData.isString()"},
    }
}


@pytest.fixture
def as_user(shared_hearth):
    """Returns a function that opens the database `overrides`, under rules, with an override of `auth`."""
    applications = []

    def open_as(*override):
        options = {"databaseURL": f"http://{shared_hearth.database}/?ns=overrides", "projectId": "demo-hearth"}
        if override:
            options["databaseAuthVariableOverride"] = override[0]
        application = firebase_admin.initialize_app(NoCredential(), options, name=uuid.uuid4().hex)
        applications.append(application)
        return lambda path: db.reference(path, app=application)

    request = urllib.request.Request(
        f"http://{shared_hearth.database}/.settings/rules.json?ns=overrides",
        data=json.dumps(RULES).encode(),
        method="PUT",
        headers={"Authorization": "Bearer owner"},
    )
    urllib.request.urlopen(request).close()
    yield open_as
    for application in applications:
        firebase_admin.delete_app(application)


def denied(action):
    with pytest.raises(exceptions.UnauthenticatedError) as error:
        action()
    assert "Permission denied" in str(error.value)


def test_auth_override_obeys_rules(as_user):
    administrator, user = as_user(), as_user({"uid": "u1"})
    administrator("users").set({"u1": {"name": "ann"}, "u2": {"name": "bob"}})
    assert user("users/u1").get() == {"name": "ann"}
    user("users/u1/age").set(30)
    user("users/u1").update({"age": 31})
    assert user("users/u1/age").transaction(lambda age: age + 1) == 32
    for action in (
        lambda: user("users/u2").get(),
        lambda: user("users").get(shallow=True),
        lambda: user("users/u2/name").set("eve"),
        lambda: user("users").update({"u1/age": 1, "u2/age": 1}),
        lambda: user("users/u2").delete(),
        lambda: user("users/u2").push("eve"),
        lambda: user("users/u2/name").transaction(lambda name: "eve"),
        lambda: user("users/u2/name").get(etag=True),
        lambda: user("users/u2").order_by_key().limit_to_first(1).get(),
        lambda: user("public").set(7),
        lambda: user("users/u2").listen(lambda event: None),
    ):
        denied(action)
    assert administrator("users").get() == {"u1": {"name": "ann", "age": 32}, "u2": {"name": "bob"}}


def test_auth_override_without_a_user_and_with_members(as_user):
    nobody, guest = as_user(None), as_user({"uid": "u3", "role": "guest"})
    as_user()("public").set("hello")
    assert nobody("public").get() == "hello"
    denied(lambda: nobody("public").set("x"))
    denied(lambda: nobody("users/u3").get())
    assert guest("users/u3").get() is None
    denied(lambda: guest("users/u3").set(1))
    guest("public").set("from a guest")
    assert nobody("public").get() == "from a guest"


def test_auth_override_stream_ends_with_its_permission(as_user):
    administrator, user = as_user(), as_user({"uid": "u4"})
    administrator("users/u4").set("first")
    events = queue.Queue()
    stream = user("users/u4").listen(lambda event: events.put(event.data))
    try:
        assert events.get(timeout=20) == "first"
        user("users/u4").set("second")
        assert events.get(timeout=20) == "second"
    finally:
        close(stream, user("users/u4"))
