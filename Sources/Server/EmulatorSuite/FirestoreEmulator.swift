// Serves the emulator's own HTTP paths: clearing databases, security rules, export and import. They need no credentials, so
// only a server that runs as an emulator registers this handler.

import Access
import FirestoreEndpoints
import JSON
package import FirestoreEngine
import FirestoreModel
package import Logging
import NIOCore
import NIOHTTP1
package import Ports
package import SecurityRules

/// Serves the emulator's paths on the Firestore port.
package struct FirestoreEmulator: FirestoreRouteHandler {
  private let engine: FirestoreEngine
  private let exports: EmulatorExports
  private let rules = RulesSources()
  private let feed: RequestFeed?
  private let log: Logger

  /// Creates the handler of one engine's port.
  /// - Parameter feed: publishes decisions at `/requests`; nil for none.
  package init(_ engine: FirestoreEngine, feed: RequestFeed? = nil, log: Logger) {
    self.engine = engine
    self.feed = feed
    exports = EmulatorExports(engine: engine)
    self.log = log
  }

  /// Serves `/reset`, `/requests` and paths below `/emulator/v1/`.
  package func serve(_ request: HTTPRequest, _ responder: HTTPResponder) -> Bool {
    let path = request.target.rawPath
    if path == "/requests", let feed {
      guard !RequestOriginPolicy.isForeignPage(request.head.headers) else {
        responder.respond(.error(Self.foreignPage))
        return true
      }
      RequestFeedSocket.open(request, responder, feed)
      return true
    }
    guard path == "/reset" || path.hasPrefix("/emulator/v1/") else { return false }
    responder.start {
      do throws(FirestoreError) {
        responder.respond(try await answer(request))
      } catch {
        responder.respond(.error(error))
      }
    }
    return true
  }

  private static let foreignPage = FirestoreError.permissionDenied(
    "The emulator's administration is not available to pages of other machines.")

  private func answer(_ request: HTTPRequest) async throws(FirestoreError) -> HTTPResponse {
    if RequestOriginPolicy.isForeignPage(request.head.headers) { throw Self.foreignPage }
    if request.target.rawPath.pathSegments.dropFirst(5).first == "triggers" {
      throw .unimplemented("Cloud Functions are not supported, so the emulator registers no triggers.")
    }
    guard let path = EmulatorPath(request.target.rawPath) else {
      throw .invalidArgument("The path is not valid percent-encoding.")
    }
    switch (request.head.method, path.target, path.verb) {
    case (.POST, .reset, nil): return try await reset()
    case (.DELETE, .documents(let database, let documents), nil):
      try await engine.clear(DatabaseName(parsing: database), at: Self.path(documents), as: .administrator)
      return .json(.ok, "{}\n")
    case (.PUT, .project(let project), "securityRules"?): return try await setRules(of: project, request.body)
    case (.GET, .project(let project), "securityRules"?): return rules.answer(of: project)
    case (.GET, .project(let project), "ruleCoverage"?):
      return rules.answer(of: project, reporting: try reportedRuleset(of: project))
    case (.GET, .project(let project), "ruleCoverage.html"?):
      let coverage = try reportedRuleset(of: project)?.coverage
      return .html(coverage?.html(title: "Rule coverage of \(project)") ?? "<!DOCTYPE html>\n")
    case (.GET, .project(let project), "ruleCoverage.lcov"?):
      let coverage = try reportedRuleset(of: project)?.coverage
      return .text(.ok, coverage?.lcov(file: rules.fileName(of: project)) ?? "")
    case (.POST, .project, "export"?), (.POST, .database, "export"?): return try await export(request)
    case (.POST, .project, "import"?), (.POST, .database, "import"?): return try await importDatabase(request)
    default: return .notFound
    }
  }

  private func export(_ request: HTTPRequest) async throws(FirestoreError) -> HTTPResponse {
    let body = try ExportRequest(request)
    try await exports.export(
      try DatabaseName(parsing: body.database), to: body.directory,
      as: body.name.isEmpty ? "firestore_export_\(ExportFiles.microseconds / 1_000_000)" : body.name)
    return .json(.ok, "{}\n")
  }

  private func importDatabase(_ request: HTTPRequest) async throws(FirestoreError) -> HTTPResponse {
    let body = try ExportRequest(request)
    try await exports.importDatabase(body.directory, into: try DatabaseName(parsing: body.database))
    return .json(.ok, "{}\n")
  }

  private func reset() async throws(FirestoreError) -> HTTPResponse {
    for name in try await engine.databaseNames() { try await engine.clear(name, as: .administrator) }
    return .text(.ok, "Resetting...\n")
  }

  /// Returns the path of the segments after `documents`, where collection IDs and document IDs alternate.
  private static func path(_ segments: [String]) throws(FirestoreError) -> ResourcePath {
    for (index, segment) in segments.enumerated() {
      if index.isMultiple(of: 2) {
        try ResourceID.validate(collectionID: segment)
      } else {
        try ResourceID.validate(documentID: segment)
      }
    }
    return ResourcePath(segments)
  }

  /// The rules whose coverage is reported: those in force in the project's default database. Before the database is
  /// opened, the rules that were set for the project. Nil without rules.
  private func reportedRuleset(of project: String) throws(FirestoreError) -> FirestoreRuleset? {
    let database = try DatabaseName(parsing: "projects/\(project)/databases/\(DatabaseName.defaultDatabase)")
    let policy = engine.policies.current(of: database).policy
    return (policy as? FirestoreRulesPolicy)?.ruleset ?? rules.ruleset(of: project)
  }

  /// Compiles rules and puts them in force for all databases of a project. Rules with errors change nothing.
  private func setRules(
    of project: String, _ body: ByteBuffer
  ) async throws(FirestoreError) -> HTTPResponse {
    let request = try RulesRequest(body)
    guard let file = request.files.first else { throw .invalidArgument("The body must contain rules.") }
    let ruleset: FirestoreRuleset
    do {
      // Every file must compile; the first one becomes the rules.
      for other in request.files.dropFirst() { _ = try FirestoreRuleset(compiling: other.content) }
      ruleset = try FirestoreRuleset(compiling: file.content)
    } catch {
      guard request.ignoresErrors else { throw .invalidArgument("Error compiling rules:\n\(error)") }
      return .issues(error.issues, in: file.name)
    }
    try rules.set(request.files, ruleset, of: project)
    let policy = FirestoreRulesPolicy(
      ruleset, explainsDenials: log.logLevel <= .debug, namesStatements: true)
    try await engine.releaseRules(
      ReleasedRules(source: file.content, policy: policy), inGroup: "project \(project)"
    ) { $0.project.utf8.elementsEqual(project.utf8) }
    log.info("security rules are in force", metadata: ["project": "\(project)"])
    return .issues(ruleset.warnings, in: file.name)
  }
}

