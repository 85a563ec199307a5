// Sends the requests of the shared test vectors of Firestore rules (JSON files with rules, requests and recorded results)
// to a complete server, over REST and gRPC. The tests compare verdicts, statuses and stored documents with those that were
// recorded from Google's emulator.

import Foundation
import JSON
import Testing

@testable import EndpointFixture

@Suite("Shared test vectors of Firestore rules over REST and gRPC", .timeLimit(.minutes(30)))
struct RulesVectorTests {
  /// The response to a request.
  struct Answer {
    /// The canonical name of the status.
    var status: String
    var message = ""
    /// The transaction that the response names, in Base64.
    var transaction: String?
  }

  /// A transport for the requests.
  enum Transport: String, Sendable {
    case rest, grpc
  }

  private static let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]
  static let root = "projects/demo-rules/databases/(default)/documents"

  /// Recorded results of Google's emulator that this server does not reproduce, each with the reason. A key is the
  /// beginning of the ids of the cases concerned.
  private static let knownDifferences = [
    "lookups.create.6376d7af": "get() of a missing document is null, as in later emulators",
    "lookups.list.6376d7af": "get() of a missing document is null, as in later emulators",
    "lookups.after.batch-reversed.after-third-null": "getAfter() of a missing document is null",
    "lookups.after.single.after-third-null": "getAfter() of a missing document is null",
    "lookups.budget.": "queries may read 10 documents, as published",
    "writes.invalid.commit-other-database": "a name of another database is malformed, whatever the rules",
    "request-resource.create.auto-id": "the server assigns the id before the rules run",
  ]

  /// Further cases whose verdict differs from the recorded one.
  private static let otherVerdicts = [
    "writes.transaction.lookup-after-of-written": "a transaction belongs to the caller that began it",
    "writes.transaction.lookup-denied": "a transaction belongs to the caller that began it",
  ]

  /// Whether the environment variable `HEARTH_ALL_VECTORS` is set. The tests then send all cases, which takes minutes in
  /// a debug build. Otherwise the tests send only every eighth case of the queries and aggregations.
  private static let sendsAll = ProcessInfo.processInfo.environment["HEARTH_ALL_VECTORS"] != nil
  private static let strides = ["queries": 8, "aggregations": 8]

  @Test(
    "Every request has the recorded verdict and status",
    .enabled(if: folder != nil, "HEARTH_CONFORMANCE is not set"),
    arguments: [
      "writes", "request-resource", "lookups", "matching", "functions", "limits", "queries", "aggregations",
    ], [Transport.rest, .grpc])
  func requests(category: String, transport: Transport) async throws {
    let folder = try #require(Self.folder)
    let file = URL(fileURLWithPath: folder).appendingPathComponent("firestore-rules/\(category).json")
    let json = JSONTree(
      try JSONValue(json: Array(try Data(contentsOf: file)), limits: JSONLimits(depth: 1000)))
    let stride = Self.sendsAll ? 1 : Self.strides[category] ?? 1
    let cases = (json["cases"].array ?? []).enumerated().filter { $0.offset % stride == 0 }.map(\.element)
    try await FirestoreTestServer.serving { server in
      var (caseCount, differenceCount) = (0, 0)
      for testCase in cases where testCase["request"] != .null || testCase["steps"] != .null {
        caseCount += 1
        let id = testCase["id"].string ?? ""
        guard let difference = try await firstDifference(testCase, transport, server) else { continue }
        differenceCount += 1
        let isKnown =
          Self.otherVerdicts[id] != nil
          || testCase["quirk"].value == .bool(true)
            && Self.knownDifferences.keys.contains { id.hasPrefix($0) }
        #expect(isKnown, "\(id): \(difference)")
      }
      print("\(category) over \(transport): \(caseCount - differenceCount) of \(caseCount) cases as recorded")
      #expect(caseCount > 5)
    }
  }

  /// Sends the requests of a case. Returns the first difference from the recorded results, or nil if there is none.
  private func firstDifference(
    _ testCase: JSONTree, _ transport: Transport, _ server: FirestoreTestServer
  ) async throws -> String? {
    let owner = ["Authorization: Bearer owner"]
    let emulator = "/emulator/v1/projects/demo-rules"
    _ = try await server.rest("DELETE", "\(emulator)/databases/(default)/documents")
    let writes = (testCase["documents"].value.object?.members ?? []).map { member in
      JSONValue.object([
        "update": .object(["name": .string("\(Self.root)/\(member.key)"), "fields": member.value])
      ])
    }
    if !writes.isEmpty {
      let commit = JSONValue.object(["writes": .array(writes)])
      let stored = try await server.rest("POST", "/v1/\(Self.root):commit", text(commit), headers: owner)
      guard stored.status == 200 else { return "the documents are rejected: \(stored.body)" }
    }
    let file = JSONValue.object(["name": .string("firestore.rules"), "content": testCase["rules"].value])
    let rules = JSONValue.object(["rules": .object(["files": .array([file])])])
    let loaded = try await server.rest("PUT", "\(emulator):securityRules", text(rules))
    if testCase["verdict"].string == "compile-error" {
      return loaded.status == 400 ? nil : "the rules are accepted"
    }
    guard loaded.status == 200 else { return "the rules are rejected: \(loaded.body)" }
    var transaction = ""
    for step in testCase["steps"].array ?? [testCase] {
      let answer =
        switch transport {
        case .rest: try await send(step["request"], transaction, server)
        case .grpc: try await call(step["request"], transaction, server)
        }
      if let id = answer.transaction { transaction = id }
      guard answer.status != step["status"].string else { continue }
      return
        "\(step["name"].string ?? "") \(step["status"].string ?? ""), here \(answer.status) \(answer.message)"
    }
    return try await documentDifference(testCase, server)
  }

  func text(_ json: JSONValue) -> String { String(decoding: json.json(), as: UTF8.self) }

  // MARK: Requests

  private func send(
    _ request: JSONTree, _ transaction: String, _ server: FirestoreTestServer
  ) async throws -> Answer {
    let kind = request["kind"].string ?? ""
    let path =
      (request["path"].string ?? "").addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? ""
    var target = "/v1/\(Self.root)" + (path.isEmpty ? "" : "/\(path)")
    let methods = ["get": "GET", "list": "GET", "create": "POST", "update": "PATCH", "delete": "DELETE"]
    if methods[kind] == nil { target += ":\(kind)" }
    let query = (request["params"].value.object?.members ?? []).flatMap { member in
      (member.value.array ?? [member.value]).map { value in
        "\(member.key)=\((value.string ?? "").addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
      }
    }
    if !query.isEmpty { target += "?" + query.joined(separator: "&") }
    var body: String?
    if request["body"] != .null {
      body = text(request["body"].value).replacingOccurrences(of: "$TXN", with: transaction)
    }
    if body == nil, methods[kind] == nil { body = "{}" }
    let reply = try await server.rest(
      methods[kind] ?? "POST", target, body, headers: Self.headers(request["caller"]))
    return Answer(
      status: reply.status == 200 ? "OK" : reply.error["status"].string ?? "\(reply.status)",
      message: reply.error["message"].string ?? "", transaction: Self.transaction(in: reply.json))
  }

  /// The time at which all tokens are issued. All tokens have this time, because a transaction accepts only tokens with the
  /// claims of the token that began it.
  private static let now = Int64(Date().timeIntervalSince1970)

  static func headers(_ caller: JSONTree) -> [String] {
    if let name = caller.string { return ["Authorization: Bearer \(name)"] }
    guard var claims = caller.value.object else { return [] }
    let subject = claims["sub"] ?? .string("u1")
    let defaults: [(String, JSONValue)] = [
      ("sub", subject), ("user_id", subject), ("iss", .string("https://securetoken.google.com/demo-rules")),
      ("aud", .string("demo-rules")), ("iat", .int(now)), ("auth_time", .int(now)), ("exp", .int(now + 3600)),
      ("firebase", .object(["sign_in_provider": .string("custom"), "identities": .object([:])])),
    ]
    for (key, value) in defaults where claims[key] == nil { claims[key] = value }
    func encoded(_ json: JSONValue) -> String { Base64.encode(json.json(), .urlSafe, padded: false) }
    let header = JSONValue.object(["alg": .string("none"), "typ": .string("JWT")])
    return ["Authorization: Bearer \(encoded(header)).\(encoded(.object(claims)))."]
  }

  private static func transaction(in json: JSONTree) -> String? {
    json["transaction"].string ?? json.array?.lazy.compactMap { $0["transaction"].string }.first
  }

  // MARK: Comparison

  private func documentDifference(
    _ testCase: JSONTree, _ server: FirestoreTestServer
  ) async throws -> String? {
    for member in testCase["after"].value.object?.members ?? [] {
      let path = member.key.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? ""
      let reply = try await server.rest(
        "GET", "/v1/\(Self.root)/\(path)", headers: ["Authorization: Bearer owner"])
      if member.value == .null {
        if reply.status != 404 { return "\(member.key) exists" }
        continue
      }
      let stored = reply.json["fields"].value.object ?? JSONObject()
      for field in (member.value.object ?? JSONObject()).members
      where field.value.object?["timestampValue"] == nil && stored[field.key] != field.value {
        return
          "\(member.key): \(field.key) is \(stored[field.key].map(text) ?? "missing"), not \(text(field.value))"
      }
    }
    return nil
  }
}
