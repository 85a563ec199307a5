// Writes the values of `debug()` as text. As in Google's emulator, a value has the text form of protocol buffers. The
// position of the call precedes it.

import FirestoreModel

extension FirestoreRuleset {
  /// The maximum number of `debug()` calls of one evaluation whose values are written.
  private static let maximumDebugTexts = 100

  /// The texts of the calls of `debug()` in an evaluation, in the order of evaluation.
  func debugTexts(of trace: RuleTrace) -> [String] {
    guard usesDebug else { return [] }
    return trace.entries.lazy.compactMap { node, outcome in
      guard case .builtin(.debug, _) = self.program.nodes[Int(node)], case .value(let value) = outcome
      else { return nil }
      let position = self.program.positions[Int(node)]
      return "debug() at line \(position.line), column \(position.column)\n\(DebugTextWriter.text(of: value))"
    }.prefix(Self.maximumDebugTexts).map(\.self)
  }
}

extension RuleProgram {
  /// Whether an expression calls `debug()`. Iterates over all expressions.
  var usesDebug: Bool {
    nodes.contains { if case .builtin(.debug, _) = $0 { true } else { false } }
  }
}

/// Writes a value of rules in the text form of protocol buffers.
///
/// Values beyond the limits are truncated: items and fields are omitted, and text ends early.
package struct DebugTextWriter {
  private static let maximumDepth = 8
  private static let maximumBytes = 512
  /// The number of values that may still be written.
  private var remaining = 200
  private var lines: [String] = []
  private var depth = 0

  /// The text of a value: lines without a final line feed.
  package static func text(of value: RuleValue) -> String {
    var writer = DebugTextWriter()
    writer.write(value)
    return writer.lines.joined(separator: "\n")
  }

  private mutating func addLine(_ text: String) {
    lines.append(String(repeating: "  ", count: depth) + text)
  }

  private mutating func writeMessage(_ name: String, _ body: (inout DebugTextWriter) -> Void = { _ in }) {
    addLine("\(name) {")
    depth += 1
    body(&self)
    depth -= 1
    addLine("}")
  }

  private mutating func write(_ value: RuleValue) {
    remaining -= 1
    switch value {
    case .null: addLine("null_value: NULL_VALUE")
    case .bool(let value): addLine("bool_value: \(value)")
    case .int(let value): addLine("int_value: \(value)")
    case .float(let value): addLine("float_value: \(RuleNumbers.text(value))")
    case .string(let text): addLine("string_value: \(Self.quoted(text.string.utf8))")
    case .bytes(let bytes): addLine("bytes_value: \(Self.quoted(bytes))")
    case .timestamp(let time):
      writeMessage("timestamp_value") { $0.writeTime(time.seconds, time.nanoseconds) }
    case .duration(let span): writeMessage("duration_value") { $0.writeTime(span.seconds, span.nanoseconds) }
    case .latlng(let point):
      writeMessage("latlng_value") { writer in
        if point.latitude != 0 { writer.addLine("latitude: \(RuleNumbers.text(point.latitude))") }
        if point.longitude != 0 { writer.addLine("longitude: \(RuleNumbers.text(point.longitude))") }
      }
    case .path(let path): writeMessage("path_value") { $0.writeSegments(path.segments) }
    case .unknownPath: writeMessage("path_value") { $0.writeSegments([.placeholder("", isRest: true)]) }
    case .list(let list): writeItems("list_value", (0..<list.count).lazy.map { list[$0] })
    case .set(let set): writeItems("set_value", set.members.lazy.map(\.value))
    case .vector(let numbers): writeItems("vector_value", numbers.lazy.map(RuleValue.float))
    case .map(let map): writeMessage("map_value") { $0.writeFields(map) }
    case .mapDiff(let diff): writeMessage("map_diff_value") { $0.writeKeys(diff) }
    case .constraint(let constraint): writeMessage("constraint_value") { $0.writeComparators(constraint) }
    }
  }

  /// Writes seconds and nanoseconds. Omits a member with the value 0, as every protocol buffer message does.
  private mutating func writeTime(_ seconds: Int64, _ nanoseconds: Int32) {
    if seconds != 0 { addLine("seconds: \(seconds)") }
    if nanoseconds != 0 { addLine("nanos: \(nanoseconds)") }
  }

  private mutating func writeSegments(_ segments: [RulePath.Segment]) {
    for segment in segments {
      writeMessage("segments") { writer in
        switch segment {
        case .text(let text): writer.addLine("simple: \(Self.quoted(text.string.utf8))")
        case .placeholder(let name, let isRest):
          writer.writeMessage(isRest ? "glob_capture" : "capture") { writer in
            if !name.isEmpty { writer.addLine("variable_name: \(Self.quoted(name.utf8))") }
          }
        }
      }
    }
  }

  private mutating func writeItems(_ name: String, _ values: some Sequence<RuleValue>) {
    writeMessage(name) { writer in
      guard writer.depth < Self.maximumDepth else { return }
      for value in values where writer.remaining > 0 { writer.writeMessage("values") { $0.write(value) } }
    }
  }

  private mutating func writeFields(_ map: RuleMap) {
    guard depth < Self.maximumDepth else { return }
    for entry in map.entries.sorted(by: { $0.key < $1.key }) where remaining > 0 {
      writeMessage("fields") { writer in
        writer.addLine("key: \(Self.quoted(entry.key.string.utf8))")
        writer.writeMessage("value") { $0.write(entry.value) }
      }
    }
  }

  private mutating func writeKeys(_ diff: RuleMapDiff) {
    let groups = [
      ("ADDED", diff.added), ("REMOVED", diff.removed), ("CHANGED", diff.changed),
      ("UNCHANGED", diff.unchanged),
    ]
    let keys = groups.flatMap { status, keys in keys.map { (key: $0, status: status) } }
    for (key, status) in keys.sorted(by: { $0.key < $1.key }).prefix(remaining) {
      writeMessage("key_statuses") { writer in
        writer.addLine("key: \(Self.quoted(key.string.utf8))")
        writer.addLine("value: \(status)")
      }
    }
  }

  private mutating func writeComparators(_ constraint: RuleConstraint) {
    for (comparator, value) in constraint.comparators where remaining > 0 {
      writeMessage("simple_constraints") { writer in
        writer.addLine("comparator: \(comparator.name)")
        writer.writeMessage("value") { $0.write(value) }
      }
    }
  }

  /// The bytes between quotation marks. Bytes that are not printable ASCII are written in octal.
  private static func quoted(_ bytes: some Sequence<UInt8>) -> String {
    var text = "\""
    for byte in bytes.prefix(maximumBytes) {
      switch byte {
      case 0x07: text += "\\a"
      case 0x08: text += "\\b"
      case 0x09: text += "\\t"
      case 0x0A: text += "\\n"
      case 0x0B: text += "\\v"
      case 0x0C: text += "\\f"
      case 0x0D: text += "\\r"
      case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"):
        text += "\\" + String(Unicode.Scalar(byte))
      case 0x20..<0x7F: text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 8)
        text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
      }
    }
    return text + "\""
  }
}

extension RuleConstraint.Comparator {
  /// The name in Google's text form.
  fileprivate var name: String {
    switch self {
    case .equal: "EQ"
    case .notEqual: "NEQ"
    case .less: "LT"
    case .lessOrEqual: "LTE"
    case .greater: "GT"
    case .greaterOrEqual: "GTE"
    case .contains: "LIST_CONTAINS"
    }
  }
}
