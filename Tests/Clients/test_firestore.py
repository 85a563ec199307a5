"""Tests of Google's Python client for Cloud Firestore: documents, queries, listeners, transactions."""

import queue
import threading

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from conftest import eventually


@pytest.fixture
def client(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", shared_hearth.firestore)
    client = firestore.Client(project=shared_hearth.project)
    yield client
    client.close()


def test_a_client_that_compresses_its_requests_is_served(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", shared_hearth.firestore)
    plain = grpc.insecure_channel
    opened = []

    def compressing(*arguments, **options):
        opened.append(arguments)
        return plain(*arguments, **options, compression=grpc.Compression.Gzip)

    monkeypatch.setattr(grpc, "insecure_channel", compressing)
    client = firestore.Client(project=shared_hearth.project)
    collection = client.collection("compressed")
    # Large enough for the channel to compress it, and for the server to decompress it off the event loop.
    values = {"small": 1, "long": "x" * 900_000, "numbers": list(range(5_000))}
    snapshots = Snapshots(collection)
    collection.document("a").set(values)
    assert opened
    assert collection.document("a").get().to_dict() == values
    assert [found.id for found in collection.where(filter=FieldFilter("small", "==", 1)).stream()] == ["a"]
    snapshots.until({"a": values})
    snapshots.close()
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("b").set({"long": "x" * 1_100_000})
    client.close()


@pytest.fixture
def collection(client, request):
    """A separate collection for each test."""
    return client.collection(request.node.name.replace("[", "-").replace("]", ""))


class Snapshots:
    """The snapshots that a listener received, one entry each."""

    def __init__(self, watched):
        self.seen = queue.Queue()
        self.watch = watched.on_snapshot(self._receive)

    def _receive(self, documents, changes, read_time):
        self.seen.put(({d.id: d.to_dict() for d in documents}, [(c.type.name, c.document.id) for c in changes]))

    def next(self):
        return self.seen.get(timeout=15)

    def until(self, state):
        """Reads snapshots until one has exactly this state. Returns all changes up to it."""
        changes = []
        while True:
            documents, new = self.next()
            changes += new
            if documents == state:
                return changes

    def close(self):
        self.watch.unsubscribe()


def test_a_document_is_created_read_updated_and_deleted(collection):
    document = collection.document("b1")
    document.create({"title": "Dune", "pages": 412})
    with pytest.raises(exceptions.AlreadyExists):
        document.create({"title": "again"})
    snapshot = document.get()
    assert snapshot.to_dict() == {"title": "Dune", "pages": 412}
    assert snapshot.create_time == snapshot.update_time
    document.update({"pages": 413, "author.name": "Herbert"})
    updated = document.get()
    assert updated.to_dict() == {"title": "Dune", "pages": 413, "author": {"name": "Herbert"}}
    assert updated.create_time == snapshot.create_time
    assert updated.update_time > snapshot.update_time
    document.set({"pages": 414}, merge=True)
    assert document.get().get("pages") == 414
    document.set({"only": True})
    assert document.get().to_dict() == {"only": True}
    document.delete()
    assert not document.get().exists
    document.delete()


def test_every_type_of_value_is_returned_unchanged(client, collection):
    from datetime import datetime, timezone

    from google.cloud.firestore_v1.vector import Vector

    value = {
        "null": None, "true": True, "integer": -(2**63), "double": 1.5, "infinite": float("inf"),
        "text": "Käfer 😀 \u0000", "bytes": b"\x00\xff", "time": datetime(2024, 2, 29, 12, 0, 0, 123456, timezone.utc),
        "point": firestore.GeoPoint(-33.9, 151.2), "reference": client.document("a/b"),
        "array": [1, "two", {"three": 3}], "map": {"a.b": {"c": []}}, "vector": Vector([1.0, 2.0]),
        "empty": {}, "none": [],
    }
    document = collection.document("all")
    document.set(value)
    assert document.get().to_dict() == value


def test_names_that_differ_only_in_spelling_are_different(client, collection):
    composed, decomposed = "\u00e9", "e\u0301"
    both = {composed: 1, decomposed: 2, "m": {composed: 3, decomposed: 4}, "a": [{composed: 5, decomposed: 6}]}
    for name in (composed, decomposed):
        collection.document(name).create({"id": name, **both})
    assert [d.id for d in collection.stream()] == [decomposed, composed]
    for name in (composed, decomposed):
        assert collection.document(name).get().to_dict() == {"id": name, **both}
        assert [d.id for d in collection.where(filter=FieldFilter("id", "==", name)).stream()] == [name]
    assert len(list(collection.where(filter=FieldFilter("m", "==", both["m"])).stream())) == 2
    assert list(collection.where(filter=FieldFilter("m", "==", {composed: 3})).stream()) == []
    snapshots = Snapshots(collection.document(composed))
    collection.document(composed).set({decomposed: 20}, merge=True)
    snapshots.until({composed: {"id": composed, **both, decomposed: 20}})
    snapshots.close()
    collection.document(composed).set({"m": {composed: firestore.DELETE_FIELD}}, merge=True)
    assert collection.document(composed).get().get("m") == {decomposed: 4}
    assert collection.document(decomposed).get().to_dict() == {"id": decomposed, **both}


def test_preconditions_fail_with_the_documented_errors(client, collection):
    document = collection.document("d")
    with pytest.raises(exceptions.NotFound):
        document.update({"a": 1})
    document.set({"a": 1})
    stale = document.get().update_time
    document.update({"a": 2})
    with pytest.raises(exceptions.FailedPrecondition):
        document.update({"a": 3}, option=client.write_option(last_update_time=stale))
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("__reserved__").set({"a": 1})
    assert document.get().to_dict() == {"a": 2}


def test_transforms_run_on_the_server(collection):
    document = collection.document("d")
    document.set({"n": 1, "tags": ["a"], "at": firestore.SERVER_TIMESTAMP})
    document.update({
        "n": firestore.Increment(2), "tags": firestore.ArrayUnion(["a", "b"]), "max": firestore.Maximum(7),
    })
    after = document.get().to_dict()
    assert (after["n"], after["tags"], after["max"]) == (3, ["a", "b"], 7)
    assert after["at"].microsecond % 1000 == 0
    document.update({"tags": firestore.ArrayRemove(["a"]), "n": firestore.DELETE_FIELD})
    assert "n" not in document.get().to_dict()
    assert document.get().get("tags") == ["b"]


def test_a_batch_is_atomic(client, collection):
    batch = client.batch()
    batch.set(collection.document("a"), {"n": 1})
    batch.update(collection.document("missing"), {"n": 2})
    with pytest.raises(exceptions.NotFound):
        batch.commit()
    assert not collection.document("a").get().exists
    batch = client.batch()
    for index in range(600):
        batch.set(collection.document(f"d{index:03}"), {"n": index})
    assert len(batch.commit()) == 600
    found = {s.id for s in client.get_all([collection.document("d000"), collection.document("no")]) if s.exists}
    assert found == {"d000"}


def test_a_bulk_writer_writes_each_document_independently(client, collection):
    collection.document("there").set({"n": 0})
    failed = []
    writer = client.bulk_writer()
    writer.on_write_error(lambda error, _: failed.append(error) and False)
    for n in range(100):
        writer.set(collection.document(f"d{n}"), {"n": n})
    writer.create(collection.document("there"), {"n": 1})
    writer.update(collection.document("missing"), {"n": 1})
    writer.close()
    assert sorted(error.code for error in failed) == [5, 6]
    assert len(list(collection.stream())) == 101
    assert collection.document("there").get().to_dict() == {"n": 0}


def test_queries_filter_order_limit_and_page(collection):
    for index in range(30):
        collection.document(f"d{index:02}").set({"i": index, "even": index % 2 == 0, "tags": [f"t{index % 3}"]})

    def ids(query):
        return [document.id for document in query.stream()]

    assert ids(collection.where(filter=FieldFilter("i", ">=", 27))) == ["d27", "d28", "d29"]
    assert ids(collection.where(filter=FieldFilter("i", "==", 5))) == ["d05"]
    assert ids(collection.where(filter=FieldFilter("tags", "array_contains", "t2")).limit(2)) == ["d02", "d05"]
    assert ids(collection.order_by("i", direction="DESCENDING").limit(2)) == ["d29", "d28"]
    even = collection.where(filter=FieldFilter("even", "==", True)).order_by("i", direction="DESCENDING")
    assert ids(even.limit(3)) == ["d28", "d26", "d24"]
    assert ids(collection.order_by("i").start_after({"i": 3}).end_at({"i": 6})) == ["d04", "d05", "d06"]
    assert ids(collection.order_by("i").start_at(collection.document("d28").get())) == ["d28", "d29"]
    assert ids(collection.order_by("i").offset(28)) == ["d28", "d29"]
    assert ids(collection.where(filter=FieldFilter("i", ">", 100))) == []
    assert len(ids(collection)) == 30
    assert [d.to_dict() for d in collection.select(["i"]).order_by("i").limit(1).stream()] == [{"i": 0}]
    with pytest.raises(exceptions.InvalidArgument):
        ids(collection.where(filter=FieldFilter("i", "in", list(range(40)))))


def test_collections_are_listed(client, collection):
    collection.document("a").collection("sub").document("x").set({})
    assert collection.id in [c.id for c in client.collections()]
    assert [c.id for c in collection.document("a").collections()] == ["sub"]
    assert [d.id for d in collection.list_documents()] == ["a"]


def test_a_collection_listener_sees_every_kind_of_change(collection):
    collection.document("a").set({"v": 1})
    listener = Snapshots(collection)
    assert listener.next() == ({"a": {"v": 1}}, [("ADDED", "a")])
    collection.document("b").set({"v": 1})
    assert listener.until({"a": {"v": 1}, "b": {"v": 1}}) == [("ADDED", "b")]
    collection.document("a").update({"v": 2})
    assert listener.until({"a": {"v": 2}, "b": {"v": 1}}) == [("MODIFIED", "a")]
    collection.document("b").delete()
    assert listener.until({"a": {"v": 2}}) == [("REMOVED", "b")]
    listener.close()


def test_a_query_listener_receives_entering_and_leaving_documents(collection):
    query = collection.where(filter=FieldFilter("open", "==", True))
    listener = Snapshots(query)
    assert listener.next() == ({}, [])
    collection.document("a").set({"open": False})
    collection.document("b").set({"open": True})
    assert listener.until({"b": {"open": True}}) == [("ADDED", "b")]
    collection.document("b").update({"open": False})
    assert listener.until({}) == [("REMOVED", "b")]
    listener.close()


def test_a_limited_query_listener_refills(collection):
    for index in range(5):
        collection.document(f"d{index}").set({"i": index})
    listener = Snapshots(collection.order_by("i").limit(2))
    assert set(listener.next()[0]) == {"d0", "d1"}
    collection.document("d0").delete()
    assert set(listener.until({"d1": {"i": 1}, "d2": {"i": 2}})) == {("REMOVED", "d0"), ("ADDED", "d2")}
    listener.close()


def test_a_document_listener_sees_creation_and_deletion(collection):
    document = collection.document("d")
    seen = queue.Queue()
    watch = document.on_snapshot(lambda documents, *_: seen.put([d.to_dict() for d in documents if d.exists]))
    assert seen.get(timeout=15) == []
    document.set({"v": 1})
    assert seen.get(timeout=15) == [{"v": 1}]
    document.delete()
    assert seen.get(timeout=15) == []
    watch.unsubscribe()


def test_many_listeners_of_one_client_see_one_write(client, collection):
    listeners = [Snapshots(collection) for _ in range(20)]
    for listener in listeners:
        listener.next()
    collection.document("a").set({"v": 1})
    for listener in listeners:
        assert listener.until({"a": {"v": 1}}) == [("ADDED", "a")]
        listener.close()


def test_a_transaction_reads_and_writes(client, collection):
    document = collection.document("d")
    document.set({"n": 1})

    @firestore.transactional
    def increment(transaction):
        n = document.get(transaction=transaction).get("n")
        transaction.update(document, {"n": n + 1})
        return n + 1

    assert increment(client.transaction()) == 2
    assert document.get().get("n") == 2

    @firestore.transactional
    def fail(transaction):
        transaction.update(document, {"n": 99})
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fail(client.transaction())
    assert document.get().get("n") == 2
    read_only = client.transaction(read_only=True)

    @firestore.transactional
    def look(transaction):
        return document.get(transaction=transaction).get("n")

    assert look(read_only) == 2


def test_eight_threads_increment_one_document_and_all_succeed(client, collection):
    document = collection.document("d")
    document.set({"n": 0})
    failures = []

    def work():
        # Decorated for each thread: the client stores the transaction ID for a retry in the decorated function.
        @firestore.transactional
        def increment(transaction):
            n = document.get(transaction=transaction).get("n")
            transaction.update(document, {"n": n + 1})

        try:
            for _ in range(50):
                increment(client.transaction())
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert document.get().get("n") == 400


def test_a_listener_resumes_after_the_server_was_killed(hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", hearth.firestore)
    client = firestore.Client(project=hearth.project)
    collection = client.collection("c")
    collection.document("before").set({"v": 1})
    listener = Snapshots(collection)
    assert listener.next()[0] == {"before": {"v": 1}}
    hearth.kill()
    hearth.start()
    eventually(lambda: write(collection.document("after"), {"v": 2}), what="a write after the restart")
    listener.until({"before": {"v": 1}, "after": {"v": 2}})
    listener.close()


def test_a_stop_during_writes_loses_no_acknowledged_write(hearth, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", hearth.firestore)
    client = firestore.Client(project=hearth.project)
    collection = client.collection("c")
    acknowledged, lock, enough = [], threading.Lock(), threading.Event()
    listener = Snapshots(collection)
    listener.next()

    def work(thread):
        for index in range(10_000):
            name = f"{thread}-{index}"
            try:
                collection.document(name).set({"n": index}, retry=None, timeout=10)
            except exceptions.GoogleAPICallError:
                return
            with lock:
                acknowledged.append(name)
                if len(acknowledged) >= 200:
                    enough.set()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    assert hearth.stop() == 0
    for thread in threads:
        thread.join(60)
    hearth.start()
    eventually(lambda: write(client.collection("other").document("d"), {}), what="a write after the restart")
    stored = {document.id for document in collection.stream()}
    assert set(acknowledged) <= stored
    listener.close()


def write(document, value):
    try:
        document.set(value)
        return True
    except exceptions.GoogleAPICallError:
        return False


def test_aggregates_count_sum_and_average(client, collection):
    for index, fields in enumerate([{"n": 1, "k": "a"}, {"n": 2.5, "k": "a"}, {"n": "text", "k": "b"}, {"k": "b"}]):
        collection.document(str(index)).set(fields)
    assert [r.value for r in collection.count().get()[0]] == [4]
    assert [r.value for r in collection.count(alias="all").get()[0]] == [4]
    both = {r.alias: r.value for r in collection.count(alias="count").sum("n", alias="sum").avg("n", alias="avg").get()[0]}
    assert both == {"count": 3, "sum": 3.5, "avg": 1.75}
    few = collection.where(filter=FieldFilter("k", "==", "a")).limit(1)
    assert [r.value for r in few.count().get()[0]] == [1]

    @firestore.transactional
    def counted(transaction):
        return [r.value for r in collection.count().get(transaction=transaction)[0]]

    assert counted(client.transaction()) == [4]


def test_a_collection_is_deleted_with_all_subcollections(client, collection):
    for index in range(30):
        document = collection.document(f"d{index}")
        document.set({"n": index})
        document.collection("below").document("x").set({"n": index})
    assert client.recursive_delete(collection) == 60
    assert list(collection.stream()) == []
    assert list(collection.document("d3").collection("below").stream()) == []


def test_the_partitions_of_a_group_cover_the_group(client, collection):
    batch = client.batch()
    for index in range(400):
        batch.set(collection.document(f"p{index % 5}").collection("parted").document(f"d{index:03}"), {"n": index})
    batch.commit()
    group = client.collection_group("parted")
    partitions = list(group.get_partitions(4))
    assert len(partitions) == 5
    found = [d.reference.path for partition in partitions for d in partition.query().stream()]
    assert found == [d.reference.path for d in group.order_by("__name__").stream()]
    assert len(set(found)) == 400
