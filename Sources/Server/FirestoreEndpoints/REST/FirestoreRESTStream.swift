// Writes the response of a streaming method as one JSON array.
//
// Invariant: nothing is sent before the method ends or the response exceeds `maximumHeldBytes`. An error before that
// moment determines the HTTP status, the only part that many clients read. A later error is the last element of the
// array. Held bytes count against the memory limit that all connections share.

import FirestoreEngine
import FirestoreModel
import JSON
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import Ports
import RealtimeModel

/// Sends the messages of a streaming method as the elements of a JSON array.
final class FirestoreRESTStream: CallResponder {
  /// Maximum response bytes that are held until the method ends.
  static let maximumHeldBytes = 4 << 20

  private struct State {
    var held = ByteBuffer()
    var isEmpty = true
    var hasBegun = false
    var isFinished = false
  }

  private enum Step {
    case hold
    case send(ByteBuffer, isFirst: Bool)
  }

  let memory: any ResultMemory
  var eventLoop: any EventLoop { responder.eventLoop }
  private let responder: HTTPResponder
  private let message: MessageName
  private let state = NIOLockedValueBox(State())

  init(_ responder: HTTPResponder, of message: MessageName) {
    self.responder = responder
    // The stream holds results as JSON, which takes up to twice the bytes of their protobuf encoding.
    memory = CallMemory(pages: responder.pageMemory, factor: 2)
    self.message = message
  }

  func send(_ framed: ByteBuffer, onWait: @escaping @Sendable () -> Void) async throws {
    switch try hold(framed) {
    case .hold: break
    case .send(let bytes, let isFirst):
      if isFirst { responder.begin(.ok, HTTPResponse.jsonHeaders) }
      onWait()
      try await responder.send(bytes)
    }
  }

  func finish(_ status: GRPCStatus) {
    let (rest, hasBegun, wasFinished) = state.withLockedValue { state in
      defer {
        state.isFinished = true
        state.held = ByteBuffer()
      }
      return (state.held, state.hasBegun, state.isFinished)
    }
    if wasFinished { return }
    responder.pageMemory.count(from: rest.readableBytes, to: 0)
    let error = status.code == .ok ? nil : FirestoreError(status)
    if hasBegun {
      var rest = rest
      rest.writeImmutableBuffer(closingBytes(error))
      let last = rest
      responder.start { [responder] in
        guard (try? await responder.send(last)) != nil else { return }
        responder.finish()
      }
    } else if let error {
      responder.respond(.error(error, inArray: true))
    } else {
      var body = rest
      if body.readableBytes == 0 { body.writeString("[") }
      body.writeString("]\n")
      responder.respond(HTTPResponse(status: .ok, headers: HTTPResponse.jsonHeaders, body: body))
    }
  }

  /// Does nothing: the only request message has already been read.
  func setReading(_ enabled: Bool) {}

  /// Does nothing: the HTTP connection counts the request's bytes.
  func updateHeldBytes() {}

  func start(_ operation: @escaping @Sendable () async -> Void) { responder.start(operation) }

  private func hold(_ framed: ByteBuffer) throws -> Step {
    let elements = try elements(framed)
    return try state.withLockedValue { state in
      guard !state.isFinished else { throw CancellationError() }
      let before = state.held.readableBytes
      for element in elements {
        state.held.writeString(state.isEmpty ? "[" : "\n,\r\n")
        state.isEmpty = false
        state.held.writeBytes(element)
      }
      guard state.held.readableBytes > Self.maximumHeldBytes || state.hasBegun else {
        responder.pageMemory.count(from: before, to: state.held.readableBytes)
        return .hold
      }
      // From here on the HTTP exchange counts the bytes, because it sends them.
      responder.pageMemory.count(from: before, to: 0)
      defer {
        state.held = ByteBuffer()
        state.hasBegun = true
      }
      return .send(state.held, isFirst: !state.hasBegun)
    }
  }

  /// Converts framed messages to JSON.
  private func elements(_ framed: ByteBuffer) throws -> [[UInt8]] {
    var framed = framed
    var elements: [[UInt8]] = []
    while let message = framed.readGRPCMessage() {
      var writer = JSONWriter(capacity: message.readableBytes * 2)
      try FirestoreJSON.write(message, as: self.message, to: &writer)
      elements.append(writer.bytes)
    }
    return elements
  }

  private func closingBytes(_ error: FirestoreError?) -> ByteBuffer {
    var bytes = ByteBuffer()
    if let error {
      var writer = JSONWriter()
      writer.error(GRPCStatus(error), code: error.code.httpStatus)
      bytes.writeString("\n,\r\n")
      bytes.writeBytes(writer.bytes)
    }
    bytes.writeString("]\n")
    return bytes
  }
}

extension ByteBuffer {
  /// Reads the next message of this server from its gRPC frame; nil at the end.
  mutating func readGRPCMessage() -> ByteBuffer? {
    guard readInteger(as: UInt8.self) != nil, let length = readInteger(as: UInt32.self) else { return nil }
    return readSlice(length: Int(length))
  }
}

extension FirestoreError {
  /// Converts the status of a call.
  init(_ status: GRPCStatus) {
    self.init(StatusCode(rawValue: Int32(clamping: status.code.rawValue)), status.message)
    fieldViolations = status.details.fieldViolations.map {
      .init(field: $0.field, description: $0.description)
    }
    reason = status.details.reason
  }
}
