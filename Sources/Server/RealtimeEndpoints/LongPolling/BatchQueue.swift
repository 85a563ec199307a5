// A batch queue holds the messages for a browser's next poll, and writes them as scripts.
//
// The response to a poll is a script that passes a batch of messages to the client. Batches are numbered
// consecutively, and the client processes them in that order.
//
// Invariant: each number is used for one batch only, and each batch answers one poll.

import NIOCore

/// The messages for a client that polls.
struct BatchQueue: Sendable {
  private var messages = CircularBuffer<ByteBuffer>()
  /// The bytes of the queued messages.
  private(set) var bytes = 0
  private var next = 0

  var isEmpty: Bool { messages.isEmpty }

  var count: Int { messages.count }

  mutating func append(_ message: ByteBuffer) {
    messages.append(message)
    bytes += message.readableBytes
  }

  /// Removes the first messages that fit into `limit` bytes, but at least one if any is queued. Returns them as
  /// a batch: a script that calls the client's function.
  mutating func nextBatch(limit: Int) -> ByteBuffer {
    var script = ByteBuffer()
    script.writeString("pRTLPCB(\(next),[")
    next += 1
    var isFirst = true
    while let message = messages.first, isFirst || script.readableBytes + message.readableBytes <= limit {
      messages.removeFirst()
      bytes -= message.readableBytes
      if !isFirst { script.writeStaticString(",") }
      isFirst = false
      script.writeScriptLiteral(message)
    }
    script.writeStaticString("]);\n")
    return script
  }

  /// Returns the script that announces the end of the batches.
  func closingScript() -> ByteBuffer {
    // The number of the last batch lets the client process it before closing. Clients treat number 0 like a
    // missing number, so it is omitted if there was only one batch.
    ByteBuffer(string: next > 1 ? "pLPCommand('close',\(next - 1));\n" : "pLPCommand('close');\n")
  }
}

extension ByteBuffer {
  /// Writes JSON as a JavaScript expression. JSON strings may contain the line separators U+2028 and U+2029.
  /// JavaScript before ECMAScript 2019 requires them to be escaped.
  fileprivate mutating func writeScriptLiteral(_ json: ByteBuffer) {
    let view = json.readableBytesView
    var start = view.startIndex
    var index = start
    while index < view.endIndex {
      // In UTF-8, U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
      if view[index] == 0xE2, index + 2 < view.endIndex, view[index + 1] == 0x80,
        view[index + 2] & 0xFE == 0xA8
      {
        writeBytes(view[start..<index])
        writeString(view[index + 2] == 0xA8 ? "\\u2028" : "\\u2029")
        index += 3
        start = index
      } else {
        index += 1
      }
    }
    writeBytes(view[start...])
  }
}
