"""Tests of authentication with Firebase's Admin SDK for Python against an emulator, and with Google's auth library and a
service account that `hearth credentials` issued against a production server."""

import json
import subprocess
import uuid

import firebase_admin
import google.auth.credentials
import google.auth.transport.requests
import pytest
import requests
from firebase_admin import auth, credentials
from google.oauth2 import service_account

from conftest import BINARY, Hearth

TOOLKIT = "identitytoolkit.googleapis.com/v1"
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


class FakeCredential(credentials.Base):
    """A credential of the type that the Admin SDK requires, although the emulator needs none."""

    def get_credential(self):
        return google.auth.credentials.AnonymousCredentials()


@pytest.fixture
def app(shared_hearth, monkeypatch):
    monkeypatch.setenv("FIREBASE_AUTH_EMULATOR_HOST", shared_hearth.auth)
    app = firebase_admin.initialize_app(
        FakeCredential(), {"projectId": shared_hearth.project}, name=uuid.uuid4().hex
    )
    yield app
    firebase_admin.delete_app(app)


def sign_in(server, path, **body):
    """Calls an operation as a client app does."""
    reply = requests.post(f"http://{server.auth}/{TOOLKIT}/{path}?key=k", json=body, timeout=20)
    return reply.status_code, reply.json()


def test_admin_manages_users(app):
    user = auth.create_user(email="ada@example.com", password="opensesame", display_name="Ada", app=app)
    assert auth.get_user_by_email("ADA@example.com", app=app).uid == user.uid
    with pytest.raises(auth.EmailAlreadyExistsError):
        auth.create_user(email="ada@example.com", app=app)
    auth.set_custom_user_claims(user.uid, {"role": "editor"}, app=app)
    changed = auth.update_user(user.uid, phone_number="+15555550100", email_verified=True, app=app)
    assert (changed.custom_claims, changed.phone_number, changed.email_verified) == (
        {"role": "editor"}, "+15555550100", True)
    assert [found.uid for found in auth.list_users(app=app).iterate_all()] == [user.uid]
    assert "oobCode=" in auth.generate_password_reset_link("ada@example.com", app=app)
    assert "mode=verifyEmail" in auth.generate_email_verification_link("ada@example.com", app=app)
    auth.revoke_refresh_tokens(user.uid, app=app)
    auth.update_user(user.uid, disabled=True, app=app)
    assert auth.delete_users([user.uid], app=app).success_count == 1
    with pytest.raises(auth.UserNotFoundError):
        auth.get_user(user.uid, app=app)


def test_admin_imports_hashes_and_pages_of_users(app):
    hashed = auth.ImportUserRecord(
        "hashed", email="hashed@example.com", password_hash=b"\x21\x41\x92\xff\xdc\x60\x40\x87\x7b\xa0\x89\x7a"
        b"\x28\x02\x9e\xf3", password_salt=b"NaCl-salt")
    plain = [auth.ImportUserRecord(f"plain{number}", email=f"p{number}@example.com") for number in range(30)]
    result = auth.import_users([hashed, *plain], hash_alg=auth.UserImportHash.md5(rounds=1), app=app)
    assert (result.success_count, result.failure_count) == (31, 0)
    page = auth.list_users(max_results=10, app=app)
    assert len(page.users) == 10 and page.has_next_page
    assert len(list(page.iterate_all())) == 31


def test_admin_makes_custom_tokens(app, shared_hearth):
    token = auth.create_custom_token("carl", {"vip": True}, app=app).decode()
    status, session = sign_in(shared_hearth, "accounts:signInWithCustomToken", token=token, returnSecureToken=True)
    assert status == 200, session
    assert session["isNewUser"]


@pytest.fixture(scope="module")
def production(tmp_path_factory):
    directory = tmp_path_factory.mktemp("production") / "data"
    server = Hearth(directory, options=["--project", "demo-prod"]).start()
    yield server
    assert server.process.poll() is None, "hearth died:\n" + "\n".join(server.output[-40:])
    assert server.stop() == 0


def credentials_command(server, *arguments):
    return subprocess.run(
        [BINARY, "credentials", arguments[0], "--data", str(server.directory), *arguments[1:]],
        check=True, capture_output=True, text=True, timeout=30).stdout


def create(server, name, role="administrator"):
    text = credentials_command(
        server, "create", name, "--project", "demo-prod", "--role", role, "--url", f"http://{server.auth}")
    return json.loads(text)


def document(server, name):
    return f"http://{server.firestore}/v1/projects/demo-prod/databases/(default)/documents/c/{name}"


def test_the_production_guide_without_tls(production):
    """Tests a service account, a user and a revocation without TLS, as behind a proxy. test_production_guide.py runs the page."""
    info = create(production, "backend")
    account = service_account.Credentials.from_service_account_info(info, scopes=SCOPES)
    session = google.auth.transport.requests.AuthorizedSession(account)
    written = session.patch(document(production, "a"), json={"fields": {"n": {"integerValue": "7"}}})
    assert written.status_code == 200, written.text
    assert session.get(document(production, "a")).json()["fields"]["n"]["integerValue"] == "7"
    database = f"http://{production.database}/tea.json?ns=demo-prod"
    assert session.put(database, json="green").status_code == 200

    users = f"http://{production.auth}/{TOOLKIT}/projects/demo-prod/accounts"
    created = session.post(users, json={"email": "ada@example.com", "password": "correct horse"})
    assert created.status_code == 200, created.text
    status, user = sign_in(
        production, "accounts:signInWithPassword", email="ada@example.com", password="correct horse",
        returnSecureToken=True)
    assert status == 200 and user["localId"] == created.json()["localId"]
    # Without rules users have no access to data.
    bearer = {"Authorization": "Bearer " + user["idToken"]}
    assert requests.get(document(production, "a"), headers=bearer, timeout=20).status_code == 403
    assert requests.get(document(production, "a"), timeout=20).status_code in (401, 403)

    assert info["client_email"] in credentials_command(production, "list")
    credentials_command(production, "revoke", info["client_email"])
    assert requests.get(
        document(production, "a"), headers={"Authorization": "Bearer " + account.token}, timeout=20
    ).status_code == 401


def test_google_auth_signs_tokens_itself(production):
    info = create(production, "reader", role="reader")
    account = service_account.Credentials.from_service_account_info(info)
    signed = account.with_always_use_jwt_access(True)
    signed._create_self_signed_jwt("https://firestore.googleapis.com/")
    session = google.auth.transport.requests.AuthorizedSession(signed)
    assert session.get(document(production, "missing")).status_code == 404
    # A reader does not write.
    assert session.patch(document(production, "b"), json={"fields": {}}).status_code == 403


def test_published_keys_verify_id_tokens(production):
    from google.auth import jwt

    status, user = sign_in(production, "accounts:signUp", returnSecureToken=True)
    assert status == 200
    certificates = requests.get(
        f"http://{production.auth}/www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com",
        timeout=20).json()
    claims = jwt.decode(user["idToken"], certs=certificates, audience="demo-prod")
    assert claims["sub"] == user["localId"] and claims["firebase"]["sign_in_provider"] == "anonymous"
