// Serves the Identity Toolkit and secure token APIs over HTTP.
//
// The service first authenticates a request, then parses its body, and then runs its operation in a task.
//
// An emulator trusts every request of an administrator, so any web page that its developer visits could manage its
// accounts. Such requests are therefore accepted from configured pages only. Requests with an API key are accepted from
// every page, as in the hosted product.

import Access
import Identity
package import JSON
import Logging
package import NIOCore
package import NIOHTTP1
import OrderedStore
package import Ports

/// Serves additional paths of the auth port. Other modules implement and register it.
package protocol IdentityRouteHandler: Sendable {
  /// Serves a request whose path belongs to no API. Returns nil if this handler does not serve the path.
  func response(to request: HTTPRequest, _ service: IdentityService) async throws -> HTTPResponse?
}

/// Serves HTTP requests of the auth port.
package struct IdentityService: HTTPService {
  /// The parts of the server that operations use.
  package let services: IdentityServices
  private let handlers: [any IdentityRouteHandler]
  private let isTLS: Bool
  private let administrationPages: RequestOriginPolicy

  /// Maximum bytes of a body: an import of 1,000 accounts fits.
  private static let maximumBodyBytes = 32 << 20

  /// Creates the service.
  /// - Parameters:
  ///   - handlers: handlers of additional paths, in the order in which they are tried.
  ///   - isTLS: whether the port uses TLS.
  ///   - administrationPages: the web pages that may send requests of administrators.
  package init(
    _ services: IdentityServices, handlers: [any IdentityRouteHandler] = [], isTLS: Bool = false,
    administrationPages: RequestOriginPolicy = .any
  ) {
    self.administrationPages = administrationPages
    self.services = services
    self.handlers = handlers
    self.isTLS = isTLS
  }

  /// The protocols of the auth port.
  package func protocols(_ limits: PortLimits = PortLimits()) -> PortProtocols {
    PortProtocols(http1: http1(limits), http2: http2(limits))
  }

  package func connectionLimits(_ port: PortLimits) -> HTTPConnectionLimits {
    HTTPConnectionLimits(maximumRequestBytes: port.http2.maximumBufferedRequestBytes)
  }

  package var acceptsCompressedBodies: Bool { true }

  package func bodyPlan(for head: HTTPRequestHead, _ port: PortLimits) -> HTTPBodyPlan {
    .collect(maximumBytes: Self.maximumBodyBytes)
  }

  package func serve(
    _ head: HTTPRequestHead, _ body: ByteBuffer, _ exchange: HTTPExchange, on connection: HTTPConnection
  ) {
    if head.method == .OPTIONS { return exchange.respond(HTTPResponse(status: .noContent)) }
    let request: HTTPRequest
    do throws(HTTPRequestFailure) {
      request = HTTPRequest(head: head, target: try RequestTarget(head.uri), body: body)
    } catch {
      return exchange.respond(response(to: error))
    }
    let responder = HTTPResponder(exchange)
    let client = ClientAddress(peer: exchange.remoteAddress, forwardedFor: head.headers["x-forwarded-for"])
    responder.start {
      do {
        responder.respond(try await response(to: request, of: client))
      } catch {
        responder.respond(.identity(failure(error)))
      }
    }
  }

  /// Converts an error of an operation to one of the API. Errors of the server are logged and not sent to the client.
  private func failure(_ error: any Error) -> IdentityError {
    if let error = error as? IdentityError { return error }
    if let error = error as? StoreError, error.code == .limitExceeded {
      return IdentityError(
        400, "INVALID_ARGUMENT", "A name or value of the request is too long.", reason: "badRequest")
    }
    services.log.error("an Identity operation failed", metadata: ["error": "\(error)"])
    if let error = error as? StoreError, error.code == .unavailable {
      return .unavailable("The store cannot write now.")
    }
    return IdentityError(500, "INTERNAL", "Internal error encountered.", reason: "backendError")
  }

  private func response(
    to request: HTTPRequest, of client: ClientAddress?
  ) async throws -> HTTPResponse {
    guard let segments = request.target.segments else {
      throw IdentityError(
        400, "INVALID_ARGUMENT", "The path is not valid percent-encoding.", reason: "badRequest")
    }
    guard let route = IdentityRoute(segments) else {
      try checkPage(request)
      for handler in handlers {
        if let response = try await handler.response(to: request, self) { return response }
      }
      throw IdentityError.notFound
    }
    let method = request.head.method == .HEAD ? "GET" : request.head.method.rawValue
    guard let operation = route.operations[method] else {
      let message: JSONObject = ["message": .string("\(request.head.method.rawValue) method not allowed")]
      return .identity(message, .methodNotAllowed)
    }
    var call = try await call(request, route, operation)
    if !call.isPrivileged { call.client = client }
    return .identity(try await run(operation, call, client))
  }

  /// Runs an operation. Guesses of a client that is not an administrator use the allowance of its address.
  private func run(
    _ operation: IdentityOperation, _ call: IdentityCall, _ client: ClientAddress?
  ) async throws -> JSONObject {
    guard !call.isPrivileged, operation.guessPolicy != .none else { return try await operation.run(call) }
    try services.addressLimiter.begin(client, at: call.now)
    let result: Result<JSONObject, any Error>
    do { result = .success(try await operation.run(call)) } catch { result = .failure(error) }
    if !operation.guessPolicy.counts(result) {
      services.addressLimiter.refund(client, at: services.clock.milliseconds)
    }
    return try result.get()
  }

  /// Authenticates a request and reads everything that its operation needs.
  private func call(
    _ request: HTTPRequest, _ route: IdentityRoute, _ operation: IdentityOperation
  ) async throws -> IdentityCall {
    let bearer = try bearerToken(request)
    if let bearer {
      try checkPage(request)
      try await services.tokens.authenticateAdministrator(bearer: bearer, project: route.project)
    } else {
      try checkKey(request)
      guard !operation.isPrivileged else {
        throw IdentityError.rejected(
          "INSUFFICIENT_PERMISSION", "Only authenticated requests can specify target_project_id.")
      }
    }
    let body = try body(request, operation)
    if operation.requiresTargetProject, bearer == nil || body.text("targetProjectId") == nil {
      throw IdentityError.rejected("INSUFFICIENT_PERMISSION")
    }
    let target = bearer == nil ? nil : body.text("targetProjectId")
    if let bearer, route.project == nil {
      try await services.tokens.authenticateAdministrator(
        bearer: bearer, project: target ?? services.defaultProject)
    }
    let call = try await makeCall(
      request, project: route.project ?? target ?? services.defaultProject, tenant: route.tenant,
      resource: route.resource, isPrivileged: bearer != nil, body: body)
    if bearer == nil { try checkConfiguredKey(request, call.project) }
    if call.tenant?.isDisabled == true, !operation.ignoresDisabledTenant {
      throw IdentityError.rejected("PROJECT_DISABLED")
    }
    return call
  }

  /// Imports accounts of an export. Accounts with the same ID are replaced.
  /// - Parameter users: UserInfo messages.
  /// - Returns: the response of `accounts:batchCreate`, which lists the rows that were not imported.
  package func importAccounts(_ users: [JSONValue], project: String, tenant: String?) async throws
    -> JSONObject
  {
    let object: JSONObject = ["users": .array(users), "allowOverwrite": .bool(true)]
    let body = RequestBody(converted: try FieldKind.convert(object, RequestFields.batchCreate))
    let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
    let request = HTTPRequest(head: head, target: try RequestTarget(head.uri))
    return try await makeCall(
      request, project: project, tenant: tenant, isPrivileged: true, body: body
    ).batchCreate()
  }

  /// Makes a call for a request that was authenticated, or that needs no authentication.
  package func makeCall(
    _ request: HTTPRequest, project: String, tenant pathTenant: String?, resource: String? = nil,
    isPrivileged: Bool, body: RequestBody
  ) async throws -> IdentityCall {
    let database = try await database(project)
    let seal = try await database.seal()
    let (tenantID, idToken) = try await tenant(
      pathTenant ?? request.target["tenantId"].flatMap { $0.isEmpty ? nil : $0 }, body, seal, project)
    let (settings, tenant) = try await database.read { reader in
      (try reader.projectSettings(), try tenantID.flatMap { try reader.tenantSettings($0) })
    }
    return IdentityCall(
      services: services, database: database, tenantID: tenantID, isPrivileged: isPrivileged, body: body,
      target: request.target, resource: resource, baseURL: baseURL(of: request), language: language(request),
      project: settings, tenant: try await createdTenant(tenantID, tenant, database), idToken: idToken,
      seal: seal, now: services.clock.milliseconds)
  }

  /// Opens the database of a project. Only an emulator creates projects on first use.
  private func database(_ project: String) async throws -> IdentityDatabase {
    if !services.isEmulator, project != services.defaultProject {
      guard try await services.store.projectExists(project) else {
        throw IdentityError.rejected("PROJECT_NOT_FOUND")
      }
    }
    return try await services.store.project(project)
  }

  /// The settings of a tenant. If the tenant does not exist, an emulator creates it with every sign-in method.
  /// - Parameter tenant: the stored settings; nil if there are none.
  private func createdTenant(
    _ id: String?, _ tenant: TenantSettings?, _ database: IdentityDatabase
  ) async throws -> TenantSettings? {
    guard let id, tenant == nil else { return tenant }
    guard services.isEmulator else { throw IdentityError.rejected("TENANT_NOT_FOUND") }
    return try await database.write { transaction in
      if let tenant = try transaction.reader.tenantSettings(id) { return tenant }
      let tenant = TenantSettings.allowingAllMethods(id)
      try transaction.put(tenant)
      return tenant
    }
  }

  /// The tenant of a call. Its path, body, ID token, refresh token or pending credential may name it. All of those that
  /// do must name the same tenant.
  private func tenant(
    _ pathTenant: String?, _ body: RequestBody, _ seal: TokenSeal, _ project: String
  ) async throws -> (String?, Result<IDToken, IdentityError>) {
    var tenant = pathTenant
    func agree(_ other: String?) throws {
      guard let other else { return }
      if let tenant, tenant != other { throw IdentityError.rejected("TENANT_ID_MISMATCH") }
      tenant = other
    }
    try agree(body.text("tenantId"))
    var idToken: Result<IDToken, IdentityError> = .failure(.rejected("INVALID_ID_TOKEN"))
    if let text = body.text("idToken") {
      do {
        let token = try await services.tokens.readIDToken(text, project: project)
        try agree(token.tenantID)
        idToken = .success(token)
      } catch let error as IdentityError where error.message != "TENANT_ID_MISMATCH" {
        idToken = .failure(error)
      }
    }
    if let text = body.text("refreshToken") {
      guard let object = seal.open(text, as: .refresh) else {
        throw IdentityError.rejected("INVALID_REFRESH_TOKEN")
      }
      try agree(object["tenantId"]?.string)
    }
    if let text = body.text("mfaPendingCredential"), let object = seal.open(text, as: .pendingFactor) {
      try agree(object["tenantId"]?.string)
    }
    return (tenant, idToken)
  }

  // MARK: Requests

  private static let bearerPrefix = "bearer "

  /// The bearer token of a request; nil if it has no header of that scheme.
  private func bearerToken(_ request: HTTPRequest) throws(IdentityError) -> String? {
    let headers = request.head.headers["authorization"]
    var tokens = headers.filter { $0.lowercased().hasPrefix(Self.bearerPrefix) }.map { header in
      header.dropFirst(Self.bearerPrefix.count).drop { $0 == " " }
    }
    guard !tokens.isEmpty else { return nil }
    guard tokens.count == headers.count else { throw .invalidCredentials }
    // This API accepts the parameter only together with the header, and only if both contain the same token.
    for parameter in request.target.parameters where parameter.name == "access_token" {
      tokens.append(parameter.value[...])
    }
    do throws(InvalidCredential) { return try InvalidCredential.singleToken(tokens).map { String($0) } } catch
    {
      throw .invalidCredentials
    }
  }

  /// Rejects a request that a web page of another machine sent. Used for requests of administrators and to paths of the
  /// emulator.
  private func checkPage(_ request: HTTPRequest) throws(IdentityError) {
    if let refusal = administrationPages.refusal(of: request.head) {
      throw IdentityError(403, "PERMISSION_DENIED", refusal, reason: "forbidden")
    }
  }

  private static let missingKey = IdentityError(
    403, "PERMISSION_DENIED", "The request is missing a valid API key.", reason: "forbidden")

  /// The API key of a request. A key that is empty or sent twice counts as missing.
  private func apiKey(_ request: HTTPRequest) -> String? {
    let keys = request.target.parameters.filter { $0.name == "key" }.map(\.value)
    if keys.count > 1 { return nil }
    let key = keys.first ?? request.head.headers.first(name: "x-goog-api-key")
    return key.flatMap { $0.isEmpty ? nil : $0 }
  }

  private func checkKey(_ request: HTTPRequest) throws(IdentityError) {
    guard apiKey(request) != nil else { throw Self.missingKey }
  }

  private func checkConfiguredKey(_ request: HTTPRequest, _ settings: ProjectSettings) throws(IdentityError) {
    guard !settings.apiKeys.isEmpty else { return }
    guard let key = apiKey(request), settings.apiKeys.contains(key) else {
      throw IdentityError(
        400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", reason: "badRequest")
    }
  }

  private func body(_ request: HTTPRequest, _ operation: IdentityOperation) throws(IdentityError)
    -> RequestBody
  {
    guard request.head.method != .GET, request.head.method != .HEAD, request.head.method != .DELETE else {
      return RequestBody()
    }
    let type = request.head.headers.first(name: "content-type")?.lowercased() ?? ""
    guard type.hasPrefix("application/x-www-form-urlencoded") else {
      return try RequestBody(json: request.body, operation.fields)
    }
    if !operation.acceptsForm, request.body.readableBytes > 0 {
      throw IdentityError(400, "INVALID_ARGUMENT", "Invalid content-type: \(type)", reason: "unknown")
    }
    guard let pairs = FormText.decode(String(buffer: request.body)) else {
      throw .invalidBody("The body is not form-encoded", reason: "parseError")
    }
    return try RequestBody(form: pairs, operation.fields)
  }

  /// The address that the client of a request used, such as `http://127.0.0.1:9099`.
  package func baseURL(of request: HTTPRequest) -> String {
    let host = request.head.headers.first(name: "host") ?? request.head.headers.first(name: ":authority")
    return (isTLS ? "https://" : "http://") + (host ?? "127.0.0.1:9099")
  }

  /// The language that a client requests, such as `de` or `pt-BR`; `en` by default.
  private func language(_ request: HTTPRequest) -> String {
    guard let locale = request.head.headers.first(name: "x-firebase-locale"), !locale.isEmpty,
      locale.utf8.count <= 35,
      locale.utf8.allSatisfy({ $0 == 0x2D || $0 == 0x5F || Self.isLetterOrDigit($0) })
    else { return "en" }
    return locale
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }

  package func response(to failure: HTTPRequestFailure) -> HTTPResponse {
    .identity(IdentityError(failure))
  }

  package func addHeaders(to headers: inout HTTPHeaders, respondingTo request: HTTPRequestHead) {
    headers.addIdentityCORS(request)
  }
}
