// The messages of the two streams as proto3 JSON, which WebChannel carries, to and from the protobuf that the streams
// themselves read and write.

import FirestoreModel
import GRPCFraming
import JSON
import NIOCore
import RealtimeModel

/// Reads and writes one stream's messages.
struct StreamCodec: Sendable {
  private let request: MessageName
  private let answer: MessageName

  init(_ stream: FirestoreRoute.Channel) {
    switch stream {
    case .listen: (request, answer) = (.listenRequest, .listenResponse)
    case .write: (request, answer) = (.writeRequest, .writeResponse)
    }
  }

  /// A request in protobuf; INVALID_ARGUMENT for text that is not the stream's message. A target of a kind that the
  /// tables do not know is handed on without what it selects, which is refused as it is over gRPC.
  func decode(_ json: ByteBuffer) -> Result<ByteBuffer, UnreadableMessage> {
    do throws(FirestoreError) {
      return .success(try FirestoreJSON.message(json, as: request))
    } catch {
      guard case .listenRequest = request, let outline = TargetOutline(json) else {
        return .failure(UnreadableMessage(error: error))
      }
      if outline.isPipeline { return .success(outline.message) }
      return .failure(UnreadableMessage(error: error, rest: outline.message))
    }
  }

  /// Framed answers, each as the only element of an array, which is the form that clients expect.
  @Sendable func encode(_ framed: ByteBuffer) throws -> [ByteBuffer] {
    var rest = framed
    var payloads: [ByteBuffer] = []
    while rest.readableBytes > 0 {
      // A byte that says that the message is not compressed, then its length.
      guard rest.readInteger(as: UInt8.self) == 0, let length = rest.readInteger(as: UInt32.self),
        let message = rest.readSlice(length: Int(length))
      else { throw GRPCStatus(.internal, "An answer is not framed as it has to be.") }
      var writer = JSONWriter(capacity: 2 * message.readableBytes)
      writer.beginArray()
      try FirestoreJSON.write(message, as: answer, to: &writer)
      writer.endArray()
      payloads.append(ByteBuffer(bytes: writer.bytes))
    }
    return payloads
  }
}

extension WebChannelFrames {
  /// What tells a client that its stream has failed. Its message is never empty, which clients take for a broken answer.
  static func error(_ status: GRPCStatus) -> ByteBuffer {
    var writer = JSONWriter()
    writer.beginArray()
    writer.error(status, code: Int(status.code.rawValue))
    writer.endArray()
    return ByteBuffer(bytes: writer.bytes)
  }
}
