"""Tests of TLS with --tls-cert and --tls-key: each protocol of each port, by clients that verify a certificate made for the
test."""

import asyncio
import json
import socket
import ssl
import subprocess
import uuid

import grpc
import httpx
import pytest
import websockets
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import CommitRequest, Document, GetDocumentRequest, Value, Write

from conftest import BINARY, Hearth


def make_certificate(directory, name):
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True, capture_output=True)
    return certificate, key


def make_chain(directory, name):
    """Makes an authority, a certificate that it issued for this machine, and the certificate's key. The second file also
    contains the authority's certificate, as servers send it."""
    authority, authority_key = directory / f"{name}.pem", directory / f"{name}.key"
    chain, key, request = (directory / f"{name}-leaf.{suffix}" for suffix in ("pem", "key", "csr"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    openssl("req", "-x509", *curve, "-keyout", authority_key, "-out", authority, "-days", "2", "-subj", "/CN=Test authority")
    openssl("req", *curve, "-keyout", key, "-out", request, "-subj", "/CN=localhost")
    extensions = directory / f"{name}.ext"
    extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-days", "2",
            "-extfile", extensions, "-out", chain)
    chain.write_text(chain.read_text() + authority.read_text())
    return authority, chain, key


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(directory, "server")
    server = Hearth(
        directory / "data", options=["--emulator", "--tls-cert", str(certificate), "--tls-key", str(key)]).start()
    server.certificate = str(certificate)
    server.context = ssl.create_default_context(cafile=str(certificate))
    yield server
    assert server.process.poll() is None, "hearth died:\n" + "\n".join(server.output[-40:])
    assert server.stop() == 0


def test_all_ports_report_that_they_use_tls(secured):
    lines = [line for line in secured.output if "listens on" in line]
    # The emulator hub never uses TLS: tools contact it before they know this server.
    ports = [line for line in lines if not line.startswith("Emulator hub")]
    assert len(ports) == 3 and all("https://" in line for line in ports), lines


@pytest.mark.parametrize("http2, version", [(False, "HTTP/1.1"), (True, "HTTP/2")])
def test_rest_over_the_version_that_alpn_chose(secured, http2, version):
    url = f"https://localhost:{secured.database_port}/rest/{uuid.uuid4().hex}.json?ns=demo"
    with httpx.Client(http2=http2, verify=secured.context) as client:
        for value in [{"x": 1}, "y" * 1_000_000, None]:
            written = client.put(url, content=json.dumps(value))
            assert (written.status_code, written.http_version) == (200, version)
            read = client.get(url)
            assert (read.json(), read.http_version) == (value, version)
        refused = client.put(url, content=b"{nope")
        assert refused.status_code == 400 and "error" in refused.json()


@pytest.mark.parametrize("http2, version", [(False, "HTTP/1.1"), (True, "HTTP/2")])
def test_rest_of_firestore_over_the_version_that_alpn_chose(secured, http2, version):
    url = f"https://localhost:{secured.firestore_port}/v1/projects/demo/databases/(default)/documents"
    with httpx.Client(http2=http2, verify=secured.context) as client:
        name = uuid.uuid4().hex
        fields = {"t": {"stringValue": "ä" * 100_000}}
        written = client.post(f"{url}/tls?documentId={name}", json={"fields": fields})
        assert (written.status_code, written.http_version) == (200, version), written.text
        read = client.get(f"{url}/tls/{name}")
        assert (read.json()["fields"], read.http_version) == (fields, version)
        found = client.post(f"{url}:runQuery", json={"structuredQuery": {"from": [{"collectionId": "tls"}]}})
        assert name in [row["document"]["name"].rsplit("/")[-1] for row in found.json() if "document" in row]
        refused = client.post(f"{url}:commit", content=b"{nope")
        assert refused.status_code == 400 and refused.json()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("http2", [False, True])
def test_event_streams(secured, http2):
    url = f"https://localhost:{secured.database_port}/events/{uuid.uuid4().hex}.json?ns=demo"
    with httpx.Client(http2=http2, verify=secured.context) as client:
        with client.stream("GET", url, headers={"accept": "text/event-stream"}) as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()

            def event():
                name, data, gap = next(lines), next(lines), next(lines)
                assert gap == ""
                return name, json.loads(data.removeprefix("data: "))

            assert event() == ("event: put", {"path": "/", "data": None})
            for value in [1, "z" * 300_000]:
                with httpx.Client(verify=secured.context) as writer:
                    writer.put(url, json=value)
                assert event() == ("event: put", {"path": "/", "data": value})


def test_websocket(secured):
    async def play():
        url = f"wss://localhost:{secured.database_port}/.ws?v=5&ns=demo"
        async with websockets.connect(url, ssl=secured.context, max_size=None) as wire:
            hello = json.loads(await wire.recv())
            # The server tells clients to continue with the host that they connected to.
            assert hello["d"]["d"]["h"] == f"localhost:{secured.database_port}"
            place = f"/sockets/{uuid.uuid4().hex}"
            await wire.send(json.dumps({"t": "d", "d": {"r": 1, "a": "p", "b": {"p": place, "d": "tea"}}}))
            assert json.loads(await wire.recv())["d"] == {"r": 1, "b": {"s": "ok", "d": ""}}
            await wire.send(json.dumps({"t": "d", "d": {"r": 2, "a": "g", "b": {"p": place, "q": {}}}}))
            assert json.loads(await wire.recv())["d"] == {"r": 2, "b": {"s": "ok", "d": "tea"}}

    asyncio.run(asyncio.wait_for(play(), 60))


def test_grpc(secured):
    with open(secured.certificate, "rb") as file:
        trusted = grpc.ssl_channel_credentials(root_certificates=file.read())
    channel = grpc.secure_channel(f"localhost:{secured.firestore_port}", trusted)
    transport = FirestoreGrpcTransport(channel=channel)
    database = f"projects/{secured.project}/databases/(default)"
    name = f"{database}/documents/tls/{uuid.uuid4().hex}"
    document = Document(name=name, fields={"title": Value(string_value="x" * 500_000)})
    transport.commit(CommitRequest(database=database, writes=[Write(update=document)]), timeout=30)
    assert transport.get_document(GetDocumentRequest(name=name), timeout=30).fields == document.fields
    with pytest.raises(grpc.RpcError) as refused:
        transport.get_document(GetDocumentRequest(name=name + "-not"), timeout=30)
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    channel.close()


def test_firestores_health_check(secured):
    for http2 in [False, True]:
        with httpx.Client(http2=http2, verify=secured.context) as client:
            assert client.get(f"https://localhost:{secured.firestore_port}/").text == "Ok\n"


def test_a_client_that_does_not_trust_the_certificate_gets_no_response(secured):
    with pytest.raises(httpx.ConnectError, match="certificate"):
        httpx.get(f"https://localhost:{secured.database_port}/a.json?ns=demo")


@pytest.mark.parametrize("port", ["firestore_port", "database_port"])
def test_clear_text_gets_no_response_and_affects_no_other_client(secured, port):
    with socket.create_connection(("127.0.0.1", getattr(secured, port)), timeout=30) as clear:
        clear.sendall(b"GET /a.json?ns=demo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        try:
            while part := clear.recv(4096):
                answer += part
        except ConnectionResetError:
            pass
        assert b"HTTP/" not in answer
    with httpx.Client(verify=secured.context) as client:
        assert client.get(f"https://localhost:{secured.database_port}/a.json?ns=demo").status_code == 200


def test_a_key_of_another_certificate_stops_the_start(tmp_path):
    certificate, _ = make_certificate(tmp_path, "one")
    _, key = make_certificate(tmp_path, "two")
    options = ["--ephemeral", "--emulator", "--firestore-port", "0", "--database-port", "0"]
    ended = subprocess.run(
        [BINARY, "serve", *options, "--tls-cert", str(certificate), "--tls-key", str(key)],
        capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "ready" not in ended.stdout
    assert "do not fit each other" in ended.stderr and "--tls-key" in ended.stderr, ended.stderr
