// Serves the Firebase Rules API, version 1, on the Firestore port: rulesets, releases and tests. The Firebase CLI uses
// it to deploy rules, and the Admin SDK to manage them.
//
// Invariant: every method needs the rights of an administrator of the project.

package import Access
package import FirestoreEndpoints
package import FirestoreEngine
import FirestoreModel
import JSON
package import Logging
import NIOCore
import NIOHTTP1
package import Ports
package import SecurityRules

/// Serves the Firebase Rules API.
package struct RulesService: FirestoreRouteHandler {
  let engine: FirestoreEngine
  let policy: @Sendable (FirestoreRuleset) -> any AccessPolicy<FirestoreAccess>
  private let authentication: FirestoreAuthentication
  private let log: Logger

  /// Creates the service.
  /// - Parameter policy: makes the policy that enforces a ruleset.
  package init(
    _ engine: FirestoreEngine, authentication: FirestoreAuthentication, log: Logger,
    policy: @escaping @Sendable (FirestoreRuleset) -> any AccessPolicy<FirestoreAccess>
  ) {
    self.engine = engine
    self.authentication = authentication
    self.log = log
    self.policy = policy
  }

  package func serve(_ request: HTTPRequest, _ responder: HTTPResponder) -> Bool {
    guard let path = RulesPath(request.target) else { return false }
    responder.start {
      do throws(FirestoreError) {
        try authorize(request, project: path.project)
        responder.respond(try await response(to: request, path))
      } catch {
        responder.respond(.error(error))
      }
    }
    return true
  }

  private func authorize(_ request: HTTPRequest, project: String) throws(FirestoreError) {
    if RequestOriginPolicy.isForeignPage(request.head.headers) {
      throw .permissionDenied("Rules are not available to pages of other machines.")
    }
    let tokens =
      request.head.headers["authorization"]
      + (request.target["access_token"].map { ["Bearer \($0)"] } ?? [])
    let caller = try authentication.caller(authorization: tokens).acting(in: project)
    if caller.isAdministrator { return }
    guard caller.identity != .nobody else {
      throw .unauthenticated(
        "Request is missing required authentication credential. Rules need a service account with the role administrator."
      )
    }
    throw .permissionDenied("Rules need a service account with the role administrator.")
  }

  private func response(
    to request: HTTPRequest, _ path: RulesPath
  ) async throws(FirestoreError) -> HTTPResponse {
    let project = path.project
    // Rejects names that no project can have.
    _ = try DatabaseName(parsing: "projects/\(project)/databases/(default)")
    switch (request.head.method, path.resource, path.verb) {
    case (.POST, .project, "test"?):
      let body = try body(request)
      return .object(try RulesTest.response(try RulesRequestBody.files(body), body))
    case (.POST, .ruleset(let id), "test"?):
      let files = try await ruleset(id, project).files
      return .object(try RulesTest.response(files, try body(request)))
    case (.POST, .rulesets, nil): return try await createRuleset(request, project)
    case (.GET, .rulesets, nil): return try await listRulesets(request, project)
    case (.GET, .ruleset(let id), nil):
      return .object(json(try await ruleset(id, project), project))
    case (.DELETE, .ruleset(let id), nil):
      try await engine.deleteRuleset(id, of: project)
      return .object([:])
    case (.POST, .releases, nil): return try await createRelease(request, project)
    case (.GET, .releases, nil): return try await listReleases(request, project)
    case (.GET, .release(let id), nil):
      let (name, release) = try await release(id, project)
      return .object(json(release, name))
    case (.PATCH, .release(let id), nil), (.PUT, .release(let id), nil):
      return try await updateRelease(id, request, project)
    case (.DELETE, .release(let id), nil):
      let (name, _) = try await release(id, project)
      try await engine.deleteRelease(of: name)
      log.notice("the release of rules was deleted", metadata: ["database": "\(name)"])
      return .object([:])
    case (.GET, .release(let id), "history"?):
      return try await history(try database(id, project), request)
    case (.GET, .release, "getExecutable"?):
      throw .unimplemented("Compiled rules cannot be exported: this server does not have Google's bytecode.")
    default: return .notFound
    }
  }

  // MARK: Rulesets

  private func createRuleset(_ request: HTTPRequest, _ project: String) async throws(FirestoreError)
    -> HTTPResponse
  {
    let files = try RulesRequestBody.files(try body(request))
    for file in files {
      do throws(RulesError) { _ = try FirestoreRuleset(compiling: file.content) } catch {
        throw .invalidArgument("Error compiling rules:\n\(error)")
      }
    }
    let ruleset = try await engine.createRuleset(files, in: project)
    return .object(json(ruleset, project))
  }

  private func listRulesets(_ request: HTTPRequest, _ project: String) async throws(FirestoreError)
    -> HTTPResponse
  {
    guard request.target["filter"]?.isEmpty ?? true else {
      throw .unimplemented("Rulesets cannot be filtered.")
    }
    let page = try RulesPage(
      try await engine.rulesets(of: project), request, key: { "\($0.createdAt.microseconds).\($0.id)" })
    var object = JSONObject()
    if !page.items.isEmpty {
      object["rulesets"] = .array(
        page.items.map { header in .object(Self.json(header, project)) })
    }
    if let token = page.nextToken { object["nextPageToken"] = .string(token) }
    return .object(object)
  }

  private func ruleset(_ id: String, _ project: String) async throws(FirestoreError) -> StoredRuleset {
    guard let ruleset = try await engine.ruleset(id, of: project) else {
      throw .notFound("The ruleset \(id.prefix(100)) does not exist.")
    }
    return ruleset
  }

  // MARK: Releases

  private func createRelease(_ request: HTTPRequest, _ project: String) async throws(FirestoreError)
    -> HTTPResponse
  {
    let body = try body(request)
    let id = try releaseID(body["name"], project)
    let name = try database(id, project)
    if try await engine.currentRelease(of: name) != nil {
      throw .alreadyExists("The release \(id) exists. Update it.")
    }
    return try await enforceRuleset(try rulesetID(body["rulesetName"], project), in: name)
  }

  private func updateRelease(
    _ id: String, _ request: HTTPRequest, _ project: String
  ) async throws(FirestoreError) -> HTTPResponse {
    let body = try body(request)
    let release = body["release"] ?? .object(body)
    if release["name"] != nil, try releaseID(release["name"], project) != id {
      throw .invalidArgument("The name of the release differs from that of the path.")
    }
    if let mask = body["updateMask"]?.string ?? request.target["updateMask"],
      mask.split(separator: ",").contains(where: { !["rulesetName", "ruleset_name", "name"].contains($0) })
    {
      throw .invalidArgument("Only the ruleset of a release can be updated.")
    }
    let (name, _) = try await self.release(id, project)
    return try await enforceRuleset(try rulesetID(release["rulesetName"], project), in: name)
  }

  /// Makes a ruleset the current release of a database, so that its rules decide further requests.
  private func enforceRuleset(
    _ id: String, in name: DatabaseName
  ) async throws(FirestoreError) -> HTTPResponse {
    let ruleset = try await ruleset(id, name.project)
    let compiled: FirestoreRuleset
    do throws(RulesError) { compiled = try FirestoreRuleset(compiling: ruleset.source) } catch {
      throw .failedPrecondition("The ruleset does not compile any more:\n\(error)")
    }
    try await engine.releaseRules(ReleasedRules(ruleset, policy: policy(compiled)), in: name)
    log.notice(
      "security rules are in force", metadata: ["database": "\(name)", "ruleset": "\(ruleset.header.id)"])
    guard let release = try await engine.currentRelease(of: name) else {
      throw .aborted("The release was deleted concurrently.")
    }
    return .object(json(release, name))
  }

  private func listReleases(_ request: HTTPRequest, _ project: String) async throws(FirestoreError)
    -> HTTPResponse
  {
    let filter = try ReleaseFilter(request.target["filter"] ?? "", project: project)
    var releases: [(name: DatabaseName, release: CurrentRelease)] = []
    for name in try await engine.databaseNames(of: project) {
      guard let release = try await engine.currentRelease(of: name) else { continue }
      if filter.accepts(ReleaseID.text(ofDatabase: name.database), release.rulesetID) {
        releases.append((name, release))
      }
    }
    releases.sort { $0.release.createdAt.microseconds > $1.release.createdAt.microseconds }
    let page = try RulesPage(
      releases, request, key: { "\($0.release.createdAt.microseconds).\($0.name.database)" })
    var object = JSONObject()
    // The member exists also without releases, because the CLI joins the pages without checking.
    object["releases"] = .array(page.items.map { .object(json($0.release, $0.name)) })
    if let token = page.nextToken { object["nextPageToken"] = .string(token) }
    return .object(object)
  }

  private func release(
    _ id: String, _ project: String
  ) async throws(FirestoreError) -> (name: DatabaseName, release: CurrentRelease) {
    let name = try database(id, project)
    guard let release = try await engine.currentRelease(of: name) else {
      throw .notFound("The release \(id.prefix(100)) does not exist.")
    }
    return (name, release)
  }

  /// The releases of a database, newest first: an addition of this server, for `hearth rules history`.
  private func history(_ name: DatabaseName, _ request: HTTPRequest) async throws(FirestoreError)
    -> HTTPResponse
  {
    let size = try RulesPage<ReleaseRecord>.size(of: request)
    let current = try await engine.currentRelease(of: name)
    let records = try await engine.releaseHistory(of: name, limit: size)
    return .object([
      "releases": .array(
        records.map { record in
          .object([
            "rulesetName": .string("projects/\(name.project)/rulesets/\(record.rulesetID)"),
            "releaseTime": .string(record.time.rfc3339),
            "inForce": .bool(record.time == current?.updatedAt && record.rulesetID == current?.rulesetID),
            "stored": .bool(record.isStored),
          ])
        })
    ])
  }

  // MARK: Names

  private func database(_ release: String, _ project: String) throws(FirestoreError) -> DatabaseName {
    guard let id = ReleaseID(release) else {
      throw .unimplemented(
        "Only the releases cloud.firestore and cloud.firestore/DATABASE exist; '\(release.prefix(100))' does not."
      )
    }
    return try DatabaseName(parsing: "projects/\(project)/databases/\(id.database)")
  }

  private func releaseID(_ name: JSONValue?, _ project: String) throws(FirestoreError) -> String {
    try Self.element("releases", of: name, project, example: "cloud.firestore")
  }

  private func rulesetID(_ name: JSONValue?, _ project: String) throws(FirestoreError) -> String {
    try Self.element("rulesets", of: name, project, example: "RULESET")
  }

  private static func element(
    _ collection: String, of name: JSONValue?, _ project: String, example: String
  ) throws(FirestoreError) -> String {
    let prefix = "projects/\(project)/\(collection)/"
    guard let text = name?.string, text.hasPrefix(prefix), text.utf8.count > prefix.utf8.count else {
      throw .invalidArgument("A name must be of the form \(prefix)\(example).")
    }
    return String(text.dropFirst(prefix.count))
  }

  // MARK: Bodies

  private func body(_ request: HTTPRequest) throws(FirestoreError) -> JSONObject {
    do {
      let json = try JSONValue(
        json: Array(request.body.readableBytesView), limits: JSONLimits(depth: 64, bytes: 4 << 20))
      if let object = json.object { return object }
    } catch {
      throw .invalidArgument("Invalid JSON payload received. The text is no valid JSON: \(error).")
    }
    throw .invalidArgument("Invalid JSON payload received. The body must be an object.")
  }

  private static func json(_ header: StoredRuleset.Header, _ project: String) -> JSONObject {
    [
      "name": .string("projects/\(project)/rulesets/\(header.id)"),
      "createTime": .string(header.createdAt.rfc3339),
      "metadata": .object(["services": .array([.string(ReleaseID.firestore)])]),
    ]
  }

  private func json(_ ruleset: StoredRuleset, _ project: String) -> JSONObject {
    var object = Self.json(ruleset.header, project)
    object["source"] = .object([
      "files": .array(
        ruleset.files.map { .object(["name": .string($0.name), "content": .string($0.content)]) })
    ])
    return object
  }

  private func json(_ release: CurrentRelease, _ name: DatabaseName) -> JSONObject {
    [
      "name": .string("projects/\(name.project)/releases/\(ReleaseID.text(ofDatabase: name.database))"),
      "rulesetName": .string("projects/\(name.project)/rulesets/\(release.rulesetID)"),
      "createTime": .string(release.createdAt.rfc3339),
      "updateTime": .string(release.updatedAt.rfc3339),
    ]
  }
}

extension HTTPResponse {
  /// A response with a JSON object as its body.
  static func object(_ object: JSONObject) -> HTTPResponse {
    .json(.ok, ByteBuffer(bytes: JSONValue.object(object).json() + [0x0A]))
  }
}
