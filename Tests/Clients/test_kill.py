"""Tests that acknowledged writes of Google's clients survive SIGKILL during writes, and that the clients recover."""

import threading
import time

import firebase_admin
import pytest
from firebase_admin import credentials, db
from google.auth import credentials as google_credentials
from google.cloud import firestore

from conftest import eventually


class FakeCredential(credentials.Base):
    """A credential, which firebase_admin requires and the emulator does not."""

    def get_credential(self):
        return google_credentials.AnonymousCredentials()


@pytest.fixture
def store(hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", hearth.firestore)
    return firestore.Client(project=hearth.project)


@pytest.fixture
def tree(hearth, monkeypatch):
    monkeypatch.setenv("FIREBASE_DATABASE_EMULATOR_HOST", hearth.database)
    app = firebase_admin.initialize_app(
        FakeCredential(), {"databaseURL": f"http://{hearth.database}/?ns={hearth.project}"}, name=f"kill-{time.time()}"
    )
    yield db.reference("/", app)
    firebase_admin.delete_app(app)


def write_until_killed(hearth, write, after):
    """Writes from several threads until the server dies. Returns the acknowledged writes."""
    acknowledged, lock, enough = [], threading.Lock(), threading.Event()

    def work(worker):
        number = 0
        while True:
            name = f"w{worker}-{number}"
            number += 1
            try:
                write(name, number)
            except Exception:  # noqa: BLE001 - whatever the client raises when its server is gone
                return
            with lock:
                acknowledged.append(name)
                if len(acknowledged) >= after:
                    enough.set()

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60), f"only {len(acknowledged)} writes were acknowledged"
    hearth.kill()
    for thread in threads:
        thread.join(60)
    with lock:
        return list(acknowledged)


def test_firestore_keeps_every_acknowledged_write_over_kill(hearth, store):
    tasks = store.collection("tasks")
    acknowledged = write_until_killed(
        hearth, lambda name, number: tasks.document(name).set({"number": number}, retry=None, timeout=5), after=200
    )
    hearth.start()
    stored = eventually(lambda: {task.id: task.to_dict() for task in tasks.stream()})
    assert [name for name in acknowledged if name not in stored] == []
    tasks.document("after").set({"number": 0})
    assert tasks.document("after").get().exists


def test_firestore_listener_resumes_after_kill(hearth, store):
    tasks = store.collection("watched")
    tasks.document("before").set({"n": 1})
    seen = {}
    watch = tasks.on_snapshot(lambda snapshot, changes, at: seen.update({d.id: d.to_dict() for d in snapshot}))
    try:
        eventually(lambda: "before" in seen, what="the first snapshot")
        hearth.kill()
        hearth.start()
        eventually(lambda: tasks.document("after").set({"n": 2}) is not None, what="a write after the restart")
        eventually(lambda: seen.get("after") == {"n": 2}, timeout=60, what="the listener's resumed snapshot")
        assert seen["before"] == {"n": 1}
    finally:
        watch.unsubscribe()


def test_realtime_keeps_every_acknowledged_write_over_kill(hearth, tree):
    acknowledged = write_until_killed(
        hearth, lambda name, number: tree.child("tasks").child(name).set({"number": number}), after=200
    )
    hearth.start()
    stored = tree.child("tasks").get()
    assert [name for name in acknowledged if name not in stored] == []
    tree.child("tasks/after").set(True)
    assert tree.child("tasks/after").get() is True


def test_realtime_transaction_and_push_survive_kill(hearth, tree):
    counter = tree.child("counter")
    for _ in range(5):
        counter.transaction(lambda current: (current or 0) + 1)
    pushed = [tree.child("list").push({"n": n}).key for n in range(5)]
    hearth.kill()
    hearth.start()
    assert counter.get() == 5
    assert list(tree.child("list").get()) == pushed
