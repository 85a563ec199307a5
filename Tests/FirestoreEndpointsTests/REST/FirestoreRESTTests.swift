// Tests every path of Firestore's REST interface over real sockets.

import HearthServer
import JSON
import NIOHTTP1
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Firestore's REST interface", .timeLimit(.minutes(10)))
struct FirestoreRESTTests {
  private let docs = "/v1/" + FirestoreTestServer.documents
  private let names = FirestoreTestServer.documents

  private func fields(_ text: String) -> String { "{\"fields\":\(text)}" }

  @Test("documents are created, read, listed, updated and deleted")
  func documents() async throws {
    try await FirestoreTestServer.serving { server in
      let created = try await server.rest(
        "POST", "\(docs)/books?documentId=b1", fields("{\"title\":{\"stringValue\":\"Dune\"}}"))
      #expect(created.status == 200)
      #expect(created.json["name"] == .string("\(names)/books/b1"))
      #expect(created.json["createTime"].string?.hasSuffix("Z") == true)
      #expect(created.headers["content-type"] == "application/json; charset=utf-8")

      let unnamed = try await server.rest("POST", "\(docs)/books", fields("{\"n\":{\"integerValue\":7}}"))
      #expect(unnamed.json["name"].string?.count == "\(names)/books/".count + 20)

      let read = try await server.rest("GET", "\(docs)/books/b1?mask.fieldPaths=title&mask.field_paths=none")
      #expect(read.status == 200 && read.json["fields"]["title"]["stringValue"] == .string("Dune"))

      let changed = try await server.rest(
        "PATCH", "\(docs)/books/b1?updateMask.fieldPaths=pages&currentDocument.exists=true",
        fields("{\"pages\":{\"integerValue\":\"412\"},\"ignored\":{\"nullValue\":null}}"))
      #expect(changed.json["fields"].keys == ["pages", "title"])
      #expect(changed.json["fields"]["pages"]["integerValue"] == .string("412"))

      let listed = try await server.rest("GET", "\(docs)/books?pageSize=1&orderBy=__name__%20desc")
      #expect(listed.json["documents"].array?.count == 1)
      let token = try #require(listed.json["nextPageToken"].string)
      let encoded = token.map { $0 == "+" ? "%2B" : $0 == "/" ? "%2F" : $0 == "=" ? "%3D" : "\($0)" }
      let next = try await server.rest(
        "GET", "\(docs)/books?page_size=5&orderBy=__name__%20desc&page_token=\(encoded.joined())")
      #expect(next.json["documents"].array?.count == 1 && next.json["nextPageToken"] == .null)

      let time = try #require(changed.json["updateTime"].string)
      let stale = try await server.rest(
        "DELETE", "\(docs)/books/b1?currentDocument.updateTime=2001-01-01T00:00:00Z")
      #expect(stale.status == 400 && stale.error["status"] == .string("FAILED_PRECONDITION"))
      let deleted = try await server.rest("DELETE", "\(docs)/books/b1?currentDocument.updateTime=\(time)")
      #expect(deleted.status == 200 && deleted.body == "{}\n")
      let missing = try await server.rest("GET", "\(docs)/books/b1")
      #expect(missing.status == 404)
      #expect(
        missing.json
          == .object([
            "error": .object([
              "code": .int(404), "message": .string("Document \"\(names)/books/b1\" not found."),
              "status": .string("NOT_FOUND"),
            ])
          ]))
    }
  }

  @Test("commits, batch reads, queries and aggregations succeed; a streaming method returns a JSON array")
  func streams() async throws {
    try await FirestoreTestServer.serving { server in
      let writes = (1...3).map {
        "{\"update\":{\"name\":\"\(names)/n/d\($0)\",\"fields\":{\"n\":{\"integerValue\":\"\($0)\"}}}}"
      }
      let commit = try await server.rest(
        "POST", "\(docs):commit", "{\"writes\":[\(writes.joined(separator: ","))]}",
        headers: ["Content-Type: text/plain"])
      #expect(commit.status == 200 && commit.json["writeResults"].array?.count == 3)
      #expect(commit.json["commitTime"] == commit.json["writeResults"][0]["updateTime"])
      #expect(try await server.rest("POST", "\(docs):commit", "{}").body == "{}\n")

      let batch = try await server.rest(
        "POST", "\(docs):batchGet", "{\"documents\":[\"\(names)/n/d1\",\"\(names)/n/none\"]}")
      #expect(batch.status == 200)
      #expect(batch.json[0]["found"]["fields"]["n"]["integerValue"] == .string("1"))
      #expect(batch.json[1]["missing"] == .string("\(names)/n/none"))
      #expect(try await server.rest("POST", "\(docs):batchGet", "").body == "[]\n")

      let query = """
        {"structured_query":{"from":[{"collectionId":"n"}],"where":{"fieldFilter":{"field":{"fieldPath":"n"},
        "op":"GREATER_THAN","value":{"integerValue":1}}},"limit":5}}
        """
      let found = try await server.rest("POST", "\(docs):runQuery", query)
      let paths = found.json.array?.map { $0["document"]["name"].string }
      #expect(paths == ["\(names)/n/d2", "\(names)/n/d3"])
      let times = found.json.array?.compactMap { $0["readTime"].string }
      #expect(times?.count == 2)

      let sum = """
        {"structuredAggregationQuery":{"structuredQuery":{"from":[{"collectionId":"n"}]},
        "aggregations":[{"alias":"c","count":{}},{"alias":"s","sum":{"field":{"fieldPath":"n"}}}]}}
        """
      let result = try await server.rest("POST", "\(docs):runAggregationQuery", sum).json[0]["result"]
      #expect(result["aggregateFields"]["c"]["integerValue"] == .string("3"))
      #expect(result["aggregateFields"]["s"]["integerValue"] == .string("6"))
    }
  }

  @Test("queries and listings below a document, partition queries and batch writes succeed")
  func nestedResources() async throws {
    let owner = ["Authorization: Bearer owner"]
    try await FirestoreTestServer.serving { server in
      let batch = try await server.rest(
        "POST", "\(docs):batchWrite",
        """
        {"writes":[{"update":{"name":"\(names)/a/b/c/d","fields":{}}},
        {"update":{"name":"\(names)/a/x"},"currentDocument":{"exists":true}}]}
        """, headers: owner)
      #expect(batch.status == 200 && batch.json["status"][1]["code"] == .int(5))
      let ids = try await server.rest("POST", "\(docs)/a/b:listCollectionIds", "{}", headers: owner)
      #expect(ids.json["collectionIds"] == .array([.string("c")]))
      let query = "{\"structuredQuery\":{\"from\":[{\"collectionId\":\"c\"}]}}"
      let found = try await server.rest("POST", "\(docs)/a/b:runQuery", query)
      #expect(found.json[0]["document"]["name"] == .string("\(names)/a/b/c/d"))
      let partitions = try await server.rest(
        "POST", "\(docs):partitionQuery",
        """
        {"structuredQuery":{"from":[{"collectionId":"c","allDescendants":true}],
        "orderBy":[{"field":{"fieldPath":"__name__"}}]},"partitionCount":"2"}
        """, headers: owner)
      #expect(partitions.status == 200)
      let missing = try await server.rest("GET", "\(docs)/a?showMissing=true", headers: owner)
      #expect(missing.json["documents"][0] == .object(["name": .string("\(names)/a/b")]))
    }
  }

  @Test("operations on metadata and batch writes need an administrator, with the texts of Google's emulator")
  func administrativeOperations() async throws {
    let group = "{\"from\":[{\"collectionId\":\"c\",\"allDescendants\":true}]}"
    let requests: [(method: String, target: String, body: String?, subject: String)] = [
      ("POST", "\(docs):batchWrite", "{\"writes\":[]}", "Batch writes"),
      ("POST", "\(docs):listCollectionIds", "{}", "Metadata operations"),
      ("POST", "\(docs)/a/b:listCollectionIds", "{}", "Metadata operations"),
      ("GET", "\(docs)/a?showMissing=true", nil, "Metadata operations"),
      (
        "POST", "\(docs):partitionQuery", "{\"structuredQuery\":\(group),\"partitionCount\":\"2\"}",
        "Metadata operations"
      ),
      (
        "POST", "\(docs):runQuery", "{\"structuredQuery\":\(group),\"explainOptions\":{}}",
        "Metadata operations"
      ),
    ]
    try await FirestoreTestServer.serving { server in
      for request in requests {
        for headers in [[], ["Authorization: Bearer \(unsignedToken)"]] {
          let reply = try await server.rest(request.method, request.target, request.body, headers: headers)
          #expect(reply.status == 403, "\(request.target)")
          #expect(reply.body.contains("\(request.subject) require admin authentication."), "\(reply.body)")
        }
      }
    }
  }

  /// A token without signature for the user `u`.
  private var unsignedToken: String {
    let claims = Base64.encode(Array("{\"sub\":\"u\"}".utf8), .urlSafe, padded: false)
    return "e30.\(claims)."
  }

  @Test("a transaction commits, and another transaction rolls back")
  func transactions() async throws {
    try await FirestoreTestServer.serving { server in
      let begun = try await server.rest(
        "POST", "\(docs):beginTransaction", "{\"options\":{\"readWrite\":{}}}")
      let token = try #require(begun.json["transaction"].string)
      let read = try await server.rest(
        "POST", "\(docs):batchGet", "{\"transaction\":\"\(token)\",\"documents\":[\"\(names)/t/a\"]}")
      #expect(read.json[0]["missing"] == .string("\(names)/t/a"))
      // The tokens of the web SDKs use the URL-safe alphabet without padding.
      let urlSafe = token.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
      let commit = try await server.rest(
        "POST", "\(docs):commit",
        "{\"transaction\":\"\(urlSafe)\",\"writes\":[{\"verify\":\"\(names)/t/a\",\"currentDocument\":{\"exists\":false}}]}"
      )
      #expect(commit.status == 200 && commit.json["commitTime"].string != nil)
      let again = try await server.rest("POST", "\(docs):commit", "{\"transaction\":\"\(token)\"}")
      #expect(again.status == 400 && again.error["status"] == .string("INVALID_ARGUMENT"))

      let beginning = try await server.rest(
        "POST", "\(docs):batchGet", "{\"documents\":[],\"newTransaction\":{\"readWrite\":{}}}")
      let second = try #require(beginning.json[0]["transaction"].string)
      let ended = try await server.rest("POST", "\(docs):rollback", "{\"transaction\":\"\(second)\"}")
      #expect(ended.status == 200 && ended.body == "{}\n")
    }
  }

  @Test("the error of a streaming method is an array with one element")
  func errorInArray() async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest("POST", "\(docs):runQuery", "{\"structuredQuery\":{\"limit\":-1}}")
      #expect(reply.status == 400 && reply.json.array?.count == 1)
      #expect(reply.error["code"] == .int(400) && reply.error["status"] == .string("INVALID_ARGUMENT"))
    }
  }

  @Test(
    "paths are percent-decoded once: `%2F` separates segments, and `%3A` does not begin a method such as `:batchGet`",
    arguments: [
      ("a%3Ab", "a:b"), ("a:b", "a:b"), ("a%20b%23%C3%A4", "a b#ä"), ("a+b", "a+b"), ("x/y%2Fz", "x/y/z"),
      ("a%3AbatchGet", "a:batchGet"),
    ])
  func pathDecoding(raw: String, path: String) async throws {
    try await FirestoreTestServer.serving { server in
      let written = try await server.rest("PATCH", "\(docs)/c/\(raw)", "{}")
      #expect(written.status == 200 && written.json["name"] == .string("\(names)/c/\(path)"))
    }
  }

  @Test(
    "an unknown path gets 404 without JSON",
    arguments: [
      ("GET", "/v1/projects/p/databases/d"), ("GET", "/v1/x"),
      ("PUT", "/v1/projects/p/databases/d/documents/a/b"),
      ("GET", "/v1/projects/p/databases/d/documents:commit"),
      ("POST", "/v1/projects/p/databases/d/documents"),
      ("POST", "/v1/projects/p/databases/d/documents/a/b:commit"), ("GET", "/v2/projects/p"), ("POST", "/"),
    ])
  func unknownPaths(method: String, path: String) async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest(method, path, method == "POST" ? "{}" : nil)
      #expect(reply.status == 404 && reply.body == "Not Found\n")
    }
  }

  @Test(
    "the error of an unknown parameter names the parameter",
    arguments: [
      ("nonsense=1", "Unknown name \"nonsense\": Cannot bind query parameter."),
      ("mask.fieldPaths.x=1", "Unknown name \"mask.fieldPaths.x\""), ("mask=a", "Unknown name \"mask\""),
      ("readTime=yesterday", "Invalid value at 'readTime' (type.googleapis.com/google.protobuf.Timestamp)"),
      ("transaction=a*", "Invalid value at 'transaction' (TYPE_BYTES)"),
      ("transaction=YQ&readTime=2020-01-01T00:00:00Z", "oneof field 'consistency_selector' is already set"),
      ("transaction=YQ&transaction=YQ", "given more than once"), ("alt=proto", "'alt' must be 'json'"),
    ])
  func badParameters(query: String, message: String) async throws {
    try await FirestoreTestServer.serving { server in
      let reply = try await server.rest("GET", "\(docs)/a/b?key=K&prettyPrint=false&\(query)")
      #expect(reply.status == 400 && reply.error["status"] == .string("INVALID_ARGUMENT"))
      #expect(reply.error["message"].string?.contains(message) == true, "\(reply.body)")
    }
  }

  @Test("the format option of Google's generated clients is accepted")
  func generatedClients() async throws {
    try await FirestoreTestServer.serving { server in
      let alt = "$alt=json%3Benum-encoding=int"
      let write = #"{"update":{"name":"\#(names)/a/b","fields":{"n":{"integerValue":"1"}}}}"#
      let commit = try await server.rest("POST", "\(docs):commit?\(alt)", "{\"writes\":[\(write)]}")
      #expect(commit.status == 200 && commit.json["writeResults"].array?.count == 1, "\(commit.body)")
      let query = #"{"structuredQuery":{"from":[{"collectionId":"a"}]}}"#
      let found = try await server.rest("POST", "\(docs):runQuery?\(alt)", query)
      #expect(found.status == 200 && found.body.contains("\(names)/a/b"), "\(found.body)")
      #expect(try await server.rest("GET", "\(docs)/a/b?alt=JSON").status == 200)
    }
  }

  @Test("responses to another origin have CORS headers")
  func cors() async throws {
    try await FirestoreTestServer.serving({ $0.allowedOrigins = ["https://app.example"] }) { server in
      let origin = ["Origin: https://app.example", "Access-Control-Request-Private-Network: true"]
      let read = try await server.rest("GET", "\(docs)/a/b", headers: origin)
      #expect(read.status == 404)
      #expect(read.headers["access-control-allow-origin"] == "https://app.example")
      #expect(read.headers["access-control-allow-credentials"] == "true")
      #expect(read.headers["vary"] == "Origin")
      let preflight = try await server.rest("OPTIONS", "/none", headers: origin)
      #expect(preflight.status == 200 && preflight.body.isEmpty)
      #expect(preflight.headers["access-control-allow-private-network"] == "true")
      #expect(preflight.headers["access-control-allow-methods"] == "DELETE,GET,HEAD,PATCH,POST,PUT")
      #expect(try await server.rest("GET", "/").headers["access-control-allow-origin"] == nil)
    }
  }

  @Test("a POST request may name another HTTP method, which is then used instead")
  func methodOverride() async throws {
    try await FirestoreTestServer.serving { server in
      #expect(try await server.rest("POST", "\(docs)/a/b?$httpMethod=PATCH", "{}").status == 200)
      let deleted = try await server.rest(
        "POST", "\(docs)/a/b", "", headers: ["X-HTTP-Method-Override: DELETE"])
      #expect(deleted.status == 200 && deleted.body == "{}\n")
    }
  }

  @Test("without --emulator REST rejects requests as gRPC does")
  func productionRejectsRequests() async throws {
    try await FirestoreTestServer.serving {
      $0.emulator = false
    } _: { server in
      let reply = try await server.rest("GET", "\(docs)/a/b", headers: ["Authorization: Bearer owner"])
      #expect(reply.status == 401 && reply.error["status"] == .string("UNAUTHENTICATED"))
      #expect(try await server.rest("DELETE", "/emulator/v1/\(names)").status == 404)
    }
  }

  @Test("REST is served over HTTP/2")
  func http2() async throws {
    try await FirestoreTestServer.serving { server in
      let client = try await HTTP2Client.open(server.server.firestorePort ?? 0)
      let written = try await client.request(.PATCH, "\(docs)/a/b", body: "{\"fields\":{}}").response()
      #expect(written.status == "200" && written.body.contains("\(names)/a/b"))
      let read = try await client.request(.GET, "\(docs)/a/b").response()
      #expect(read.status == "200" && read.body.contains("updateTime"))
      await client.close()
    }
  }
}
