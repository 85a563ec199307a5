// Serves the HTTP requests of the Realtime Database's port: REST, settings, event streams, long polling, and the
// upgrade to a WebSocket.
//
// A drain is the first phase of a shutdown: the port accepts nothing new and lets open requests finish.
//
// Invariant: no event stream, session or WebSocket begins after the start of a drain.

import Access
import JSON
import Logging
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel
import SecurityRules

struct RealtimeHTTPService: HTTPService {
  let endpoint: RealtimeEndpoint

  /// The maximum size of a body that is read even if the head shows that the request is rejected, in bytes.
  /// Rejecting a request before its body is read ends the connection.
  private static let smallBodyBytes = 16 << 10

  func connectionLimits(_ port: PortLimits) -> HTTPConnectionLimits {
    HTTPConnectionLimits(
      maximumRequestBytes: endpoint.limits.connectionBodyBytes,
      maximumUnreadResponseBytes: endpoint.limits.connectionResponseBytes)
  }

  var acceptsCompressedBodies: Bool { false }

  func response(to failure: HTTPRequestFailure) -> HTTPResponse { HTTPResponse(RESTError(failure)) }

  func addHeaders(to headers: inout HTTPHeaders, respondingTo request: HTTPRequestHead) {}

  // MARK: Bodies

  func bodyPlan(for head: HTTPRequestHead, _ port: PortLimits) -> HTTPBodyPlan {
    let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
    if announced > Self.smallBodyBytes || head.headers.contains(name: "transfer-encoding"),
      let error = RESTRequest.rejection(of: head, endpoint)
    {
      return .reject(HTTPResponse(error))
    }
    guard let request = importRequest(head) else {
      return .collect(maximumBytes: endpoint.limits.data.restWriteBytes)
    }
    return .stream(
      maximumBytes: request.maximumBodyBytes(endpoint.limits), threshold: endpoint.limits.arrivingBodyBytes
    ) { queue, exchange in
      let service = RESTService(endpoint: endpoint)
      // The end of the exchange does not cancel this task. The body queue instead reports that the rest of
      // the body will not arrive.
      respond(exchange) { await service.write(request, queue) }
    }
  }

  /// Returns the request if its body may be written while it arrives.
  private func importRequest(_ head: HTTPRequestHead) -> RESTRequest? {
    guard head.method != .GET, head.method != .HEAD, let target = try? RequestTarget(head.uri),
      ["/.json", "/.upload"].contains(target.rawPath) || !target.rawPath.hasPrefix("/."),
      let request = try? RESTRequest(head, target, endpoint),
      request.mayImport, endpoint.engine.allowsEverything(request.caller, in: request.namespace)
    else { return nil }
    return request
  }

  // MARK: Requests

  func serve(
    _ head: HTTPRequestHead, _ body: ByteBuffer, _ exchange: HTTPExchange, on connection: HTTPConnection
  ) {
    do { try route(head, body, exchange, connection) } catch {
      exchange.respond(HTTPResponse(RESTError(error)))
    }
  }

  private func route(
    _ head: HTTPRequestHead, _ body: ByteBuffer, _ exchange: HTTPExchange, _ connection: HTTPConnection
  ) throws {
    if let error = RESTRequest.rejection(of: head, endpoint) { throw error }
    if head.method == .OPTIONS { return exchange.respond(.preflight(head)) }
    let target = try RequestTarget(head.uri)
    switch target.rawPath {
    case "/.ws":
      guard !exchange.isHTTP2 else {
        throw RESTError(.badRequest, "WebSockets are served over HTTP/1.1 only.")
      }
      return openWebSocket(try SocketRequest(head, target, endpoint), exchange, connection)
    case "/.lp":
      return longPoll(try LongPollRequest(head, target, endpoint), exchange, connection)
    case "/.inspect/databases.json" where head.method == .GET || head.method == .HEAD:
      return listDatabases(head, target, exchange)
    case let path where path.hasPrefix("/.settings/"):
      return serveSettings(try SettingsRequest(head, target, endpoint), body, exchange)
    case "/.inspect/coverage" where head.method == .GET, "/.inspect/coverage.json" where head.method == .GET:
      return reportCoverage(head, target, exchange)
    case let path where path.hasPrefix("/.inspect/"):
      throw RESTError(.notImplemented, "\(path) is not supported by this server yet.")
    case let path where path.hasPrefix("/namespaces/"):
      if let request = try SettingsRequest(metadata: head, target, endpoint) {
        return serveSettings(request, body, exchange)
      }
    default: break
    }
    if exchange.isHTTP2, let limit = connection.exceededUnreadLimit {
      throw HTTPRequestFailure.tooManyUnreadBytes(limit: limit)
    }
    let request = try RESTRequest(head, target, endpoint)
    if request.wantsEventStream { return openEventStream(request, exchange, connection) }
    let service = RESTService(endpoint: endpoint)
    respond(exchange, isRead: request.method == .get) { await service.respond(to: request, body: body) }
  }

