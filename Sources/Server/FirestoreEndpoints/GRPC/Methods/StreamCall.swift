// A stream call: the server side of a Listen or Write stream, over gRPC or WebChannel.
//
// WebChannel carries JSON, so decoding a message can fail before it reaches the stream. The stream handles the failure
// like malformed protobuf: it ends one target or the stream.

import FirestoreModel
import NIOCore

/// A message whose JSON could not be decoded.
struct MalformedMessage: Error {
  /// The decoding error.
  var error: FirestoreError
  /// The fields that identify the target of the failed request, in protobuf; nil if they are unknown.
  var targetFields: ByteBuffer?
}

/// The server side of a Listen or Write stream.
protocol StreamCall: GRPCCall {
  /// Receives a message that could not be decoded, in order with the other messages.
  func receive(_ message: MalformedMessage)
}
