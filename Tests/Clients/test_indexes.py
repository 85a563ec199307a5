"""Tests of indexes with Google's Python client: vector search, explained queries, strict mode, `hearth check`."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.query_profile import ExplainOptions, QueryExplainError
from google.cloud.firestore_v1.vector import Vector

from conftest import BINARY, Hearth, eventually


@pytest.fixture
def client(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", shared_hearth.firestore)
    client = firestore.Client(project=shared_hearth.project)
    yield client
    client.close()


@pytest.fixture
def collection(client, request):
    return client.collection(request.node.name)


def test_the_nearest_vectors_are_found_by_each_measure(collection):
    for name, numbers, kind in [("a", [1, 0], "x"), ("b", [3, 4], "y"), ("c", [0, 2], "x"), ("d", [1, 2, 3], "x")]:
        collection.document(name).set({"v": Vector(numbers), "kind": kind})
    collection.document("e").set({"kind": "x"})

    def find(start=collection, measure=DistanceMeasure.EUCLIDEAN, limit=10, vector=(1, 0), **options):
        found = start.find_nearest(
            vector_field="v", query_vector=Vector(vector), distance_measure=measure, limit=limit,
            distance_result_field="d", **options
        ).get()
        return [(s.id, round(s.get("d"), 6)) for s in found]

    assert find() == [("a", 0), ("c", 2.236068), ("b", 4.472136)]
    assert find(limit=1) == [("a", 0)]
    assert find(measure=DistanceMeasure.COSINE) == [("a", 0), ("b", 0.4), ("c", 1)]
    assert find(measure=DistanceMeasure.DOT_PRODUCT, vector=(1, 1)) == [("b", 7), ("c", 2), ("a", 1)]
    assert find(distance_threshold=2.5) == [("a", 0), ("c", 2.236068)]
    assert find(measure=DistanceMeasure.DOT_PRODUCT, vector=(1, 1), distance_threshold=2) == [("b", 7), ("c", 2)]
    assert find(collection.where(filter=FieldFilter("kind", "==", "x"))) == [("a", 0), ("c", 2.236068)]
    with pytest.raises(exceptions.InvalidArgument):
        find(limit=1001)
    with pytest.raises(exceptions.InvalidArgument):
        find(vector=[0.0] * 2049)


def test_a_query_is_explained(collection):
    for n in range(5):
        collection.document(str(n)).set({"n": n})
    query = collection.where(filter=FieldFilter("n", ">", 1))
    planned = query.get(explain_options=ExplainOptions(analyze=False))
    assert list(planned) == []
    metrics = planned.get_explain_metrics()
    assert metrics.plan_summary.indexes_used == [{"query_scope": "Collection", "properties": "(n ASC, __name__ ASC)"}]
    with pytest.raises(QueryExplainError):
        metrics.execution_stats
    analysed = query.get(explain_options=ExplainOptions(analyze=True))
    assert [s.id for s in analysed] == ["2", "3", "4"]
    stats = analysed.get_explain_metrics().execution_stats
    assert stats.results_returned == 3 and stats.read_operations == 3
    assert stats.execution_duration.total_seconds() > 0
    assert stats.debug_stats["documents_scanned"] == "3" and stats.debug_stats["index_entries_scanned"] == "3"
    assert stats.debug_stats["billing_details"]["documents_billable"] == "3"

    counted = query.count(alias="all").get(explain_options=ExplainOptions(analyze=True))
    assert counted[0][0].value == 3
    assert counted.get_explain_metrics().execution_stats.results_returned == 1
    nothing = query.count(alias="all").get(explain_options=ExplainOptions(analyze=False))
    assert nothing.get_explain_metrics().plan_summary.indexes_used


def test_strict_mode_requires_indexes_and_reloads_them_on_sighup(tmp_path, monkeypatch):
    indexes = tmp_path / "firestore.indexes.json"
    indexes.write_text('{"indexes": []}')
    project = tmp_path / "firebase.json"
    project.write_text(json.dumps({"firestore": {"indexes": "firestore.indexes.json"}}))
    hearth = Hearth(tmp_path / "data", ["--emulator", "--indexes", "strict", "--config", str(project)])
    hearth.start()
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", hearth.firestore)
    client = firestore.Client(project=hearth.project)
    try:
        books = client.collection("books")
        for n in range(300):
            books.document(f"b{n}").set({"genre": "sf" if n % 3 else "poetry", "pages": n})
        query = books.where(filter=FieldFilter("genre", "==", "sf")).order_by("pages", direction="DESCENDING").limit(2)
        with pytest.raises(exceptions.FailedPrecondition) as error:
            query.get()
        assert re.search(r"The query requires an index\. You can create it here: https://\S+create_composite=\S+", str(error.value))

        # An invalid file changes nothing.
        indexes.write_text('{"indexes": [{}]}')
        hearth.process.send_signal(signal.SIGHUP)
        eventually(lambda: any("the indexes stay unchanged" in line for line in hearth.output))
        fields = [{"fieldPath": "genre", "order": "ASCENDING"}, {"fieldPath": "pages", "order": "DESCENDING"}]
        index = {"collectionGroup": "books", "queryScope": "COLLECTION", "fields": fields}
        indexes.write_text(json.dumps({"indexes": [index], "fieldOverrides": []}))
        hearth.process.send_signal(signal.SIGHUP)

        def served():
            try:
                return [s.id for s in query.get()] == ["b299", "b298"]
            except exceptions.FailedPrecondition:
                return False

        eventually(served)
        analysed = query.get(explain_options=ExplainOptions(analyze=True)).get_explain_metrics()
        assert analysed.plan_summary.indexes_used[0]["properties"] == "(genre ASC, pages DESC, __name__ DESC)"

        # After a kill the index exists, and its entries agree with the documents.
        hearth.kill()
        check = subprocess.run([BINARY, "check", "--data", str(hearth.directory)], capture_output=True, text=True)
        assert check.returncode == 0, check
        assert "300 documents, 600 automatic and 300 composite index entries, 0 problems" in check.stdout
        # A record of a log that is missing fails the check, and says what to do.
        record = next(Path(hearth.directory).glob("newest-log-*"))
        moved = record.rename(record.with_name("newest-log-999999"))
        missing = subprocess.run([BINARY, "check", "--data", str(hearth.directory)], capture_output=True, text=True)
        assert missing.returncode == 1 and "lacks its newest write-ahead log" in missing.stderr, missing
        moved.rename(record)
        hearth.start()
        eventually(served)
        busy = subprocess.run([BINARY, "check", "--data", str(hearth.directory)], capture_output=True, text=True)
        assert busy.returncode == 1 and "Stop the server" in busy.stderr
    finally:
        client.close()
        hearth.kill()
