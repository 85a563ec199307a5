// The stream codec: converts messages between proto3 JSON, which WebChannel carries, and protobuf, which the streams
// use.

import FirestoreModel
import GRPCFraming
import JSON
import NIOCore
import RealtimeModel

/// Converts the messages of one stream.
struct StreamCodec: Sendable {
  private let request: MessageName
  private let response: MessageName

  init(_ stream: FirestoreRoute.Channel) {
    switch stream {
    case .listen: (request, response) = (.listenRequest, .listenResponse)
    case .write: (request, response) = (.writeRequest, .writeResponse)
    }
  }

  /// Converts a request to protobuf.
  ///
  /// A malformed request yields an INVALID_ARGUMENT error. A target that selects by a pipeline is converted without its
  /// selection, so that the stream rejects it as it does over gRPC.
  func decode(_ json: ByteBuffer) -> Result<ByteBuffer, MalformedMessage> {
    do throws(FirestoreError) {
      return .success(try FirestoreJSON.message(json, as: request))
    } catch {
      guard case .listenRequest = request, let outline = TargetOutline(json) else {
        return .failure(MalformedMessage(error: error))
      }
      if outline.isPipeline { return .success(outline.message) }
      return .failure(MalformedMessage(error: error, targetFields: outline.message))
    }
  }

  /// Converts length-prefixed responses to JSON. Clients expect each response as the only element of an array.
  @Sendable func encode(_ framed: ByteBuffer) throws -> [ByteBuffer] {
    var rest = framed
    var payloads: [ByteBuffer] = []
    while rest.readableBytes > 0 {
      // The gRPC prefix: a compression flag of 0, then the message length.
      guard rest.readInteger(as: UInt8.self) == 0, let length = rest.readInteger(as: UInt32.self),
        let message = rest.readSlice(length: Int(length))
      else { throw GRPCStatus(.internal, "A response is not framed correctly.") }
      var writer = JSONWriter(capacity: 2 * message.readableBytes)
      writer.beginArray()
      try FirestoreJSON.write(message, as: response, to: &writer)
      writer.endArray()
      payloads.append(ByteBuffer(bytes: writer.bytes))
    }
    return payloads
  }
}

extension WebChannelFrames {
  /// Returns the payload that reports a stream error to the client.
  ///
  /// The message of `status` is never empty: clients treat an empty message as a malformed response.
  static func error(_ status: GRPCStatus) -> ByteBuffer {
    var writer = JSONWriter()
    writer.beginArray()
    writer.error(status, code: Int(status.code.rawValue))
    writer.endArray()
    return ByteBuffer(bytes: writer.bytes)
  }
}
