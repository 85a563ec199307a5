// Requests that load security rules, the stored sources, and the issues of the response.

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
        "The body must hold rules: {\"rules\":{\"files\":[{\"name\":\"firestore.rules\",\"content\":\"…\"}]}}"
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
  private let files = NIOLockedValueBox<[String: [FirestoreRulesFile]]>([:])

  /// Stores the rules of a project.
  /// - Throws: RESOURCE_EXHAUSTED for one project more than the server holds rules for.
  func set(_ new: [FirestoreRulesFile], of project: String) throws(FirestoreError) {
    let isStored = files.withLockedValue { files in
      guard files[project] != nil || files.count < Self.maximumProjects else { return false }
      files[project] = new
      return true
    }
    guard isStored else {
      throw FirestoreError(
        .resourceExhausted, "The emulator holds rules for \(Self.maximumProjects) projects at most.")
    }
  }

  /// Returns the sources as a response. A coverage report also lists evaluated expressions; the list is empty, since
  /// this server does not record them yet.
  func answer(of project: String, isReport: Bool) -> HTTPResponse {
    let files = files.withLockedValue { $0[project] ?? [] }
    let list = files.map { JSONValue.object(["name": .string($0.name), "content": .string($0.content)]) }
    var object: JSONObject = ["rules": .object(["files": .array(list)])]
    if isReport { object["report"] = .array([]) }
    return .json(.ok, ByteBuffer(string: JSONValue.object(object).text))
  }
}

extension HTTPResponse {
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
