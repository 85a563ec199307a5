// A received array is one message of a WebChannel back channel, the long response in which the server sends
// its messages. Each message is a JSON array with a number. This file decodes the back channel's frames as a
// client does.

import JSON
import NIOCore
import RealtimeModel

/// One array that a client received: its number and its payload.
struct ReceivedArray {
  var id: Int
  var payload: JSONValue

  /// The number and the payload's JSON, separated by a space.
  var text: String { "\(id) \(String(decoding: payload.json(), as: UTF8.self))" }

  /// Removes all complete frames from the buffer and returns their arrays. An incomplete frame remains.
  static func consume(_ bytes: inout ByteBuffer) -> [ReceivedArray] {
    var arrays: [ReceivedArray] = []
    while let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")),
      let length = Int(String(decoding: bytes.readableBytesView[..<end], as: UTF8.self)),
      let chunk = chunk(bytes.readableBytesView[(end + 1)...], units: length)
    {
      bytes.moveReaderIndex(to: end + 1 + chunk.utf8.count)
      for array in (try? JSONValue(json: chunk))?.array ?? [] {
        if let id = array.array?.first?.int, let payload = array.array?.last {
          arrays.append(ReceivedArray(id: Int(id), payload: payload))
        }
      }
    }
    return arrays
  }

  /// Returns the arrays of all complete frames.
  static func all(_ bytes: ByteBuffer) -> [ReceivedArray] {
    var bytes = bytes
    return consume(&bytes)
  }

  /// Returns the first `units` UTF-16 code units; nil if there are fewer.
  private static func chunk(_ bytes: ByteBufferView, units: Int) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf16.count >= units else { return nil }
    return String(decoding: Array(text.utf16.prefix(units)), as: UTF16.self)
  }
}
