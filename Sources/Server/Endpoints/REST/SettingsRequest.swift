// What administrators read and change of a database as a whole: `/.settings/…`.
//
// Invariant: rules that this server does not enforce are never taken in silence: the answer says so, and the log.

import Logging
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

/// A request for a setting.
struct SettingsRequest: Sendable {
  enum Action: Sendable {
    case read(Setting, strict: Bool)
    case write(Setting)
    case checkRules
  }

  let action: Action
  let namespace: String
  let caller: Caller

  /// Reads the head of a request.
  ///
  /// - Throws: ``RESTError`` for a setting that there is not, or that this server does not have.
  init(_ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint) throws(RESTError) {
    let setting = try Self.setting(target.rawPath)
    // Credentials, namespace and method are those of any request.
    var root = target
    root.rawPath = "/.json"
    let request = try RESTRequest(head, root, endpoint)
    namespace = request.namespace
    caller = request.caller
    switch request.method {
    case .get: action = .read(setting, strict: target["format"] == "strict")
    case .put: action = setting == .rules && target["dryRun"] == "true" ? .checkRules : .write(setting)
    default: throw RESTError(.methodNotAllowed, "Settings are read with GET and replaced with PUT.")
    }
  }

  private static func setting(_ path: String) throws(RESTError) -> Setting {
    var name = path.dropFirst("/.settings/".count)
    if name.hasSuffix("/") { name.removeLast() }
    guard name.hasSuffix(".json") else {
      throw RESTError(.notFound, "append .json to your request URI to use the REST API.")
    }
    name.removeLast(5)
    if let setting = Setting(rawValue: String(name)) { return setting }
    switch name {
    case "rulesets", "ruleset_labels":
      throw RESTError(
        .notImplemented,
        "\(name) is not supported by this server: replace the rules at /.settings/rules.json.")
    case "profile", "functionTriggers":
      throw RESTError(.notImplemented, "\(name) is not supported by this server yet.")
    default:
      let known = Setting.allCases.map(\.rawValue).joined(separator: ", ")
      throw RESTError(.notFound, "There is no setting '\(name)'; there are \(known).")
    }
  }
}

/// Carries out requests for settings.
struct SettingsService: Sendable {
  let endpoint: RealtimeEndpoint

  /// Answers a request.
  func respond(to request: SettingsRequest, body: ByteBuffer) async -> RESTResponse {
    do {
      guard request.caller == .administrator else { throw RealtimeError.permissionDenied }
      let database = try await endpoint.engine.database(request.namespace)
      switch request.action {
      case .read(let setting, let strict): return try await read(setting, strict, database, request.caller)
      case .checkRules: return ok(try RulesFile(Array(body.readableBytesView)))
      case .write(.rules):
        let rules = try RulesFile(Array(body.readableBytesView))
        try await database.setRules(rules, as: request.caller)
        if !rules.isOpen {
          endpoint.log.warning(
            "\(RealtimeEndpoint.unenforcedRules)", metadata: ["namespace": "\(request.namespace)"])
        }
        return ok(rules)
      case .write(let setting): return try await write(setting, body, database, request.caller)
      }
    } catch let error as RulesError {
      return RESTResponse(RESTError(.badRequest, error.description))
    } catch {
      return RESTResponse(RESTError(error))
    }
  }

  private func ok(_ rules: RulesFile) -> RESTResponse {
    var answer: JSONObject = ["status": .string("ok")]
    if !rules.isOpen { answer["warning"] = .string(RealtimeEndpoint.unenforcedRules) }
    return RESTResponse(.ok, json: JSONValue.object(answer).json())
  }

  private func read(
    _ setting: Setting, _ strict: Bool, _ database: RealtimeDatabase, _ caller: Caller
  ) async throws -> RESTResponse {
    let text = try await database.setting(setting, as: caller)
    switch setting {
    case .rules:
      let rules = text ?? endpoint.engine.defaultRules
      let shown = strict ? try RulesFile(Array(rules.utf8)).strictText : rules
      return RESTResponse(.ok, json: Array(shown.utf8))
    case .defaultWriteSizeLimit:
      return RESTResponse(.ok, json: Array((text ?? "\"\(WriteSizeLimit.unlimited.rawValue)\"").utf8))
    case .strictTriggerValidation:
      return RESTResponse(.ok, json: Array("{\"value\":\(text ?? "true")}".utf8))
    }
  }

  private func write(
    _ setting: Setting, _ body: ByteBuffer, _ database: RealtimeDatabase, _ caller: Caller
  ) async throws -> RESTResponse {
    let value = body.withUnsafeReadableBytes { raw in try? JSONValue(json: raw) }
    switch setting {
    case .strictTriggerValidation:
      guard case .bool? = value else {
        throw RESTError(.badRequest, "strictTriggerValidation must be true or false.")
      }
    case .defaultWriteSizeLimit, .rules:
      guard let limit = value?.string.flatMap(WriteSizeLimit.init(rawValue:)), limit != .tiny else {
        throw RESTError(
          .badRequest,
          "defaultWriteSizeLimit must be \"small\", \"medium\", \"large\" or \"unlimited\".")
      }
    }
    let text = String(decoding: (value ?? .null).json(), as: UTF8.self)
    try await database.set(setting, to: text, as: caller)
    return RESTResponse(.ok, json: Array(text.utf8))
  }
}

extension RealtimeEndpoint {
  /// What is said of rules that are kept without being enforced.
  public static let unenforcedRules =
    "These rules are kept but not enforced: this version of the server checks the form of their expressions and uses "
    + "their indexes, and goes on deciding access as if there were none."
}
