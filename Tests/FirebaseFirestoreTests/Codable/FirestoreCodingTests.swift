// Tests coding of documents with Codable: the stored type of each Swift type, and the Swift value of each
// stored type.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

private struct WrappedProperties: Codable {
  @DocumentID var id: String?
  @ServerTimestamp var updated: Date?
  @ExplicitNull var sub: String?
  var note: String?
}

private struct ValueTypes: Codable {
  var at: GeoPoint
  var when: Timestamp
  var day: Date
  var raw: Data
  var link: URL
  var vector: VectorValue
  var ref: DocumentReference
  var deep: [String: [Inner]]
  struct Inner: Codable, Equatable { var n: Int }
}

private struct WithReference: Codable {
  @DocumentID var self_: DocumentReference?
  var n: Int
}

@Suite("Firestore coding", .timeLimit(.minutes(10))) struct FirestoreCodingTests {
  private let client = TestClient.make(port: 1)

  @Test("nil is omitted, null or a server timestamp, depending on the property wrapper")
  func nilProperties()
    throws
  {
    let fields = try Firestore.Encoder().encode(WrappedProperties(id: nil, updated: nil, sub: nil))
    #expect(Set(fields.keys) == ["updated", "sub"])
    #expect(fields["sub"] is NSNull)
    #expect(fields["updated"] as? FieldValue === FieldValue.serverTimestamp())
  }

  @Test(
    "a @ServerTimestamp with a value is encoded as a timestamp, and decoding without its field throws keyNotFound"
  )
  func serverTimestamp() throws {
    let time = Timestamp(seconds: 5, nanoseconds: 500_000_000)
    let fields = try Firestore.Encoder().encode(
      WrappedProperties(id: nil, updated: time.dateValue(), sub: "s"))
    #expect(fields["updated"] as? Timestamp == time)
    let document = client.document("b/x")
    let decoded = try Firestore.Decoder().decode(
      WrappedProperties.self, from: ["updated": time, "sub": "s"], in: document)
    #expect(decoded.updated == time.dateValue())
    #expect {
      try Firestore.Decoder().decode(WrappedProperties.self, from: ["sub": "s"], in: document)
    } throws: { error in
      if case DecodingError.keyNotFound(let key, _) = error { return key.stringValue == "updated" }
      return false
    }
  }

  @Test("decoding an @ExplicitNull property without its field throws keyNotFound")
  func explicitNull() throws {
    let document = client.document("b/x")
    #expect {
      try Firestore.Decoder().decode(WrappedProperties.self, from: ["updated": Timestamp()], in: document)
    } throws: { error in
      if case DecodingError.keyNotFound(let key, _) = error { return key.stringValue == "sub" }
      return false
    }
    let decoded = try Firestore.Decoder().decode(
      WrappedProperties.self, from: ["updated": NSNull(), "sub": NSNull(), "id": "ignored"], in: document)
    #expect(decoded.id == "x" && decoded.updated == nil && decoded.sub == nil && decoded.note == nil)
  }

  @Test("@DocumentID requires a document reference for decoding and is never encoded")
  func documentID()
    throws
  {
    #expect(throws: FirestoreDecodingError.self) {
      try Firestore.Decoder().decode(WrappedProperties.self, from: ["updated": NSNull(), "sub": NSNull()])
    }
    #expect(throws: FirestoreDecodingError.self) {
      try JSONDecoder().decode(WithReference.self, from: Data(#"{"self_": null, "n": 1}"#.utf8))
    }
    let document = client.document("b/y")
    let decoded = try Firestore.Decoder().decode(WithReference.self, from: ["n": 1], in: document)
    #expect(decoded.self_ == document)
    #expect(try Firestore.Encoder().encode(decoded).keys.sorted() == ["n"])
  }

  @Test("Firestore's value types are stored unchanged")
  func firestoreTypes() throws {
    let value = ValueTypes(
      at: GeoPoint(latitude: 1, longitude: 2), when: Timestamp(seconds: 5, nanoseconds: 6000),
      day: Date(timeIntervalSince1970: 1.5), raw: Data([9]),
      link: try #require(URL(string: "https://example.com")), vector: FieldValue.vector([1.0]),
      ref: client.document("a/b"), deep: ["k": [.init(n: 1)]])
    let fields = try Firestore.Encoder().encode(value)
    #expect(fields["at"] is GeoPoint && fields["when"] is Timestamp && fields["raw"] is Data)
    #expect(fields["day"] as? Timestamp == Timestamp(seconds: 1, nanoseconds: 500_000_000))
    #expect(fields["link"] as? String == "https://example.com" && fields["ref"] is DocumentReference)
    let decoded = try Firestore.Decoder().decode(ValueTypes.self, from: fields)
    #expect(decoded.at == value.at && decoded.when == value.when && decoded.day == value.day)
    #expect(decoded.raw == value.raw && decoded.link == value.link && decoded.vector == value.vector)
    #expect(decoded.ref == value.ref && decoded.deep == value.deep)
  }

  @Test(
    "decoding a URL from an invalid string gives dataCorrupted with the field's path, and from a number typeMismatch"
  )
  func invalidURLs() {
    struct Link: Codable { var link: URL }
    #expect {
      try Firestore.Decoder().decode(Link.self, from: ["link": ""])
    } throws: { error in
      guard case DecodingError.dataCorrupted(let context) = error else { return false }
      return context.codingPath.map(\.stringValue) == ["link"]
    }
    #expect {
      try Firestore.Decoder().decode(Link.self, from: ["link": 5])
    } throws: { error in
      if case DecodingError.typeMismatch = error { true } else { false }
    }
  }

  @Test("coders such as JSONEncoder encode Timestamp and GeoPoint, and reject references and field values")
  func otherCoders() throws {
    let json = JSONEncoder()
    json.outputFormatting = .sortedKeys
    #expect(
      String(decoding: try json.encode(Timestamp(seconds: 1, nanoseconds: 2)), as: UTF8.self)
        == #"{"nanoseconds":2,"seconds":1}"#)
    #expect(
      try JSONDecoder().decode(GeoPoint.self, from: Data(#"{"latitude":1,"longitude":2}"#.utf8))
        == GeoPoint(latitude: 1, longitude: 2))
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(GeoPoint.self, from: Data(#"{"latitude":100,"longitude":2}"#.utf8))
    }
    #expect(throws: FirestoreEncodingError.self) { try json.encode(client.document("a/b")) }
    #expect(throws: FirestoreEncodingError.self) { try json.encode(FieldValue.delete()) }
  }

  @Test("a top level that is not a map is rejected")
  func topLevel() {
    #expect(throws: EncodingError.self) { try Firestore.Encoder().encode([1, 2]) }
    #expect(throws: EncodingError.self) { try Firestore.Encoder().encode("text") }
    #expect(throws: EncodingError.self) { try Firestore.Encoder().encode(["n": Double.nan]) }
  }

  @Test("invalid data throws the cases of DecodingError that Firebase's guides handle")
  func decodingErrors() {
    func kind(_ data: Any) -> String {
      do {
        _ = try Firestore.Decoder().decode(Book.self, from: data, in: client.document("books/b"))
        return "decoded"
      } catch {
        switch error {
        case DecodingError.typeMismatch: return "mismatch"
        case DecodingError.valueNotFound: return "absent"
        case DecodingError.keyNotFound: return "key"
        case DecodingError.dataCorrupted: return "corrupted"
        default: return "\(error)"
        }
      }
    }
    let good: [String: Any] = ["title": "t", "numberOfPages": 1, "author": "a"]
    #expect(kind(good) == "decoded")
    #expect(kind(NSNull()) == "absent")
    #expect(kind(good.merging(["numberOfPages": "x"]) { $1 }) == "mismatch")
    #expect(kind(good.merging(["numberOfPages": 1.5]) { $1 }) == "corrupted")
    #expect(kind(good.filter { $0.key != "title" }) == "key")
  }

  @Test("single-value types and coding keys are supported")
  func codingKeys() throws {
    let entry = ColorEntry(id: nil, color: Color(hex: "#11223344"))
    let fields = try Firestore.Encoder().encode(entry)
    #expect(fields["color"] as? String == "#11223344" && fields.count == 1)
    let language = ProgrammingLanguage(id: nil, name: "Swift", year: Date(timeIntervalSince1970: 0))
    let stored = try Firestore.Encoder().encode(language)
    #expect(Set(stored.keys) == ["language_name", "year"])
    let decoded = try Firestore.Decoder().decode(
      ProgrammingLanguage.self, from: stored, in: client.document("languages/swift"))
    #expect(decoded.name == "Swift" && decoded.id == "swift" && decoded.reasonWhyILoveThis.isEmpty)
  }

  @Test("NSErrors of Firestore's domain bridge to FirestoreErrorCode")
  func errorBridging() {
    let error: any Error = NSError(domain: FirestoreErrorDomain, code: 14)
    #expect((error as? FirestoreErrorCode)?.code == .unavailable)
    #expect((NSError(domain: "other", code: 14) as any Error) as? FirestoreErrorCode == nil)
    var matched = false
    switch error {
    case FirestoreErrorCode.unavailable: matched = true
    default: break
    }
    #expect(matched)
    #expect(FirestoreErrorDomain == "FIRFirestoreErrorDomain")
    let codes: [FirestoreErrorCode.Code] = [
      .OK, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists,
      .permissionDenied,
      .resourceExhausted, .failedPrecondition, .aborted, .outOfRange, .unimplemented, .internal, .unavailable,
      .dataLoss, .unauthenticated,
    ]
    #expect(codes.map(\.rawValue) == Array(0...16))
  }
}
