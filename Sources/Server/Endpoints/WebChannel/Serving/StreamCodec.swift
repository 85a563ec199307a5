// The messages of the two streams as proto3 JSON, which WebChannel carries, to and from the protobuf that the streams
// themselves read and write.

import FirestoreModel
import FirestoreProtobuf
import GRPCFraming
import NIOCore
import RealtimeModel
import SwiftProtobuf

/// Reads and writes one stream's messages.
struct StreamCodec: Sendable {
  private let stream: FirestoreRoute.Channel

  init(_ stream: FirestoreRoute.Channel) {
    self.stream = stream
  }

  /// A request in protobuf; INVALID_ARGUMENT for text that is not the stream's message.
  func decode(_ json: ByteBuffer) -> Result<ByteBuffer, FirestoreError> {
    do throws(FirestoreError) {
      switch stream {
      case .listen: return .success(try Self.decode(json, as: Google_Firestore_V1_ListenRequest.self))
      case .write: return .success(try Self.decode(json, as: Google_Firestore_V1_WriteRequest.self))
      }
    } catch {
      return .failure(error)
    }
  }

  /// Framed answers, each as the only element of an array, which is the form that clients expect.
  @Sendable func encode(_ framed: ByteBuffer) throws -> [ByteBuffer] {
    var rest = framed
    var payloads: [ByteBuffer] = []
    while rest.readableBytes > 0 {
      // A byte that says that the message is not compressed, then its length.
      guard rest.readInteger(as: UInt8.self) == 0, let length = rest.readInteger(as: UInt32.self),
        let message = rest.readBytes(length: Int(length))
      else { throw GRPCStatus(.internal, "An answer is not framed as it has to be.") }
      payloads.append(try encode(message))
    }
    return payloads
  }

  private func encode(_ message: [UInt8]) throws -> ByteBuffer {
    let json: [UInt8] =
      switch stream {
      case .listen: try Google_Firestore_V1_ListenResponse(serializedBytes: message).jsonUTF8Bytes()
      case .write: try Google_Firestore_V1_WriteResponse(serializedBytes: message).jsonUTF8Bytes()
      }
    var payload = ByteBuffer(string: "[")
    payload.writeBytes(json)
    payload.writeString("]")
    return payload
  }

  private static func decode<Request: Message>(
    _ json: ByteBuffer, as type: Request.Type
  ) throws(FirestoreError) -> ByteBuffer {
    do {
      let request = try Request(jsonUTF8Bytes: Array(json.readableBytesView))
      return ByteBuffer(bytes: try request.serializedBytes() as [UInt8])
    } catch {
      throw .invalidArgument(
        "Payload isn't valid for request. (It is not a \(Request.protoMessageName): \(error))")
    }
  }
}

extension WebChannelFrames {
  /// What tells a client that its stream has failed. Its message is never empty, which clients take for a broken answer.
  static func error(_ status: GRPCStatus) -> ByteBuffer {
    var writer = JSONWriter()
    writer.beginArray()
    writer.beginObject()
    writer.key("error")
    writer.beginObject()
    writer.key("code")
    writer.int(Int64(status.code.rawValue))
    writer.key("message")
    writer.string(status.message.isEmpty ? "The stream failed with \(status.code.name)." : status.message)
    writer.key("status")
    writer.string(status.code.name)
    writer.endObject()
    writer.endObject()
    writer.endArray()
    return ByteBuffer(bytes: writer.bytes)
  }
}
