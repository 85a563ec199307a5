// Performs the requests of protocol v5, the Realtime Database's protocol of JSON messages.
//
// Invariant: every request gets exactly one response. The engine responds to requests about data, the session
// to requests about the connection.

import Access
import JSON
import RealtimeEngine
import RealtimeModel
import RealtimeWire

extension RealtimeSession {
  /// Hands a request to the engine or responds to it.
  func perform(_ request: ClientRequest, on connection: RealtimeConnection) {
    let number = request.number
    if request.action.concernsData, let rejection = endpoint.authentication.rejection(of: nil) {
      return reply(ServerResponse(number, rejection).json())
    }
    switch request.action {
    case .listen(let listen): self.listen(listen, number, connection)
    case .unlisten(let path, _, let tag):
      expectResponse(.unlisten(SessionListens.Name(path: path, tag: tag)))
      connection.unlisten(path, tag: tag, request: number)
    case .get(let path, let query):
      expectResponse()
      connection.get(path, query: query, request: number)
    case .put(let path, let data, let hash):
      guard acceptsSize(data.estimatedSize, number) else { return }
      expectResponse()
      connection.set(path, to: data, ifHash: hash, request: number)
    case .merge(let path, let children):
      guard acceptsSize(children, number) else { return }
      expectResponse()
      connection.update(path, children, request: number)
    case .onDisconnectPut(let path, let data):
      guard acceptsSize(data.estimatedSize, number) else { return }
      expectResponse()
      connection.onDisconnectSet(path, to: data, request: number)
    case .onDisconnectMerge(let path, let children):
      guard acceptsSize(children, number) else { return }
      expectResponse()
      connection.onDisconnectUpdate(path, children, request: number)
    case .onDisconnectCancel(let path):
      expectResponse()
      connection.onDisconnectCancel(path, request: number)
    case .authenticate(let authenticate): self.authenticate(authenticate, number, connection)
    case .unauthenticate:
      successMessages[number] = ServerResponse(number, .ok, .leaf(.string("unauthenticated"))).json()
      expectResponse()
      connection.authenticate(.nobody, request: number)
    case .appCheck, .dropAppCheck, .stats:
      reply(ServerResponse(number, .ok).json())
    case .unknown:
      reply(ServerResponse(number, RealtimeError(.failure, "Unknown action")).json())
    case .invalid(_, let error):
      reply(ServerResponse(number, error).json())
    }
  }

  private func listen(_ listen: ListenRequest, _ number: Int64, _ connection: RealtimeConnection) {
    var compoundHash: CompoundHash?
    if let fields = listen.compoundHash {
      do throws(RealtimeError) {
        compoundHash = try CompoundHash(paths: fields.posts.map { Path($0) }, hashes: fields.hashes)
      } catch {
        return reply(ServerResponse(number, error).json())
      }
    }
    let text = listen.tag == nil ? nil : listen.queryText
    let maximumBytes = endpoint.limits.queryTextBytes
    if let text, text.count > maximumBytes {
      return reply(
        ServerResponse(number, RealtimeError(.failure, "a query may have \(maximumBytes) bytes")).json())
    }
    expectResponse(.listen(SessionListens.Name(path: listen.path, tag: listen.tag), queryText: text))
    // A client with a cached copy sends its hash. Without a hash the engine always sends the value, even an
    // empty one.
    connection.listen(
      listen.path, query: listen.query, tag: listen.tag, hash: listen.hash, compoundHash: compoundHash,
      request: number)
  }

  private func authenticate(
    _ request: AuthenticateRequest, _ number: Int64, _ connection: RealtimeConnection
  ) {
    do throws(RealtimeError) {
      let verified = try endpoint.authentication.caller(credential: request.credential)
      let caller =
        try request.override.map { override throws(RealtimeError) in
          try endpoint.authentication.caller(credential: request.credential, override: .init(override))
        } ?? verified
      successMessages[number] = ServerResponse.json(number, .ok) { writer in
        writer.beginObject()
        writer.key("auth")
        writer.node(verified.user?.claims.node ?? .empty)
        writer.key("expires")
        writer.int(verified.claimedExpiry)
        writer.endObject()
      }
      expectResponse()
      connection.authenticate(caller, request: number)
    } catch {
      // After this error the client closes the connection. Until then its requests run as nobody, not with
      // the previous credential.
      connection.authenticate(.nobody, request: nil)
      reply(ServerResponse(number, error).json())
    }
  }

  /// Whether a write is within the size limit. Responds with an error if it is not.
  private func acceptsSize(_ size: Int, _ number: Int64) -> Bool {
    if size <= endpoint.limits.data.socketWriteBytes { return true }
    reply(ServerResponse(number, .writeTooBig).json())
    return false
  }

  private func acceptsSize(_ children: [(Path, Node)], _ number: Int64) -> Bool {
    acceptsSize(children.reduce(0) { $0 + $1.1.estimatedSize }, number)
  }
}

extension ClientAction {
  /// Whether the action reads or changes data. True for an invalid message too, unless it is about
  /// authentication.
  fileprivate var concernsData: Bool {
    switch self {
    case .listen, .get, .put, .merge, .onDisconnectPut, .onDisconnectMerge, .onDisconnectCancel: true
    case .invalid(let name, _): name != "auth" && name != "gauth"
    case .unlisten, .authenticate, .unauthenticate, .appCheck, .dropAppCheck, .stats, .unknown: false
    }
  }
}

extension RealtimeAuthentication.Override {
  fileprivate init(_ override: AuthenticateRequest.Override) {
    switch override {
    case .nobody: self = .nobody
    // A value other than an object identifies nobody.
    case .variable(let value): self = Self(value) ?? .nobody
    }
  }
}
