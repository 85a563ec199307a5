// Reads and deploys the rules of a Cloud Firestore database on a running server, through the Firebase Rules API.

import JSON
import NIOHTTP1

/// The rules of a Cloud Firestore database on a running server.
package struct FirestoreRemoteRules: RemoteRules {
  private let client: RulesClient
  private let project: String
  /// The ID of the release.
  private let release: String

  /// Creates the access to a database's rules.
  /// - Parameter database: the database's ID, such as `(default)`.
  package init(_ client: RulesClient, project: String, database: String) {
    self.client = client
    self.project = project
    release = database == "(default)" ? "cloud.firestore" : "cloud.firestore/\(database)"
  }

  private var path: String { "/v1/projects/\(RulesClient.encode(project))" }
  private var releasePath: String {
    "\(path)/releases/\(release.split(separator: "/").map { RulesClient.encode(String($0)) }.joined(separator: "/"))"
  }

  private func source(_ source: [UInt8], _ file: String) throws(HearthError) -> JSONObject {
    guard let text = String(validating: source, as: UTF8.self) else {
      throw HearthError("The rules file \(file) is not UTF-8.")
    }
    let files: [JSONValue] = [.object(["name": .string(file), "content": .string(text)])]
    return ["source": .object(["files": .array(files)])]
  }

  package func check(_ source: [UInt8], file: String) async throws(HearthError) -> [String] {
    let body = JSONValue.object(try self.source(source, file)).json()
    let response = try await client.send(.POST, "\(path):test", body: body)
    var errors: [String] = []
    var warnings: [String] = []
    for issue in response["issues"]?.array ?? [] {
      var text = issue["description"]?.string ?? ""
      if let line = issue["sourcePosition"]?["line"]?.int,
        let column = issue["sourcePosition"]?["column"]?.int
      {
        text = "\(line):\(column): \(text)"
      }
      if issue["severity"]?.string == "ERROR" {
        errors.append("\(file):\(text)")
      } else {
        warnings.append("\(file):\(text)")
      }
    }
    guard errors.isEmpty else { throw HearthError(errors.joined(separator: "\n")) }
    return warnings
  }

  package func deploy(_ source: [UInt8], file: String) async throws(HearthError) -> String {
    let body = JSONValue.object(try self.source(source, file)).json()
    let created = try await client.send(.POST, "\(path)/rulesets", body: body)
    guard let id = created["name"]?.string?.split(separator: "/").last.map(String.init) else {
      throw HearthError("The server named no ruleset.")
    }
    try await release(id)
    return id
  }

  package func release(_ ruleset: String) async throws(HearthError) {
    let release: JSONObject = [
      "name": .string("projects/\(project)/releases/\(self.release)"),
      "rulesetName": .string("projects/\(project)/rulesets/\(ruleset)"),
    ]
    let update = JSONValue.object(["release": .object(release)]).json()
    let (status, json) = try await client.response(.PATCH, releasePath, body: update)
    if status == 200 { return }
    guard status == 404, try await client.response(.GET, releasePath, body: nil).status == 404 else {
      throw HearthError(RulesClient.message(json) ?? "The server answered \(status).")
    }
    // The database has no release yet.
    _ = try await client.send(.POST, "\(path)/releases", body: JSONValue.object(release).json())
  }

  package func history() async throws(HearthError) -> [RulesHistoryEntry] {
    let response = try await client.send(.GET, "\(releasePath):history?pageSize=100")
    return (response["releases"]?.array ?? []).map { release in
      var remarks: [String] = []
      if release["inForce"] == .bool(true) { remarks.append("in force") }
      if release["stored"] == .bool(false) { remarks.append("deleted") }
      return RulesHistoryEntry(
        ruleset: release["rulesetName"]?.string?.split(separator: "/").last.map(String.init) ?? "",
        time: release["releaseTime"]?.string ?? "", remarks: remarks)
    }
  }
}
