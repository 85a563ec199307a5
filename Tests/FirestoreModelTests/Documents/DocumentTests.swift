// Tests documents: access to fields at paths, the size formula and validation.

import FirestoreModel
import Testing

@Suite("Documents", .timeLimit(.minutes(10)))
struct DocumentTests {
  static func path(_ text: String) -> FieldPath {
    (try? FieldPath(parsing: text)) ?? FieldPath(field: "invalid")
  }

  static func rejection(_ fields: MapValue) -> String? {
    failure { () throws(FirestoreError) in try DocumentValidation.validate(fields) }?.message
  }

  @Test("Values are read, set and removed at nested paths")
  func access() {
    var fields: MapValue = ["a": ["b": ["c": 1]], "a.b": 2]
    #expect(fields.value(at: Self.path("a.b.c")) == 1)
    #expect(fields.value(at: Self.path("`a.b`")) == 2)
    #expect(fields.value(at: Self.path("a.x.c")) == nil && fields.value(at: Self.path("a.b.c.d")) == nil)
    fields.set(9, at: Self.path("a.x.y"))
    #expect(fields.value(at: Self.path("a.x")) == ["y": 9])
    fields.set(true, at: Self.path("`a.b`.n"))
    #expect(fields["a.b"] == ["n": true])
    fields.remove(at: Self.path("a.b.c"))
    #expect(fields.value(at: Self.path("a.b")) == [:])
    fields.remove(at: Self.path("missing.c"))
    #expect(fields["missing"] == nil)
    fields.remove(at: Self.path("a"))
    #expect(fields == ["a.b": ["n": true]])
  }

  @Test("A projection keeps the maps around the selected fields")
  func projection() {
    let fields: MapValue = ["a": ["b": 1, "c": 2], "d": 3, "v": .vector([1])]
    #expect(fields.projected(to: [Self.path("a.b"), Self.path("x")]) == ["a": ["b": 1]])
    #expect(fields.projected(to: [Self.path("a.b"), Self.path("a")]) == ["a": ["b": 1, "c": 2]])
    #expect(fields.projected(to: [.documentID]).isEmpty && fields.projected(to: []).isEmpty)
  }

