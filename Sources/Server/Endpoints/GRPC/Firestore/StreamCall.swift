// What the two streams have beyond any conversation: their messages may have come in another form than protobuf, in which
// some cannot be read. What that is the end of, the stream decides, as it does for what is wrong in protobuf.

import FirestoreModel
import NIOCore

/// A stream's message that cannot be read in the form it came in.
struct UnreadableMessage: Error {
  var error: FirestoreError
  /// What can be read of it, in protobuf, if that tells what the error concerns.
  var rest: ByteBuffer?
}

/// The server's side of a Listen or Write stream.
protocol StreamCall: GRPCCall {
  /// Takes the next message, which cannot be read, behind those that came before.
  func receive(_ message: UnreadableMessage)
}
