// The structure encoder of FirebaseDataEncoder. It builds a tree of nodes, because an `encode(to:)` may write
// to a container after it has written to the container's siblings. At the end the tree is converted to
// untyped values.

import Foundation

/// One position in the tree: empty, a finished leaf, a map or a list.
final class StructureNode {
  private enum Content {
    case nothing
    case leaf(Any)
    case map([String: StructureNode])
    case list([StructureNode])
  }

  private var content = Content.nothing

  /// The untyped value of this node; nil if nothing was encoded.
  var structure: Any? {
    switch content {
    case .nothing: nil
    case .leaf(let value): value
    case .map(let entries): entries.mapValues { $0.structure ?? [String: Any]() }
    case .list(let elements): elements.map { $0.structure ?? [String: Any]() }
    }
  }

  func set(_ leaf: Any) { content = .leaf(leaf) }

  /// Makes this node a map. It keeps the values that an earlier keyed container wrote.
  func becomeMap() {
    if case .map = content { return }
    content = .map([:])
  }

  func becomeList() {
    if case .list = content { return }
    content = .list([])
  }

  /// Makes a child for a key. It replaces an earlier child. A node that is not a map does not keep it.
  func child(_ key: String) -> StructureNode {
    let node = StructureNode()
    if case .map(var entries) = content {
      content = .nothing
      entries[key] = node
      content = .map(entries)
    }
    return node
  }

  /// The child for a key. An earlier nested container may already have made it.
  func existingOrNewChild(_ key: String) -> StructureNode {
    if case .map(let entries) = content, let node = entries[key] { return node }
    return child(key)
  }

  func append() -> StructureNode {
    let node = StructureNode()
    if case .list(var elements) = content {
      content = .nothing
      elements.append(node)
      content = .list(elements)
    }
    return node
  }

  var count: Int {
    switch content {
    case .list(let elements): elements.count
    case .map(let entries): entries.count
    case .nothing: 0
    case .leaf: 1
    }
  }
}

/// Encodes into one node.
struct StructureEncoder: Swift.Encoder {
  let options: StructureEncodingOptions
  let codingPath: [any CodingKey]
  let node: StructureNode

  var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeMap()
    return KeyedEncodingContainer(KeyedStructureEncoding<Key>(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeList()
    return UnkeyedStructureEncoding(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    SingleStructureEncoding(encoder: self)
  }

  func nested(_ key: any CodingKey, in node: StructureNode) -> StructureEncoder {
    StructureEncoder(options: options, codingPath: codingPath + [key], node: node)
  }

  /// Encodes a value into this encoder's node. It applies the strategies for dates, data and numbers.
  func encode<T: Encodable>(_ value: T) throws {
    if options.passthrough.isPassthroughType(value) {
      node.set(value)
      return
    }
    switch value {
    case let date as Date: try encode(date: date)
    case let data as Data: try encode(data: data)
    case let url as URL: node.set(url.absoluteString)
    case let decimal as Decimal: node.set(NSDecimalNumber(decimal: decimal))
    case let map as any StringKeyedMap: try map.encodeEntries(to: self)
    default: try value.encode(to: self)
    }
  }

  private func encode(date: Date) throws {
    switch options.date {
    case .deferredToDate: try date.encode(to: self)
    case .secondsSince1970: node.set(NSNumber(value: date.timeIntervalSince1970))
    case .millisecondsSince1970: node.set(NSNumber(value: date.timeIntervalSince1970 * 1000))
    case .iso8601: node.set(InternetDate.string(from: date))
    case .formatted(let formatter): node.set(formatter.string(from: date))
    case .custom(let write):
      try write(date, self)
      if node.structure == nil { node.set([String: Any]()) }
    }
  }

  private func encode(data: Data) throws {
    switch options.data {
    case .deferredToData: try data.encode(to: self)
    case .base64: node.set(data.base64EncodedString())
    case .blob: node.set(data)
    case .custom(let write):
      try write(data, self)
      if node.structure == nil { node.set([String: Any]()) }
    }
  }

  func encode(float value: Double) throws {
    if value.isFinite {
      node.set(NSNumber(value: value))
      return
    }
    guard case .convertToString(let positive, let negative, let nan) = options.float else {
      throw EncodingError.invalidValue(
        value,
        EncodingError.Context(
          codingPath: codingPath,
          debugDescription: "Unable to encode \(value) directly; use"
            + " nonConformingFloatEncodingStrategy to choose how it is represented."))
    }
    node.set(value.isNaN ? nan : value > 0 ? positive : negative)
  }

  func encode<Integer: FixedWidthInteger>(integer value: Integer) {
    if let signed = Int64(exactly: value) {
      node.set(NSNumber(value: signed))
    } else {
      node.set(NSNumber(value: UInt64(truncatingIfNeeded: value)))
    }
  }
}

/// A dictionary whose keys are data and not coding keys, so that key strategies do not change them.
private protocol StringKeyedMap {
  func encodeEntries(to encoder: StructureEncoder) throws
}

extension Dictionary: StringKeyedMap where Key == String, Value: Encodable {
  fileprivate func encodeEntries(to encoder: StructureEncoder) throws {
    encoder.node.becomeMap()
    for (key, value) in self {
      let codingKey = StructureKey(key)
      try encoder.nested(codingKey, in: encoder.node.child(key)).encode(value)
    }
  }
}

/// A coding key that is made at run time: a field name, or a position in a list.
struct StructureKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  init(index: Int) {
    stringValue = "Index \(index)"
    intValue = index
  }

  init?(stringValue: String) { self.init(stringValue) }

  init?(intValue: Int) {
    stringValue = "\(intValue)"
    self.intValue = intValue
  }

  static let superKey = StructureKey("super")
}

/// The internet date and time format of ISO 8601, for the `iso8601` strategies.
enum InternetDate {
  static func string(from date: Date) -> String { ISO8601DateFormatter().string(from: date) }
  static func date(from string: String) -> Date? { ISO8601DateFormatter().date(from: string) }
}
