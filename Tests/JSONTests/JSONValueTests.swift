// Tests JSON values and numbers: writing and reading must not change them, and only well-formed texts are accepted.

import JSON
import RandomModels
import Testing

@Suite("JSON values")
struct JSONValueTests {
  @Test("Random values are unchanged after writing and reading, compact and pretty")
  func roundTrip() throws {
    var random = RandomJSON(seed: 1)
    for _ in 0..<3000 {
      let value = random.value()
      #expect(try JSONValue(json: value.json()) == value)
      #expect(try JSONValue(json: value.json(pretty: true)) == value)
    }
  }

  @Test("Every truncated text is rejected")
  func everyPrefixIsRejected() throws {
    var random = RandomJSON(seed: 2)
    for _ in 0..<200 {
      let bytes = JSONValue.array([random.value(depth: 3)]).json()
      for length in 0..<bytes.count {
        #expect(throws: JSONError.self) { try JSONValue(json: Array(bytes[..<length])) }
      }
    }
  }

  @Test("A corrupted text gives a value, or an error with an offset inside the text")
  func corruption() throws {
    var random = RandomJSON(seed: 3)
    for _ in 0..<4000 {
      var bytes = random.value(depth: 2).json()
      for _ in 0...random.below(3) {
        let location = random.below(bytes.count)
        bytes[location] = UInt8(random.below(256))
      }
      do throws(JSONError) {
        let value = try JSONValue(json: bytes)
        #expect(try JSONValue(json: value.json()) == value)
      } catch {
        #expect((0...bytes.count).contains(error.offset))
      }
    }
  }

  @Test("Skipping a value accepts and rejects the same texts as reading it")
  func skippingAgreesWithReading() throws {
    var random = RandomJSON(seed: 4)
    for round in 0..<3000 {
      var bytes = random.value(depth: 2).json()
      if round % 2 == 0 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
      let read = Result { try JSONValue(json: bytes) }
      let skipped = Result {
        try bytes.withUnsafeBytes { raw in
          var reader = try JSONReader(unsafeBytes: raw)
          try reader.skipValue()
          try reader.finish()
        }
      }
      switch (read, skipped) {
      case (.success, .success): break
      case (.failure(let a), .failure(let b)): #expect(a as? JSONError == b as? JSONError)
      default: Issue.record("reading and skipping disagree on \(bytes)")
      }
    }
  }

  @Test("Well-formed texts read as RFC 8259 specifies", arguments: Corpus.accepted)
  func accepted(text: String, value: JSONValue) throws {
    #expect(try JSONValue(json: text) == value)
  }

  @Test("Malformed texts are rejected with the reason", arguments: Corpus.rejected)
  func rejected(bytes: [UInt8], code: JSONError.Code) {
    let error = #expect(throws: JSONError.self) { try JSONValue(json: bytes) }
    #expect(error?.code == code, "\(String(decoding: bytes, as: UTF8.self))")
  }

