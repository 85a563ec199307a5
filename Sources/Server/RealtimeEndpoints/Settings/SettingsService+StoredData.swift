// Serves rulesets, their labels and function triggers, which administrators and the Firebase CLI read and change.

import Access
import FirestoreModel
import JSON
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel
import SecurityRules

extension SettingsService {
  /// Returns the stored data of one kind.
  func read(
    _ kind: SettingsRequest.StoredKind, _ database: RealtimeDatabase, _ caller: Principal
  ) async throws -> HTTPResponse {
    switch kind {
    case .rulesets:
      let rulesets = try await database.rulesets(as: caller)
      return jsonResponse(.object(["rulesets": .array(rulesets.map(\.json))]))
    case .ruleset(let id):
      guard let ruleset = try await database.ruleset(id, as: caller) else {
        throw RESTError(.notFound, "There is no ruleset '\(id)'.")
      }
      return jsonResponse(ruleset.json)
    case .labels:
      let labels = try await database.rulesetLabels(as: caller)
      var object = JSONObject()
      if let id = labels.stable { object["stable"] = .string(id) }
      if let id = labels.canary { object["canary"] = .string(id) }
      return jsonResponse(.object(object))
    case .triggers:
      return jsonResponse(.array(try await database.functionTriggers(as: caller).map(\.json)))
    }
  }

  /// Stores a ruleset, moves labels, or registers a function trigger.
  func change(
    _ kind: SettingsRequest.StoredKind, _ body: ByteBuffer, _ database: RealtimeDatabase, _ caller: Principal
  ) async throws -> HTTPResponse {
    switch kind {
    case .rulesets:
      let id = try await database.addRuleset(
        try RealtimeRuleset(Array(body.readableBytesView)).file, as: caller)
      return jsonResponse(.object(["id": .string(id)]))
    case .labels:
      let labels = try Self.labels(Self.object(body))
      _ = try await database.setRulesetLabels(labels, as: caller)
      return ok(warnings: [])
    case .triggers:
      try await database.add(try Self.trigger(Self.object(body)), as: caller)
      warn(RealtimeEndpoint.functionsNotRunWarning, database)
      return ok(warnings: [RealtimeEndpoint.functionsNotRunWarning])
    case .ruleset: throw RESTError(.methodNotAllowed, "A ruleset stays as it is.")
    }
  }

  private func jsonResponse(_ value: JSONValue) -> HTTPResponse { HTTPResponse(.ok, json: value.json()) }

  private static func object(_ body: ByteBuffer) throws(RESTError) -> JSONObject {
    let value = body.withUnsafeReadableBytes { raw in try? JSONValue(json: raw) }
    guard let object = value?.object else {
      throw RESTError(.badRequest, "Invalid data; couldn't parse JSON object, array, or value.")
    }
    return object
  }

  private static func labels(_ object: JSONObject) throws(RESTError) -> RulesetLabels {
    var labels = RulesetLabels()
    for member in object.members {
      guard member.key == "stable" || member.key == "canary" else {
        throw RESTError(.badRequest, "There is no label '\(member.key)'; there are stable and canary.")
      }
      if member.value.isNull { continue }
      guard let id = member.value.string else {
        throw RESTError(.badRequest, "The label \(member.key) must be given to the id of a ruleset.")
      }
      if member.key == "stable" { labels.stable = id } else { labels.canary = id }
    }
    return labels
  }

  /// The event types of functions, of both generations.
  private static let eventKinds = [
    "create", "update", "delete", "write", "created", "updated", "deleted", "written",
  ]

  private static func trigger(_ object: JSONObject) throws(RESTError) -> FunctionTrigger {
    func text(_ name: String) throws(RESTError) -> String {
      guard let text = object[name]?.string, !text.isEmpty else {
        throw RESTError(.badRequest, "A function trigger needs a \(name), a text.")
      }
      return text
    }
    let event = try text("event")
    guard let kind = event.split(separator: ".").last, eventKinds.contains(String(kind)) else {
      throw RESTError(.badRequest, "'\(event)' is no event of this database.")
    }
    var pattern: String?
    if let value = object["namespacePattern"], !value.isNull { pattern = try text("namespacePattern") }
    return FunctionTrigger(
      name: try text("name"), path: try text("path"), event: event, topic: try text("topic"),
      namespacePattern: pattern)
  }
}

extension RealtimeEndpoint {
  /// The warning that registered functions are never executed.
  static let functionsNotRunWarning =
    "The function trigger is kept and nothing runs it: this version of the server calls no functions."
}

extension Ruleset {
  fileprivate var json: JSONValue {
    let (seconds, rest) = createdAt.quotientAndRemainder(dividingBy: 1_000)
    let created = Timestamp(seconds: seconds, nanoseconds: Int32(rest) * 1_000_000)
    return .object(["id": .string(id), "createdAt": .string(created.rfc3339), "source": .string(source)])
  }
}

extension FunctionTrigger {
  fileprivate var json: JSONValue {
    var object: JSONObject = [
      "name": .string(name), "path": .string(path), "event": .string(event), "topic": .string(topic),
    ]
    if let namespacePattern { object["namespacePattern"] = .string(namespacePattern) }
    return .object(object)
  }
}