  @Test(
    "A masked update sets the fields that it contains, deletes other fields in the mask and keeps fields outside the mask"
  )
  func merge() {
    let old: MapValue = ["a": ["x": 1, "y": 2], "b": 3]
    let update: MapValue = ["a": ["x": 9, "z": 7]]
    #expect(
      old.merging(update, mask: [Self.path("a.x"), Self.path("b"), Self.path("c")]) == [
        "a": ["x": 9, "y": 2]
      ])
    #expect(old.merging(update, mask: []) == old)
  }

  @Test("The size formula gives the size of the published example")
  func size() throws {
    let name = try DocumentName(parsing: "projects/p/databases/d/documents/books/b1")
    #expect(DocumentSize.of(name, ["title": "Dune", "pages": 412]) == 82)
    #expect(DocumentSize.of(path: "books/__id7__") == 6 + 8 + 16)
    #expect(DocumentSize.of(value: .vector([1, 2])) == 16 && DocumentSize.of(value: .bytes([1, 2, 3])) == 3)
    #expect(DocumentSize.of(value: ["k": .null]) == 3 && DocumentSize.of(value: [true, 1, 1.5]) == 17)
    #expect(DocumentSize.of(value: .reference(name)) == 25 && DocumentSize.of(value: .timestamp(.epoch)) == 8)
  }

  @Test("A document of 1 MiB is accepted, a document one byte larger is rejected")
  func sizeLimit() throws {
    let name = try DocumentName(parsing: "projects/p/databases/d/documents/books/b1")
    func check(_ bytes: Int) -> FirestoreError? {
      let half = bytes / 2
      let fields: MapValue = [
        "a": .bytes([UInt8](repeating: 0, count: half)),
        "b": .bytes([UInt8](repeating: 0, count: bytes - half)),
      ]
      return failure { () throws(FirestoreError) in try DocumentValidation.validate(fields, of: name) }
    }
    let rest = 25 + 32 + 4
    #expect(check(1_048_576 - rest) == nil)
    #expect(
      check(1_048_577 - rest)?.message
        == "Document '\(name)' cannot be written because its size (1,048,577 bytes) exceeds the maximum "
        + "allowed size of 1,048,576 bytes.")
  }

  @Test("20 levels of maps and arrays are accepted, 21 levels are rejected")
  func depth() {
    func nested(_ levels: Int, arrays: Bool) -> MapValue {
      var value: Value = 1
      for level in 0..<levels {
        value = arrays && level.isMultiple(of: 2) ? .array([value]) : .map(["m": value])
      }
      return ["f": value]
    }
    for arrays in [false, true] {
      #expect(Self.rejection(nested(20, arrays: arrays)) == nil)
      #expect(Self.rejection(nested(21, arrays: arrays)) != nil)
    }
  }

  @Test("Reserved, empty and long field names are rejected at every depth")
  func fieldNames() {
    for name in ["", "__x__", "__name__", "____", String(repeating: "x", count: 1501)] {
      #expect(Self.rejection([name: 1]) != nil)
      #expect(Self.rejection(["a": [[name: 1]]]) != nil)
    }
    #expect(Self.rejection(["__id__": 1]) == "field name __id__ is reserved")
    #expect(Self.rejection(["": 1]) == "The property.name is the empty string.")
    #expect(Self.rejection([String(repeating: "x", count: 1500): 1]) == nil)
    #expect(Self.rejection(["__x": 1, "a.b": 2, "___": 3]) == nil)
  }

  @Test("Text and bytes of 1,048,487 bytes are accepted, longer values are rejected")
  func valueLength() {
    #expect(Self.rejection(["f": .bytes([UInt8](repeating: 1, count: 1_048_487))]) == nil)
    #expect(
      Self.rejection(["blob": .bytes([UInt8](repeating: 1, count: 1_048_488))])
        == "The value of property \"blob\" is longer than 1048487 bytes.")
    #expect(Self.rejection(["f": .string(String(repeating: "x", count: 1_048_488))]) != nil)
  }

  @Test("Nested arrays, out-of-range geo points and timestamps, and long vectors are rejected")
  func values() {
    #expect(Self.rejection(["f": [[1]]]) == "Nested arrays are not allowed")
    #expect(Self.rejection(["f": [["m": [1]]]]) == nil)
    #expect(
      Self.rejection(["f": .geoPoint(GeoPoint(latitude: 91, longitude: 0))])
        == "Geo point latitude '91.0' outside permitted range -90.0 to 90.0.")
    #expect(Self.rejection(["f": .geoPoint(GeoPoint(latitude: 0, longitude: -180.5))]) != nil)
    #expect(Self.rejection(["f": .geoPoint(GeoPoint(latitude: .nan, longitude: 0))]) != nil)
    #expect(Self.rejection(["f": .timestamp(Timestamp(seconds: 253_402_300_800))]) != nil)
    #expect(Self.rejection(["f": .timestamp(.maximum), "g": .timestamp(.minimum)]) == nil)
    #expect(Self.rejection(["f": .vector([Double](repeating: 0, count: 2048))]) == nil)
    #expect(Self.rejection(["f": .vector([Double](repeating: 0, count: 2049))]) != nil)
    #expect(
      Self.rejection(["f": .pendingServerTimestamp(PendingServerTimestamp(localWriteTime: .epoch))]) != nil)
  }

  @Test("Stored timestamps are truncated to microseconds at every depth")
  func storedForm() {
    let time = Value.timestamp(Timestamp(seconds: 1, nanoseconds: 1999))
    let truncated = Value.timestamp(Timestamp(seconds: 1, nanoseconds: 1000))
    let fields: MapValue = ["a": time, "b": [["c": time], 1], "d": "x"]
    #expect(fields.stored == ["a": truncated, "b": [["c": truncated], 1], "d": "x"])
    #expect(fields.stored.stored == fields.stored)
  }
}
