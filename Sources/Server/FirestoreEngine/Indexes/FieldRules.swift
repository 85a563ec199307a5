// Stores which fields of a collection group have automatic index entries, as a tree over field paths.
//
// Invariant: a field without a node in the tree has the rules of the nearest enclosing field with a node.

import FirestoreModel

/// Whether a field and its nested fields have automatic entries.
struct FieldRules: Sendable, Equatable {
  /// Whether the field's value has an entry.
  var indexesValue = true
  /// Whether each element has an entry if the field's value is an array.
  var indexesElements = true
  /// The nested fields with different rules, by the UTF-8 bytes of their names.
  private var children: [[UInt8]: FieldRules] = [:]

  /// Everything is indexed.
  static let automatic = FieldRules()

  private init(value: Bool = true, elements: Bool = true) {
    indexesValue = value
    indexesElements = elements
  }

  /// Makes the rules that the configured overrides define.
  init(_ overrides: [IndexState.Override]) {
    for override in overrides.sorted(by: { $0.field.count < $1.field.count }) {
      set(override.field[...], value: override.value, elements: override.elements)
    }
  }

  private mutating func set(_ path: ArraySlice<String>, value: Bool, elements: Bool) {
    guard let name = path.first else {
      indexesValue = value
      indexesElements = elements
      return
    }
    var child = children[Array(name.utf8)] ?? FieldRules(value: indexesValue, elements: indexesElements)
    child.set(path.dropFirst(), value: value, elements: elements)
    children[Array(name.utf8)] = child
  }

  /// The rules of a nested field.
  func child(_ name: String) -> FieldRules {
    if children.isEmpty { return self }
    return children[Array(name.utf8)] ?? FieldRules(value: indexesValue, elements: indexesElements)
  }

  /// The rules of a field.
  subscript(path: FieldPath) -> FieldRules { path.segments.reduce(self) { $0.child($1) } }

  /// Rules that include the entries of these rules and those of `other`.
  func union(_ other: FieldRules) -> FieldRules { merged(other) { $0 || $1 } }

  /// Rules that include only the entries that these rules and `other` both include.
  func intersection(_ other: FieldRules) -> FieldRules { merged(other) { $0 && $1 } }

  private func merged(_ other: FieldRules, _ combine: (Bool, Bool) -> Bool) -> FieldRules {
    var rules = FieldRules(
      value: combine(indexesValue, other.indexesValue),
      elements: combine(indexesElements, other.indexesElements))
    for name in Set(children.keys).union(other.children.keys) {
      let ownRules = children[name] ?? FieldRules(value: indexesValue, elements: indexesElements)
      let otherRules =
        other.children[name] ?? FieldRules(value: other.indexesValue, elements: other.indexesElements)
      rules.children[name] = ownRules.merged(otherRules, combine)
    }
    return rules
  }
}
