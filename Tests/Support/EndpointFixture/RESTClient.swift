// A REST client that opens a new connection for each request, and parses the response.

import HearthServer
import JSON
import NIOCore
import NIOSSL
import RealtimeModel

/// A response with a JSON body.
struct RESTReply {
  var status: Int
  var headers: [String: String]
  var body: String

  /// The body as JSON; null if it is not JSON.
  var json: JSONTree { JSONTree((try? JSONValue(json: body)) ?? .null) }

  /// The error object of the body, or of the body's first element if the body is an array; null without an
  /// error.
  var error: JSONTree { (json.array?.first ?? json)["error"] }
}

/// A JSON value whose missing members read as null.
struct JSONTree: Equatable {
  let value: JSONValue

  init(_ value: JSONValue) { self.value = value }

  subscript(key: String) -> JSONTree { JSONTree(value.object?[key] ?? .null) }

  subscript(index: Int) -> JSONTree {
    guard let elements = value.array, elements.indices.contains(index) else { return JSONTree(.null) }
    return JSONTree(elements[index])
  }

  var string: String? { value.string }
  var array: [JSONTree]? { value.array?.map { JSONTree($0) } }
  var keys: [String] { value.object?.members.map(\.key).sorted() ?? [] }

  static let null = JSONTree(.null)
  static func string(_ text: String) -> JSONTree { JSONTree(.string(text)) }
  static func int(_ number: Int64) -> JSONTree { JSONTree(.int(number)) }
  static func object(_ members: JSONObject) -> JSONTree { JSONTree(.object(members)) }
  static func array(_ elements: [JSONValue]) -> JSONTree { JSONTree(.array(elements)) }
}

enum RESTClient {
  static func request(
    _ port: Int, _ method: String, _ target: String, body: String? = nil, headers: [String] = [],
    tls: NIOSSLContext? = nil
  ) async throws -> RESTReply {
    let connection = try await RawConnection.connect(port: port, tls: tls)
    var text = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for header in headers { text += header + "\r\n" }
    if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
    try await connection.send(text + "\r\n" + (body ?? ""))
    return try parse(try await connection.textUntilClose())
  }

  /// Parses a response.
  static func parse(_ text: String) throws -> RESTReply {
    let response = try RESTAnswer(text)
    return RESTReply(status: response.status, headers: response.headers, body: response.body)
  }
}

extension FirestoreTestServer {
  /// Sends one REST request.
  func rest(
    _ method: String, _ target: String, _ body: String? = nil, headers: [String] = []
  ) async throws -> RESTReply {
    try await RESTClient.request(server.firestorePort ?? 0, method, target, body: body, headers: headers)
  }

  /// Runs a test with REST and gRPC against a new server.
  static func serving(
    _ change: (inout HearthConfiguration) -> Void = { _ in },
    _ body: (FirestoreTestServer) async throws -> Void
  ) async throws {
    let server = try await start(.ephemeral, change)
    let result: Result<Void, any Error>
    do { result = .success(try await body(server)) } catch { result = .failure(error) }
    await server.stop()
    try result.get()
  }
}
