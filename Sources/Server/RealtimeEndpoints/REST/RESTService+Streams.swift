// Exports and imports values that are too large for memory in chunks. The server logs the progress.

import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel

extension RESTRequest {
  /// Whether the value may be sent in chunks while it is read. False if the response depends on the complete
  /// value.
  var mayStream: Bool {
    method == .get && query == nil && !isShallow && !wantsETag && printing != .silent && callback == nil
      && !path.isPriority && !hasTimeout
  }

  /// Whether the body may be written in chunks while it arrives. False if the write depends on stored data.
  var mayImport: Bool { method == .put && condition == .none && !wantsETag && !path.isPriority }

  /// Maximum size of the body, in bytes.
  func maximumBodyBytes(_ limits: RealtimeEndpointLimits) -> Int {
    mayImport && writeSizeLimit == .unlimited ? limits.importBytes : limits.data.restWriteBytes
  }
}

extension RESTService {
  /// Responds with a value in chunks. A value of one chunk becomes an ordinary body.
  func stream(
    _ request: RESTRequest, isExport: Bool, isLimited: Bool = true, _ database: RealtimeDatabase
  ) async throws -> HTTPResponse {
    let export = try await database.export(
      request.path, isExport: isExport, pretty: request.printing == .pretty, isLimited: isLimited,
      as: request.caller)
    guard let (first, isLast) = try await export.next() else {
      throw RealtimeError(.failure, "internal error")
    }
    var bytes = first
    if isLast, request.printing == .pretty { bytes.append(0x0A) }
    var response = HTTPResponse(.ok, json: bytes)
    if !isLast {
      var progress = StreamProgress(endpoint, "export of /\(request.path) of \(request.namespace)")
      progress.add(bytes.count)
      response.rest = ExportBody(export, endsLine: request.printing == .pretty, progress, endpoint.log)
    }
    return applyOutputOptions(request, response)
  }

  /// Writes a body while it arrives.
  func write(_ request: RESTRequest, _ body: BodyQueue) async -> HTTPResponse {
    do {
      let database = try await endpoint.engine.database(request.namespace)
      let valueImport = try await database.beginImport(
        at: request.path, maximumBytes: request.maximumBodyBytes(endpoint.limits), as: request.caller)
      let maximum = try await request.sizeLimit(in: database)?.maximumValues
      let storedValues: Int
      if let maximum {
        storedValues = try await database.estimate(
          request.path, [(.root, .empty)], atMost: maximum + 1, as: request.caller)
      } else {
        storedValues = 0
      }
      var form = request.form
      var held = 0
      var progress = StreamProgress(endpoint, "import into /\(request.path) of \(request.namespace)")
      chunks: while true {
        switch await body.next() {
        case .chunk(let chunk):
          try await valueImport.add(try form?.read(chunk) ?? chunk)
          let pending = await valueImport.pendingBytes
          body.onConsumed(held + chunk.count - pending)
          held = pending
          if let maximum, await storedValues + valueImport.values > maximum {
            throw RealtimeError.writeTooBig
          }
          progress.add(chunk.count)
        case .end:
          try form?.finish()
          break chunks
        case .broken: throw RESTError(.badRequest, "The request did not arrive completely.")
        }
      }
      try await valueImport.finish()
      progress.finish()
      guard request.printing != .silent else {
        return applyOutputOptions(request, HTTPResponse(.ok, json: []))
      }
      return try await stream(request, isExport: false, isLimited: false, database)
    } catch {
      return HTTPResponse(RESTError(error))
    }
  }
}

/// The remaining chunks of an export.
private final class ExportBody: HTTPBodySource {
  private let export: RealtimeExport
  private let endsLine: Bool
  private let progress: NIOLockedValueBox<StreamProgress>
  private let log: Logger

  init(_ export: RealtimeExport, endsLine: Bool, _ progress: StreamProgress, _ log: Logger) {
    self.export = export
    self.endsLine = endsLine
    self.progress = NIOLockedValueBox(progress)
    self.log = log
  }

  func next() async throws -> ByteBuffer? {
    do {
      guard let (bytes, isLast) = try await export.next() else {
        progress.withLockedValue { $0.finish() }
        return nil
      }
      var chunk = ByteBuffer(bytes: bytes)
      if isLast, endsLine { chunk.writeInteger(UInt8(ascii: "\n")) }
      progress.withLockedValue { [count = chunk.readableBytes] in $0.add(count) }
      return chunk
    } catch {
      if !Task.isCancelled { log.error("an export was truncated: \(error)") }
      throw error
    }
  }

  func outOfMemory() { log.info("an export was truncated: the server has no memory for its next chunk") }
}

/// The progress of an import or export, logged at intervals.
struct StreamProgress: Sendable {
  private let log: Logger
  private let step: Int
  private let subject: String
  private var bytes = 0
  private var loggedBytes = 0

  init(_ endpoint: RealtimeEndpoint, _ subject: String) {
    log = endpoint.log
    step = endpoint.limits.progressBytes
    self.subject = subject
  }

  mutating func add(_ count: Int) {
    bytes += count
    guard bytes - loggedBytes >= step else { return }
    loggedBytes = bytes
    log.notice("\(subject): \(bytes >> 20) MiB so far")
  }

  func finish() {
    if loggedBytes > 0 { log.notice("\(subject): done, \(bytes >> 20) MiB") }
  }
}