  @Test("A repeated name keeps its first position and its last value")
  func duplicates() throws {
    let value = try JSONValue(json: #"{"a":1,"b":2,"a":3}"#)
    #expect(value.object?.members.map(\.key) == ["a", "b"])
    #expect(value["a"] == .int(3))
  }

  @Test("Names that differ only in Unicode normalization are different names")
  func noNormalization() throws {
    let value = try JSONValue(json: "{\"\u{E9}\":1,\"e\u{301}\":2}")
    #expect(value.object?.count == 2)
    #expect(value["\u{E9}"] == .int(1))
    #expect(value["e\u{301}"] == .int(2))
  }

  @Test("Objects with thousands of members find, replace and remove members by name")
  func largeObjects() {
    var object = JSONObject()
    for index in 0..<5000 { object["k\(index)"] = .int(Int64(index)) }
    for index in stride(from: 0, to: 5000, by: 7) { object["k\(index)"] = .string("again") }
    #expect(object.count == 5000)
    object["k3"] = nil
    object["absent"] = nil
    #expect(object.count == 4999)
    #expect(object["k3"] == nil)
    #expect(object["k4"] == .int(4))
    #expect(object["k4998"] == .string("again"))
  }

  @Test("The limits of depth and size reject exactly the texts that exceed them")
  func limits() throws {
    let limits = JSONLimits(depth: 4, bytes: 20)
    #expect(try JSONValue(json: "[[[[1]]]]", limits: limits).array?.count == 1)
    let deep = #expect(throws: JSONError.self) { try JSONValue(json: "[[[[[]]]]]", limits: limits) }
    #expect(deep == JSONError(.tooDeep, at: 4))
    let large = #expect(throws: JSONError.self) {
      try JSONValue(json: Array(repeating: 0x20, count: 20) + [0x31], limits: limits)
    }
    #expect(large == JSONError(.tooLarge, at: 20))
    let bomb = Array(repeating: UInt8(ascii: "["), count: 1_000_000)
    #expect(throws: JSONError(.tooDeep, at: 512)) {
      try JSONValue(json: bomb, limits: JSONLimits(depth: .max))
    }
  }

  @Test("An error reports its line and column")
  func position() throws {
    let bytes = Array("{\n  \"a\": 1,\n  oops".utf8)
    let error = try #require(#expect(throws: JSONError.self) { try JSONValue(json: bytes) })
    let location = bytes.withUnsafeBytes { error.position(in: $0) }
    #expect(location.line == 3)
    #expect(location.column == 3)
    #expect(error.description == "unexpected character at byte 14")
  }
}

@Suite("JSON numbers")
struct JSONNumberTests {
  @Test("64-bit integers are exact; larger integers become doubles")
  func integers() throws {
    #expect(try JSONValue(json: "9223372036854775807").json() == Array("9223372036854775807".utf8))
    #expect(try JSONValue(json: "-9223372036854775808").json() == Array("-9223372036854775808".utf8))
    guard case .double(0x1p63) = try JSONValue(json: "9223372036854775808") else {
      Issue.record("beyond 64 bits the value is a double")
      return
    }
    guard case .double(1e30) = try JSONValue(json: "1000000000000000000000000000000") else {
      Issue.record("beyond 64 bits the value is a double")
      return
    }
  }

  @Test("A double is written in its shortest form, an integral double without a fraction")
  func doubles() {
    let expected: [(Double, String)] = [
      (1, "1"), (-3, "-3"), (0.1, "0.1"), (1.5, "1.5"), (0, "0"), (-0.0, "0"),
      (.leastNonzeroMagnitude, "5e-324"),
      (1e300, "1e+300"), (9007199254740991, "9007199254740991"), (.infinity, "null"), (.nan, "null"),
    ]
    for (value, text) in expected {
      #expect(String(decoding: JSONValue.double(value).json(), as: UTF8.self) == text)
    }
  }

  @Test("Zero has no sign", arguments: ["-0", "-0.0", "-0e5", "-0.000E-7", "-1e-400"])
  func negativeZero(text: String) throws {
    let value = try #require(try JSONValue(json: text).double)
    #expect(value.sign == .plus && value == 0)
  }

  @Test("A number reads as the nearest double, as in the standard library")
  func nearestDouble() throws {
    var random = RandomJSON(seed: 5)
    for _ in 0..<5000 {
      let digits = (0..<(1 + random.below(24))).map { _ in String(random.below(10)) }.joined()
      let text = "\(1 + random.below(9)).\(digits)e\(random.below(640) - 330)"
      let expected = try #require(Double(text))
      if expected.isFinite {
        #expect(try JSONValue(json: text).double == expected, "\(text)")
      } else {
        #expect(throws: JSONError(.numberOutOfRange, at: 0)) { try JSONValue(json: text) }
      }
    }
  }
}
