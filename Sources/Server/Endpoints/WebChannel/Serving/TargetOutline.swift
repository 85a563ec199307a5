// What a ListenRequest says for certain, although it cannot be read: which target it adds. Who hears that a target failed
// gives it up; who loses the stream opens it again, and adds the same target for ever.
//
// Invariant: nothing is guessed. Text whose members are not JSON down to the target's own, that names no id or two, or that
// adds and removes, has no outline.

import JSON
import NIOCore
import RealtimeModel

/// The outline of a request that adds a target.
struct TargetOutline {
  /// The request's database and the target's id, in protobuf.
  let message: ByteBuffer
  /// Whether the target selects by a pipeline.
  let isPipeline: Bool

  init?(_ json: ByteBuffer) {
    let members = Self.hollowed(json).withUnsafeBytes { bytes -> Members? in
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

    /// Nil for what adds no target, or not one alone.
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

    /// Reads the target; false if it names two ids.
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

  /// The text with nothing in the objects and lists inside of a target, and with plain characters in a target's own texts:
  /// whatever is wrong there, the rest can be read.
  private static func hollowed(_ json: ByteBuffer) -> [UInt8] {
    var bytes = Array(json.readableBytesView)
    // The target's members are at the second level.
    var depth = 0
    var isText = false
    var isEscaped = false
    for index in bytes.indices {
      let byte = bytes[index]
      if isText {
        let isEnd = byte == UInt8(ascii: "\"") && !isEscaped
        let isPlain = !isEscaped && byte != UInt8(ascii: "\\") && (0x20..<0x7F).contains(byte)
        if depth > 2 { bytes[index] = UInt8(ascii: " ") }
        if depth == 2, !isPlain { bytes[index] = UInt8(ascii: "?") }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        isText = !isEnd
        continue
      }
      let opens = byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[")
      let closes = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
      if depth > (closes ? 3 : 2) { bytes[index] = UInt8(ascii: " ") }
      if opens { depth += 1 }
      if closes { depth -= 1 }
      isText = byte == UInt8(ascii: "\"")
    }
    return bytes
  }
}
