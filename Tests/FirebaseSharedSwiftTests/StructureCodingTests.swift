// Tests structure coding with FirebaseDataEncoder and FirebaseDataDecoder: round trips, coding strategies,
// and the coding paths in errors.

import FirebaseSharedSwift
import Foundation
import Testing

private struct Everything: Codable, Equatable {
  var text = "text"
  var yes = true
  var int = -3
  var int8: Int8 = -8
  var uint8: UInt8 = 200
  var big: UInt64 = .max
  var float: Float = 1.5
  var double = 2.25
  var url = URL(string: "https://example.com/a?b=c")
  var list = [1, 2, 3]
  var nested = ["deep": [Inner(name: "a"), Inner(name: "b")]]
  var none: String?
  var decimal = Decimal(string: "12.5")
}

private struct Inner: Codable, Equatable { var name: String }
private enum Genre: String, Codable { case fiction, fact = "non fiction" }
private enum Shape: Codable, Equatable { case circle(radius: Double), square(side: Int) }

private class Animal: Decodable {
  let name: String
}

private final class Dog: Animal {
  let tricks: Int
  private enum Keys: String, CodingKey { case tricks }

  required init(from decoder: any Decoder) throws {
    tricks = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .tricks)
    try super.init(from: decoder)
  }
}

private struct Boxed<T: Codable>: Codable { var value: T }

private func encode<T: Encodable>(_ value: T, _ set: (FirebaseDataEncoder) -> Void = { _ in }) throws -> Any {
  let encoder = FirebaseDataEncoder()
  set(encoder)
  return try encoder.encode(value)
}

private func decode<T: Decodable>(
  _ type: T.Type, _ structure: Any, _ set: (FirebaseDataDecoder) -> Void = { _ in }
) throws -> T {
  let decoder = FirebaseDataDecoder()
  set(decoder)
  return try decoder.decode(type, from: structure)
}

