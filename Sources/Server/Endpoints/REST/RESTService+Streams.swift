// Values that are too large for memory: they leave piece by piece, and arrive piece by piece. The log tells how far they
// are.

import Logging
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

extension RESTRequest {
  /// Whether the value may be written out while it is read: nothing that is asked for needs all of it first.
  var mayStream: Bool {
    method == .get && query == nil && !isShallow && !wantsETag && printing != .silent && callback == nil
      && !path.isPriority && !hasTimeout
  }

  /// Whether the body may be written while it arrives: nothing depends on what is there.
  var mayImport: Bool { method == .put && condition == .none && !wantsETag && !path.isPriority }

  /// The most bytes that the body may have.
  func mostBodyBytes(_ limits: RealtimeEndpointLimits) -> Int {
    mayImport && writeSizeLimit == .unlimited ? limits.importBytes : limits.data.restWriteBytes
  }
}

extension RESTService {
  /// Answers with a value piece by piece; at once where one piece is all.
  func stream(
    _ request: RESTRequest, isExport: Bool, isLimited: Bool = true, _ database: RealtimeDatabase
  ) async throws -> RESTResponse {
    let export = try await database.export(
      request.path, isExport: isExport, pretty: request.printing == .pretty, isLimited: isLimited,
      as: request.caller)
    guard let (first, isLast) = try await export.next() else {
      throw RealtimeError(.failure, "internal error")
    }
    var bytes = first
    if isLast, request.printing == .pretty { bytes.append(0x0A) }
    var response = RESTResponse(.ok, json: bytes)
    if !isLast {
      response.rest = RESTStream(
        export, endsLine: request.printing == .pretty,
        progress: StreamProgress(endpoint, "export of /\(request.path) of \(request.namespace)"))
    }
    return finish(request, response)
  }

  /// Writes a body while it arrives.
  func write(_ request: RESTRequest, _ body: BodyQueue) async -> RESTResponse {
    do {
      let database = try await endpoint.engine.database(request.namespace)
      let writing = try await database.beginImport(
        at: request.path, maximumBytes: request.mostBodyBytes(endpoint.limits), as: request.caller)
      let most = try await request.sizeLimit(in: database)?.values
      let standing: Int
      if let most {
        standing = try await database.estimate(
          request.path, [(.root, .empty)], atMost: most + 1, as: request.caller)
      } else {
        standing = 0
      }
      var form = request.form
      var held = 0
      var progress = StreamProgress(endpoint, "import into /\(request.path) of \(request.namespace)")
      taking: while true {
        switch await body.next() {
        case .piece(let piece):
          try await writing.add(try form?.take(piece) ?? piece)
          let pending = await writing.pendingBytes
          body.taken(held + piece.count - pending)
          held = pending
          if let most, await standing + writing.values > most { throw RealtimeError.writeTooBig }
          progress.add(piece.count)
        case .end:
          try form?.finish()
          break taking
        case .broken: throw RESTError(.badRequest, "The request did not arrive whole.")
        }
      }
      try await writing.finish()
      progress.finish()
      guard request.printing != .silent else { return finish(request, RESTResponse(.ok, json: [])) }
      return try await stream(request, isExport: false, isLimited: false, database)
    } catch {
      return RESTResponse(RESTError(error))
    }
  }
}

/// The rest of an answer whose beginning is known.
final class RESTStream: Sendable {
  private let export: RealtimeExport
  private let endsLine: Bool
  let progress: StreamProgress

  init(_ export: RealtimeExport, endsLine: Bool, progress: StreamProgress) {
    self.export = export
    self.endsLine = endsLine
    self.progress = progress
  }

  /// The next piece; nil behind the last.
  func next() async throws -> ByteBuffer? {
    guard let (bytes, isLast) = try await export.next() else { return nil }
    var piece = ByteBuffer(bytes: bytes)
    if isLast, endsLine { piece.writeInteger(UInt8(ascii: "\n")) }
    return piece
  }
}

/// How far a value has come, told in the log from time to time.
struct StreamProgress: Sendable {
  private let log: Logger
  private let step: Int
  private let what: String
  private var bytes = 0
  private var told = 0

  init(_ endpoint: RealtimeEndpoint, _ what: String) {
    log = endpoint.log
    step = endpoint.limits.progressBytes
    self.what = what
  }

  mutating func add(_ count: Int) {
    bytes += count
    guard bytes - told >= step else { return }
    told = bytes
    log.notice("\(what): \(bytes >> 20) MiB so far")
  }

  func finish() {
    if told > 0 { log.notice("\(what): done, \(bytes >> 20) MiB") }
  }
}
