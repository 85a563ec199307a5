// Executes REST requests, each as one operation of the engine. Responses are encoded off the event loop, so that a
// large value does not delay other connections.

import JSON
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel
import RealtimeWire

/// The REST interface of the engine.
struct RESTService: Sendable {
  let endpoint: RealtimeEndpoint

  /// Executes a request and returns its response.
  func respond(to request: RESTRequest, body: ByteBuffer) async -> HTTPResponse {
    do {
      let database = try await endpoint.engine.database(request.namespace)
      switch request.method {
      case .get: return try await get(request, database)
      case .put:
        let content = try request.content(of: body)
        return try await put(request, try node(content), sent: content, database)
      case .delete: return try await put(request, .empty, sent: ByteBuffer(), database)
      case .post: return try await post(request, try node(body), database)
      case .patch: return try await patch(request, body, database)
      }
    } catch {
      return HTTPResponse(RESTError(error))
    }
  }

  // MARK: Reading

  private func get(_ request: RESTRequest, _ database: RealtimeDatabase) async throws -> HTTPResponse {
    if request.isShallow {
      let shallow = try await database.getShallow(
        request.path, query: request.query ?? .default, as: request.caller, until: request.deadline)
      return applyOutputOptions(request, jsonResponse(request, shallow.write))
    }
    // The client may have disconnected while the read was queued.
    try Task.checkCancellation()
    let node: Node
    if request.mayStream {
      guard let small = try await database.getIfSmall(request.path, as: request.caller) else {
        return try await stream(request, isExport: request.isExport, database)
      }
      node = small
    } else {
      node = try await read(request, database)
    }
    try Task.checkCancellation()
    guard node.estimatedSize <= endpoint.limits.data.responseBytes else { throw RealtimeError.tooBig }
    if case .ifNoneMatch(let tag) = request.condition, tag == node.etag {
      var response = HTTPResponse(.notModified)
      response.add(etag: tag)
      return response
    }
    var response = jsonResponse(request) { $0.node(node, request.isExport ? .export : .plain) }
    if request.wantsETag { response.add(etag: node.etag) }
    return applyOutputOptions(request, response)
  }

  private func read(_ request: RESTRequest, _ database: RealtimeDatabase) async throws -> Node {
    guard request.path.isPriority else {
      return try await database.get(
        request.path, query: request.query ?? .default, as: request.caller, until: request.deadline)
    }
    let node = try await database.get(
      request.path.dataPath, query: .default, as: request.caller, until: request.deadline)
    return node.priority.map { .leaf($0.leafValue) } ?? .empty
  }

  // MARK: Writing

  private func put(
    _ request: RESTRequest, _ node: Node, sent body: ByteBuffer, _ database: RealtimeDatabase
  ) async throws -> HTTPResponse {
    var hash: String?
    try await request.checkSize(of: [(.root, node)], in: database)
    if case .ifMatch(let tag) = request.condition { hash = tag == RESTRequest.nullETag ? "" : tag }
    switch try await database.set(request.path, to: node, ifHash: hash, as: request.caller) {
    // The result would reveal stored data that the caller may not read.
    case .written(nil): return applyOutputOptions(request, echo(request, body))
    case .written(let written?):
      var response = jsonResponse(request) { $0.node(written, .plain) }
      if request.wantsETag { response.add(etag: written.etag) }
      return applyOutputOptions(request, response)
    case .stale(let current):
      var response = jsonResponse(request) { $0.node(current, .plain) }
      response.status = .preconditionFailed
      response.add(etag: current.etag)
      return response
    }
  }

  private func post(
    _ request: RESTRequest, _ node: Node, _ database: RealtimeDatabase
  ) async throws -> HTTPResponse {
    guard !request.path.isPriority else { throw RealtimeError.invalidPath }
    let name = endpoint.engine.nextPushID()
    try await request.checkSize(of: [(Path(keys: [ChildKey(name)]), node)], in: database)
    _ = try await database.set(request.path.child(ChildKey(name)), to: node, as: request.caller)
    return applyOutputOptions(
      request,
      jsonResponse(request) { writer in
        writer.beginObject()
        writer.key("name")
        writer.string(name)
        writer.endObject()
      })
  }

  private func patch(
    _ request: RESTRequest, _ body: ByteBuffer, _ database: RealtimeDatabase
  ) async throws -> HTTPResponse {
    switch try body.withUnsafeReadableBytes({ raw in try UpdateBody.read(raw, limits: endpoint.limits.data) })
    {
    case nil:
      try await request.checkSize(of: [(.root, .empty)], in: database)
      // The Firebase CLI deletes a path with this request.
      _ = try await database.set(request.path, to: .empty, as: request.caller)
    case .some(let changes):
      let size = changes.reduce(0) { $0 + $1.1.estimatedSize }
      guard size <= endpoint.limits.data.restWriteBytes else { throw RealtimeError.writeTooBig }
      try await request.checkSize(of: changes, in: database)
      if !changes.isEmpty { _ = try await database.update(request.path, changes, as: request.caller) }
    }
    return applyOutputOptions(request, echo(request, body))
  }

  private func node(_ body: ByteBuffer) throws -> Node {
    guard body.readableBytes > 0 else {
      throw RESTError(.badRequest, "Invalid data; couldn't parse JSON object, array, or value.")
    }
    return try body.withUnsafeReadableBytes { raw in
      do throws(JSONError) {
        return try Node(json: raw, limits: endpoint.limits.data)
      } catch {
        throw error.realtimeError(in: raw)
      }
    }
  }

  // MARK: Output

  /// The body of the request as its response.
  private func echo(_ request: RESTRequest, _ body: ByteBuffer) -> HTTPResponse {
    let sent = body.withUnsafeReadableBytes { raw in
      (try? JSONValue(json: raw, limits: endpoint.limits.data.json)) ?? .null
    }
    return jsonResponse(request) { $0.write(sent) }
  }

  private func jsonResponse(_ request: RESTRequest, _ write: (inout JSONWriter) -> Void) -> HTTPResponse {
    var writer = JSONWriter(pretty: request.printing == .pretty)
    write(&writer)
    if request.printing == .pretty { writer.lineFeed() }
    guard let callback = request.callback else { return HTTPResponse(.ok, json: writer.bytes) }
    var script = Array("\(callback)(".utf8)
    script.append(contentsOf: writer.bytes)
    script.append(contentsOf: ");".utf8)
    var response = HTTPResponse(.ok, json: script)
    response.headers.replaceOrAdd(name: "content-type", value: "application/javascript; charset=utf-8")
    return response
  }

  /// Applies the output options of the request to a successful response.
  func applyOutputOptions(_ request: RESTRequest, _ response: HTTPResponse) -> HTTPResponse {
    var response = response
    if request.printing == .silent {
      response.status = .noContent
      response.body = ByteBuffer()
      response.headers.remove(name: "content-type")
    }
    if let name = request.download {
      response.headers.add(name: "content-disposition", value: "attachment; filename=\"\(name)\"")
    }
    return response
  }
}

extension ShallowNode {
  /// Writes the result of a shallow read: each child's key with the value true, or the value itself if the
  /// node is a leaf.
  fileprivate func write(_ writer: inout JSONWriter) {
    switch self {
    case .empty: writer.null()
    case .leaf(let value): writer.leaf(value)
    case .children(let keys):
      writer.beginObject()
      for key in keys {
        writer.key(key.text)
        writer.bool(true)
      }
      writer.endObject()
    }
  }
}