@Suite("Structure coding", .timeLimit(.minutes(10))) struct StructureCodingTests {
  @Test("every plain type round-trips")
  func roundTrip() throws {
    let value = Everything()
    #expect(try decode(Everything.self, encode(value)) == value)
  }

  @Test("numbers are encoded as NSNumber, and nil is omitted")
  func numbers() throws {
    let map = try #require(encode(Everything()) as? [String: Any])
    #expect(map["int"] is NSNumber)
    #expect(map["int"] as? Double == -3)
    #expect(map["yes"] as? Bool == true)
    #expect(map["none"] == nil)
    #expect((map["int8"] as? NSNumber)?.holdsFloat == false)
  }

  @Test("a subclass that is passed as its superclass is decoded as the subclass")
  func subclass() throws {
    let type: Animal.Type = Dog.self
    let decoded = try decode(type, ["name": "Rex", "tricks": 3])
    #expect((decoded as? Dog)?.tricks == 3 && decoded.name == "Rex")
  }

  @Test("an Int8 is a number and not a boolean")
  func int8() throws {
    let map = try #require(encode(Boxed(value: Int8(1))) as? [String: Any])
    #expect((map["value"] as? NSNumber)?.isBoolean == false)
    #expect((try encode(Boxed(value: true)) as? [String: Any])?["value"] as? Bool == true)
  }

  @Test("enums with raw and associated values round-trip")
  func enums() throws {
    #expect((try encode(Boxed(value: Genre.fact)) as? [String: Any])?["value"] as? String == "non fiction")
    for shape in [Shape.circle(radius: 2), .square(side: 3)] {
      #expect(try decode(Boxed<Shape>.self, encode(Boxed(value: shape))).value == shape)
    }
  }

  @Test("integer keys become strings")
  func integerKeys() throws {
    let byInt = try decode(Boxed<[Int: String]>.self, encode(Boxed(value: [1: "a", 2: "b"])))
    #expect(byInt.value == [1: "a", 2: "b"])
  }

  @Test("non-finite numbers are rejected without a strategy")
  func nonFiniteNumbers() throws {
    for number in [Double.nan, .infinity, -.infinity] {
      #expect(throws: EncodingError.self) { try encode(Boxed(value: number)) }
      let structure = try encode(Boxed(value: number)) {
        $0.nonConformingFloatEncodingStrategy = .convertToString(
          positiveInfinity: "+", negativeInfinity: "-", nan: "?")
      }
      let back = try decode(Boxed<Double>.self, structure) {
        $0.nonConformingFloatDecodingStrategy = .convertFromString(
          positiveInfinity: "+", negativeInfinity: "-", nan: "?")
      }
      #expect(back.value.isNaN ? number.isNaN : back.value == number)
    }
  }

  @Test("dates are encoded and decoded with every strategy")
  func dates() throws {
    let date = Date(timeIntervalSince1970: 1_700_000_000)
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "yyyy-MM-dd HH:mm:ss"
    typealias Pair = (FirebaseDataEncoder.DateEncodingStrategy, FirebaseDataDecoder.DateDecodingStrategy)
    let pairs: [Pair] = [
      (.deferredToDate, .deferredToDate), (.secondsSince1970, .secondsSince1970),
      (.millisecondsSince1970, .millisecondsSince1970), (.iso8601, .iso8601),
      (.formatted(formatter), .formatted(formatter)),
    ]
    for (writing, reading) in pairs {
      let structure = try encode(Boxed(value: date)) { $0.dateEncodingStrategy = writing }
      let back = try decode(Boxed<Date>.self, structure) { $0.dateDecodingStrategy = reading }
      #expect(back.value == date)
    }
    #expect(throws: DecodingError.self) {
      try decode(Boxed<Date>.self, ["value": "yesterday"]) { $0.dateDecodingStrategy = .iso8601 }
    }
  }

  @Test("data is encoded as base64 or stays data")
  func data() throws {
    let data = Data([0, 1, 254, 255])
    let text = try encode(Boxed(value: data)) as? [String: Any]
    #expect(text?["value"] as? String == data.base64EncodedString())
    let blob = try encode(Boxed(value: data)) { $0.dataEncodingStrategy = .blob } as? [String: Any]
    #expect(blob?["value"] as? Data == data)
    let blobReader: (FirebaseDataDecoder) -> Void = { $0.dataDecodingStrategy = .blob }
    #expect(try decode(Boxed<Data>.self, ["value": data], blobReader).value == data)
    #expect(try decode(Boxed<Data>.self, ["value": data.base64EncodedString()], blobReader).value == data)
    #expect(throws: DecodingError.self) { try decode(Boxed<Data>.self, ["value": "%%"], blobReader) }
  }

  @Test(
    "conversion to snake case gives the same names as JSONEncoder",
    arguments: [
      ("userName", "user_name"), ("myURLProperty", "my_url_property"), ("x", "x"), ("aB", "a_b"),
    ])
  func snakeCaseEncoding(camel: String, snake: String) throws {
    struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    struct One: Encodable {
      let name: String
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(1, forKey: Key(stringValue: name))
      }
    }
    let map = try encode(One(name: camel)) { $0.keyEncodingStrategy = .convertToSnakeCase } as? [String: Any]
    #expect(map.map { Array($0.keys) } == [snake])
    let json = JSONEncoder()
    json.keyEncodingStrategy = .convertToSnakeCase
    #expect(String(decoding: try json.encode(One(name: camel)), as: UTF8.self) == "{\"\(snake)\":1}")
  }

  @Test("snake case is decoded, and dictionary keys are unchanged")
  func snakeCaseDecoding() throws {
    struct Snake: Codable { var firstName: String, byKey: [String: Int] }
    let structure = try encode(Snake(firstName: "a", byKey: ["keepThis": 1])) {
      $0.keyEncodingStrategy = .convertToSnakeCase
    }
    let map = try #require(structure as? [String: Any])
    #expect(Set(map.keys) == ["first_name", "by_key"])
    #expect((map["by_key"] as? [String: Any])?["keepThis"] != nil)
    let back = try decode(Snake.self, structure) { $0.keyDecodingStrategy = .convertFromSnakeCase }
    #expect(back.firstName == "a" && back.byKey == ["keepThis": 1])
  }

  @Test("integers must fit exactly")
  func exactIntegers() throws {
    #expect(try decode(Boxed<Int>.self, ["value": 3.0]).value == 3)
    #expect(try decode(Boxed<Int>.self, ["value": NSNumber(value: 3.0)]).value == 3)
    #expect {
      try decode(Boxed<Int>.self, ["value": 3.5])
    } throws: { error in
      if case DecodingError.dataCorrupted = error { return true }
      return false
    }
    #expect(throws: DecodingError.self) { try decode(Boxed<Int8>.self, ["value": 300]) }
    #expect(throws: DecodingError.self) { try decode(Boxed<UInt>.self, ["value": -1]) }
    #expect(throws: DecodingError.self) { try decode(Boxed<Float>.self, ["value": 1e300]) }
  }

  @Test("booleans and numbers are never converted to each other")
  func booleansAndNumbers() throws {
    #expect(throws: DecodingError.self) { try decode(Boxed<Bool>.self, ["value": NSNumber(value: 1)]) }
    #expect(throws: DecodingError.self) { try decode(Boxed<Int>.self, ["value": NSNumber(value: true)]) }
    #expect(throws: DecodingError.self) { try decode(Boxed<Double>.self, ["value": true]) }
    #expect(try decode(Boxed<Bool>.self, ["value": true]).value)
  }

  @Test("errors contain the coding path")
  func codingPaths() throws {
    let broken: [String: Any] = ["value": [["name": "a"], ["name": 1]]]
    #expect {
      try decode(Boxed<[Inner]>.self, broken)
    } throws: { error in
      guard case DecodingError.typeMismatch(_, let context) = error else { return false }
      return context.codingPath.map(\.stringValue) == ["value", "Index 1", "name"]
        && context.debugDescription == "Expected to decode String but found a number instead."
    }
    #expect {
      try decode(Boxed<[Inner]>.self, ["value": [[String: Any]()]])
    } throws: { error in
      if case DecodingError.keyNotFound(let key, _) = error { return key.stringValue == "name" }
      return false
    }
    #expect {
      try decode(Inner.self, NSNull())
    } throws: { error in
      if case DecodingError.valueNotFound = error { return true }
      return false
    }
    #expect(try decode(Inner?.self, NSNull()) == nil)
  }

  @Test("a value that encodes nothing is rejected")
  func emptyEncoding() {
    struct Nothing: Encodable { func encode(to encoder: any Encoder) throws {} }
    #expect(throws: EncodingError.self) { try encode(Nothing()) }
  }

  @Test("a subclass encodes its parent under super")
  func superEncoder() throws {
    class Parent: Codable { var a = 1 }
    class Child: Parent {
      var b = 2
      enum Keys: String, CodingKey { case b }
      override init() { super.init() }
      required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        b = try container.decode(Int.self, forKey: .b)
        try super.init(from: container.superDecoder())
      }
      override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(b, forKey: .b)
        try super.encode(to: container.superEncoder())
      }
    }
    let map = try #require(encode(Child()) as? [String: Any])
    #expect((map["super"] as? [String: Any])?["a"] as? Int == 1)
    #expect(try decode(Child.self, map).a == 1)
  }
}
