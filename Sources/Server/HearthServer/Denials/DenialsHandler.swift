// Serves the denial logs to the administrators of a project, on the Firestore port:
//
//   GET  /hearth/v1/projects/P/databases/D/denials             the denials of a Firestore database, the newest first
//   GET  /hearth/v1/projects/P/databases/D/denials/N           one denial
//   POST /hearth/v1/projects/P/databases/D/denials/N:replay    decides the recorded request again
//
// `instances/NAMESPACE` instead of `databases/D` names a Realtime Database.
//
// Invariant: only administrators of the project receive anything. A web page of another machine never does.

import Access
import FirestoreEndpoints
import FirestoreEngine
import FirestoreModel
import JSON
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel
import SecurityRules

/// Serves the denial logs.
struct DenialsHandler: FirestoreRouteHandler {
  let logs: ServerDenials
  let firestore: FirestoreEngine
  let realtime: RealtimeEngine
  let authentication: FirestoreAuthentication

  private static let prefix = "/hearth/v1/"
  private static let maximumPageSize = 300
  /// The maximum size of a request's body, in bytes. Rules of the Realtime Database may be larger than those of
  /// Firestore.
  private static let maximumBodyBytes = 2 << 20

  func serve(_ request: HTTPRequest, _ responder: HTTPResponder) -> Bool {
    guard request.target.rawPath.hasPrefix(Self.prefix) else { return false }
    responder.start {
      do throws(FirestoreError) {
        responder.respond(
          .json(.ok, ByteBuffer(bytes: try await answer(request).json(pretty: true) + [0x0A])))
      } catch {
        responder.respond(.error(error))
      }
    }
    return true
  }

  /// A database whose log is requested.
  private enum Source {
    case firestore(DatabaseName)
    case realtime(String)
  }

  private func answer(_ request: HTTPRequest) async throws(FirestoreError) -> JSONValue {
    let unknown = FirestoreError.notFound("There is no such resource.")
    guard !RequestOriginPolicy.isForeignPage(request.head.headers) else {
      throw .permissionDenied("The administration is not available to pages of other machines.")
    }
    guard let segments = request.target.segments, (7...8).contains(segments.count),
      segments[2] == "projects", segments[6] == "denials"
    else { throw unknown }
    let project = segments[3]
    try requireAdministrator(of: project, request)
    let source: Source
    switch segments[4] {
    case "databases":
      source = .firestore(try DatabaseName(parsing: "projects/\(project)/databases/\(segments[5])"))
    case "instances":
      guard realtime.project(of: segments[5]).utf8.elementsEqual(project.utf8) else { throw unknown }
      source = .realtime(segments[5])
    default: throw unknown
    }
    let log: DenialLog? =
      switch source {
      case .firestore(let database): logs.firestore.existingLog(database)
      case .realtime(let namespace): logs.realtime.existingLog(namespace)
      }
    guard segments.count == 8 else {
      guard request.head.method == .GET else { throw unknown }
      return try list(log, request.target)
    }
    let parts = segments[7].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let id = Int64(parts[0]), let entry = log?.entry(id) else {
      throw .notFound("The denial \(parts[0].prefix(40)) is not kept.")
    }
    switch (request.head.method, parts.dropFirst().first) {
    case (.GET, nil): return .object(entry.object)
    case (.POST, "replay"?): return try await replay(entry, source, request.body)
    default: throw unknown
    }
  }

  private func requireAdministrator(of project: String, _ request: HTTPRequest) throws(FirestoreError) {
    let caller = try authentication.caller(authorization: request.head.headers["authorization"])
    guard caller.identity != .nobody else { throw FirestoreAccess.credentialsRequired }
    guard caller.acting(in: project).isAdministrator else {
      throw .permissionDenied("Only administrators of the project may read denials.")
    }
  }

