// The claims of a token, converted once to values of Cloud Firestore and of the Realtime Database.
//
// Invariant: the claims are immutable and shared, so that copying a principal copies a reference.

package import FirestoreModel
package import JSON
package import RealtimeModel

/// The claims of a verified token.
package final class Claims: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// The claims as JSON, in the order of the token.
  package let json: JSONObject
  /// The claims as a value of Cloud Firestore.
  package let fields: MapValue
  /// The claims as a value of the Realtime Database. Nulls and empty objects are omitted. Keys are not validated,
  /// because the name of a claim may be a URL.
  package let node: Node

  /// Converts claims.
  package init(_ json: JSONObject) {
    self.json = json
    fields = Claims.map(json)
    node = Claims.node(.object(json))
  }

  /// Makes claims of name and value pairs.
  package convenience init(dictionaryLiteral elements: (String, JSONValue)...) {
    var json = JSONObject()
    for (key, value) in elements { json[key] = value }
    self.init(json)
  }

  /// No claims.
  package static let none = Claims(JSONObject())

  /// Whether the claims are equal, in any order.
  package static func == (a: Claims, b: Claims) -> Bool { a === b || a.fields == b.fields }

  /// Hashes the claims.
  package func hash(into hasher: inout Hasher) { hasher.combine(fields) }

  private static func map(_ object: JSONObject) -> MapValue {
    MapValue(unsorted: object.members.map { MapValue.Entry(key: $0.key, value: value($0.value)) })
  }

  private static func value(_ json: JSONValue) -> FirestoreModel.Value {
    switch json {
    case .null: .null
    case .bool(let bool): .boolean(bool)
    case .int(let int): .integer(int)
    case .double(let double): .double(double)
    case .string(let string): .string(string)
    case .array(let elements): .array(elements.map(value))
    case .object(let object): .map(map(object))
    }
  }

  private static func node(_ json: JSONValue) -> Node {
    switch json {
    case .null: .empty
    case .bool(let bool): .leaf(.bool(bool))
    case .int(let int): .leaf(.int(int))
    case .double(let double): .leaf(.double(double))
    case .string(let string): .leaf(.string(string))
    case .array(let elements):
      .object(elements.enumerated().map { (ChildKey(String($0.offset)), node($0.element)) })
    case .object(let object): .object(object.members.map { (ChildKey($0.key), node($0.value)) })
    }
  }
}