  private func serveSettings(_ request: SettingsRequest, _ body: ByteBuffer, _ exchange: HTTPExchange) {
    let service = SettingsService(endpoint: endpoint)
    respond(exchange) { await service.respond(to: request, body: body) }
  }

  private func listDatabases(_ head: HTTPRequestHead, _ target: RequestTarget, _ exchange: HTTPExchange) {
    respond(exchange) {
      do {
        var root = target
        root.rawPath = "/.json"
        let caller = try RESTRequest(head, root, endpoint).caller
        guard caller.isAdministrator || endpoint.mayList(endpoint.defaultNamespace, caller) else {
          throw RealtimeError.permissionDenied
        }
        let names = try await endpoint.engine.namespaces().filter { endpoint.mayList($0, caller) }
        let list = JSONValue.array(names.map { .object(["name": .string($0)]) })
        return HTTPResponse(.ok, json: list.json())
      } catch {
        return HTTPResponse(RESTError(error))
      }
    }
  }

  /// Reports the coverage of a database's rules, as an emulator records it.
  private func reportCoverage(_ head: HTTPRequestHead, _ target: RequestTarget, _ exchange: HTTPExchange) {
    respond(exchange) {
      do {
        var root = target
        root.rawPath = "/.json"
        let request = try RESTRequest(head, root, endpoint)
        guard endpoint.recordsCoverage else {
          throw RESTError(
            .notImplemented,
            "The coverage of rules is not recorded by this server: only an emulator records it.")
        }
        guard !RequestOriginPolicy.isForeignPage(head.headers) else { throw RealtimeError.permissionDenied }
        let database = try await endpoint.engine.database(request.namespace)
        let ruleset = try await (database.rulesPolicy() as? RealtimeRulesPolicy)?.ruleset
        let coverage = ruleset?.coverage
        if target.rawPath.hasSuffix(".json") {
          var object = JSONObject()
          if let ruleset { object["rules"] = .string(ruleset.file.text) }
          object["report"] = coverage?.json ?? .array([])
          return HTTPResponse(.ok, json: JSONValue.object(object).json())
        }
        let page = coverage?.html(title: "Rule coverage of \(request.namespace)") ?? "<!DOCTYPE html>\n"
        var response = HTTPResponse(.ok, json: Array(page.utf8))
        response.headers.replaceOrAdd(name: "content-type", value: "text/html; charset=utf-8")
        response.headers.add(
          name: "content-security-policy", value: "default-src 'none'; style-src 'unsafe-inline'")
        return response
      } catch {
        return HTTPResponse(RESTError(error))
      }
    }
  }

  /// Makes a response off the event loop and sends it.
  /// - Parameter isRead: whether the request only reads. A read waits in the queue of all reads. The end of
  ///   its exchange cancels it. A half-close by the client cancels it only while it waits, because most
  ///   clients that half-close have disconnected.
  private func respond(
    _ exchange: HTTPExchange, isRead: Bool = false, _ make: @escaping @Sendable () async -> HTTPResponse
  ) {
    let responder = HTTPResponder(exchange)
    let run: @Sendable () async -> Void = { responder.respond(await make()) }
    guard isRead else {
      _ = RequestTasks.start(run)
      return
    }
    let read = RequestTasks.startReading(run)
    exchange.onHalfClosure { read.cancelIfWaiting() }
    exchange.onEnd { read.cancel() }
  }

  /// Calls `body` with a database: immediately if it is open. Responds with an error if it cannot be opened.
  func withDatabase(
    _ namespace: String, _ exchange: HTTPExchange,
    _ body: @escaping @Sendable (HTTPExchange, RealtimeDatabase) -> Void
  ) {
    let engine = endpoint.engine
    if let database = engine.openDatabase(namespace) { return body(exchange, database) }
    let responder = HTTPResponder(exchange)
    Task {
      do {
        let database = try await engine.database(namespace)
        responder.onLoop { body($0, database) }
      } catch {
        responder.respond(HTTPResponse(RESTError(error)))
      }
    }
  }
}