/// A parsed path below `/emulator/v1/`.
private struct EmulatorPath {
  enum Target {
    case reset
    case project(String)
    case database(String)
    /// The database, and the segments after `documents`.
    case documents(String, [String])
    case unknown
  }

  var target: Target
  var verb: String?

  /// Returns nil for a path that cannot be decoded.
  init?(_ path: String) {
    target = .unknown
    if path == "/reset" {
      target = .reset
      return
    }
    var raw = path.pathSegments.dropFirst(3)
    if raw.count == 2 || raw.count == 4, let last = raw.last,
      let colon = last.utf8.lastIndex(of: UInt8(ascii: ":"))
    {
      verb = String(last[last.utf8.index(after: colon)...])
      raw[raw.index(before: raw.endIndex)] = last[..<colon]
    }
    var segments: [String] = []
    for segment in raw {
      guard let text = RequestTarget.decode(segment, plusIsSpace: false) else { return nil }
      segments.append(text)
    }
    guard segments.count >= 2, segments[0] == "projects" else { return }
    if segments.count == 2 {
      target = .project(segments[1])
    } else if segments.count == 4, segments[2] == "databases" {
      target = .database(segments.joined(separator: "/"))
    } else if segments.count >= 5, segments[2] == "databases", segments[4] == "documents" {
      target = .documents(segments[..<4].joined(separator: "/"), Array(segments[5...]))
    }
  }
}

/// The body of `:export` and `:import`.
private struct ExportRequest {
  private(set) var database = ""
  private(set) var directory = ""
  private(set) var name = ""

  init(_ request: HTTPRequest) throws(FirestoreError) {
    // Requests of web pages are rejected, since they must not cause files to be written or read. Browsers send such a
    // request without a CORS preflight.
    guard request.head.headers.first(name: "origin") == nil else {
      throw .permissionDenied("Exports and imports cannot be requested by pages of another origin.")
    }
    if request.body.readableBytes == 0 { return }
    let json: JSONValue
    do {
      json = try JSONValue(
        json: Array(request.body.readableBytesView), limits: JSONLimits(depth: 4, bytes: 64 << 10))
    } catch {
      throw .invalidArgument("Payload isn't valid for request. It is not valid JSON: \(error).")
    }
    guard let object = json.object else { throw .invalidArgument("Payload isn't valid for request.") }
    for member in object.members {
      guard let text = member.value == .null ? "" : member.value.string else {
        throw .invalidArgument(
          "Payload isn't valid for request. '\(member.key.prefix(100))' must be a string.")
      }
      switch member.key {
      case "database": database = text
      case "export_directory", "exportDirectory": directory = text
      case "export_name", "exportName": name = text
      default:
        throw .invalidArgument("Payload isn't valid for request. Unknown name '\(member.key.prefix(100))'.")
      }
    }
  }
}
