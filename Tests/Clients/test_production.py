"""Tests of google-cloud-firestore and Firebase's Admin SDK for Python with a service account that `hearth credentials` issued,
against a production server with TLS. Both verify a certificate made for the test."""

import json
import uuid

import firebase_admin
import google.auth.exceptions
import pytest
from firebase_admin import credentials, db
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.cloud import firestore
from google.oauth2 import service_account

from conftest import Hearth, eventually
from test_auth import credentials_command
from test_tls import make_certificate

PROJECT = "demo-prod"


@pytest.fixture(scope="module")
def production(tmp_path_factory):
    directory = tmp_path_factory.mktemp("production")
    certificate, key = make_certificate(directory, "server")
    server = Hearth(
        directory / "data",
        options=["--project", PROJECT, "--tls-cert", str(certificate), "--tls-key", str(key)]).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate))
        patch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        patch.delenv("FIRESTORE_EMULATOR_HOST", raising=False)
        yield server
    assert server.process.poll() is None, "hearth died:\n" + "\n".join(server.output[-40:])
    assert server.stop() == 0


def create(server, name, role="administrator"):
    url = f"https://localhost:{server.auth_port}"
    return json.loads(credentials_command(server, "create", name, "--project", PROJECT, "--role", role, "--url", url))


def firestore_client(server, info):
    return firestore.Client(
        project=PROJECT, credentials=service_account.Credentials.from_service_account_info(info),
        client_options=ClientOptions(api_endpoint=f"localhost:{server.firestore_port}"))


def test_google_cloud_firestore_with_issued_credentials(production):
    info = create(production, "backend")
    client = firestore_client(production, info)
    place = client.collection("c").document(uuid.uuid4().hex)
    place.set({"n": 7})
    assert place.get().to_dict() == {"n": 7}

    received = []
    watch = place.on_snapshot(lambda documents, changes, time: received.append(documents[0].to_dict()))
    eventually(lambda: received == [{"n": 7}], what="the first snapshot")
    place.update({"n": 8})
    eventually(lambda: received[-1] == {"n": 8}, what="the change")

    # A reader does not write.
    reader = firestore_client(production, create(production, "reader", role="reader"))
    assert reader.collection("c").document(place.id).get().to_dict() == {"n": 8}
    with pytest.raises(exceptions.PermissionDenied):
        reader.collection("c").document(place.id).set({"n": 9})

    credentials_command(production, "revoke", info["client_email"])
    with pytest.raises(exceptions.Unauthenticated):
        place.get(retry=None, timeout=20)
    # The library listens repeatedly with a token that the server rejects. It receives no further change.
    others = []
    other = firestore_client(production, create(production, "other")).collection("c").document(place.id)
    other_watch = other.on_snapshot(lambda documents, changes, time: others.append(documents[0].to_dict()))
    eventually(lambda: others == [{"n": 8}], what="the other listener's first snapshot")
    other.update({"n": 10})
    eventually(lambda: others[-1] == {"n": 10}, what="the change at the other listener")
    assert received == [{"n": 7}, {"n": 8}]
    for listener in [watch, other_watch]:
        listener.unsubscribe()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_admin_database_with_issued_credentials(production):
    info = create(production, "database")
    app = firebase_admin.initialize_app(
        credentials.Certificate(info), {"databaseURL": f"https://localhost:{production.database_port}"},
        name=uuid.uuid4().hex)
    place = db.reference(f"/tea/{uuid.uuid4().hex}", app=app)
    place.set({"leaves": 3})
    assert place.get() == {"leaves": 3}
    events = []
    stream = place.listen(lambda event: events.append((event.path, event.data)))
    eventually(lambda: events == [("/", {"leaves": 3})], what="the first event")
    place.update({"leaves": 4})
    eventually(lambda: ("/", {"leaves": 4}) in events or ("/leaves", 4) in events, what="the change")
    credentials_command(production, "revoke", info["client_email"])
    # The library requests a new access token, and the server rejects the request. An exception ends the listener's thread.
    eventually(lambda: not stream._thread.is_alive(), what="the end of the listener")
    with pytest.raises(google.auth.exceptions.RefreshError):
        place.get()
    firebase_admin.delete_app(app)
