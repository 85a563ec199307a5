"""Tests of Firebase's Admin SDK for Python with Cloud Firestore, through `firebase_admin.firestore`."""

import queue
import uuid

import firebase_admin
import google.auth.credentials
import pytest
from firebase_admin import credentials, firestore


class FakeCredential(credentials.Base):
    """A credential of the type that the Admin SDK requires, although the emulator needs none."""

    def get_credential(self):
        return google.auth.credentials.AnonymousCredentials()


@pytest.fixture
def client(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", shared_hearth.firestore)
    app = firebase_admin.initialize_app(
        FakeCredential(), {"projectId": shared_hearth.project}, name=uuid.uuid4().hex
    )
    yield firestore.client(app)
    firebase_admin.delete_app(app)


def test_admin_creates_updates_queries_transacts_and_deletes(client):
    tasks = client.collection("admin")
    tasks.document("milk").create({"title": "Buy milk", "done": False})
    tasks.document("rent").set({"title": "Pay the rent", "done": False, "at": firestore.SERVER_TIMESTAMP})
    tasks.document("milk").update({"done": True, "count": firestore.Increment(2)})
    done = tasks.where(filter=firestore.FieldFilter("done", "==", True)).stream()
    assert [task.to_dict() for task in done] == [{"title": "Buy milk", "done": True, "count": 2}]

    @firestore.transactional
    def add(transaction):
        count = tasks.document("milk").get(transaction=transaction).get("count")
        transaction.update(tasks.document("milk"), {"count": count + 1})

    add(client.transaction())
    assert tasks.document("milk").get().get("count") == 3
    tasks.document("milk").delete()
    assert [task.id for task in tasks.stream()] == ["rent"]


def test_admin_listens(client):
    watched = client.collection("admin-watched")
    seen = queue.Queue()
    watch = watched.on_snapshot(lambda snapshot, changes, at: seen.put([c.type.name for c in changes]))
    try:
        assert seen.get(timeout=20) == []
        watched.document("a").set({"n": 1})
        assert seen.get(timeout=20) == ["ADDED"]
        watched.document("a").update({"n": 2})
        assert seen.get(timeout=20) == ["MODIFIED"]
        watched.document("a").delete()
        assert seen.get(timeout=20) == ["REMOVED"]
    finally:
        watch.unsubscribe()
