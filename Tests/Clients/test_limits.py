"""Tests of limits raised by a limits file, up to their ceilings, with Google's Python clients."""

import json

import firebase_admin
import pytest
from firebase_admin import credentials, db
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from conftest import Hearth, eventually

RAISED = {
    "firestore": {
        "documentBytes": 10 << 20, "valueBytes": (10 << 20) - 89, "valueDepth": 31, "requestBytes": 16 << 20,
        "disjunctions": 500,
    },
    "realtime": {"stringBytes": 12 << 20},
}


class NoCredential(credentials.Base):
    """A credential, which the SDK requires and the emulator does not."""

    def get_credential(self):
        return None


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    directory = tmp_path_factory.mktemp("limits")
    (directory / "limits.json").write_text(json.dumps(RAISED))
    server = Hearth(directory / "data", ("--emulator", "--limits", str(directory / "limits.json"))).start()
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(raised, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", raised.firestore)
    client = firestore.Client(project=raised.project)
    yield client
    client.close()


def test_a_document_at_the_ceiling_of_depth_is_written_read_and_listened_to(client):
    value = 1
    for _ in range(31):
        value = {"m": value}
    document = client.collection("deep").document("d")
    document.set({"v": value})
    assert document.get().to_dict() == {"v": value}
    assert [found.to_dict() for found in client.collection("deep").where(filter=FieldFilter("v", "==", value)).stream()] == [
        {"v": value}
    ]
    seen = []
    watch = document.on_snapshot(lambda documents, changes, time: seen.extend(found.to_dict() for found in documents))
    eventually(lambda: {"v": value} in seen, what="the snapshot")
    watch.unsubscribe()
    with pytest.raises(exceptions.InvalidArgument, match="more than 31 levels"):
        document.set({"v": {"m": value}})


def test_a_large_document_is_written_and_read(client):
    document = client.collection("large").document("d")
    document.set({"t": "x" * ((10 << 20) - 100)})
    assert len(document.get().to_dict()["t"]) == (10 << 20) - 100
    assert [len(found.to_dict()["t"]) for found in client.collection("large").stream()] == [(10 << 20) - 100]
    with pytest.raises(exceptions.InvalidArgument, match="exceeds the maximum allowed size of 10,485,760 bytes"):
        document.update({"u": "x" * 200})


def test_a_query_may_have_more_values(client):
    batch = client.batch()
    for number in range(400):
        batch.set(client.collection("many").document(str(number)), {"n": number})
    batch.commit()
    found = client.collection("many").where(filter=FieldFilter("n", "in", list(range(300)))).stream()
    assert len(list(found)) == 300


def test_a_longer_string_reaches_the_realtime_database(raised):
    options = {"databaseURL": f"http://{raised.database}/?ns=limits", "projectId": raised.project}
    app = firebase_admin.initialize_app(NoCredential(), options, name="limits")
    try:
        reference = db.reference("s", app=app)
        reference.set("x" * (11 << 20))
        assert len(reference.get()) == 11 << 20
    finally:
        firebase_admin.delete_app(app)