  private func list(_ log: DenialLog?, _ target: RequestTarget) throws(FirestoreError) -> JSONValue {
    var size = 50
    if let text = target["pageSize"] {
      guard let number = Int(text), number > 0 else {
        throw .invalidArgument("pageSize must be a positive number.")
      }
      size = min(number, Self.maximumPageSize)
    }
    var before: Int64?
    if let text = target["pageToken"], !text.isEmpty {
      guard let number = Int64(text) else { throw .invalidArgument("The pageToken is invalid.") }
      before = number
    }
    let entries = log?.entries(before: before, count: size) ?? []
    var object: JSONObject = ["denials": .array(entries.map { .object($0.object) })]
    if entries.count == size, let last = entries.last, last.id > 1 {
      object["nextPageToken"] = .string(String(last.id))
    }
    object["omittedCount"] = .string(String(log?.omittedCount ?? 0))
    return .object(object)
  }

  // MARK: Replay

  /// Decides a recorded request by the rules in force, or by the rules in the request.
  private func replay(
    _ entry: DenialEntry, _ source: Source, _ body: ByteBuffer
  ) async throws(FirestoreError) -> JSONValue {
    guard let request = entry.request else {
      throw FirestoreError(.failedPrecondition, "The request of this denial was not recorded.")
    }
    let draft = try Self.source(in: body)
    let decision: ReplayedDecision
    let fingerprint: String
    switch request {
    case .firestore(let request):
      guard case .firestore(let database) = source else { throw .notFound("There is no such denial.") }
      let ruleset = try firestoreRuleset(draft, of: database)
      (decision, fingerprint) = (request.decide(by: ruleset), ruleset.fingerprint)
    case .realtime(let request):
      guard case .realtime(let namespace) = source else { throw .notFound("There is no such denial.") }
      let ruleset = try await realtimeRuleset(draft, of: namespace)
      (decision, fingerprint) = (request.decide(by: ruleset), ruleset.inspection.fingerprint)
    }
    var object = decision.json
    object["id"] = .string(String(entry.id))
    object["ruleset"] = .string(fingerprint)
    object["isDraft"] = .bool(draft != nil)
    return .object(object)
  }

  /// The text of draft rules in the body; nil without one.
  private static func source(in body: ByteBuffer) throws(FirestoreError) -> String? {
    guard body.readableBytes > 0 else { return nil }
    guard
      let json = try? JSONValue(
        json: Array(body.readableBytesView), limits: JSONLimits(depth: 8, bytes: maximumBodyBytes)),
      let object = json.object
    else { throw .invalidArgument("The body must be a JSON object.") }
    guard let source = object["source"], !source.isNull else { return nil }
    guard let text = source.string else {
      throw .invalidArgument("'source' must be the text of a rules file.")
    }
    return text
  }

  private func firestoreRuleset(
    _ draft: String?, of database: DatabaseName
  ) throws(FirestoreError) -> FirestoreRuleset {
    if let draft {
      do { return try FirestoreRuleset(compiling: draft) } catch {
        throw .invalidArgument("Error compiling rules:\n\(error)")
      }
    }
    guard let policy = firestore.policies.current(of: database).policy as? FirestoreRulesPolicy else {
      throw FirestoreError(.failedPrecondition, "The database has no rules.")
    }
    return policy.ruleset
  }

  private func realtimeRuleset(
    _ draft: String?, of namespace: String
  ) async throws(FirestoreError) -> RealtimeRuleset {
    do {
      if let draft { return try RealtimeRuleset(Array(draft.utf8)) }
      if let file = try await realtime.database(namespace).rules() {
        return try RealtimeRuleset(Array(file.text.utf8))
      }
    } catch let error as RealtimeModel.RulesError {
      throw .invalidArgument("Error compiling rules:\n\(error)")
    } catch { throw .unavailable("The rules cannot be read: \(error)") }
    throw FirestoreError(.failedPrecondition, "The database has no rules.")
  }
}

extension DenialEntry {
  /// The denial as JSON.
  fileprivate var object: JSONObject {
    var object: JSONObject = ["id": .string(String(id))]
    for member in members.members { object[member.key] = member.value }
    return object
  }
}
