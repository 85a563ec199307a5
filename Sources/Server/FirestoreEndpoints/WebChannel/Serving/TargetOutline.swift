// A target outline: the database and target ID of a malformed ListenRequest in JSON.
//
// With the ID, the server can end only this target, and the client removes it. If the stream ended instead, the client
// would reopen the stream and add the same target again, without end.
//
// Invariant: the outline is never guessed. A request has none if its outer members or the members of its target are not
// valid JSON. It also has none if it removes a target, or does not contain exactly one target ID.

import JSON
import NIOCore
import RealtimeModel

/// The identifying fields of a request that adds a target.
struct TargetOutline {
  /// The request's database and the target's id, in protobuf.
  let message: ByteBuffer
  /// Whether the target selects by a pipeline.
  let isPipeline: Bool

  init?(_ json: ByteBuffer) {
    let members = Self.blankingNestedValues(json).withUnsafeBytes { bytes -> Members? in
      do throws(JSONError) { return try Members(bytes) } catch { return nil }
    }
    guard let members, let id = members.id else { return nil }
    var writer = WireWriter(capacity: 256)
    if let database = members.database { writer.string(1, database) }
    let target = writer.begin(2)
    guard id.write(.int32, 5, to: &writer) else { return nil }
    writer.end(target)
    message = writer.finish()
    isPipeline = members.hasPipeline && !members.hasSelection
  }

  private struct Members {
    var database: String?
    var id: JSONToken?
    var hasSelection = false
    var hasPipeline = false

    /// Parses the members; nil if the request does not add exactly one target.
    init?(_ bytes: UnsafeRawBufferPointer) throws(JSONError) {
      var reader = try JSONReader(unsafeBytes: bytes)
      guard try reader.peekKind() == .object else { return nil }
      try reader.beginObject()
      var hasTarget = false
      while let key = try reader.nextKey() {
        let kind = try reader.peekKind()
        switch key {
        case "database" where kind == .string: database = try reader.readString()
        case "addTarget", "add_target":
          guard kind == .object, !hasTarget, try readTarget(&reader) else { return nil }
          hasTarget = true
        case "removeTarget", "remove_target": return nil
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    }

    /// Reads the target; false if its ID is repeated or not a number or string.
    private mutating func readTarget(_ reader: inout JSONReader) throws(JSONError) -> Bool {
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch key {
        case "targetId", "target_id":
          var token = JSONToken(kind: try reader.peekKind())
          switch token.kind {
          case .number: token.number = try reader.readNumber()
          case .string: token.text = try reader.readString()
          default: return false
          }
          guard id == nil else { return false }
          id = token
          continue
        case "query", "documents": hasSelection = true
        case "pipelineQuery", "pipeline_query": hasPipeline = true
        default: break
        }
        try reader.skipValue()
      }
      return true
    }
  }

  /// Returns the JSON with spaces in place of all values nested in a target, and with "?" for escapes and non-ASCII
  /// characters in strings of the target. Then defects in these places do not prevent parsing of the other members.
  private static func blankingNestedValues(_ json: ByteBuffer) -> [UInt8] {
    var bytes = Array(json.readableBytesView)
    // The members of the target are at depth 2.
    var depth = 0
    var isString = false
    var isEscaped = false
    for index in bytes.indices {
      let byte = bytes[index]
      if isString {
        let isEnd = byte == UInt8(ascii: "\"") && !isEscaped
        let isPlain = !isEscaped && byte != UInt8(ascii: "\\") && (0x20..<0x7F).contains(byte)
        if depth > 2 { bytes[index] = UInt8(ascii: " ") }
        if depth == 2, !isPlain { bytes[index] = UInt8(ascii: "?") }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        isString = !isEnd
        continue
      }
      let opens = byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[")
      let closes = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
      if depth > (closes ? 3 : 2) { bytes[index] = UInt8(ascii: " ") }
      if opens { depth += 1 }
      if closes { depth -= 1 }
      isString = byte == UInt8(ascii: "\"")
    }
    return bytes
  }
}
