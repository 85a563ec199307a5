// The messages that wait for a browser's next poll, and the scripts that carry them.
//
// Every script that carries a batch has the next number; the client puts batches in order by it. Invariant: a number is
// used once, for a batch that is answered to a poll.

import NIOCore

/// Messages on their way to a client that polls.
struct BatchQueue: Sendable {
  private var messages = CircularBuffer<ByteBuffer>()
  /// The bytes of the messages that wait.
  private(set) var bytes = 0
  private var next = 0

  var isEmpty: Bool { messages.isEmpty }

  var count: Int { messages.count }

  mutating func append(_ message: ByteBuffer) {
    messages.append(message)
    bytes += message.readableBytes
  }

  /// The next batch as a call of the client's function: as many messages as fit into `limit` bytes, and at least one if
  /// there is any.
  mutating func batch(limit: Int) -> ByteBuffer {
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

  /// Tells the client that nothing follows the batches so far.
  func close() -> ByteBuffer {
    // Number 0 is not told from no number by clients, and so small a session has nothing that could be overtaken.
    ByteBuffer(string: next > 1 ? "pLPCommand('close',\(next - 1));\n" : "pLPCommand('close');\n")
  }
}

extension ByteBuffer {
  /// Writes JSON as an expression of JavaScript: two line separators may stand in texts of JSON, but not in those of
  /// older JavaScript (they may since ECMAScript 2019).
  fileprivate mutating func writeScriptLiteral(_ json: ByteBuffer) {
    let view = json.readableBytesView
    var start = view.startIndex
    var index = start
    while index < view.endIndex {
      // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
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
