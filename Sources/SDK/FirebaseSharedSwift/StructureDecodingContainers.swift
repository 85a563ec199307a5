// The three decoding containers of StructureDecoder.

import Foundation

struct KeyedStructureDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: StructureDecoder
  private let map: [String: Any]

  init(decoder: StructureDecoder, map: [String: Any]) {
    self.decoder = decoder
    switch decoder.options.key {
    case .useDefaultKeys: self.map = map
    case .convertFromSnakeCase:
      self.map = Dictionary(
        map.map { (SnakeCase.camel($0), $1) }, uniquingKeysWith: { first, _ in first })
    case .custom(let convert):
      self.map = Dictionary(
        map.map { (convert(decoder.codingPath + [StructureKey($0)]).stringValue, $1) },
        uniquingKeysWith: { first, _ in first })
    }
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var allKeys: [Key] { map.keys.compactMap { Key(stringValue: $0) } }
  func contains(_ key: Key) -> Bool { map[key.stringValue] != nil }

  private func decoder(for key: any CodingKey) throws -> StructureDecoder {
    guard let value = map[key.stringValue] else {
      throw DecodingError.keyNotFound(
        key, decoder.context("No value associated with key \(key.stringValue)."))
    }
    return decoder.nested(key, value)
  }

  func decodeNil(forKey key: Key) throws -> Bool { try decoder(for: key).isNull }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decoder(for: key).bool() }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try decoder(for: key).string() }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try decoder(for: key).double() }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try decoder(for: key).float() }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try decoder(for: key).integer(type) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try decoder(for: key).integer(type) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try decoder(for: key).integer(type) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try decoder(for: key).integer(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try decoder(for: key).integer(type) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try decoder(for: key).integer(type) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try decoder(for: key).integer(type) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try decoder(for: key).integer(type) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try decoder(for: key).integer(type) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try decoder(for: key).integer(type) }

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    if type is any StructureCodingUncodedUnkeyed.Type {
      // The value does not come from the fields, so its key may be missing.
      return try decoder.nested(key, NSNull()).decode(type)
    }
    return try decoder(for: key).decode(type)
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try decoder(for: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(for: key).unkeyedContainer()
  }

  func superDecoder() throws -> any Swift.Decoder {
    decoder.nested(StructureKey.superKey, map[StructureKey.superKey.stringValue] ?? NSNull())
  }

  func superDecoder(forKey key: Key) throws -> any Swift.Decoder {
    decoder.nested(key, map[key.stringValue] ?? NSNull())
  }
}

struct UnkeyedStructureDecoding: UnkeyedDecodingContainer {
  let decoder: StructureDecoder
  let list: [Any]
  private(set) var currentIndex = 0

  init(decoder: StructureDecoder, list: [Any]) {
    self.decoder = decoder
    self.list = list
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { list.count }
  var isAtEnd: Bool { currentIndex >= list.count }

  /// Decodes the next element. The position advances only if decoding succeeds.
  private mutating func next<T>(_ type: T.Type, _ read: (StructureDecoder) throws -> T) throws -> T {
    let key = StructureKey(index: currentIndex)
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type,
        DecodingError.Context(
          codingPath: codingPath + [key], debugDescription: "Unkeyed container is at end."))
    }
    let result = try read(decoder.nested(key, list[currentIndex]))
    currentIndex += 1
    return result
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd else { return try next(Never?.self) { _ in nil } == nil }
    guard list[currentIndex] is NSNull else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode(_ type: Bool.Type) throws -> Bool { try next(type) { try $0.bool() } }
  mutating func decode(_ type: String.Type) throws -> String { try next(type) { try $0.string() } }
  mutating func decode(_ type: Double.Type) throws -> Double { try next(type) { try $0.double() } }
  mutating func decode(_ type: Float.Type) throws -> Float { try next(type) { try $0.float() } }
  mutating func decode(_ type: Int.Type) throws -> Int { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try next(type) { try $0.integer(type) } }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try next(type) { try $0.integer(type) } }
  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next(type) { try $0.decode(type) } }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try next(KeyedDecodingContainer<NestedKey>.self) { try $0.container(keyedBy: type) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next((any UnkeyedDecodingContainer).self) { try $0.unkeyedContainer() }
  }

  mutating func superDecoder() throws -> any Swift.Decoder {
    try next((any Swift.Decoder).self) { $0 }
  }
}

struct SingleStructureDecoding: SingleValueDecodingContainer {
  let decoder: StructureDecoder
  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool { decoder.isNull }
  func decode(_ type: Bool.Type) throws -> Bool { try decoder.bool() }
  func decode(_ type: String.Type) throws -> String { try decoder.string() }
  func decode(_ type: Double.Type) throws -> Double { try decoder.double() }
  func decode(_ type: Float.Type) throws -> Float { try decoder.float() }
  func decode(_ type: Int.Type) throws -> Int { try decoder.integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try decoder.integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try decoder.integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try decoder.integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try decoder.integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try decoder.integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try decoder.integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try decoder.integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try decoder.integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try decoder.integer(type) }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type) }
}
