// The three encoding containers of StructureEncoder. Each writes directly into its node of the tree.

import Foundation

struct KeyedStructureEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: StructureEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  private func fieldName(_ key: any CodingKey) -> String {
    switch encoder.options.key {
    case .useDefaultKeys: key.stringValue
    case .convertToSnakeCase: SnakeCase.snake(key.stringValue)
    case .custom(let convert): convert(encoder.codingPath + [key]).stringValue
    }
  }

  private func encoder(for key: any CodingKey) -> StructureEncoder {
    encoder.nested(key, in: encoder.node.child(fieldName(key)))
  }

  func encodeNil(forKey key: Key) throws { encoder(for: key).node.set(NSNull()) }
  func encode(_ value: Bool, forKey key: Key) throws { encoder(for: key).node.set(NSNumber(value: value)) }
  func encode(_ value: String, forKey key: Key) throws { encoder(for: key).node.set(value) }
  func encode(_ value: Double, forKey key: Key) throws { try encoder(for: key).encode(float: value) }
  func encode(_ value: Float, forKey key: Key) throws { try encoder(for: key).encode(float: Double(value)) }
  func encode(_ value: Int, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: Int8, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: Int16, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: Int32, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: Int64, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: UInt, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: UInt8, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: UInt16, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: UInt32, forKey key: Key) throws { encoder(for: key).encode(integer: value) }
  func encode(_ value: UInt64, forKey key: Key) throws { encoder(for: key).encode(integer: value) }

  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    if value is any StructureCodingUncodedUnkeyed { return }
    try encoder(for: key).encode(value)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    let node = encoder.node.existingOrNewChild(fieldName(key))
    return encoder.nested(key, in: node).container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder.nested(key, in: encoder.node.existingOrNewChild(fieldName(key))).unkeyedContainer()
  }

  func superEncoder() -> any Swift.Encoder { encoder(for: StructureKey.superKey) }
  func superEncoder(forKey key: Key) -> any Swift.Encoder { encoder(for: key) }
}

struct UnkeyedStructureEncoding: UnkeyedEncodingContainer {
  let encoder: StructureEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { encoder.node.count }

  private func nextElement() -> StructureEncoder {
    let key = StructureKey(index: count)
    return encoder.nested(key, in: encoder.node.append())
  }

  func encodeNil() throws { nextElement().node.set(NSNull()) }
  func encode(_ value: Bool) throws { nextElement().node.set(NSNumber(value: value)) }
  func encode(_ value: String) throws { nextElement().node.set(value) }
  func encode(_ value: Double) throws { try nextElement().encode(float: value) }
  func encode(_ value: Float) throws { try nextElement().encode(float: Double(value)) }
  func encode(_ value: Int) throws { nextElement().encode(integer: value) }
  func encode(_ value: Int8) throws { nextElement().encode(integer: value) }
  func encode(_ value: Int16) throws { nextElement().encode(integer: value) }
  func encode(_ value: Int32) throws { nextElement().encode(integer: value) }
  func encode(_ value: Int64) throws { nextElement().encode(integer: value) }
  func encode(_ value: UInt) throws { nextElement().encode(integer: value) }
  func encode(_ value: UInt8) throws { nextElement().encode(integer: value) }
  func encode(_ value: UInt16) throws { nextElement().encode(integer: value) }
  func encode(_ value: UInt32) throws { nextElement().encode(integer: value) }
  func encode(_ value: UInt64) throws { nextElement().encode(integer: value) }
  func encode<T: Encodable>(_ value: T) throws { try nextElement().encode(value) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    nextElement().container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nextElement().unkeyedContainer() }
  func superEncoder() -> any Swift.Encoder { nextElement() }
}

struct SingleStructureEncoding: SingleValueEncodingContainer {
  let encoder: StructureEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil() throws { encoder.node.set(NSNull()) }
  func encode(_ value: Bool) throws { encoder.node.set(NSNumber(value: value)) }
  func encode(_ value: String) throws { encoder.node.set(value) }
  func encode(_ value: Double) throws { try encoder.encode(float: value) }
  func encode(_ value: Float) throws { try encoder.encode(float: Double(value)) }
  func encode(_ value: Int) throws { encoder.encode(integer: value) }
  func encode(_ value: Int8) throws { encoder.encode(integer: value) }
  func encode(_ value: Int16) throws { encoder.encode(integer: value) }
  func encode(_ value: Int32) throws { encoder.encode(integer: value) }
  func encode(_ value: Int64) throws { encoder.encode(integer: value) }
  func encode(_ value: UInt) throws { encoder.encode(integer: value) }
  func encode(_ value: UInt8) throws { encoder.encode(integer: value) }
  func encode(_ value: UInt16) throws { encoder.encode(integer: value) }
  func encode(_ value: UInt32) throws { encoder.encode(integer: value) }
  func encode(_ value: UInt64) throws { encoder.encode(integer: value) }
  func encode<T: Encodable>(_ value: T) throws { try encoder.encode(value) }
}

/// Converts between camel case and snake case by JSONEncoder's rules. A sequence of capital letters is one
/// word. If a small letter follows it, the last capital letter begins the next word.
enum SnakeCase {
  static func snake(_ name: String) -> String {
    let letters = Array(name)
    guard letters.count > 1 else { return name.lowercased() }
    var result = String(letters[0])
    for index in 1..<letters.count {
      let letter = letters[index]
      if letter.isUppercase {
        let followsSmall = !letters[index - 1].isUppercase
        let beginsWord = index + 1 < letters.count && letters[index + 1].isLowercase
        if (followsSmall || beginsWord) && letters[index - 1] != "_" { result.append("_") }
      }
      result.append(letter)
    }
    return result.lowercased()
  }

  static func camel(_ name: String) -> String {
    guard let first = name.firstIndex(where: { $0 != "_" }),
      let last = name.lastIndex(where: { $0 != "_" })
    else { return name }
    let words = name[first...last].split(separator: "_")
    guard words.count > 1, let head = words.first else { return name }
    let tail = words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst().lowercased() }
    return name[..<first] + ([head.lowercased()] + tail).joined() + name[name.index(after: last)...]
  }
}
