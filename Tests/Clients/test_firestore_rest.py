"""Tests of Firestore's REST interface with Python's HTTP client, together with Google's client over gRPC."""

import http.client
import json
import math
import urllib.parse

import pytest
from google.cloud import firestore


class Rest:
    """Requests on one persistent connection."""

    def __init__(self, hearth):
        self.documents = f"projects/{hearth.project}/databases/(default)/documents"
        self.connection = http.client.HTTPConnection(hearth.firestore, timeout=15)

    def __call__(self, method, path, body=None, root="/v1/", **parameters):
        query = "?" + urllib.parse.urlencode(parameters, doseq=True) if parameters else ""
        text = None if body is None else json.dumps(body)
        headers = {} if text is None else {"Content-Type": "text/plain"}
        self.connection.request(method, root + self.documents + path + query, text, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture
def rest(shared_hearth):
    rest = Rest(shared_hearth)
    yield rest
    rest.connection.close()


@pytest.fixture
def client(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", shared_hearth.firestore)
    client = firestore.Client(project=shared_hearth.project)
    yield client
    client.close()


def test_rest_reads_documents_written_by_grpc(rest, client):
    client.document("rest-read/d").set(
        {"i": 2**53 + 1, "d": math.inf, "n": None, "b": b"\xfb\xff", "t": "ä😀", "g": firestore.GeoPoint(1.5, 0), "a": [{"x": 1}]}
    )
    status, document = rest("GET", "/rest-read/d")
    assert status == 200
    assert document["fields"] == {
        "i": {"integerValue": "9007199254740993"},
        "d": {"doubleValue": "Infinity"},
        "n": {"nullValue": None},
        "b": {"bytesValue": "+/8="},
        "t": {"stringValue": "ä😀"},
        "g": {"geoPointValue": {"latitude": 1.5}},
        "a": {"arrayValue": {"values": [{"mapValue": {"fields": {"x": {"integerValue": "1"}}}}]}},
    }


def test_grpc_reads_documents_written_by_rest(rest, client):
    fields = {
        "i": {"integerValue": "-9223372036854775808"},
        "d": {"doubleValue": "NaN"},
        "t": {"timestampValue": "2026-11-21T18:57:56.123456+01:00"},
        "r": {"referenceValue": f"{rest.documents}/a/b"},
        "m": {"mapValue": {}},
    }
    status, _ = rest("POST", "/rest-write", {"fields": fields}, documentId="d")
    assert status == 200
    read = client.document("rest-write/d").get().to_dict()
    assert read["i"] == -(2**63) and math.isnan(read["d"]) and read["m"] == {}
    assert read["t"].isoformat() == "2026-11-21T17:57:56.123456+00:00"
    assert read["r"].path == "a/b"


def test_masks_queries_and_errors(rest):
    body = {"fields": {"a": {"integerValue": 1}, "b": {"integerValue": 2}}}
    assert rest("PATCH", "/rest-mask/d", body)[0] == 200
    status, changed = rest("PATCH", "/rest-mask/d", {"fields": {}}, **{"updateMask.fieldPaths": ["a"]})
    assert status == 200 and list(changed["fields"]) == ["b"]
    status, found = rest("POST", ":runQuery", {"structuredQuery": {"from": [{"collectionId": "rest-mask"}]}})
    assert status == 200 and [d["document"]["fields"] for d in found] == [{"b": {"integerValue": "2"}}]
    status, error = rest("POST", ":runQuery", {"structuredQuery": {"nonsense": 1}})
    assert status == 400 and error[0]["error"]["status"] == "INVALID_ARGUMENT"
    assert "at 'structured_query'" in error[0]["error"]["message"]
    status, error = rest("DELETE", "/rest-mask/none", **{"currentDocument.exists": "true"})
    assert status == 404 and error["error"]["status"] == "NOT_FOUND"


def test_clearing_reaches_listeners(tmp_path, monkeypatch):
    from conftest import Hearth, eventually

    server = Hearth(None).start()
    try:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.firestore)
        client = firestore.Client(project=server.project)
        for index in range(5):
            client.document(f"c/d{index}").set({"n": index})
        sizes = []
        watch = client.collection("c").on_snapshot(lambda documents, changes, time: sizes.append(len(documents)))
        eventually(lambda: sizes == [5])
        assert Rest(server)("DELETE", "", root="/emulator/v1/") == (200, {})
        eventually(lambda: sizes == [5, 0], what="one snapshot without documents")
        watch.unsubscribe()
        client.close()
    finally:
        server.stop()
