// Reads and deploys the rules of a Realtime Database on a running server, through its `.settings` paths.

import JSON
import NIOHTTP1

/// The rules of a Realtime Database on a running server.
package struct RealtimeRemoteRules: RemoteRules {
  private let client: RulesClient
  private let namespace: String

  /// Creates the access to a database's rules.
  /// - Parameter namespace: the name of the database, such as `demo-default-rtdb`.
  package init(_ client: RulesClient, namespace: String) {
    self.client = client
    self.namespace = namespace
  }

  private func settings(_ name: String, _ parameters: String = "") -> String {
    "/.settings/\(name).json?ns=\(RulesClient.encode(namespace))\(parameters)"
  }

  package func check(_ source: [UInt8], file: String) async throws(HearthError) -> [String] {
    let (status, json) = try await client.response(.PUT, settings("rules", "&dryRun=true"), body: source)
    if status != 200 { throw Self.failure(status, json, file) }
    return []
  }

  package func deploy(_ source: [UInt8], file: String) async throws(HearthError) -> String {
    let id = try await store(source, file: file)
    try await release(id)
    return id
  }

  /// Stores rules as a ruleset, and makes it the canary, whose decisions are compared with the rules in force.
  /// - Returns: the ID of the ruleset.
  /// - Throws: ``HearthError`` with all errors of the rules.
  package func deployCanary(_ source: [UInt8], file: String) async throws(HearthError) -> String {
    let id = try await store(source, file: file)
    try await setLabels { $0["canary"] = .string(id) }
    return id
  }

  /// Ends the comparison with the canary.
  /// - Throws: ``HearthError`` if the server rejects the request.
  package func removeCanary() async throws(HearthError) { try await setLabels { $0["canary"] = nil } }

  package func release(_ ruleset: String) async throws(HearthError) {
    try await setLabels { $0["stable"] = .string(ruleset) }
  }

  package func history() async throws(HearthError) -> [RulesHistoryEntry] {
    let labels = try await client.send(.GET, settings("ruleset_labels"))
    let response = try await client.send(.GET, "/namespaces/\(RulesClient.encode(namespace))/rulesets")
    return (response["rulesets"]?.array ?? []).reversed().map { ruleset in
      let id = ruleset["id"]?.string ?? ""
      var remarks: [String] = []
      if labels["stable"]?.string == id { remarks.append("in force") }
      if labels["canary"]?.string == id { remarks.append("canary") }
      return RulesHistoryEntry(ruleset: id, time: ruleset["createdAt"]?.string ?? "", remarks: remarks)
    }
  }

  private func store(_ source: [UInt8], file: String) async throws(HearthError) -> String {
    let (status, json) = try await client.response(.POST, settings("rulesets"), body: source)
    guard status == 200, let id = json["id"]?.string else { throw Self.failure(status, json, file) }
    return id
  }

  /// Changes some labels, and keeps the other labels.
  private func setLabels(_ change: (inout JSONObject) -> Void) async throws(HearthError) {
    var labels = try await client.send(.GET, settings("ruleset_labels"))
    change(&labels)
    _ = try await client.send(.PUT, settings("ruleset_labels"), body: JSONValue.object(labels).json())
  }

  /// The error of a response, with the file's name before each problem of the rules.
  private static func failure(_ status: Int, _ json: JSONObject, _ file: String) -> HearthError {
    guard let message = RulesClient.message(json) else {
      return HearthError("The server answered \(status).")
    }
    guard status == 400 else { return HearthError(message) }
    return HearthError(
      message.split(separator: "\n").map { "\(file):\($0)" }.joined(separator: "\n"))
  }
}
