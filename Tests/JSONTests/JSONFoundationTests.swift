// Tests the JSON reader and writer against Foundation's. Each must read the text of the other as the same value.

import Foundation
import JSON
import RandomModels
import Testing

@Suite("JSON and Foundation", .timeLimit(.minutes(10)))
struct JSONFoundationTests {
  /// A value as Foundation's objects.
  private func object(_ value: JSONValue) -> Any {
    switch value {
    case .null: NSNull()
    case .bool(let value): NSNumber(value: value)
    case .int(let value): NSNumber(value: value)
    case .double(let value): NSNumber(value: value)
    case .string(let value): value
    case .array(let elements): elements.map { object($0) }
    case .object(let members):
      Dictionary(members.members.map { ($0.key, object($0.value)) }, uniquingKeysWith: { $1 })
    }
  }

  /// Whether Foundation's object equals the value: strings byte by byte, numbers by value.
  private func isSame(_ value: JSONValue, _ object: Any) -> Bool {
    switch value {
    case .null: return object is NSNull
    case .bool(let value): return (object as? NSNumber)?.boolValue == value
    case .int(let value):
      // Foundation may have converted the number to a double.
      guard let number = object as? NSNumber else { return false }
      return number.int64Value == value || number.doubleValue == Double(value)
    case .double(let value):
      // Foundation may parse a number as a Decimal first, which changes the last bits of a double.
      guard let read = (object as? NSNumber)?.doubleValue else { return false }
      return abs(read - value) <= abs(value) * 1e-12
    case .string(let value): return (object as? String).map { Array($0.utf8) } == Array(value.utf8)
    case .array(let elements):
      guard let array = object as? [Any], array.count == elements.count else { return false }
      return zip(elements, array).allSatisfy { isSame($0, $1) }
    case .object(let members):
      guard let dictionary = object as? [String: Any], dictionary.count == members.count else { return false }
      return members.members.allSatisfy { member in
        dictionary[member.key].map { isSame(member.value, $0) } ?? false
      }
    }
  }

  /// Whether the value contains different names that Foundation treats as equal, because it uses canonical equivalence.
  private func hasEquivalentNames(_ value: JSONValue) -> Bool {
    switch value {
    case .object(let members):
      Set(members.members.map(\.key)).count < members.count
        || members.members.contains { hasEquivalentNames($0.value) }
    case .array(let elements): elements.contains { hasEquivalentNames($0) }
    default: false
    }
  }

  @Test("Foundation reads the written text as the same value, compact and pretty", arguments: 0..<8)
  func written(seed: Int) throws {
    var random = RandomJSON(seed: UInt64(seed) &+ 70)
    for _ in 0..<250 {
      let value = random.value()
      if hasEquivalentNames(value) { continue }
      for pretty in [false, true] {
        let data = Data(value.json(pretty: pretty))
        let read = try JSONSerialization.jsonObject(with: data, options: [.fragmentsAllowed])
        #expect(isSame(value, read), "\(String(decoding: data, as: UTF8.self))")
      }
    }
  }

  @Test("Text written by Foundation reads as the same value", arguments: 0..<8)
  func read(seed: Int) throws {
    var random = RandomJSON(seed: UInt64(seed) &+ 170)
    for _ in 0..<250 {
      let value = random.value()
      if hasEquivalentNames(value) { continue }
      let data = try JSONSerialization.data(
        withJSONObject: object(value), options: [.fragmentsAllowed, .prettyPrinted])
      let read = try JSONValue(json: Array(data))
      #expect(isSame(read, object(value)), "\(String(decoding: data, as: UTF8.self))")
    }
  }
}
