// Encodes watch responses of the engine as google.firestore.v1.ListenResponse.
//
// The engine encodes a changed document once. All streams share its bytes; only the target IDs around them differ.

import FirestoreEngine
import FirestoreModel
import GRPCFraming
import NIOCore

/// Encoder of Listen responses.
enum WatchEncoding {
  /// Encodes responses as length-prefixed messages in one buffer.
  static func encode(_ responses: [WatchResponse]) throws -> ByteBuffer {
    var buffer = ByteBuffer()
    for response in responses {
      try buffer.writeGRPCMessage { (buffer: inout ByteBuffer) in write(response, to: &buffer) }
    }
    return buffer
  }

  private static func write(_ response: WatchResponse, to buffer: inout ByteBuffer) {
    switch response {
    case .targetChange(let change):
      buffer.writeMessage(2) { write(change, to: &$0) }
    case .documentChange(let document, let targets, let removed):
      let length =
        ByteBuffer.fieldSize(document.encoded.count) + ByteBuffer.repeatedFieldSize(targets)
        + ByteBuffer.repeatedFieldSize(removed)
      buffer.reserveCapacity(minimumWritableBytes: length + 8)
      buffer.writeVarint(3 << 3 | 2)
      buffer.writeVarint(UInt64(length))
      buffer.writeField(1, document.encoded)
      buffer.writeField(5, repeated: targets)
      buffer.writeField(6, repeated: removed)
    case .documentDelete(let name, let readTime, let removed):
      buffer.writeMessage(4) { buffer in
        buffer.writeField(1, name.description)
        buffer.writeField(4, readTime)
        buffer.writeField(6, repeated: removed)
      }
    case .documentRemove(let name, let readTime, let removed):
      buffer.writeMessage(6) { buffer in
        buffer.writeField(1, name.description)
        buffer.writeField(2, repeated: removed)
        buffer.writeField(4, readTime)
      }
    case .existenceFilter(let id, let count, let names):
      buffer.writeMessage(5) { buffer in
        buffer.writeField(1, Int(id))
        buffer.writeField(2, count)
        if let names { buffer.writeMessage(3) { write(names, to: &$0) } }
      }
    }
  }

  private static func write(_ change: WatchTargetChange, to buffer: inout ByteBuffer) {
    buffer.writeField(1, change.kind.rawValue)
    buffer.writeField(2, repeated: change.targetIDs)
    if let cause = change.cause {
      buffer.writeMessage(3) { buffer in
        buffer.writeField(1, Int(cause.code.rawValue))
        buffer.writeField(2, cause.message)
      }
    }
    if !change.resumeToken.isEmpty { buffer.writeField(4, change.resumeToken) }
    if let time = change.readTime { buffer.writeField(6, time) }
  }

  private static func write(_ names: ExistenceNames, to buffer: inout ByteBuffer) {
    buffer.writeMessage(1) { buffer in
      buffer.writeField(1, names.bitmap)
      buffer.writeField(2, names.padding)
    }
    buffer.writeField(2, names.hashCount)
  }
}
