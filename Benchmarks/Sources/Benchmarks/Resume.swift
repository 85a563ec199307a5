// Resuming a client: the bytes that it receives for a large listen of which little has changed.

import NIOConcurrencyHelpers
import NIOCore

/// The bytes received by a listen until it is confirmed, and the time in microseconds: with the hashes of the
/// client's data before one child changed, or without hashes.
func resume(_ setting: Setting, children: Int, withHashes: Bool) async throws -> [Double] {
  let server = try setting.startHearth(["--ephemeral"], database: true)
  defer { server.stop() }
  let keys = (0..<children).map { "k\(String($0 + 10_000_000).dropFirst())" }
  func text(_ key: String) -> String {
    "the text of \(key), which is about a hundred characters long, as texts of messages are"
  }
  var json = "{"
  for key in keys { json += (json.utf8.count > 1 ? "," : "") + #""\#(key)":"\#(text(key))""# }
  json += "}"
  for (uri, body) in [("/list", json), ("/list/\(keys[children / 2])", #""changed""#)] {
    let status = try await HTTPTransfer.put(
      "\(uri).json?ns=bench&print=silent", port: server.port, on: setting.group,
      pieces: [ByteBuffer(string: body)])
    guard status == 204 else { throw BenchmarkFailure("PUT \(uri) answered \(status)") }
  }
  let hashes = withHashes ? RangeHashes(keys.map { ($0, text($0)) }) : nil
  let bytes = SharedCounter()
  let answered = NIOLockedValueBox<NIODeadline?>(nil)
  let client = try await WebSocketConnection.connect(
    port: server.port, path: "/.ws?v=5&ns=bench", on: setting.group
  ) { text, _ in
    bytes.add(text.readableBytes)
    if text.readableBytes < 200, text.contains(#""s":"ok""#) { answered.withLockedValue { $0 = .now() } }
  }
  let start = NIODeadline.now()
  let listened = hashes.map { #","h":"none","ch":\#($0.json)"# } ?? #","h":"""#
  client.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/list"\#(listened)}}}"#)
  try await waitUntil("the listen was not answered") { answered.withLockedValue { $0 != nil } }
  await close([client])
  let time = answered.withLockedValue { $0.map { Double(($0 - start).nanoseconds) / 1000 } ?? 0 }
  return [Double(bytes.value), time]
}

/// The compound hash of an object of strings, by the rules of the official clients.
private struct RangeHashes {
  /// The member `ch` of a listen.
  let json: String

  init(_ members: [(key: String, text: String)]) {
    let size = members.reduce(1) { $0 + $1.key.utf8.count + 4 + $1.text.utf8.count + 2 }
    let threshold = max(512, Int((100 * Double(size)).squareRoot()))
    var paths: [String] = []
    var hashes: [String] = []
    var range: [UInt8] = []
    for (index, member) in members.enumerated() {
      range += Array((range.isEmpty ? "(" : ",").utf8)
      range += Array(#""\#(member.key)":(string:"\#(member.text)""#.utf8)
      if range.count > threshold || index == members.count - 1 {
        paths.append(member.key)
        hashes.append(SHA1.base64(range + Array("))".utf8)))
        range = []
      } else {
        range += Array(")".utf8)
      }
    }
    let list = { (texts: [String]) in "[" + texts.map { "\"\($0)\"" }.joined(separator: ",") + "]" }
    json = #"{"ps":\#(list(paths)),"hs":\#(list(hashes + [""]))}"#
  }
}
