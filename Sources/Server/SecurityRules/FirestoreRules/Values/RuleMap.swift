// A map of the rules language. A stored map is not copied.

package import FirestoreModel

/// A map in rules: a stored map, a document, or entries that an expression made.
package enum RuleMap: Sendable {
  /// A stored map.
  case stored(MapValue)
  /// Entries in the order of the expression, without repeated keys.
  case built([Entry])
  /// A document: `data`, `id` and `__name__`.
  case document(RuleDocument)

  /// An entry of a built map.
  package struct Entry: Sendable {
    /// The key.
    package var key: RuleText
    /// The value.
    package var value: RuleValue

    /// Makes an entry.
    package init(_ key: RuleText, _ value: RuleValue) {
      self.key = key
      self.value = value
    }
  }

  /// The number of entries.
  var count: Int {
    switch self {
    case .stored(let fields): fields.count
    case .built(let entries): entries.count
    case .document: 3
    }
  }

  /// The value of a key, or nil if the map has none. All keys of stored maps and documents are valid Unicode.
  subscript(key: RuleText) -> RuleValue? {
    switch self {
    case .stored(let fields): key.isValid ? fields[key.string].map(RuleValue.init) : nil
    case .built(let entries): entries.first { $0.key == key }?.value
    case .document(let document): key.isValid ? document[key.string] : nil
    }
  }

  /// The value of a key that is valid Unicode, or nil if the map has none.
  subscript(key: String) -> RuleValue? {
    switch self {
    case .stored(let fields): fields[key].map(RuleValue.init)
    case .built: self[RuleText(key)]
    case .document(let document): document[key]
    }
  }

  /// The keys in the order of the map's values.
  var keys: [RuleText] {
    switch self {
    case .stored(let fields): fields.entries.map { RuleText($0.key) }
    case .built(let entries): entries.map(\.key)
    case .document: RuleDocument.keys
    }
  }

  /// The entries in the map's order.
  var entries: [Entry] {
    switch self {
    case .stored(let fields): fields.entries.map { Entry(RuleText($0.key), RuleValue($0.value)) }
    case .built(let entries): entries
    case .document(let document): RuleDocument.keys.map { Entry($0, document[$0.string] ?? .null) }
    }
  }
}

/// A document as rules see it.
package final class RuleDocument: Sendable {
  /// The document's path.
  package let path: ResourcePath
  /// The database's id.
  package let database: String
  /// The fields.
  package let fields: MapValue

  /// Makes a document.
  package init(database: String, path: ResourcePath, fields: MapValue) {
    self.database = database
    self.path = path
    self.fields = fields
  }

  /// The members, sorted.
  static let keys = ["__name__", "data", "id"].map(RuleText.init)

  subscript(key: String) -> RuleValue? {
    switch key {
    case "data": .map(.stored(fields))
    case "id": .text(path.id ?? "")
    case "__name__": .path(RulePath(database: database, path: path))
    default: nil
    }
  }
}
