// A settings request reads or changes the settings of a database under `/.settings/`. Only administrators may
// send it.
//
// Invariants
//   1. Rules are stored only if they compile. They are in force when the response is sent.
//   2. If something is stored without effect, such as a function trigger, both the response and the log contain a warning.

import Access
import JSON
import Logging
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel
import SecurityRules

/// A request for a setting.
struct SettingsRequest: Sendable {
  enum Action: Sendable {
    case read(Setting, strict: Bool)
    case write(Setting)
    case checkRules
    case readStored(StoredKind)
    case changeStored(StoredKind)
  }

  /// The kinds of data that are stored with a database in addition to its settings: rulesets, labels and
  /// function triggers.
  enum StoredKind: Sendable, Equatable {
    case rulesets
    case ruleset(String)
    case labels
    case triggers

    /// The method that changes the data; nil for read-only data.
    var changingMethod: RESTRequest.Method? {
      switch self {
      case .rulesets, .triggers: .post
      case .labels: .put
      case .ruleset: nil
      }
    }
  }

  let action: Action
  let namespace: String
  let caller: Principal

  /// Parses the head of a request.
  ///
  /// - Throws: ``RESTError`` for an unknown or unsupported setting.
  init(_ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint) throws(RESTError) {
    let name = try Self.name(target.rawPath)
    // The parser of data requests reads the credential, the namespace and the method, as for a request to the root.
    var root = target
    root.rawPath = "/.json"
    let request = try RESTRequest(head, root, endpoint)
    namespace = request.namespace
    caller = request.caller
    if let kind = Self.kind(name) {
      action = try Self.action(kind, request.method)
      return
    }
    let setting = try Self.setting(name)
    switch request.method {
    case .get: action = .read(setting, strict: target["format"] == "strict")
    case .put: action = setting == .rules && target["dryRun"] == "true" ? .checkRules : .write(setting)
    default: throw RESTError(.methodNotAllowed, "Settings are read with GET and replaced with PUT.")
    }
  }

  /// Parses the head of a request to `/namespaces/…`. Firebase serves these paths at another host.
  ///
  /// - Returns: nil for any other path.
  /// - Throws: ``RESTError``.
  init?(metadata head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint)
    throws(RESTError)
  {
    guard target.rawPath.hasPrefix("/namespaces/"), !target.rawPath.hasSuffix(".json"),
      !target.rawPath.hasSuffix(".json/"), let segments = target.segments
    else { return nil }
    let kind: StoredKind
    switch (segments.count, segments.dropFirst(2).first) {
    case (3, "rulesets"): kind = .rulesets
    case (4, "rulesets"): kind = .ruleset(segments[3])
    case (3, "ruleset_labels"): kind = .labels
    default: return nil
    }
    var root = target
    root.rawPath = "/.json"
    root.parameters.append(("ns", segments[1]))
    let request = try RESTRequest(head, root, endpoint)
    namespace = request.namespace
    caller = request.caller
    guard request.method == .get else {
      throw RESTError(.methodNotAllowed, "Rulesets and labels are changed at /.settings/.")
    }
    action = .readStored(kind)
  }

  private static func action(_ kind: StoredKind, _ method: RESTRequest.Method) throws(RESTError) -> Action {
    if method == .get { return .readStored(kind) }
    guard method == kind.changingMethod else {
      let word = kind.changingMethod == .post ? "POST" : "PUT"
      throw RESTError(.methodNotAllowed, "This is read with GET and changed with \(word).")
    }
    return .changeStored(kind)
  }

  private static func name(_ path: String) throws(RESTError) -> Substring {
    var name = path.dropFirst("/.settings/".count)
    if name.hasSuffix("/") { name.removeLast() }
    guard name.hasSuffix(".json") else {
      throw RESTError(.notFound, "append .json to your request URI to use the REST API.")
    }
    name.removeLast(5)
    return name
  }

  private static func kind(_ name: Substring) -> StoredKind? {
    switch name {
    case "rulesets": .rulesets
    case "ruleset_labels": .labels
    case "functionTriggers": .triggers
    default: nil
    }
  }

  private static func setting(_ name: Substring) throws(RESTError) -> Setting {
    if let setting = Setting(rawValue: String(name)) { return setting }
    if name == "profile" {
      throw RESTError(.notImplemented, "\(name) is not supported by this server yet.")
    }
    let known = (Setting.allCases.map(\.rawValue) + ["rulesets", "ruleset_labels", "functionTriggers"])
      .joined(separator: ", ")
    throw RESTError(.notFound, "There is no setting '\(name)'; there are \(known).")
  }
}

/// Executes requests for settings.
struct SettingsService: Sendable {
  let endpoint: RealtimeEndpoint

  /// Executes a request and returns its response.
  func respond(to request: SettingsRequest, body: ByteBuffer) async -> HTTPResponse {
    do {
      guard request.caller.isAdministrator else { throw RealtimeError.permissionDenied }
      let database = try await endpoint.engine.database(request.namespace)
      switch request.action {
      case .read(let setting, let strict): return try await read(setting, strict, database, request.caller)
      case .readStored(let kind): return try await read(kind, database, request.caller)
      case .changeStored(let kind): return try await change(kind, body, database, request.caller)
      case .checkRules:
        _ = try RealtimeRuleset(Array(body.readableBytesView))
        return ok(warnings: [])
      case .write(.rules):
        let rules = try RealtimeRuleset(Array(body.readableBytesView)).file
        try await database.setRules(rules, as: request.caller)
        return ok(warnings: [])
      case .write(let setting): return try await write(setting, body, database, request.caller)
      }
    } catch let error as RealtimeModel.RulesError {
      return HTTPResponse(RESTError(.badRequest, error.description))
    } catch {
      return HTTPResponse(RESTError(error))
    }
  }

  /// Returns a successful response with warnings.
  func ok(warnings: [String]) -> HTTPResponse {
    var object: JSONObject = ["status": .string("ok")]
    if !warnings.isEmpty { object["warning"] = .string(warnings.joined(separator: " ")) }
    return HTTPResponse(.ok, json: JSONValue.object(object).json())
  }

  /// Logs a warning for the operator.
  func warn(_ text: String, _ database: RealtimeDatabase) {
    endpoint.log.warning("\(text)", metadata: ["namespace": "\(database.namespace)"])
  }

  private func read(
    _ setting: Setting, _ strict: Bool, _ database: RealtimeDatabase, _ caller: Principal
  ) async throws -> HTTPResponse {
    let text = try await database.setting(setting, as: caller)
    switch setting {
    case .rules:
      let rules = text ?? endpoint.engine.defaultRules(of: database.namespace)
      let shown = strict ? try RulesFile(Array(rules.utf8)).strictText : rules
      return HTTPResponse(.ok, json: Array(shown.utf8))
    case .defaultWriteSizeLimit:
      return HTTPResponse(.ok, json: Array((text ?? "\"\(WriteSizeLimit.unlimited.rawValue)\"").utf8))
    case .strictTriggerValidation:
      return HTTPResponse(.ok, json: Array("{\"value\":\(text ?? "true")}".utf8))
    }
  }

  private func write(
    _ setting: Setting, _ body: ByteBuffer, _ database: RealtimeDatabase, _ caller: Principal
  ) async throws -> HTTPResponse {
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
    return HTTPResponse(.ok, json: Array(text.utf8))
  }
}
