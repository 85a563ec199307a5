"""Tests docs/production.md: runs its commands and programs in order against a production server with TLS. Only the host names,
the ports and the data directory differ from the text."""

import asyncio
import json
import os
import pathlib
import re
import shlex
import shutil
import ssl
import subprocess
import sys

import pytest
import requests
import websockets

from conftest import BINARY, ROOT, Hearth
from test_tls import make_chain

PAGE = ROOT / "docs" / "production.md"
EXAMPLE = ROOT / "Examples" / "Connect" / "Sources" / "Connect.swift"
SYSTEM_AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def blocks():
    """Yields the section, the language, the name of the file and the text of each block of the page. A line such as
    `firebase.json`: before the block names the file."""
    section = title = ""
    lines = iter(PAGE.read_text().splitlines())
    for line in lines:
        if line.startswith("```"):
            text = []
            while (inner := next(lines)) != "```":
                text.append(inner)
            named = re.fullmatch(r"`([\w.]+)`:", title)
            yield section, line[3:], named and named[1], "\n".join(text) + "\n"
            title = ""
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line:
            title = line


class Guide:
    """The server of the page, and the directory in which its commands run."""

    def __init__(self, directory):
        self.directory = directory
        self.authorities, chain, key = make_chain(directory, "ca")
        chain.rename(directory / "chain.pem")
        key.rename(directory / "key.pem")
        self.server = None
        probe = Hearth(directory / "data")
        self.names = {
            "auth.example.com:9099": f"localhost:{probe.auth_port}",
            "db.example.com:8080": f"localhost:{probe.firestore_port}",
            "db.example.com:9000": f"localhost:{probe.database_port}",
            "/var/lib/hearth": str(directory / "data"),
        }
        self.ports = (probe.firestore_port, probe.database_port, probe.auth_port)
        tools = directory / "bin"
        tools.mkdir()
        (tools / "hearth").symlink_to(BINARY)
        trust = str(self.authorities)
        self.environment = os.environ | {
            "PATH": f"{tools}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "CURL_CA_BUNDLE": trust,
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": trust, "REQUESTS_CA_BUNDLE": trust, "NODE_EXTRA_CA_CERTS": trust,
            "SSL_CERT_FILE": trust, "XDG_DATA_HOME": str(directory / "home")}
        for name in ("FIRESTORE_EMULATOR_HOST", "FIREBASE_DATABASE_EMULATOR_HOST", "FIREBASE_AUTH_EMULATOR_HOST"):
            self.environment.pop(name, None)

    def here(self, text):
        """The text with the names of this machine."""
        for name, value in self.names.items():
            text = text.replace(name, value)
        assert "example.com:" not in text and "/var/" not in text, text
        return text

    def run(self, command, **options):
        done = subprocess.run(
            command, cwd=self.directory, env=self.environment | options, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def serve(self, command):
        """Starts the server by a command of the page, in place of an earlier one."""
        words = shlex.split(command)
        assert words[:3] == ["hearth", "serve", "--data"], command
        self.stop()
        self.server = Hearth(words[3], options=words[4:], cwd=self.directory)
        self.server.firestore_port, self.server.database_port, self.server.auth_port = self.ports
        self.server.start()

    def stop(self):
        if self.server:
            assert self.server.process.poll() is None, "hearth died:\n" + "\n".join(self.server.output[-40:])
            assert self.server.stop() == 0

    def play(self, *sections):
        """Runs the blocks of these sections in the order of the page, and returns the outputs of the commands."""
        outputs = []
        for section, language, file, text in blocks():
            if section not in sections:
                continue
            text = self.here(text)
            if file:
                (self.directory / file).write_text(text)
            elif language == "sh" and text.startswith("hearth serve"):
                self.serve(text)
            elif language == "sh":
                # Variables of one block are used by the next ones.
                script = f". ./variables; {text}\ndeclare -p ASSERTION TOKEN >variables 2>/dev/null || true"
                (self.directory / "variables").touch()
                outputs.append(self.run(["bash", "-euo", "pipefail", "-c", script]))
            elif language == "python":
                outputs.append(self.run(["python3", "-c", text]))
            else:
                raise AssertionError(f"nothing plays this block of {section}:\n{text}")
        return outputs


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The page up to the connection of apps."""
    guide = Guide(tmp_path_factory.mktemp("guide"))
    guide.play("Start")
    guide.list_of_accounts = guide.play("Create credentials")[-1]
    guide.servers = guide.play("Connect a server")
    (created,) = guide.play("Create a user")
    guide.uid = json.loads(created)["localId"]
    guide.rules = guide.play("Set the rules")
    yield guide
    guide.stop()


def sign_in(guide):
    """The ID token of the user of the page, by the requests of the web SDK."""
    base = f"https://localhost:{guide.server.auth_port}"
    toolkit = f"{base}/identitytoolkit.googleapis.com/v1/accounts"

    def post(url, **body):
        reply = requests.post(f"{url}?key=any-key", timeout=20, verify=str(guide.authorities), **body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    session = post(f"{toolkit}:signInWithPassword", json={
        "returnSecureToken": True, "email": "ada@example.com", "password": "correct horse",
        "clientType": "CLIENT_TYPE_WEB"})
    (user,) = post(f"{toolkit}:lookup", json={"idToken": session["idToken"]})["users"]
    assert user["localId"] == session["localId"] == guide.uid
    fresh = post(f"{base}/securetoken.googleapis.com/v1/token", data={
        "grant_type": "refresh_token", "refresh_token": session["refreshToken"]})
    return fresh["access_token"]


def commit(guide, token, uid):
    """Writes the document of a user with a user's token, and returns the status."""
    name = f"projects/my-app/databases/(default)/documents/users/{uid}"
    reply = requests.patch(
        f"https://localhost:{guide.server.firestore_port}/v1/{name}", timeout=20, verify=str(guide.authorities),
        headers={"Authorization": f"Bearer {token}"}, json={"fields": {"name": {"stringValue": "Ada"}}})
    return reply.status_code


def put(guide, token, uid):
    """Writes the value of a user as the web SDK does: over a WebSocket, after a sign-in. Returns the status."""
    async def play():
        url = f"wss://localhost:{guide.server.database_port}/.ws?v=5&ns=my-app-default-rtdb"
        async with websockets.connect(url, ssl=ssl.create_default_context(cafile=guide.authorities)) as wire:
            await wire.recv()
            for number, (action, body) in enumerate([
                ("auth", {"cred": token}), ("p", {"p": f"/users/{uid}", "d": {"name": "Ada"}}),
            ]):
                await wire.send(json.dumps({"t": "d", "d": {"r": number, "a": action, "b": body}}))
                status = json.loads(await wire.recv())["d"]["b"]["s"]
                assert action != "auth" or status == "ok"
            return status

    return asyncio.run(asyncio.wait_for(play(), 60))


def values(guide):
    """The value of the user in both databases, as an administrator reads them; removes both."""
    token = re.search(r'TOKEN="([^"]+)"', (guide.directory / "variables").read_text())[1]
    headers = {"Authorization": f"Bearer {token}"}
    trust = {"verify": str(guide.authorities), "timeout": 20, "headers": headers}
    document = (f"https://localhost:{guide.server.firestore_port}/v1/projects/my-app/databases/(default)"
                f"/documents/users/{guide.uid}")
    value = f"https://localhost:{guide.server.database_port}/users/{guide.uid}.json"
    found = (requests.get(document, **trust).json()["fields"]["name"]["stringValue"], requests.get(value, **trust).json())
    requests.delete(document, **trust)
    requests.delete(value, **trust)
    return found


def test_credentials_and_servers(guide):
    assert guide.list_of_accounts.startswith("backend@my-app.iam.hearth.invalid\tmy-app\tadministrator\t")
    assert (guide.directory / "backend.json").stat().st_mode & 0o777 == 0o600
    firestore, database, assertion = guide.servers
    assert firestore == database == "{'author': 'Jane Austen'}\n"
    assert assertion == ""


def test_rules(guide):
    assert [json.loads(output) for output in guide.rules] == [{"status": "ok"}]


def test_web_app_by_its_requests(guide):
    token = sign_in(guide)
    assert commit(guide, token, guide.uid) == 200
    assert commit(guide, token, "someone-else") == 403
    assert put(guide, token, guide.uid) == "ok"
    assert put(guide, token, "someone-else") == "permission_denied"
    assert values(guide) == ("Ada", {"name": "Ada"})


@pytest.mark.skipif("HEARTH_WEB_BUILD" not in os.environ, reason="scripts/web-sdk.sh runs it with the official web SDK")
def test_web_app_with_the_official_sdk(guide):
    (program,) = [text for _, language, _, text in blocks() if language == "js"]
    (guide.directory / "app.mjs").write_text(guide.here(program) + "process.exit(0);\n")
    guide.run([os.environ["HEARTH_WEB_BUILD"], "app.mjs", "bundle.mjs"])
    guide.run(["node", "bundle.mjs"])
    assert values(guide) == ("Ada", {"name": "Ada"})


def test_swift_program_is_the_one_of_the_page():
    (program,) = [text for _, language, _, text in blocks() if language == "swift"]
    names = {"auth.example.com:9099": 1, "db.example.com:8080": 2, "db.example.com:9000": 3}
    for name, number in names.items():
        program = program.replace(name, f"\\(CommandLine.arguments[{number}])")
    # The example prints a report after the program of the page.
    body = program.removesuffix("  }\n}\n")
    assert body != program and body in EXAMPLE.read_text()


def test_swift_app(guide):
    if not SYSTEM_AUTHORITIES.exists() or not shutil.which("unshare"):
        pytest.skip("only Linux has mount namespaces, in which the system can trust the authority of the test")
    # URLSession trusts only the authorities of the system. Therefore this program runs in a mount namespace with other
    # authorities.
    program = pathlib.Path(BINARY).parent / "Connect"
    trusting = 'mount --bind "$0" "$1" && shift && exec "$@"'
    output = guide.run([
        "unshare", "--map-root-user", "--mount", "sh", "-c", trusting, str(guide.authorities), str(SYSTEM_AUTHORITIES),
        str(program), *[guide.names[name] for name in list(guide.names)[:3]]])
    assert output.splitlines() == [
        "Firestore: Ada", "Realtime Database: Ada", "Firestore: denied", "Realtime Database: denied"]
    assert values(guide) == ("Ada", {"name": "Ada"})


def test_configurations(guide, tmp_path):
    """A server starts with each configuration of the page."""
    found = 0
    for section, language, file, text in blocks():
        if language != "json" or file:
            continue
        found += 1
        # No key is fetched from outside of this machine.
        config = tmp_path / f"{found}.json"
        config.write_text(text.replace("www.googleapis.com", "127.0.0.1:9"))
        server = Hearth(None, options=["--project", "my-app", "--auth-config", str(config)]).start()
        assert server.stop() == 0, section
    assert found == 2


def test_published_keys(guide):
    """The paths of the keys that the page names."""
    paths = re.findall(r"`(/www\.googleapis\.com/\S+)`", PAGE.read_text())
    assert len(paths) == 2
    for path in paths:
        reply = requests.get(
            f"https://localhost:{guide.server.auth_port}{path}", verify=str(guide.authorities), timeout=20)
        assert reply.status_code == 200 and reply.json(), path


def test_revocation(guide):
    """The last command of the page, after which the tokens of the account are rejected."""
    token = re.search(r'TOKEN="([^"]+)"', (guide.directory / "variables").read_text())[1]
    url = f"https://localhost:{guide.server.database_port}/books.json"
    access = {"headers": {"Authorization": f"Bearer {token}"}, "verify": str(guide.authorities), "timeout": 20}
    assert requests.get(url, **access).status_code == 200
    guide.play("Revoke credentials")
    assert requests.get(url, **access).status_code == 401


def test_every_block_is_played():
    played = {
        "Start", "Create credentials", "Connect a server", "Create a user", "Set the rules", "Web", "Swift",
        "E-mails, text messages and identity providers", "Users of other issuers", "Revoke credentials"}
    assert {section for section, _, _, _ in blocks()} == played
