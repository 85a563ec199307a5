// Decides the denied requests that a running server has logged, by draft rules, for `hearth rules replay`.

import JSON
import NIOHTTP1

/// The logged denials of one database on a running server.
package struct DenialReplay: Sendable {
  /// A denied request, as the draft rules decide it.
  package struct Result: Sendable, Hashable {
    /// The verdict of the draft rules.
    package enum Verdict: String, Sendable {
      /// The draft rules allow the request.
      case allow
      /// The draft rules deny it too.
      case deny
      /// The draft rules read data that was not recorded, or nothing was recorded.
      case unknown
    }

    /// The request in one line: time, operation, paths and caller.
    package var request: String
    /// The verdict of the draft rules.
    package var verdict: Verdict
  }

  private let client: RulesClient
  private let path: String

  /// Creates the replay of a Cloud Firestore database's denials.
  package init(_ client: RulesClient, project: String, database: String) {
    self.client = client
    path = Self.path(project, "databases", database)
  }

  /// Creates the replay of a Realtime Database's denials.
  package init(_ client: RulesClient, project: String, namespace: String) {
    self.client = client
    path = Self.path(project, "instances", namespace)
  }

  private static func path(_ project: String, _ collection: String, _ name: String) -> String {
    "/hearth/v1/projects/\(RulesClient.encode(project))/\(collection)/\(RulesClient.encode(name))/denials"
  }

  /// Decides all logged denials, the newest first.
  /// - Throws: ``HearthError`` if the rules do not compile, or the server rejects a request.
  package func run(_ source: [UInt8], file: String) async throws(HearthError) -> [Result] {
    guard let text = String(validating: source, as: UTF8.self) else {
      throw HearthError("The rules file \(file) is not UTF-8.")
    }
    let body = JSONValue.object(["source": .string(text)]).json()
    var results: [Result] = []
    var token = ""
    repeat {
      let page = try await client.send(.GET, "\(path)?pageSize=300&pageToken=\(RulesClient.encode(token))")
      for denial in page["denials"]?.array ?? [] {
        results.append(
          Result(request: Self.line(denial), verdict: try await verdict(denial["id"]?.string ?? "", body)))
      }
      token = page["nextPageToken"]?.string ?? ""
    } while !token.isEmpty
    return results
  }

  private func verdict(_ id: String, _ body: [UInt8]) async throws(HearthError) -> Result.Verdict {
    let (status, json) = try await client.response(
      .POST, "\(path)/\(RulesClient.encode(id)):replay", body: body)
    switch json["error"]?["status"]?.string {
    // The request was not recorded, or newer denials have replaced it.
    case "FAILED_PRECONDITION"?, "NOT_FOUND"?: return .unknown
    case nil where status == 200: break
    default: throw HearthError(RulesClient.message(json) ?? "The server answered \(status).")
    }
    switch json["verdict"]?.string {
    case "ALLOW"?: return .allow
    case "DENY"?: return .deny
    default: return .unknown
    }
  }

  private static func line(_ denial: JSONValue) -> String {
    let paths = (denial["paths"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
    let caller =
      denial["caller"]?["uid"]?.string.map { "user \($0)" } ?? denial["caller"]?["kind"]?.string ?? ""
    return "\(denial["time"]?.string ?? "") \(denial["operation"]?.string ?? "") of \(paths) by \(caller)"
  }
}
