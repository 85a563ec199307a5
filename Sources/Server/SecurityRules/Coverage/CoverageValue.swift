// Values of both rule languages in the JSON form of Google's coverage reports and request feed, bounded in size.

import FirestoreModel
import JSON
import RealtimeModel

/// Writes values of rules as JSON.
///
/// Values beyond the limits are truncated: items and fields are omitted, and text ends early.
struct CoverageValueWriter {
  private static let maximumDepth = 8
  private static let maximumText = 512
  /// The number of values that may still be written.
  private var remaining = 200

  /// The JSON form of a value.
  static func json(_ value: RuleValue) -> JSONValue {
    var writer = CoverageValueWriter()
    return writer.write(value, depth: 0)
  }

  /// The JSON form of an expression without a value.
  static let undefined = JSONValue.object(["undefined": .object([:])])

  static func text(_ text: String) -> JSONValue {
    .object(["stringValue": .string(String(text.prefix(maximumText)))])
  }

  private mutating func write(_ value: RuleValue, depth: Int) -> JSONValue {
    remaining -= 1
    switch value {
    case .null: return .object(["nullValue": .null])
    case .bool(let value): return .object(["boolValue": .bool(value)])
    case .int(let value): return .object(["intValue": .string(String(value))])
    case .float(let value):
      return .object(["floatValue": value.isFinite ? .double(value) : .string(RuleNumbers.text(value))])
    case .string(let text): return Self.text(text.string)
    case .bytes(let bytes):
      return .object(["bytesValue": .string(Base64.encode(bytes.prefix(Self.maximumText)))])
    case .timestamp(let time): return .object(["timestampValue": .string(time.rfc3339)])
    case .duration(let value):
      return .object([
        "durationValue": .object(["seconds": .int(value.seconds), "nanos": .int(Int64(value.nanoseconds))])
      ])
    case .latlng(let point):
      return .object([
        "latlngValue": .object(["latitude": .double(point.latitude), "longitude": .double(point.longitude)])
      ])
    case .path(let path):
      return .object(["pathValue": .object(["segments": .array(path.segments.map(Self.segment))])])
    case .list(let list): return .object(["listValue": .object(["values": .array(items(of: list, depth))])])
    case .map(let map): return .object(["mapValue": .object(["fields": .object(fields(of: map, depth))])])
    case .set(let set):
      return .object(["setValue": .object(["size": .int(Int64(set.members.count))])])
    case .vector(let numbers):
      return .object(["vectorValue": .object(["size": .int(Int64(numbers.count))])])
    case .mapDiff: return .object(["mapDiffValue": .object([:])])
    case .constraint: return .object(["constraintValue": .object([:])])
    case .unknownPath: return .object(["pathValue": .object([:])])
    }
  }

  private static func segment(_ segment: RulePath.Segment) -> JSONValue {
    switch segment {
    case .text(let text): .object(["simple": .string(String(text.string.prefix(maximumText)))])
    case .placeholder(let name, let isRest): .object([isRest ? "globCapture" : "capture": .string(name)])
    }
  }

  private mutating func items(of list: RuleList, _ depth: Int) -> [JSONValue] {
    guard depth < Self.maximumDepth else { return [] }
    var items: [JSONValue] = []
    for index in 0..<list.count where remaining > 0 { items.append(write(list[index], depth: depth + 1)) }
    return items
  }

  private mutating func fields(of map: RuleMap, _ depth: Int) -> JSONObject {
    var object = JSONObject()
    guard depth < Self.maximumDepth else { return object }
    for entry in map.entries where remaining > 0 {
      object[String(entry.key.string.prefix(Self.maximumText))] = write(entry.value, depth: depth + 1)
    }
    return object
  }
}
