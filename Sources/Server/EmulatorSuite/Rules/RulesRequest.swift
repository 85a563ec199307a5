// A rules request loads security rules into the emulator. This file also stores the loaded sources by project, and
// encodes the issues of rules in the response.

import FirestoreEndpoints
import JSON
import FirestoreModel
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import Ports
import SecurityRules

/// A file of rules.
struct FirestoreRulesFile: Sendable, Equatable {
  var name: String
  var content: String
}

/// The body of `PUT …:securityRules`.
struct RulesRequest {
  /// Firebase's limit for rules, in bytes.
  static let maximumBytes = 256 << 10

  private(set) var files: [FirestoreRulesFile] = []
  private(set) var ignoresErrors = false

  init(_ body: ByteBuffer) throws(FirestoreError) {
    let json: JSONValue
    do {
      json = try JSONValue(json: Array(body.readableBytesView), limits: JSONLimits(depth: 16, bytes: 1 << 20))
    } catch {
      throw .invalidArgument("Invalid JSON payload received. The text is no valid JSON: \(error).")
    }
    guard let list = json.object?["rules"]?.object?["files"]?.array, !list.isEmpty else {
      throw .invalidArgument(
        "The body must contain rules: {\"rules\":{\"files\":[{\"name\":\"firestore.rules\",\"content\":\"…\"}]}}"
      )
    }
    for element in list {
      guard let content = element.object?["content"]?.string else {
        throw .invalidArgument("Each file of the rules must have its text as 'content'.")
      }
      files.append(
        FirestoreRulesFile(name: element.object?["name"]?.string ?? "security.rules", content: content))
    }
    let bytes = files.reduce(0) { $0 + $1.name.utf8.count + $1.content.utf8.count }
    guard bytes <= Self.maximumBytes else {
      throw .invalidArgument("The rules have \(bytes) bytes; at most \(Self.maximumBytes) are allowed.")
    }
    let flag = json.object?["ignore_errors"] ?? json.object?["ignoreErrors"]
    ignoresErrors = flag == .bool(true)
  }
}

/// The loaded rules by project. The number of projects is bounded.
final class RulesSources: Sendable {
  private static let maximumProjects = 100
  private let projects = NIOLockedValueBox<
    [String: (files: [FirestoreRulesFile], ruleset: FirestoreRuleset)]
  >([:])

  /// Stores the rules of a project.
  /// - Throws: RESOURCE_EXHAUSTED if the server already holds the rules of the maximum number of projects.
  func set(
    _ files: [FirestoreRulesFile], _ ruleset: FirestoreRuleset, of project: String
  ) throws(FirestoreError) {
    let isStored = projects.withLockedValue { projects in
      guard projects[project] != nil || projects.count < Self.maximumProjects else { return false }
      projects[project] = (files, ruleset)
      return true
    }
    guard isStored else {
      throw FirestoreError(
        .resourceExhausted, "The emulator holds rules for \(Self.maximumProjects) projects at most.")
    }
  }

  /// The compiled rules of a project; nil if none were set.
  func ruleset(of project: String) -> FirestoreRuleset? { projects.withLockedValue { $0[project]?.ruleset } }

  /// The name of the project's rules file.
  func fileName(of project: String) -> String {
    projects.withLockedValue { $0[project]?.files.first?.name } ?? "firestore.rules"
  }

  /// Returns the sources as a response.
  func answer(of project: String) -> HTTPResponse {
    let files = projects.withLockedValue { $0[project]?.files ?? [] }
    return .json(.ok, ByteBuffer(string: JSONValue.object(Self.object(files)).text))
  }

  /// Returns the coverage of the rules in force as a response.
  func answer(of project: String, reporting ruleset: FirestoreRuleset?) -> HTTPResponse {
    let file = ruleset.map { FirestoreRulesFile(name: fileName(of: project), content: $0.source) }
    var object = Self.object(file.map { [$0] } ?? [])
    object["report"] = ruleset?.coverage.json ?? .array([])
    return .json(.ok, ByteBuffer(string: JSONValue.object(object).text))
  }

  private static func object(_ files: [FirestoreRulesFile]) -> JSONObject {
    let list = files.map { JSONValue.object(["name": .string($0.name), "content": .string($0.content)]) }
    return ["rules": .object(["files": .array(list)])]
  }
}

extension HTTPResponse {
  /// A page without scripts.
  static func html(_ text: String) -> HTTPResponse {
    var response = HTTPResponse.text(.ok, text)
    response.headers.replaceOrAdd(name: "content-type", value: "text/html; charset=utf-8")
    response.headers.add(
      name: "content-security-policy", value: "default-src 'none'; style-src 'unsafe-inline'")
    return response
  }

  /// The issues of loaded rules: an empty object without any.
  static func issues(_ issues: [RulesIssue], in file: String) -> HTTPResponse {
    var object = JSONObject()
    if !issues.isEmpty { object["issues"] = .array(issues.map { $0.json(in: file) }) }
    return .json(.ok, ByteBuffer(string: JSONValue.object(object).text))
  }
}

extension JSONValue {
  /// The value as JSON text, followed by a line feed.
  fileprivate var text: String { String(decoding: json(), as: UTF8.self) + "\n" }
}
